//! A log that fails: for a while, for good, or in one block. What each mode promises then is so.

use super::world::{Client, MODES, World, plain};
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::{Error, Options, Result};
use bulla_proxy::counters::{Counter, Counters};
use bulla_testkit::fault::{Fault, Faults};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// At what a disk fails.
pub(crate) const DISK: [Fault; 2] = [Fault::WriteFails, Fault::SyncFails];

/// AES-GCM that refuses everything while it is told to, so that the log loses the block.
#[derive(Default)]
struct Refusing(AtomicBool);

impl Cipher for Refusing {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(Error::unavailable("the cipher refuses, as the test wants it")),
            false => AesGcm.seal(key, frame, additional, text),
        }
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// A proxy whose log has its files on `machine`, and waits for nothing that fails.
fn impatient(machine: &Faults, mode: &str, tables: &str) -> World {
    let options = Options::default().retries(0).retry_delay(Duration::ZERO);
    World::on(machine, options, Environment::default(), &format!("mode = \"{mode}\"\n{tables}"), "")
}

/// Waits for what other threads bring about.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

/// Whether a client is told that what it asked for is not recorded.
fn is_not_kept(told: &str) -> bool {
    told.starts_with("BULLA the audit log did not keep what this was")
}

fn asks(world: &World, line: &str) -> String {
    world.connect().ask(line)
}

#[test]
fn after_a_block_that_was_lost_the_proxy_goes_on_and_nobody_is_told_what_was_in_it() {
    for mode in ["before-reply", "before-send"] {
        let (machine, cipher) = (Faults::new(), Arc::new(Refusing::default()));
        let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
        let world = World::on(&machine, Options::default(), environment, &format!("mode = \"{mode}\""), "");
        let mut client = world.connect();
        assert_eq!(client.ask("SET a 1"), "OK", "{mode}");
        cipher.0.store(true, Ordering::SeqCst);
        assert!(is_not_kept(&client.ask("SET b 1")), "{mode}");
        assert_eq!(client.told(), "the end", "{mode}");
        assert!(world.log().lost() > 0, "{mode}");
        cipher.0.store(false, Ordering::SeqCst);
        // Whoever has something to say from now on is served as ever.
        let mut client = world.connect();
        let known = if mode == "before-send" { "null" } else { "1" };
        assert_eq!(client.ask_all(&["GET b", "SET c 1"]), [known, "OK"], "{mode}");
        let told = world.entries();
        assert!(told.iter().any(|entry| entry.starts_with("write c 0")), "{mode}: {told:?}");
        assert!(!told.iter().any(|entry| entry.starts_with("write b 0")), "{mode}: {told:?}");
        // Nor does it say that the server may have done what never went there.
        assert!(mode == "before-reply" || !told.iter().any(|entry| entry.starts_with("write b")), "{told:?}");
    }
}

#[test]
fn whoever_is_told_that_nothing_was_kept_is_not_reset_with_commands_unread() {
    let (machine, cipher) = (Faults::new(), Arc::new(Refusing::default()));
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    // Behind so many commands none is read before those are answered.
    let tables = "[limits]\npipeline = 1\n";
    let world = World::on(
        &machine,
        Options::default(),
        environment,
        &format!("mode = \"before-reply\"\n{tables}"),
        "",
    );
    cipher.0.store(true, Ordering::SeqCst);
    let mut client = TcpStream::connect(world.proxy().address().unwrap()).unwrap();
    client.write_all(&b"SET a 1\r\n".repeat(100_000)).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut told = String::new();
    client.read_to_string(&mut told).unwrap();
    assert!(is_not_kept(&told[1..]), "{told}");
}

#[test]
fn a_block_that_was_lost_costs_nobody_a_reply_where_commands_may_pass_without() {
    let (machine, cipher) = (Faults::new(), Arc::new(Refusing::default()));
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    let top = "mode = \"before-reply\"\nunrecordable = \"pass\"";
    let world = World::on(&machine, Options::default(), environment, top, "");
    cipher.0.store(true, Ordering::SeqCst);
    let mut client = world.connect();
    assert_eq!(client.ask("SET a 1"), "OK");
    cipher.0.store(false, Ordering::SeqCst);
    assert_eq!(client.ask("GET a"), "1");
    assert_eq!(plain(&world.entries()), ["read a 0"]);
}

