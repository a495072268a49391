//! Channels, in both versions of the protocol, and what the server says by itself.

use super::*;

#[test]
fn in_resp2_messages_are_told_from_replies() {
    let mut world = World::new();
    world.asks("SUBSCRIBE a b\r\nPING\r\nUNSUBSCRIBE\r\nGET x\r\n");
    let said = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nm\r\n\
                *3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n\
                *3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$1\r\nm\r\n\
                *3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n$-1\r\n";
    world.says(said);
    assert_eq!(world.client, said.as_bytes());
    assert_eq!(world.noted(), ["read x get Done"]);
    assert!(world.session.is_idle() && !world.session.listens());
    // A value that looks like a message is none where nothing is subscribed to.
    world.asks("LRANGE a 0 -1\r\nGET b\r\n").says("*1\r\n$7\r\nmessage\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a lrange Done", "read b get Done"]);
}

#[test]
fn in_resp3_pushes_come_at_any_time() {
    let mut world = World::new();
    world.asks("HELLO 3\r\n").says("%1\r\n+proto\r\n:3\r\n");
    world.asks("PSUBSCRIBE a*\r\nGET x\r\nLRANGE l 0 -1\r\nPUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nGET y\r\n");
    let invalidated = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n";
    world.says(">3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n").says(invalidated);
    world.says(format!("$1\r\n1\r\n{invalidated}*1\r\n$7\r\nmessage\r\n"));
    world.says(">3\r\n$12\r\npunsubscribe\r\n$2\r\na*\r\n:0\r\n>3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n_\r\n");
    assert_eq!(world.noted(), ["read x get Done", "read l lrange Done", "read y get Done"]);
    assert!(world.session.is_idle());
}

/// Redis 7.0.15 writes a message that a command has sent to its own client wherever it is: into the middle of its reply.
#[test]
fn in_resp3_pushes_stand_inside_replies_and_shift_none() {
    let push = ">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n";
    let mut world = World::new();
    world.asks("HELLO 3\r\nSUBSCRIBE ch\r\n");
    world.says("%1\r\n+proto\r\n:3\r\n>3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n");
    world.asks("MULTI\r\nPUBLISH ch m\r\nGET junk\r\nKEYS *\r\nEXEC\r\nSET junk 1\r\nAUTH billing guess\r\nGET a\r\n");
    world.asks("MGET a b\r\nSMEMBERS s\r\nHGETALL h\r\nGET b\r\n").got();
    let said = format!(
        "+OK\r\n{push}+QUEUED\r\n{push}+QUEUED\r\n+QUEUED\r\n\
         *3\r\n{push}:1\r\n_\r\n{push}{push}*1\r\n{push}$1\r\na\r\n+OK\r\n-WRONGPASS no\r\n$1\r\n1\r\n\
         *2\r\n|1\r\n+ttl\r\n{push}:7\r\n{push}$1\r\n1\r\n{push}_\r\n\
         ~2\r\n{push}:1\r\n{push}:2\r\n%1\r\n{push}+f\r\n{push}*1\r\n{push}:1\r\n{push}_\r\n"
    );
    world.answers(&said);
    assert_eq!(world.got(), text(said.as_bytes()), "bytes pass as they are");
    let noted = [
        "read junk get Done",
        "read a keys Done",
        "write junk set Done",
        "read a get Done",
        "read a mget Done",
        "read b mget Done",
        "read s smembers Done",
        "read h hgetall Done",
        "read b get Done",
    ];
    assert_eq!(world.noted(), noted);
    assert!(world.session.is_idle());
}

/// A message is kept from nobody, in whatever pieces it comes, where the reply that it stands in is.
#[test]
fn pushes_inside_a_reply_that_is_not_wanted_leave() {
    let push = ">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n";
    let said = format!("*2\r\n$5\r\nvalue\r\n{push}{push}_\r\n+PONG\r\n");
    for piece in 1..said.len() {
        let mut world = World::new();
        world.asks("HELLO 3\r\n").says("%1\r\n+proto\r\n:3\r\n").got();
        world.asks("CLIENT REPLY SKIP\r\nMGET a b\r\nPING\r\n");
        for piece in said.as_bytes().chunks(piece) {
            world.says(piece);
        }
        assert_eq!(world.got(), text(format!("{push}{push}+PONG").as_bytes()), "in pieces of {piece}");
    }
}

