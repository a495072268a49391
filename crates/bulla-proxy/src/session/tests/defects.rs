//! What becomes of commands whose entries a defect keeps from being made.

use super::*;

/// A session whose recorder panics at this command, so often.
fn defective(at: &'static str, times: usize) -> World {
    let mut world = World::new();
    world.notes.defect = Some((at, times));
    world
}

impl World {
    /// The server says what a defect is found at, and the connection ends.
    fn fails(&mut self, bytes: impl AsRef<[u8]>) -> Vec<String> {
        assert_eq!(self.session.from_server(bytes.as_ref(), 5, &mut self.notes), Err(Ended::Defect));
        self.drain();
        self.session.end(9, &mut self.notes);
        self.noted()
    }
}

#[test]
fn what_was_under_way_is_recorded_as_unknown_and_nobody_is_told_a_result() {
    let mut world = defective("getdel", 1);
    world.asks("SET a x\r\nGETDEL b\r\nGET c\r\n");
    let noted = world.fails("+OK\r\n$1\r\nx\r\n$1\r\ny\r\n");
    let unknown = ["read b getdel Unknown", "delete b getdel Unknown", "read c get Unknown"];
    assert_eq!((noted[0].as_str(), &noted[1..]), ("write a set Done", &unknown.map(str::to_owned)[..]));
    assert_eq!((world.got().as_str(), world.notes.missing), ("+OK", 0));
}

#[test]
fn what_no_entry_can_be_made_of_counts_as_missing_and_the_rest_has_its_entries() {
    let mut world = defective("getdel", usize::MAX);
    world.asks("GETDEL b\r\nGET c\r\n");
    assert_eq!(world.fails("$1\r\nx\r\n"), ["read c get Unknown"]);
    assert_eq!(world.notes.missing, 2);
}

#[test]
fn of_a_transaction_each_command_is_recorded() {
    let transaction = "MULTI\r\nSET a x\r\nGETDEL b\r\nGET c\r\nEXEC\r\n";
    let mut world = defective("getdel", 1);
    world.asks(transaction);
    let noted = world.fails("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n$1\r\nx\r\n$-1\r\n");
    let expected =
        ["write a set Done", "read b getdel Unknown", "delete b getdel Unknown", "read c get Unknown"];
    assert_eq!(noted, expected);
    // Where the server tells nothing of what is left of it.
    let mut world = defective("getdel", 1);
    world.asks(transaction);
    let noted = world.fails("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    assert_eq!(noted, expected);
}

#[test]
fn an_intent_that_cannot_be_recorded_keeps_its_command_here() {
    let mut world = World::with(|context| context.mode = Mode::BeforeSend);
    world.notes.defect = Some(("set", usize::MAX));
    let caught = caught(|| world.session.from_client(b"GET a\r\nSET b x\r\n", 0, &mut world.notes));
    assert!(caught.is_err());
    world.drain();
    assert_eq!(world.sent(), "GET a");
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), ["read a get Unknown stage=Intended", "read a get Unknown"]);
    assert_eq!(world.notes.missing, 0);
}
