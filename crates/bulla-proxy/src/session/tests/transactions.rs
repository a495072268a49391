//! Transactions: what was carried out is recorded with its own result, and what was not is not.

use super::*;
use bulla_testkit::allocator::most_held_here;

#[test]
fn what_exec_carried_out_is_recorded_with_its_own_result() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nNOSUCH\r\nSELECT 2\r\nLPUSH a y\r\nGET b\r\nEXEC\r\nGET c\r\n");
    world.says("+OK\r\n+QUEUED\r\n-ERR unknown\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    assert_eq!(world.noted(), ["unknowable(undescribed, -) NOSUCH Failed error=ERR"]);
    world.says("*4\r\n+OK\r\n+OK\r\n-WRONGTYPE no\r\n*-1\r\n$-1\r\n");
    assert_eq!(
        world.noted(),
        [
            "write a set Done",
            "write a lpush Failed error=WRONGTYPE db=2",
            "read b get Done db=2",
            "read c get Done db=2",
        ]
    );
}

#[test]
fn what_was_discarded_or_aborted_is_not_recorded() {
    let mut world = World::new();
    world.asks(
        "MULTI\r\nSET a x\r\nDISCARD\r\nWATCH b\r\nMULTI\r\nSET b x\r\nEXEC\r\nMULTI\r\nSET c x\r\nEXEC\r\n",
    );
    world
        .says("+OK\r\n+QUEUED\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n+OK\r\n+QUEUED\r\n-EXECABORT no\r\n");
    world.asks("MULTI\r\nSET d x\r\nRESET\r\nGET e\r\n").says("+OK\r\n+QUEUED\r\n+RESET\r\n$-1\r\n");
    let noted = world.noted();
    assert_eq!(noted, ["read b watch Done", "read e get Done"]);
}

#[test]
fn after_a_refusal_a_transaction_is_discarded_and_its_exec_aborted() {
    let unqueued = ["CLIENT REPLY OFF", "SUBSCRIBE a", "HELLO 2", "HELLO 3", "HELLO 3 SETNAME x"];
    for refused in [&["EVAL x 0", "BULLA.PURPOSE x", "REPLCONF ACK 1"], &unqueued[..]].concat() {
        let mut world = World::new();
        world.asks(format!("MULTI\r\nSET a x\r\n{refused}\r\nSET b x\r\nEXEC\r\nGET c\r\n"));
        assert_eq!(world.sent(), "MULTI SET a x SET b x *1 $7 DISCARD GET c");
        world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n+O");
        world.says("K\r\n$-1\r\n");
        let got = world.got();
        assert!(got.starts_with("+OK +QUEUED -BULLA "), "{got}");
        let aborted = "+QUEUED -EXECABORT Transaction discarded because of previous errors. $-1";
        assert!(got.ends_with(aborted), "{got}");
        assert_eq!(world.noted(), ["read c get Done"]);
        world.asks("MULTI\r\nSET a x\r\nEXEC\r\n").says("+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        assert_eq!(world.noted(), ["write a set Done"], "the next one runs");
    }
}

/// A reply is what it is from its first byte to its last, whatever the server does within it.
#[test]
fn what_the_reply_to_exec_changes_of_the_connection_leaves_what_that_reply_is() {
    let keys = format!("*50\r\n{}", "$1\r\nk\r\n".repeat(50));
    let mut world = World::with(|context| context.limits.listed_keys = 40);
    world.asks("HELLO 3\r\nSUBSCRIBE ch\r\n");
    world.says("%1\r\n+proto\r\n:3\r\n>3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n");
    // The server has a transaction that it was not to have, and queues what was not to be queued.
    world
        .asks("MULTI\r\nGET a\r\n")
        .says("+OK\r\n+QUEUED\r\n")
        .asks("DISCARD\r\nHELLO 2\r\nGET m\r\nKEYS *\r\nEXEC\r\nGET b\r\n");
    world.says("-NOPERM no\r\n").says_so_often(3, b"+QUEUED\r\n");
    world.says(format!("*4\r\n_\r\n*2\r\n+proto\r\n:2\r\n$7\r\nmessage\r\n{keys}$1\r\n1\r\n"));
    let noted = world.noted();
    let listed = noted.iter().filter(|note| *note == "read k keys Done").count();
    let others =
        noted.iter().filter(|note| *note != "read k keys Done").map(String::as_str).collect::<Vec<_>>();
    let expected =
        ["read a get Done", "read m get Done", "unlisted(10, digest) keys Done", "read b get Done"];
    assert_eq!((listed, others), (40, expected.to_vec()));
}

#[test]
fn a_transaction_that_the_server_did_not_begin_is_none() {
    let mut world = World::new();
    world.asks("MULTI\r\n").says("-NOAUTH no\r\n");
    world.asks("BULLA.PURPOSE x\r\nGET a\r\n").says("$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done purpose=x"]);
}