#[test]
fn whoever_was_told_that_an_entry_is_kept_is_not_told_later_that_it_was_lost() {
    let (machine, cipher) = (Faults::new(), Arc::new(Refusing::default()));
    let environment = Environment { cipher: cipher.clone(), ..Environment::default() };
    let world = World::on(&machine, Options::default(), environment, "mode = \"before-reply\"", "");
    let lose = || {
        cipher.0.store(true, Ordering::SeqCst);
        assert!(is_not_kept(&asks(&world, "SET b 1")));
        cipher.0.store(false, Ordering::SeqCst);
    };
    lose();
    let mut idle = world.connect();
    assert_eq!(idle.ask("SET a 1"), "OK");
    // More than are told apart, each with an entry before it that is kept.
    for _ in 0..70 {
        lose();
        assert_eq!(asks(&world, "SET c 1"), "OK");
    }
    assert_eq!(idle.ask("PING"), "PONG");
}

/// Has the log's disk fail until it is healed: at that, and at beginning another file.
pub(crate) fn fail(machine: &Faults, fault: Fault) {
    machine.fail_below("audit", Fault::NameFails);
    machine.fail_below("audit", fault);
}

#[test]
fn a_disk_that_fails_for_good_has_what_comes_refused_and_nobody_told_what_is_not_recorded() {
    for (mode, fault) in MODES.iter().flat_map(|mode| DISK.map(|fault| (*mode, fault))) {
        let machine = Faults::new();
        let mut world = impatient(&machine, mode, "");
        let mut client = world.connect();
        assert_eq!(client.ask("SET a 1"), "OK", "{mode}");
        wait_until(|| world.log().acknowledged() > 0);
        fail(&machine, fault);
        let counters = world.proxy().counters().clone();
        let refused = |reply: &str| reply.starts_with("BULLA the audit log takes no entries");
        let reply = client.ask("SET b 1");
        let mut later = Vec::new();
        wait_until(|| {
            later.push(asks(&world, "SET c 1"));
            refused(later.last().unwrap())
        });
        let stored = ["EXISTS b", "EXISTS c"].map(|line| world.around().ask(line) == "1");
        match mode {
            // It had left before anybody knew.
            "async" => assert_eq!((reply.as_str(), stored[0]), ("OK", true), "{fault:?}"),
            // It was done, and nobody is told that.
            "before-reply" => assert_eq!((is_not_kept(&reply), stored[0]), (true, true), "{fault:?}"),
            // It was not.
            _ => assert_eq!((is_not_kept(&reply), stored), (true, [false, false]), "{fault:?}"),
        }
        assert!(mode == "async" || !later.contains(&"OK".to_owned()), "{mode} {fault:?}: {later:?}");
        assert_eq!((asks(&world, "PING").as_str(), counters.taking_nothing.get()), ("PONG", 1), "{mode}");
        machine.heal();
        world.end().unwrap_err();
        world.reopen();
        let told = world.entries();
        let first = if mode == "before-send" { "write a 3" } else { "write a 0" };
        assert_eq!(plain(&told)[..1], [first], "{mode} {fault:?}: {told:?}");
    }
}

#[test]
fn a_disk_that_fails_for_good_costs_nobody_a_reply_where_commands_may_pass_without_and_they_are_counted() {
    for (mode, fault) in MODES.iter().flat_map(|mode| DISK.map(|fault| (*mode, fault))) {
        let machine = Faults::new();
        let mut world = impatient(&machine, mode, "unrecordable = \"pass\"");
        fail(&machine, fault);
        let counters = world.proxy().counters().clone();
        let mut client = world.connect();
        while counters.unrecorded.get() == 0 {
            assert_eq!(client.ask("SET a 1"), "OK", "{mode}");
        }
        let before = counters.unrecorded.get();
        assert_eq!(client.ask_all(&["GET a", "GET a"]), ["1", "1"], "{mode}");
        // Each is one operation, with an intent before it or without.
        assert_eq!(counters.unrecorded.get() - before, 2, "{mode}");
        assert_eq!(counters.untold.get(), counters.unrecorded.get(), "{mode}");
        world.end().unwrap_err();
    }
}

