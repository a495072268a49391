//! When bytes may leave.

use super::*;

fn world(mode: Mode) -> World {
    let mut world = World::with(|context| context.mode = mode);
    world.durable = 0;
    world
}

#[test]
fn before_reply_a_reply_waits_for_its_entry_and_all_before_it() {
    let mut world = world(Mode::BeforeReply);
    world.asks("GET a\r\nPING\r\nGET b\r\nEVAL x 0\r\n");
    assert_eq!(world.sent(), "GET a PING GET b EVAL x 0".strip_suffix(" EVAL x 0").unwrap());
    world.says("$1\r\n1\r\n+PONG\r\n$1\r\n2\r\n");
    assert_eq!(world.got(), "");
    world.durable = 1;
    world.drain();
    assert_eq!(world.got(), "$1 1 +PONG");
    world.durable = 2;
    world.drain();
    assert!(world.got().starts_with("$1 2 -BULLA"));
    world.asks("PING\r\n").says("+PONG\r\n");
    assert_eq!(world.got(), "+PONG");
}

#[test]
fn before_reply_a_long_reply_leaves_once_it_is_durable_that_it_begins() {
    let mut world = world(Mode::BeforeReply);
    world.asks("MULTI\r\nGET a\r\nEXEC\r\n").says(format!("+OK\r\n+QUEUED\r\n*1\r\n${}\r\n", 1 << 20));
    assert_eq!(world.got(), "+OK +QUEUED");
    world.says_so_often(2, &[b'x'; 64 << 10]);
    assert_eq!(world.noted(), ["read a get Unknown stage=Begun"]);
    world.notes.operations.push("it stays counted".to_owned());
    assert_eq!(world.client.len(), 0);
    world.durable = 1;
    world.drain();
    assert!(world.client.len() > 128 << 10);
    world.says_so_often(14, &[b'x'; 64 << 10]);
    assert!(world.session.to_client.waiting() <= 64 << 10, "it is streamed");
    world.says("\r\n");
    assert_eq!(world.noted()[1..], ["read a get Done"]);
    assert!(world.session.to_client.waiting() > 0, "its end waits");
    world.durable = 2;
    world.drain();
    assert_eq!(world.session.to_client.waiting(), 0);
}

#[test]
fn before_send_a_command_waits_until_it_is_durable_that_it_goes() {
    let mut world = world(Mode::BeforeSend);
    world.asks("PING\r\nSET a x\r\nPING\r\n");
    assert_eq!(world.sent(), "PING");
    assert_eq!(world.notes.operations, ["write a set Unknown stage=Intended"]);
    world.durable = 1;
    world.drain();
    assert_eq!(world.sent(), "SET a x PING");
    world.says("+PONG\r\n+OK\r\n+PONG\r\n");
    assert_eq!(world.got(), "+PONG +OK +PONG");
    assert_eq!(world.noted()[1..], ["write a set Done"]);
}

#[test]
fn before_send_an_intent_names_who_acts_once_that_is_known() {
    let mut world = world(Mode::BeforeSend);
    world.durable = Ticket::MAX;
    world.asks("AUTH ada secret\r\nGET a\r\nAUTH eve guess\r\nGET b\r\nPING\r\n");
    assert_eq!((world.sent().as_str(), world.session.wants_client()), ("AUTH ada secret", false));
    assert!(!world.session.is_taken() && world.noted().is_empty());
    world.says("+OK\r\n");
    assert_eq!(world.sent(), "GET a");
    assert_eq!(world.noted(), ["read a get Unknown actor=ada stage=Intended"]);
    world.says("$-1\r\n").says("-WRONGPASS no\r\n");
    assert_eq!(world.sent(), "AUTH eve guess GET b PING");
    world.says("$-1\r\n+PONG\r\n");
    let noted = world.noted();
    assert_eq!(noted[1], "read b get Unknown actor=ada stage=Intended", "{noted:?}");
    assert!(world.session.is_taken() && world.session.wants_client());
    world.asks("HELLO 3\r\nGET c\r\n");
    assert_eq!(world.sent(), "HELLO 3");
    world.says("%0\r\n");
    assert_eq!(world.sent(), "GET c");
    world.noted();
    // A connection that ends meanwhile has done nothing of what is behind.
    world.asks("RESET\r\nGET d\r\n");
    world.noted();
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), ["read c get Unknown actor=ada"]);
}

