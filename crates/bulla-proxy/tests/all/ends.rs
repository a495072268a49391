//! How connections end: of the client, of the server, of the proxy.

use super::world::{Client, MODES, World, plain};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// For what comes in any case: a test that waits for longer has failed.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

#[test]
fn whoever_says_that_nothing_more_will_come_gets_all_replies() {
    let world = World::new("", "", &[]);
    let mut client = world.connect();
    client.send("SET a 1\r\nGET a\r\n").finish();
    assert_eq!((client.told(), client.told(), client.told()), ("OK".into(), "1".into(), "the end".into()));
    assert_eq!(plain(&world.entries()), ["write a 0", "read a 0"]);
}

#[test]
fn what_the_server_did_not_answer_is_recorded_as_unknown() {
    let world = World::new("", "", &[]);
    let mut client = world.connect();
    assert_eq!(client.ask("SET a 1"), "OK");
    client.send("BLPOP queue 0\r\n");
    let mut other = world.connect();
    while !other.ask("CLIENT LIST").contains("cmd=blpop") {}
    drop(client);
    while world.proxy().counters().clients.get() > 1 {
        std::thread::yield_now();
    }
    assert_eq!(other.ask("QUIT"), "OK");
    assert_eq!(other.told(), "the end");
    let told = world.entries();
    let of_queue = told.iter().filter(|entry| entry.contains("queue")).cloned().collect::<Vec<_>>();
    assert!(plain(&of_queue).iter().all(|it| it.ends_with("queue 3")) && !of_queue.is_empty(), "{told:?}");
}

/// Of a client that has more commands on their way than may be, nothing is read, not even its end.
#[test]
fn a_client_that_leaves_while_nothing_is_read_from_it_does_not_keep_its_place() {
    let world = World::new("", "[limits]\npipeline = 4\nidle_timeout = \"1 s\"", &[]);
    let mut client = world.connect();
    assert_eq!(client.ask("PING"), "PONG");
    client.send(format!("BLPOP queue 0\r\n{}", "PING\r\n".repeat(20_000)));
    drop(client);
    while world.proxy().counters().clients.get() > 0 {
        std::thread::yield_now();
    }
    let told = world.entries();
    assert!(plain(&told).iter().all(|it| it.ends_with("queue 3")) && !told.is_empty(), "{told:?}");
}

#[test]
fn whoever_says_that_nothing_more_will_come_gets_the_replies_to_more_than_may_be_on_its_way() {
    let world = World::new("", "[limits]\npipeline = 4", &[]);
    let mut client = world.connect();
    client.send("INCR a\r\n".repeat(20_000)).finish();
    assert!((1..=20_000).all(|number| client.told() == number.to_string()));
    assert_eq!(client.told(), "the end");
}

#[test]
fn a_proxy_that_is_stopped_lets_clients_finish_what_they_began() {
    let world = World::new("", "", &[]);
    let mut client = world.connect();
    assert_eq!(client.ask_all(&["MULTI", "SET a 1"]), ["OK", "QUEUED"]);
    let mut idle = world.connect();
    assert_eq!(idle.ask("PING"), "PONG");
    world.proxy().stopper().stop();
    assert_eq!(idle.told(), "the end");
    assert_eq!(client.ask("EXEC"), "Array(1) OK");
    assert_eq!(client.told(), "the end");
    assert_eq!(plain(&world.entries()), ["write a 0"]);
}

#[test]
fn who_says_nothing_for_too_long_is_closed_within_a_transaction_as_well() {
    let world = World::new("", "[limits]\nidle_timeout = \"1 s\"", &[]);
    let mut client = world.connect();
    client.stream.set_read_timeout(PATIENCE).unwrap();
    assert_eq!(client.ask_all(&["MULTI", "SET a 1"]), ["OK", "QUEUED"]);
    assert_eq!(client.told(), "the end");
    assert_eq!(plain(&world.entries()), [""; 0]);
}

/// A server as the one behind this socket, which answers a `SET` and says then what is no reply. Where it is.
fn raving(socket: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
            let (mut to, mut from) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || {
                let mut room = [0; 1 << 10];
                while let Ok(length @ 1..) = client.read(&mut room) {
                    match room[..length].starts_with(b"SET") {
                        true => client.write_all(b"+OK\r\nwhat?").unwrap(),
                        false => server.write_all(&room[..length]).unwrap(),
                    }
                }
            });
        }
    });
    format!("address = \"{address}\"")
}

#[test]
fn what_was_answered_before_the_server_said_what_is_no_reply_is_told() {
    let world = World::edged("", None, &[]);
    let upstream = raving(world.socket().to_owned());
    let proxy = world.start_with(&world.config("", Some(&upstream), "")).unwrap();
    let mut client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
    assert_eq!((client.ask("SET a 1"), client.told()), ("OK".into(), "the end".into()));
    drop(proxy);
    assert_eq!(plain(&world.entries()), ["write a 0"]);
}

#[test]
fn more_clients_than_are_allowed_are_turned_away() {
    let world = World::new("", "[limits]\nclients = 1", &[]);
    let mut client = world.connect();
    assert_eq!(client.ask("PING"), "PONG");
    let mut other = world.connect();
    assert_eq!((other.told(), other.told()), ("ERR max number of clients reached".into(), "the end".into()));
    assert_eq!(world.proxy().counters().turned_away.get(), 1);
    assert_eq!(client.ask("PING"), "PONG");
}