/// It is the next command, and no transaction.
#[test]
fn a_purpose_before_a_multi_that_is_refused_is_for_nothing_behind_it() {
    let behind = "GET a\r\nEXEC\r\nGET b\r\n";
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        for (multi, refused) in [("MULTI x", "-ERR wrong number"), ("MULTI", "-NOPERM no")] {
            let mut world = World::with(|context| context.mode = mode);
            world.asks(format!("BULLA.PURPOSE session billing\r\nBULLA.PURPOSE x\r\n{multi}\r\n{behind}"));
            world.answers(format!("{refused}\r\n$-1\r\n-ERR EXEC without MULTI\r\n$-1\r\n"));
            let mut noted = world.noted();
            assert!(noted.iter().all(|note| note.contains("purpose=billing")), "{mode:?} {multi}: {noted:?}");
            noted.retain(|note| !note.contains("Intended"));
            assert_eq!(noted.len(), 2, "{mode:?} {multi}: {noted:?}");
        }
        // One inside the transaction leaves that as it is.
        let mut world = World::with(|context| context.mode = mode);
        world.asks(format!("BULLA.PURPOSE x\r\nMULTI\r\nMULTI\r\n{behind}"));
        world.answers("+OK\r\n-ERR MULTI calls can not be nested\r\n+QUEUED\r\n*1\r\n$-1\r\n$-1\r\n");
        let mut noted = world.noted();
        noted.retain(|note| !note.contains("Intended"));
        assert_eq!(noted, ["read a get Done purpose=x", "read b get Done"], "{mode:?}");
    }
    // Nor is it where more comes once it is refused, up to what ends the transaction that there is not.
    let mut world = World::new();
    world.asks("BULLA.PURPOSE x\r\nMULTI\r\nGET a\r\n").says("-NOPERM no\r\n").asks("GET b\r\nEXEC\r\n");
    world.asks("BULLA.PURPOSE y\r\nMULTI\r\nGET c\r\nEXEC\r\n");
    world.says("$-1\r\n$-1\r\n-ERR EXEC without MULTI\r\n+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done", "read b get Done", "read c get Done purpose=y"]);
}

/// It is refused where the proxy expects a transaction, and nobody else acts from there on: the purpose ends all the same.
#[test]
fn a_purpose_ends_with_an_auth_that_is_refused_behind_a_multi_that_is_refused_too() {
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let mut world = World::with(|context| context.mode = mode);
        world.asks("BULLA.PURPOSE SESSION old\r\nMULTI\r\nGET a\r\nAUTH x y\r\nGET b\r\nPING\r\n");
        world.answers("-NOPERM no\r\n$-1\r\n$-1\r\n+PONG\r\n");
        let mut noted = world.noted();
        noted.retain(|note| !note.contains("Intended"));
        assert_eq!(noted, ["read a get Done purpose=old", "read b get Done"], "{mode:?}");
        // Of a transaction that there is, too: the second `MULTI` is what is refused.
        let mut world = World::with(|context| context.mode = mode);
        world.asks("BULLA.PURPOSE old\r\nMULTI\r\nMULTI\r\nAUTH x y\r\nWATCH a\r\nEXEC\r\n");
        world.answers(
            "+OK\r\n-ERR MULTI calls can not be nested\r\n-ERR WATCH inside MULTI is not allowed\r\n+OK\r\n",
        );
        let noted = world.noted();
        assert!(
            !noted.is_empty() && noted.iter().all(|note| !note.contains("purpose")),
            "{mode:?}: {noted:?}"
        );
    }
}