/// As Redis 7.0.15 has it: `CLIENT REPLY` keeps back replies, and neither messages nor what is said of subscriptions.
#[test]
fn what_is_said_of_subscriptions_is_not_kept_back() {
    for (reply, next) in [("OFF", ""), ("SKIP", "$2\r\nok\r\n")] {
        let mut world = World::new();
        world.asks(format!("CLIENT REPLY {reply}\r\nPSUBSCRIBE a* b*\r\nPING ok\r\n"));
        let said = "*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n*3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:2\r\n\
                    *4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$2\r\nab\r\n$1\r\nm\r\n";
        for byte in said.bytes() {
            world.says([byte]);
        }
        world.says("$2\r\nok\r\n");
        assert_eq!(text(&world.client), text(format!("{said}{next}").as_bytes()), "{reply}");
    }
    let mut world = World::new();
    world.asks("CLIENT REPLY OFF\r\nSUBSCRIBE a\r\n").says("-NOPERM").says(" no\r\n");
    assert_eq!(world.got(), "", "an error is a reply");
}

#[test]
fn what_monitor_tells_answers_nothing() {
    let mut world = World::new();
    world.asks("MONITOR\r\n").says("+OK\r\n+1700000000.123456 [0 192.0.2.9:1] \"get\" \"z\"\r\n");
    // A script could answer with such a line.
    world.asks("GET a\r\nPING\r\n").says("+1700000000.123457 [0 192.0.2.9:1] \"get\" \"a\"\r\n+PONG\r\n");
    let got = world.got();
    assert!(
        got.contains("-BULLA get is not relayed while MONITOR goes on") && got.ends_with("+PONG"),
        "{got}"
    );
    assert!(world.session.listens());
    world.asks("RESET\r\nGET a\r\n").says("+RESET\r\n$1\r\n1\r\n");
    assert_eq!(world.noted(), ["server monitor Done", "read a get Done"]);
    // Where it is refused, nothing changes.
    world.asks("MONITOR\r\n").says("-NOPERM no\r\n").asks("GET b\r\n").says("$-1\r\n");
    assert_eq!(world.noted().last().unwrap(), "read b get Done");
}

#[test]
fn a_replica_is_relayed_and_said_to_be_unaudited() {
    let mut world = World::with(|context| context.policy.whole = Treatment::Record);
    world.asks("PSYNC ? -1\r\n").says("-NOPERM no\r\n").asks("GET a\r\n").says("$-1\r\n");
    let failed = world.noted();
    assert_eq!(failed.last().unwrap(), "read a get Done", "what the server refused changes nothing");
    world
        .asks("PSYNC ? -1\r\n")
        .says("\n")
        .says("+FULLRESYNC x 0\r\n$3\r\nRDB*1\r\n")
        .asks("REPLCONF ACK 0\r\n");
    assert!(world.noted().contains(&"unaudited  Unknown".to_owned()));
    assert!(text(&world.client).ends_with("$3 RDB*1"));
    assert!(world.sent().ends_with("REPLCONF ACK 0"));
}

/// Whoever tracks all keys is told their names when others write them.
#[test]
fn tracking_keys_that_the_client_did_not_read_is_recorded() {
    let mut world = World::new();
    world.asks("CLIENT TRACKING ON\r\nCLIENT TRACKING OFF\r\nCLIENT TRACKING ON NOLOOP\r\n");
    world.says("+OK\r\n+OK\r\n+OK\r\n");
    assert_eq!(world.noted(), [""; 0]);
    world.asks("CLIENT TRACKING ON PREFIX user: BCAST\r\n").says("+OK\r\n");
    assert_eq!(world.noted(), ["server client|tracking Done"]);
    let mut world = World::with(|context| context.policy.administrative = Treatment::Refuse);
    world.asks("CLIENT TRACKING ON bcast\r\n");
    assert!(world.got().starts_with("-BULLA client|tracking administers the server"));
}
