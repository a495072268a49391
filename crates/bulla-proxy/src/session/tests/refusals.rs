//! What the proxy answers itself takes its place among the replies.

use super::*;

#[test]
fn refusals_take_their_place_and_the_server_gets_nothing_of_them() {
    let mut world = World::new();
    world.asks("GET a\r\nEVAL x 0\r\nGET b\r\n*3\r\n$5\r\nDEBUG\r\n$6\r\nRELOAD\r\n$1\r\nx\r\nGET c\r\n");
    assert_eq!(world.sent(), "GET a GET b GET c");
    assert_eq!(world.got(), "");
    world.says("$1\r\n1\r\n");
    assert!(world.got().starts_with("$1 1 -BULLA eval runs a script"));
    world.says("$1\r\n2\r\n$1\r\n3\r\n");
    let got = world.got();
    assert!(got.starts_with("$1 2 -BULLA debug ") && got.ends_with("$1 3"), "{got}");
    assert_eq!(world.noted(), ["read a get Done", "read b get Done", "read c get Done"]);
}

#[test]
fn what_the_policy_records_passes_and_is_recorded() {
    let mut world = World::with(|context| context.policy.scripts = Treatment::Record);
    world.asks("EVALSHA ab12 1 a\r\nCONFIG GET x\r\nNOSUCH x\r\n").says("$-1\r\n*0\r\n-ERR unknown\r\n");
    assert_eq!(
        world.noted(),
        [
            "read a evalsha Done",
            "write a evalsha Done",
            "unknowable(script, some([97, 98, 49, 50])) evalsha Done",
            "server config|get Done",
            "unknowable(undescribed, none) NOSUCH Failed error=ERR",
        ]
    );
    let mut world = World::with(|context| context.policy.administrative = Treatment::Refuse);
    world.asks("CONFIG GET x\r\nFLUSHALL\r\n");
    assert_eq!((world.sent().as_str(), world.got().matches("-BULLA").count()), ("", 2));
}

#[test]
fn nothing_that_has_to_be_recorded_passes_while_the_log_takes_nothing() {
    let mut world = World::new();
    world.notes.refuses = true;
    world.asks("GET a\r\nPING\r\n").says("+PONG\r\n");
    assert_eq!(world.sent(), "PING");
    assert!(world.got().starts_with("-BULLA the audit log takes no entries"));
    world.notes.refuses = false;
    world.asks("GET a\r\n");
    world.notes.refuses = true;
    let answered = world.session.from_server(b"$6\r\nsecret\r\n", 0, &mut world.notes);
    assert_eq!(answered, Err(Ended::Unrecorded));
    world.drain();
    assert_eq!(world.got(), "", "the reply stays here");
    world.session.tell_unrecorded();
    world.drain();
    assert!(world.got().starts_with("-BULLA the audit log did not keep what this was"));
}

#[test]
fn a_long_command_begins_to_leave_before_its_end_has_come_and_one_that_is_refused_never_ends() {
    let mut world = World::new();
    let value = vec![b'x'; 3 << 20];
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    world.asks(&head);
    let mut most = 0;
    for piece in value.chunks(16 << 10) {
        world.asks(piece);
        most = most.max(world.session.to_server.waiting());
    }
    world.asks("\r\n").says("+OK\r\n");
    assert_eq!(world.server.len(), head.len() + value.len() + 2);
    assert!(most <= HELD, "{most} bytes were held");
    assert_eq!(world.noted(), ["write k set Done"]);

    let mut world = World::new();
    let key = "x".repeat(70 << 10);
    world.asks(format!("GET a\r\n*4\r\n$4\r\nSORT\r\n${}\r\n{key}\r\n", key.len()));
    assert!(world.server.len() > HELD);
    world.asks("$2\r\nBY\r\n$2\r\nw*\r\nGET b\r\n").says("$-1\r\n");
    assert!(!text(&world.server).contains("w*"), "it has no end");
    assert!(world.got().starts_with("$-1 -BULLA sort names keys by patterns"));
    assert!(world.session.is_over());

    let mut world = World::new();
    world.asks(format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{key}", 2 * key.len()));
    assert_eq!(world.server.len(), 0);
    assert!(world.got().starts_with("-BULLA") && world.session.is_over());
}

#[test]
fn replies_are_withheld_as_the_client_wants_and_what_is_done_is_known_all_the_same() {
    let mut world = World::new();
    world.asks("CLIENT REPLY SKIP\r\nSET a x\r\nGET a\r\nCLIENT REPLY OFF\r\nSET b x\r\nEVAL x 0\r\nCLIENT REPLY ON\r\nGET b\r\n");
    assert_eq!(world.sent(), "SET a x GET a SET b x GET b");
    world.says("+OK\r\n$1\r\nx\r\n-OOM no\r\n$-1\r\n");
    assert_eq!(world.got(), "$1 x +OK $-1");
    assert_eq!(
        world.noted(),
        ["write a set Done", "read a get Done", "write b set Failed error=OOM", "read b get Done"]
    );
    world.asks("CLIENT REPLY OFF\r\nGET large\r\n").says(format!("${}\r\n", 3 << 20));
    world.says_so_often(48, &[b'x'; 64 << 10]);
    assert!(world.session.to_client.waiting() <= 64 << 10);
    world.says("\r\n").asks("RESET\r\n").says("+RESET\r\n");
    assert_eq!(world.got(), "+RESET");
}

#[test]
fn nobody_shifts_replies_against_their_commands() {
    let mut world = World::with(|context| context.policy.whole = Treatment::Record);
    world.asks("REPLCONF ACK 0\r\nCLIENT REPLY SKIP x\r\nAUTH eve guess\r\nGET a\r\n");
    world.says("-ERR syntax\r\n-WRONGPASS no\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done"]);
    assert!(world.got().starts_with("-BULLA replconf is not relayed"));
}

#[test]
fn what_is_no_command_ends_the_connection_once_all_before_it_is_answered() {
    let mut world = World::new();
    world.asks("GET a\r\n*1\r\n!\r\nGET b\r\n");
    assert_eq!(world.sent(), "GET a");
    assert!(!world.session.is_over());
    world.says("$-1\r\n");
    assert_eq!(world.got(), "$-1 -ERR Protocol error: expected '$' before an argument");
    assert!(world.session.is_over() && world.session.is_violated());
    let mut world = World::with(|context| context.unfollowable = Unfollowable::Relay);
    world.asks("GET a\r\n*1\r\n!\r\nGET b\r\n").says("what?");
    assert_eq!(world.sent(), "GET a *1 ! GET b");
    assert_eq!(world.got(), "what?");
    assert_eq!(world.noted(), ["read a get Unknown", "unaudited  Unknown"]);
}