#[test]
fn a_transaction_is_bounded() {
    let mut world = World::with(|context| context.limits.transaction = 3);
    world.asks("MULTI\r\nGET a\r\nGET a\r\nGET a\r\nGET a\r\nEXEC\r\n");
    world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n");
    assert!(world.got().contains("-BULLA the transaction is too long"));
    assert_eq!(world.noted(), [""; 0]);
    // By the memory that it takes up, too.
    let mut world = World::with(|context| context.limits.kept = 1 << 10);
    world.asks("MULTI\r\n").says("+OK\r\n");
    let mut passed = 0;
    while !world.asks("SET a x\r\n").got().contains("-BULLA the transaction is too long") {
        world.says("+QUEUED\r\n");
        passed += 1;
    }
    assert!((100..1000).contains(&passed), "{passed}");
}

/// Clients make a transaction of what somebody has them send at once.
#[test]
fn by_default_a_transaction_has_room_for_what_is_loaded_in_one() {
    let mut world = World::new();
    world.asks("MULTI\r\n").says("+OK\r\n");
    for number in 0..30_000 {
        world.asks(format!(
            "HSET user:{number} mail a@example.org phone 1 city x since 2026 USR {number}\r\n"
        ));
        world.says("+QUEUED\r\n");
    }
    assert!(!world.got().contains("-BULLA"));
}

/// What one command tells is no reason not to know what the others did.
#[test]
fn a_long_result_hides_none_behind_it() {
    let mut world = World::with(|context| context.limits.kept_items = 64);
    world.asks("MULTI\r\nLRANGE l 0 -1\r\nSELECT 5\r\nLPUSH a x\r\nEXEC\r\nGET b\r\n");
    world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*100\r\n");
    world.says_so_often(100, b"$1\r\nx\r\n");
    world.says("+OK\r\n-WRONGTYPE no\r\n$-1\r\n");
    let noted = ["read l lrange Done", "write a lpush Failed error=WRONGTYPE db=5", "read b get Done db=5"];
    assert_eq!(world.noted(), noted);
}

/// Has the log take nothing more.
fn fill(world: &mut World) {
    world.notes.room = Some(0);
}

#[test]
fn a_transaction_of_which_nothing_can_be_recorded_does_not_run() {
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let mut world = World::with(|context| context.mode = mode);
        world.asks("MULTI\r\nSET a x\r\nSET b x\r\n").says("+OK\r\n+QUEUED\r\n+QUEUED\r\n");
        world.noted();
        fill(&mut world);
        world.asks("EXEC\r\nPING\r\n").says("+OK\r\n+PONG\r\n");
        assert_eq!(world.sent(), "MULTI SET a x SET b x *1 $7 DISCARD PING");
        let got = world.got();
        let aborted = "+OK +QUEUED +QUEUED -EXECABORT Transaction discarded because the audit log takes no";
        assert!(got.starts_with(aborted) && got.ends_with(" +PONG"), "{got}");
        assert_eq!((world.noted().len(), world.notes.missing), (0, 0), "{mode:?}");
        // Whoever has nothing to record goes on.
        world.asks("MULTI\r\nPING\r\nEXEC\r\n").says("+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
        assert_eq!(world.sent(), "MULTI PING EXEC");
    }
}

#[test]
fn each_command_that_exec_carried_out_is_recorded_or_counted() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nRENAME a b\r\nSET c x\r\nEXEC\r\n");
    world.notes.room = Some(1);
    let replies = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n+OK\r\n";
    let answered = world.session.from_server(replies, 0, &mut world.notes);
    assert_eq!(answered, Err(Ended::Unrecorded));
    world.session.end(9, &mut world.notes);
    // Of RENAME what is read, deleted and written.
    assert_eq!((world.noted(), world.notes.missing), (vec!["write a set Done".to_owned()], 4));
}

