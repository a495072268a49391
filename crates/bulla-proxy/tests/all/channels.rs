//! Channels before a running server, in both versions of the protocol.

use super::world::{World, plain};

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