#[test]
fn before_send_an_intent_names_the_database_once_that_is_known() {
    let mut world = world(Mode::BeforeSend);
    world.durable = Ticket::MAX;
    world.asks("SELECT 2\r\nGET a\r\nSELECT 99\r\nGET b\r\n");
    assert_eq!((world.sent().as_str(), world.noted()), ("SELECT 2", vec![]));
    world.says("+OK\r\n");
    assert_eq!(world.sent(), "GET a SELECT 99");
    assert_eq!(world.noted(), ["read a get Unknown db=2 stage=Intended"]);
    world.says("$-1\r\n-ERR DB index is out of range\r\n");
    assert_eq!(world.sent(), "GET b");
    assert_eq!(world.noted(), ["read a get Done db=2", "read b get Unknown db=2 stage=Intended"]);
    world.says("$-1\r\n").noted();
    // Of a transaction the intents are told before anybody can know it: they name what it asks for.
    world.asks("MULTI\r\nSELECT 99\r\n").says("+OK\r\n").says("+QUEUED\r\n");
    world.asks("GET a\r\nEXEC\r\nGET b\r\n").says("+QUEUED\r\n");
    assert_eq!((world.sent().as_str(), world.noted().len()), ("MULTI SELECT 99 GET a EXEC", 1));
    world.says("*2\r\n-ERR DB index is out of range\r\n$-1\r\n");
    assert_eq!(world.sent(), "GET b");
    assert_eq!(world.noted(), ["read a get Done db=2", "read b get Unknown db=2 stage=Intended"]);
    // Whose data keys are changes with what is swapped.
    world.says("$-1\r\n").asks("SWAPDB 1 2\r\nGET a\r\n");
    assert_eq!(world.sent(), "SWAPDB 1 2");
    world.says("+OK\r\n");
    assert_eq!(world.sent(), "GET a");
    world.says("$-1\r\n").asks("MULTI\r\nSWAPDB 1 2\r\nEXEC\r\nGET a\r\n").answers("+OK\r\n+QUEUED\r\n");
    assert_eq!(world.sent(), "MULTI SWAPDB 1 2 EXEC");
    world.says("*1\r\n+OK\r\n");
    assert_eq!(world.sent(), "GET a");
}

#[test]
fn before_send_a_transaction_of_several_answers_has_intents_in_the_database_that_it_selects() {
    let mut world = World::with(|context| context.mode = Mode::BeforeSend);
    for (asked, said) in
        [("MULTI", "+OK"), ("SELECT 5", "+QUEUED"), ("SET a x", "+QUEUED"), ("EXEC", "*2\r\n+OK\r\n+OK")]
    {
        world.asks(format!("{asked}\r\n")).says(format!("{said}\r\n"));
    }
    assert_eq!(world.noted(), ["write a set Unknown db=5 stage=Intended", "write a set Done db=5"]);
}

/// A server that did not begin the transaction has carried out what was to be in it.
#[test]
fn before_send_an_intent_behind_a_multi_that_is_refused_names_the_database_that_is_in_force() {
    let mut world = World::with(|context| context.mode = Mode::BeforeSend);
    world.asks("MULTI\r\nSELECT 5\r\nSET a x\r\nDISCARD\r\nSET b x\r\n");
    world.answers("-NOPERM no\r\n+OK\r\n+OK\r\n-ERR DISCARD without MULTI\r\n+OK\r\n");
    let noted = world.noted();
    assert!(noted.len() == 4 && noted.iter().all(|note| note.contains("db=5")), "{noted:?}");
}