#[test]
fn what_is_sent_behind_an_exec_that_cannot_be_recorded_is_recorded_or_counted() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nEXEC\r\nSET b x\r\nGET c\r\n").says("+OK\r\n+QUEUED\r\n");
    fill(&mut world);
    let answered = world.session.from_server(b"*1\r\n+OK\r\n", 0, &mut world.notes);
    assert_eq!((answered, world.notes.missing), (Err(Ended::Unrecorded), 1));
    world.notes.room = None;
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), ["write b set Unknown", "read c get Unknown"]);
}

/// The server may have refused `MULTI`, or what is said to end the transaction.
#[test]
fn when_the_connection_ends_what_is_not_known_to_be_queued_may_have_been_done() {
    let unanswered = |said: &str, asked: &str| {
        let mut world = World::new();
        world.asks(said).says("+OK\r\n+QUEUED\r\n").asks(asked);
        world.session.end(9, &mut world.notes);
        world.noted().join(", ")
    };
    let queued = "MULTI\r\nSET a x\r\n";
    assert_eq!(unanswered(queued, "SET b x\r\n"), "", "what was queued and not executed is not done");
    assert_eq!(unanswered(queued, "DISCARD\r\n"), "");
    assert_eq!(unanswered(queued, "DISCARD\r\nSET b x\r\n"), "write b set Unknown");
    assert_eq!(unanswered(queued, "EXEC\r\nSET b x\r\n"), "write a set Unknown, write b set Unknown");
    assert_eq!(
        unanswered(queued, "EXEC\r\nMULTI\r\nSET b x\r\n"),
        "write a set Unknown, write b set Unknown"
    );
    // With arguments EXEC is refused, and the transaction is over.
    assert_eq!(unanswered(queued, "EXEC x\r\nSET b x\r\n"), "write a set Unknown, write b set Unknown");
}

#[test]
fn what_is_queued_when_nobody_audits_any_more_may_be_carried_out_and_is_recorded_as_such() {
    let mut world = World::with(|context| context.unfollowable = Unfollowable::Relay);
    world.asks("MULTI\r\nSET a x\r\n").says("+OK\r\n+QUEUED\r\n").asks("*1\r\n!\r\nEXEC\r\n");
    assert_eq!(world.noted(), ["write a set Unknown", "unaudited  Unknown"]);
}

#[test]
fn a_transaction_that_the_server_did_not_end_never_runs() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nDISCARD\r\n").says("+OK\r\n+QUEUED\r\n-NOPERM no\r\n");
    world.asks("EXEC\r\n");
    assert_eq!(world.sent(), "MULTI SET a x DISCARD *1 $7 DISCARD");
    let answered = world.session.from_server(b"-NOPERM no\r\n", 5, &mut world.notes);
    assert_eq!((answered, world.noted()), (Err(Ended::NotDiscarded), vec![]));
}

#[test]
fn an_intent_behind_a_transaction_that_was_discarded_is_in_the_database_before_it() {
    for end in ["DISCARD", "EVAL x 0\r\nEXEC"] {
        let mut world = World::with(|context| context.mode = Mode::BeforeSend);
        world.asks(format!("SELECT 3\r\nMULTI\r\nSELECT 5\r\nSET a x\r\n{end}\r\nSET b x\r\n"));
        world.answers("+OK\r\n+OK\r\n+QUEUED\r\n");
        let intents = ["write a set Unknown db=5 stage=Intended", "write b set Unknown db=3 stage=Intended"];
        assert_eq!(world.noted(), intents, "{end}");
    }
}

