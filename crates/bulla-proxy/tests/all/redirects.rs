//! Answers that send clients to another server are counted, and told once.

use super::world::{Client, World};
use bulla::environment::Environment;
use bulla_proxy::proxy::Proxy;
use bulla_proxy::warnings::Kind;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

#[test]
fn answers_that_send_clients_elsewhere_are_counted_and_told_once() {
    let world = World::edged("", None, &[]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let warned = told.clone();
    let config = world.config("", None, "[policy]\nscripts = \"record\"");
    let warn = Arc::new(move |kind: Kind, what: &str| warned.lock().unwrap().push((kind, what.to_owned())));
    let proxy = Proxy::start_warning(&config, world.log(), &Environment::default(), warn).unwrap();
    let mut client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
    let mut answers = |text: &str| {
        let script = format!("return redis.error_reply('{text}')");
        client.command(&[b"EVAL", script.as_bytes(), b"1", b"a"]).told()
    };
    assert_eq!(answers("MOVED 3999 192.0.2.1:6381"), "MOVED 3999 192.0.2.1:6381");
    assert_eq!(proxy.counters().redirects.get(), 1);
    assert_eq!(answers("ASK 3999 192.0.2.1:6381"), "ASK 3999 192.0.2.1:6381");
    assert_eq!(answers("MOVEDNOT 1"), "MOVEDNOT 1");
    assert_eq!(proxy.counters().redirects.get(), 2);
    let told = told.lock().unwrap();
    assert!(told.len() == 1 && told[0].0 == Kind::Redirect && told[0].1.contains("MOVED, ASK"), "{told:?}");
    drop(proxy);
    // What was not done is recorded as such.
    let entries = world.entries();
    assert!(entries[0].starts_with("read a 1") && entries[0].contains("\"error\":\"MOVED\""), "{entries:?}");
}