#[test]
fn while_the_log_takes_nothing_commands_are_refused_or_pass_as_configured() {
    for mode in MODES {
        // Each worker learns it for itself.
        let mut world = World::of_workers(1, &format!("mode = \"{mode}\""), "", &[]);
        let (mut client, mut other) = (world.connect(), world.connect());
        assert_eq!(client.ask("SET a 1"), "OK", "{mode}");
        assert_eq!(other.ask_all(&["MULTI", "SET a 2", "SET b 2"]), ["OK", "QUEUED", "QUEUED"], "{mode}");
        world.close_log();
        // What was carried out and could not be recorded, nobody is told.
        assert!(client.ask("GET a").starts_with("BULLA the audit log did not keep what this was"), "{mode}");
        assert_eq!(client.told(), "the end", "{mode}");
        // From then on nothing is carried out, whenever it was sent.
        let told = other.ask_all(&["EXEC", "GET a", "PING"]);
        assert!(told[0].starts_with("EXECABORT") && told[0].contains("takes no entries"), "{mode}: {told:?}");
        assert!(told[1].starts_with("BULLA the audit log takes no entries"), "{mode}: {told:?}");
        assert_eq!(told[2], "PONG", "{mode}");
        assert_eq!(world.around().ask_all(&["GET a", "EXISTS b"]), ["1", "0"], "{mode}");
        // An intent that was not recorded is of nothing that was done.
        let missing = u64::from(mode != "before-send");
        assert_eq!(world.proxy().counters().unrecorded.get(), missing, "{mode}");

        let top = format!("mode = \"{mode}\"\nunrecordable = \"pass\"");
        let mut world = World::of_workers(1, &top, "", &[]);
        let mut client = world.connect();
        assert_eq!(client.ask("SET a 1"), "OK", "{mode}");
        world.close_log();
        assert_eq!(client.ask_all(&["GET a", "MGET a b"])[0], "1", "{mode}");
        // Each once, with an intent before it or without.
        assert_eq!(world.proxy().counters().unrecorded.get(), 3, "{mode}");
    }
}

#[test]
fn of_a_transaction_that_was_carried_out_and_what_is_behind_it_each_operation_is_counted_that_has_no_entry() {
    for mode in MODES {
        let mut world = World::of_workers(1, &format!("mode = \"{mode}\""), "", &[]);
        let mut client = world.connect();
        assert_eq!(
            client.ask_all(&["MULTI", "SET a 1", "MSET b 1 c 1"]),
            ["OK", "QUEUED", "QUEUED"],
            "{mode}"
        );
        world.close_log();
        client.send("EXEC\r\nSET d 1\r\n");
        assert!(client.told().starts_with("BULLA the audit log did not keep what this was"), "{mode}");
        assert_eq!(client.told(), "the end", "{mode}");
        let counted = &world.proxy().counters().unrecorded;
        // The intent of what is behind it ends the connection before any of it leaves.
        let (done, missing) = if mode == "before-send" { ("0", 0) } else { ("4", 4) };
        while world.proxy().counters().clients.get() > 0 {
            std::thread::yield_now();
        }
        let stored = world.around().ask("EXISTS a b c d");
        assert_eq!((stored.as_str(), counted.get()), (done, missing), "{mode}");
    }
}

#[test]
fn a_server_that_dies_ends_the_connections_and_no_new_one_is_made() {
    let mut world = World::new("mode = \"before-reply\"", "", &[]);
    let mut client = world.connect();
    assert_eq!(client.ask("SET a 1"), "OK");
    client.send("BLPOP queue 0\r\n");
    let mut other = world.connect();
    while !other.ask("CLIENT LIST").contains("cmd=blpop") {}
    world.kill_server();
    assert_eq!((client.told(), other.told()), ("the end".into(), "the end".into()));
    assert_eq!(world.connect().told(), "BULLA the server behind the proxy cannot be reached");
    let told = world.entries();
    assert!(plain(&told).contains(&"update queue 3") || plain(&told).contains(&"write queue 3"), "{told:?}");
}

#[test]
fn what_a_server_that_was_killed_did_not_answer_is_recorded_as_unknown_in_every_mode() {
    for mode in MODES {
        let mut world = World::new(&format!("mode = \"{mode}\""), "", &[]);
        let mut client = world.connect();
        assert_eq!(client.ask("SET a 1"), "OK", "{mode}");
        client.send("GET a\r\nBLPOP queue 0\r\n");
        assert_eq!(client.told(), "1", "{mode}");
        let mut other = world.connect();
        while !other.ask("CLIENT LIST").contains("cmd=blpop") {}
        world.kill_server();
        assert_eq!(client.told(), "the end", "{mode}");
        let told = world.entries();
        let of = |key: &str| {
            let of_key = told.iter().filter(|entry| entry.split(' ').nth(1) == Some(key));
            let of_key = of_key.map(|entry| {
                let intended = if entry.contains("\"stage\":\"intended\"") { " intended" } else { "" };
                format!("{}{intended}", entry.split(" payload=").next().unwrap())
            });
            of_key.collect::<Vec<_>>()
        };
        let intents = mode == "before-send";
        let with_intents = |entries: &[&str], intended: &[&str]| {
            let intended = intended.iter().filter(|_| intents).map(|entry| format!("{entry} intended"));
            intended.chain(entries.iter().map(|entry| (*entry).to_owned())).collect::<Vec<_>>()
        };
        // What it had answered stays recorded, though it has lost that.
        let mut of_a = of("a");
        of_a.sort_unstable();
        let mut expected = with_intents(&["write a 0", "read a 0"], &["write a 3", "read a 3"]);
        expected.sort_unstable();
        assert_eq!(of_a, expected, "{mode}: {told:?}");
        let blocked = of("queue");
        let expected = with_intents(&["read queue 3", "update queue 3"], &["read queue 3", "update queue 3"]);
        assert_eq!(blocked, expected, "{mode}: {told:?}");
    }
}