#[test]
fn of_a_transaction_the_values_that_are_read_are_recorded_as_outside_of_one() {
    let mut world = World::with(|context| context.record_values = Some(1024));
    world.asks("GET a\r\nMULTI\r\nGET a\r\nMGET a b\r\nSET a x\r\nHGETALL h\r\nEXEC\r\n");
    world.says("$1\r\n1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    world.says("*4\r\n$1\r\n1\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n+OK\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
    let noted = [
        "read a get Done told=1",
        "read a get Done told=1",
        "read a mget Done told=1",
        "read b mget Done told=2",
        "write a set Done values=2..3",
        "read h hgetall Done told=f,v",
    ];
    assert_eq!(world.noted(), noted);
}

/// However the reply to `EXEC` comes, each part of it is as the reply to its command would be.
#[test]
fn replies_inside_that_of_exec_list_keys_as_outside_of_one() {
    let commands = "KEYS *\r\nSCAN 0\r\nRANDOMKEY\r\nKEYS none*\r\nLMPOP 2 a b LEFT\r\nGET c\r\n";
    let keys = "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n";
    let told = format!(
        "{keys}*2\r\n$1\r\n7\r\n*1\r\n$1\r\ne\r\n$1\r\nf\r\n*0\r\n*2\r\n$1\r\nb\r\n*1\r\n$1\r\nx\r\n$3\r\nxyz\r\n"
    );
    let mut outside = World::with(|context| context.limits.listed_keys = 2);
    outside.asks(commands).says(&told);
    let expected = outside.noted();
    let unlisted = expected.iter().position(|note| note == "unlisted(2, digest) keys Done");
    assert!(unlisted == Some(2) && expected.contains(&"update b lmpop Done".to_owned()), "{expected:?}");
    for piece in 1..=told.len() {
        let mut inside = World::with(|context| context.limits.listed_keys = 2);
        inside.asks(format!("MULTI\r\n{commands}EXEC\r\n"));
        inside.says("+OK\r\n").says_so_often(6, b"+QUEUED\r\n");
        inside.got();
        let whole = format!("*6\r\n{told}");
        whole.as_bytes().chunks(piece).for_each(|piece| {
            inside.says(piece);
        });
        assert_eq!(inside.noted(), expected, "in pieces of {piece}");
        assert_eq!(inside.got(), text(whole.as_bytes()));
    }
}

/// Notes sizes and digests.
#[derive(Default)]
struct Sizes(Vec<(Option<u64>, Option<[u8; 32]>)>);

impl Record for Sizes {
    fn missed(&mut self, _: u64) {}

    fn record(&mut self, operation: &Operation<'_>) -> Result<(), Unrecorded> {
        let digest = if let Target::Unlisted(_, digest) = operation.target { digest } else { None };
        self.0.push((operation.size, digest));
        Ok(())
    }

    fn takes(&mut self) -> bool {
        true
    }

    fn now(&mut self) -> i64 {
        NOW
    }

    fn ticket(&self) -> Ticket {
        0
    }
}

#[test]
fn sizes_and_digests_inside_the_reply_to_exec_are_those_outside_of_one() {
    let of = |asked: &str, said: &str| {
        let (mut session, mut sizes) =
            (World::with(|it| it.limits.listed_keys = 1).session, Sizes::default());
        session.from_client(asked.as_bytes(), 0, &mut sizes).unwrap();
        let left = session.to_server.ready(0).len();
        session.to_server.leave(left);
        session.from_server(said.as_bytes(), 0, &mut sizes).unwrap();
        sizes.0
    };
    let (commands, told) = (
        "LRANGE l 0 -1\r\nKEYS *\r\nGET a\r\n",
        "*2\r\n$1\r\nx\r\n$2\r\nyz\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n$2\r\nxx\r\n",
    );
    let outside = of(commands, told);
    assert_eq!(outside.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [Some(19), None, None, Some(2)]);
    assert!(outside[2].1.is_some());
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    assert_eq!(of(&format!("MULTI\r\n{commands}EXEC\r\n"), &format!("{queued}*3\r\n{told}")), outside);
    // Messages that stand inside are nobody's.
    let with_pushes = told.replace("*2\r\n", "*2\r\n>1\r\n$1\r\na\r\n");
    assert_eq!(of(commands, &with_pushes), outside);
    assert_eq!(of(&format!("MULTI\r\n{commands}EXEC\r\n"), &format!("{queued}*3\r\n{with_pushes}")), outside);
}

#[test]
fn what_is_kept_of_a_reply_to_exec_does_not_grow_with_it() {
    let mut world = World::with(|context| context.limits.listed_keys = 10);
    let count = 1000;
    world.asks(format!("MULTI\r\n{}EXEC\r\n", "KEYS *\r\n".repeat(count)));
    world.says("+OK\r\n").says_so_often(count, b"+QUEUED\r\n");
    let keys = format!("*2000\r\n{}", "$5\r\nabcde\r\n".repeat(2000));
    let ((), held) = most_held_here(|| {
        world.says(format!("*{count}\r\n"));
        for _ in 0..count {
            world.says(&keys);
            assert_eq!(world.noted().len(), 11);
            world.got();
        }
    });
    // One of them takes 22 KB on the wire, and the reply 22 MB.
    assert!(held < 1 << 20, "{held}");
}

#[test]
fn of_a_reply_to_exec_that_breaks_off_what_had_come_is_recorded_and_the_rest_is_unknown() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nSELECT 2\r\nSET b x\r\nGET c\r\nEXEC\r\nGET d\r\n");
    world.says("+OK\r\n").says_so_often(4, b"+QUEUED\r\n");
    world.says("*4\r\n+OK\r\n+OK\r\n+O");
    assert_eq!(world.noted(), ["write a set Done"]);
    world.session.end(9, &mut world.notes);
    let rest = ["write b set Unknown db=2", "read c get Unknown db=2", "read d get Unknown db=2"];
    assert_eq!(world.noted(), rest);
}