/// Fills the memory of a log that cannot write until this counter counts; who did, and how many they are.
fn fill(world: &World, until: fn(&Counters) -> &Counter) -> (Vec<Client<TcpStream>>, usize) {
    let counters = world.proxy().counters();
    let mut value = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$32768\r\n".to_vec();
    value.resize(value.len() + (32 << 10), b'x');
    value.extend_from_slice(b"\r\n");
    let (mut clients, mut count) = (Vec::new(), 0);
    while until(counters).get() == 0 {
        let mut client = world.connect();
        client.send(&value);
        clients.push(client);
        count += 1;
        // What is before it is in the log's memory, or there is no more room in there.
        let before = count as u64;
        wait_until(|| counters.recorded.get() >= before || until(counters).get() > 0);
    }
    (clients, count)
}

/// A proxy that records values, and whose log waits for its disk.
fn patient(machine: &Faults, top: &str, append_timeout: Duration) -> World {
    // Some hundred clients are in this process, with both of their ends.
    let descriptors = rustix::process::Resource::Nofile;
    let most = rustix::process::getrlimit(descriptors).maximum;
    rustix::process::setrlimit(descriptors, rustix::process::Rlimit { current: most, maximum: most })
        .unwrap();
    let options = Options::default().memory(64 << 20).writers(1).retries(1000).append_timeout(append_timeout);
    let options = options.retry_delay(Duration::from_millis(1));
    let top = format!("{top}\nrecord_values = \"32 KiB\"\ndefault_subject = \"somebody\"");
    World::on(machine, options, Environment::default(), &top, "")
}

#[test]
fn a_full_memory_of_the_log_keeps_nobody_waiting_who_has_nothing_to_record() {
    for mode in ["async", "before-reply"] {
        let machine = Faults::new();
        let world = patient(&machine, &format!("mode = \"{mode}\""), Duration::from_secs(3600));
        machine.fail_below("audit", Fault::NoSpace);
        let (mut clients, count) = fill(&world, |counters| &counters.waits);
        assert_eq!(asks(&world, "PING"), "PONG", "{mode}");
        let mut waits = world.connect();
        waits.send("SET b 1\r\n");
        assert_eq!(asks(&world, "PING"), "PONG", "{mode}");
        machine.heal();
        assert_eq!(waits.told(), "OK", "{mode}");
        clients.iter_mut().for_each(|client| assert_eq!(client.told(), "OK", "{mode}"));
        assert_eq!(world.proxy().counters().unrecorded.get(), 0);
        assert_eq!(world.entries().len(), count + 1, "{mode}");
    }
}

#[test]
fn what_the_log_has_no_memory_for_in_time_is_not_told_and_the_log_says_how_much_that_is() {
    for mode in ["async", "before-reply"] {
        let machine = Faults::new();
        let world = patient(&machine, &format!("mode = \"{mode}\""), Duration::from_millis(20));
        machine.fail_below("audit", Fault::NoSpace);
        let (mut clients, count) = fill(&world, |counters| &counters.unrecorded);
        assert!(is_not_kept(&clients.last_mut().unwrap().told()), "{mode}");
        assert!(asks(&world, "SET b 1").starts_with("BULLA the audit log takes no entries"), "{mode}");
        assert_eq!(world.proxy().counters().untold.get(), 1, "{mode}");
        machine.heal();
        wait_until(|| asks(&world, "SET b 1") == "OK");
        clients[..count - 1].iter_mut().for_each(|client| assert_eq!(client.told(), "OK", "{mode}"));
        wait_until(|| world.proxy().counters().untold.get() == 0);
        assert_eq!(world.proxy().counters().unrecorded.get(), 1);
        let told = world.entries();
        assert_eq!(told[count - 1], "gap  - payload={\"unrecorded\":1}", "{mode}");
        assert_eq!(plain(&told)[count..], ["write b 0 subject=somebody"], "{mode}");
    }
}

#[test]
fn what_the_log_has_no_memory_for_in_time_passes_where_it_may_and_is_told_as_soon_as_there_is() {
    let machine = Faults::new();
    let world = patient(&machine, "unrecordable = \"pass\"", Duration::from_millis(20));
    machine.fail_below("audit", Fault::NoSpace);
    let (mut clients, count) = fill(&world, |counters| &counters.unrecorded);
    clients.iter_mut().for_each(|client| assert_eq!(client.told(), "OK"));
    assert_eq!(asks(&world, "SET b 1"), "OK");
    machine.heal();
    // Nobody has to say anything for that.
    wait_until(|| world.proxy().counters().untold.get() == 0);
    let told = world.entries();
    assert_eq!(told[count - 1], "gap  - payload={\"unrecorded\":2}");
}
