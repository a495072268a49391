//! Transactions: what was carried out is recorded with its own result, and what was not is not.

use super::*;

#[test]
fn what_exec_carried_out_is_recorded_with_its_own_result() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nNOSUCH\r\nSELECT 2\r\nLPUSH a y\r\nGET b\r\nEXEC\r\nGET c\r\n");
    world.says("+OK\r\n+QUEUED\r\n-ERR unknown\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    assert_eq!(world.noted(), ["unknowable(undescribed, none) NOSUCH Failed error=ERR"]);
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
    for refused in ["EVAL x 0", "BULLA.PURPOSE x", "CLIENT REPLY OFF", "SUBSCRIBE a", "REPLCONF ACK 1"] {
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

#[test]
fn a_transaction_that_the_server_did_not_begin_is_none() {
    let mut world = World::new();
    world.asks("MULTI\r\n").says("-NOAUTH no\r\n");
    world.asks("BULLA.PURPOSE x\r\nGET a\r\n").says("$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done purpose=x"]);
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
    // Of RENAME what is read, deleted and written.
    assert_eq!((world.noted(), world.notes.missing), (vec!["write a set Done".to_owned()], 4));
    world.session.end(9, &mut world.notes);
    assert_eq!(world.notes.missing, 4);
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
        let intents = ["write a set Unknown db=5 stage=Intended", "write b set Unknown db=3 stage=Intended"];
        assert_eq!(world.noted(), intents, "{end}");
    }
}

#[test]
fn of_a_transaction_the_values_that_are_read_are_not_recorded() {
    let mut world = World::with(|context| context.record_values = Some(1024));
    world.asks("GET a\r\nMULTI\r\nGET a\r\nMGET a b\r\nSET a x\r\nEXEC\r\n");
    world.says("$1\r\n1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    world.says("*3\r\n$1\r\n1\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n+OK\r\n");
    let noted = [
        "read a get Done value=0",
        "read a get Done",
        "read a mget Done",
        "read b mget Done",
        "write a set Done values=2..3",
    ];
    assert_eq!(world.noted(), noted);
}