/// A server that tells fewer results than it had commands is none that is known; nothing is passed over all the same.
#[test]
fn what_the_reply_to_exec_does_not_tell_is_unknown() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nSET b x\r\nEXEC\r\nGET c\r\n");
    world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n*1\r\n+OK\r\n$-1\r\n");
    assert_eq!(world.noted(), ["write a set Done", "write b set Unknown", "read c get Done"]);
    world.asks("MULTI\r\nSET a x\r\nEXEC\r\nGET c\r\n");
    world.says("+OK\r\n+QUEUED\r\n*2\r\n+OK\r\n*1\r\n+OK\r\n$-1\r\n");
    assert_eq!(world.noted(), ["write a set Done", "read c get Done"]);
}

#[test]
fn a_value_is_recorded_with_the_one_of_several_keys_that_the_reply_says_it_is_of() {
    let mut world = World::with(|context| context.record_values = Some(1024));
    world.asks("BLPOP a b 0\r\nBZPOPMIN a b 0\r\nXREAD STREAMS a b 0 0\r\nHELLO 3\r\n");
    world.says("*2\r\n$1\r\nb\r\n$1\r\nx\r\n*3\r\n$1\r\na\r\n$1\r\nm\r\n$1\r\n7\r\n");
    let stream =
        |name: &str| format!("$1\r\n{name}\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\n{name}\r\n");
    world.says(format!("*2\r\n*2\r\n{}*2\r\n{}%0\r\n", stream("a"), stream("b")));
    world.asks("XREAD STREAMS a b 0 0\r\nXREAD STREAMS a b 0 0\r\nSINTER a b\r\nMSETNX a 1 b 2\r\n");
    world.says(format!("%2\r\n{}{}%1\r\n{}~1\r\n$1\r\nx\r\n:1\r\n", stream("a"), stream("b"), stream("b")));
    let noted = [
        "read a blpop Done",
        "update a blpop NotExecuted",
        "read b blpop Done told=x",
        "update b blpop Done",
        "read a bzpopmin Done told=m,7",
        "update a bzpopmin Done",
        "read b bzpopmin Done",
        "update b bzpopmin NotExecuted",
        "read a xread Done told=1-1,f,a",
        "read b xread Done told=1-1,f,b",
        "read a xread Done told=1-1,f,a",
        "read b xread Done told=1-1,f,b",
        "read a xread Done",
        "read b xread Done told=1-1,f,b",
        "read a sinter Done",
        "read b sinter Done",
        "create a msetnx Done values=2..3",
        "create b msetnx Done values=4..5",
    ];
    assert_eq!(world.noted(), noted);
}
