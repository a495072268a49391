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
    // What was sent before counts, answered or not.
    world.asks("SELECT 2\r\nGET a\r\n");
    assert_eq!(world.noted(), ["read a get Unknown db=2 stage=Intended"]);
}
