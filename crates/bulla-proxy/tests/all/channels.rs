//! Channels before a running server, in both versions of the protocol.

use super::world::{MODES, World, plain};

#[test]
fn messages_come_between_replies_in_both_versions() {
    let world = World::of_workers(1, "mode = \"before-reply\"", "", &[]);
    let mut other = world.connect();
    let mut client = world.connect();
    assert_eq!(client.ask("SUBSCRIBE a"), "Array(3) subscribe a 1");
    assert_eq!(client.ask("PSUBSCRIBE b*"), "Array(3) psubscribe b* 2");
    assert_eq!(other.ask("PUBLISH a one"), "1");
    assert_eq!(client.told(), "Array(3) message a one");
    assert_eq!(client.ask("PING"), "Array(2) pong ");
    assert!(client.ask("GET x").contains("Can't execute 'get'"));
    assert_eq!(client.ask("UNSUBSCRIBE"), "Array(3) unsubscribe a 1");
    assert_eq!(client.ask("PUNSUBSCRIBE"), "Array(3) punsubscribe b* 0");
    assert_eq!(client.ask("GET y"), "null");

    let mut client = world.connect();
    assert!(client.ask("HELLO 3").starts_with("Map"));
    assert_eq!(client.ask("SUBSCRIBE a"), "Push(3) subscribe a 1");
    assert_eq!(client.ask("GET z"), "null");
    assert_eq!(other.ask("PUBLISH a two"), "1");
    assert_eq!(client.told(), "Push(3) message a two");
    assert_eq!(client.ask("CLIENT TRACKING ON"), "OK");
    assert_eq!(client.ask("GET z"), "null");
    assert_eq!(other.ask("SET z 1"), "OK");
    assert_eq!(client.told(), "Push(2) invalidate Array(1) z");
    assert_eq!(client.ask("GET z"), "1");
    let told = world.entries();
    assert_eq!(plain(&told), ["read x 1", "read y 0", "read z 0", "read z 0", "write z 0", "read z 0"]);
}

/// Redis 7.0 writes a message that a command has sent to its own client into the middle of that command's reply, and later ones behind it.
#[test]
fn messages_to_whoever_causes_them_shift_no_reply_and_nobody_acts_as_another() {
    for mode in MODES {
        let arguments = "--user billing on >password ~* +@all --notify-keyspace-events KEA".split(' ');
        let world = World::new(&format!("mode = \"{mode}\""), "", &arguments.collect::<Vec<_>>());
        let mut client = world.connect();
        client.ask("HELLO 3");
        client.ask("SUBSCRIBE ch");
        client.ask("PSUBSCRIBE __keyspace@0__:*");
        let asked = [
            "MULTI",
            "PUBLISH ch m",
            "SET a x",
            "GET junk",
            "EXEC",
            "GET junk",
            "AUTH billing guess",
            "GET a",
        ];
        client.send(asked.map(|line| format!("{line}\r\n")).concat());
        let told = (0..).map(|_| client.told()).filter(|told| !told.starts_with("Push"));
        let told = told.take(asked.len()).collect::<Vec<_>>();
        assert_eq!(told[4..6], ["Array(3) 1 OK null", "null"], "{mode}");
        assert!(told[6].starts_with("WRONGPASS") && told[7] == "x", "{mode}: {told:?}");
        let told = world.entries().into_iter().filter(|told| !told.contains("intended")).collect::<Vec<_>>();
        assert_eq!(plain(&told), ["write a 0", "read junk 0", "read junk 0", "read a 0"], "{mode}");
    }
}