#[test]
fn at_once_and_before_reply_only_what_may_go_unanswered_is_waited_for() {
    for mode in [Mode::Async, Mode::BeforeReply] {
        let mut world = world(mode);
        world.asks(
            "RESET\r\nHELLO 3\r\nSELECT 1\r\nGET a\r\nBULLA.PURPOSE x\r\nMULTI\r\nGET a\r\nEXEC\r\nGET a\r\n",
        );
        assert_eq!(world.sent(), "RESET HELLO 3 SELECT 1 GET a MULTI GET a EXEC GET a");
    }
}

/// Valkey 8 does not answer an `AUTH` that it refuses while another reply waits to leave: the next one would be taken for its answer.
#[test]
fn what_authenticates_goes_alone_so_that_no_reply_is_taken_for_its_own() {
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let mut world = world(mode);
        world.durable = Ticket::MAX;
        world
            .asks("GET a\r\nPING\r\nAUTH ada guess\r\nGET b\r\n")
            .asks("HELLO 3 AUTH ada guess\r\nGET c\r\n");
        assert_eq!(world.sent(), "GET a PING", "{mode:?}");
        world.says("$-1\r\n");
        assert_eq!((world.sent().as_str(), world.session.is_taken()), ("", false));
        world.says("+PONG\r\n");
        assert_eq!(world.sent(), "AUTH ada guess");
        world.says("-WRONGPASS no\r\n");
        assert_eq!(world.sent(), "GET b");
        world.says("$-1\r\n");
        assert_eq!((world.sent().as_str(), world.session.is_taken()), ("HELLO 3 AUTH ada guess", false));
        world.says("-WRONGPASS no\r\n");
        assert_eq!((world.sent().as_str(), world.session.is_taken()), ("GET c", true));
        // Behind what the proxy answers itself, too.
        world.says("$-1\r\n").asks("EVAL x 0\r\nAUTH ada guess\r\n");
        assert_eq!(world.sent(), "AUTH ada guess");
        // And not where it would be one of several answers.
        world.says("+OK\r\n").asks("MULTI\r\nAUTH ada guess\r\nHELLO 3 AUTH ada guess\r\nEXEC\r\n");
        assert_eq!(world.sent(), "MULTI *1 $7 DISCARD");
        world.says("+OK\r\n+OK\r\n");
        assert!(world.got().ends_with("-EXECABORT Transaction discarded because of previous errors."));
    }
}

#[test]
fn what_never_left_to_the_server_is_not_recorded_as_something_that_it_may_have_done() {
    let mut world = world(Mode::BeforeSend);
    world.asks("SET a x\r\nMULTI\r\nSET b x\r\nEXEC\r\n");
    world.durable = 1;
    world.drain();
    assert_eq!(world.sent(), "SET a x MULTI");
    world.noted();
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), ["write a set Unknown"]);
}

#[test]
fn before_send_nothing_is_relayed_unaudited_before_it_is_durable_that_it_is() {
    for asked in ["!\r\nSET a x\r\n", "SET b\r\n*1\r\n!\r\nSET a x\r\n"] {
        let mut world = World::with(|context| {
            (context.mode, context.unfollowable) = (Mode::BeforeSend, Unfollowable::Relay);
        });
        world.durable = 0;
        world.asks("*1\r\n").asks(asked).asks("GET a\r\n");
        assert_eq!(
            (world.sent().as_str(), world.notes.operations.last().unwrap().as_str()),
            ("", "unaudited  Unknown")
        );
        world.durable = world.notes.ticket();
        world.drain();
        assert_eq!(world.sent(), text(format!("*1\r\n{asked}GET a\r\n").as_bytes()));
    }
}

#[test]
fn before_reply_what_the_server_says_by_itself_begins_no_reply() {
    let mut world = world(Mode::BeforeReply);
    world.asks("HELLO 3\r\n").says("%1\r\n+proto\r\n:3\r\n").asks("GET a\r\n");
    let key = "x".repeat(WINDOW);
    world.says(format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}", key.len()));
    assert_eq!(world.noted(), [""; 0]);
    assert!(world.client.len() > WINDOW, "it leaves");
    world.says("\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done"]);
}
