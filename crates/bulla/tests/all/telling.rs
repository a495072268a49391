//! What is told of receipts is called by threads that others wait for: whatever waits there is refused, and nothing hangs.

use bulla::socket::{Connection, Listen};
use bulla::{Entry, ErrorKind, Init, Log, Options, Query, Reader, Recovery, default_keys};
use bulla_testkit::{alone, is_alone};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

struct World {
    _place: tempfile::TempDir,
    directory: PathBuf,
    socket: PathBuf,
}

fn world() -> (World, Log) {
    let place = tempfile::tempdir().unwrap();
    let (directory, socket) = (place.path().join("audit"), place.path().join("audit.sock"));
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    (World { _place: place, directory, socket }, log)
}

/// Opens the log again, when whoever closes it has done so, and reads how many entries it has.
fn entries(directory: &Path) -> usize {
    loop {
        match Log::open(directory, Options::default()) {
            Ok(log) => break log.close().unwrap(),
            Err(error) if error.kind() == ErrorKind::Locked => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
    let reader = Reader::open_with_keys(directory, default_keys(directory)).unwrap();
    let mut entries = 0;
    let each = |_, _: &Entry<'_>| {
        entries += 1;
        Ok(())
    };
    reader.for_each(&Query::new(), each).unwrap();
    entries
}

#[test]
fn a_log_that_what_is_told_closes_or_drops_is_closed_by_another_thread() {
    for closes in [true, false] {
        let (world, log) = world();
        let listening = Listen::default().stream(&world.socket).start(&log).unwrap();
        let client = Connection::open(&world.socket).unwrap();
        let mut remote = client.producer().unwrap();
        remote.append(&Entry::new("update", "from another")).unwrap();
        remote.flush().unwrap().durable().unwrap();
        let mut producer = log.producer().unwrap();
        for _ in 0..100 {
            producer.append(&Entry::new("update", "here")).unwrap();
        }
        let receipt = producer.flush().unwrap();
        // Once it is told, the producer has nothing left to say.
        let held = Arc::new(Mutex::new(Some((log, listening))));
        let (told, outcome) = mpsc::channel();
        let tell = move |durable: bulla::Result<()>| {
            let (log, listening) = held.lock().unwrap().take().unwrap();
            drop(listening);
            let closed = match closes {
                true => log.close(),
                false => {
                    drop(log);
                    Ok(())
                }
            };
            told.send((durable, closed)).unwrap();
        };
        receipt.when_durable(tell).unwrap();
        let (durable, closed) = outcome.recv().unwrap();
        durable.unwrap();
        match closes {
            true => assert_eq!(closed.unwrap_err().kind(), ErrorKind::Invalid),
            false => closed.unwrap(),
        }
        assert_eq!(entries(&world.directory), 101);
        assert_eq!(producer.append(&Entry::new("update", "late")).unwrap_err().kind(), ErrorKind::Closed);
    }
}

/// Whoever closes a log or a connection there cannot wait until that is done, and may be the last that the process does.
#[test]
fn an_exit_waits_for_what_another_thread_closes() {
    const TEST: &str = "telling::an_exit_waits_for_what_another_thread_closes";
    if is_alone() {
        let at = |name| std::env::var_os(name).map(PathBuf::from);
        return match (at("DIRECTORY"), at("SOCKET")) {
            (Some(directory), _) => close_log_and_exit(&directory),
            (_, socket) => close_connection_and_exit(&socket.unwrap()),
        };
    }
    let run = |name: &str, path: &Path| {
        let output = alone(Command::new("env"), TEST).env(name, path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(7), "{text}");
    };
    let (world, log) = world();
    let listening = Listen::default().stream(&world.socket).start(&log).unwrap();
    run("SOCKET", &world.socket);
    listening.stop();
    log.close().unwrap();
    assert_eq!(entries(&world.directory), 1 + LAST);
    run("DIRECTORY", &world.directory);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert_eq!(log.recovery(), Recovery::default(), "it was closed");
    log.close().unwrap();
    assert_eq!(entries(&world.directory), 2 * (1 + LAST));
}

/// So many entries take longer to become durable than an exit that waits for nothing.
const LAST: usize = 100_000;

fn close_log_and_exit(directory: &Path) {
    let log = Log::open(directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("update", "first")).unwrap();
    let receipt = producer.flush().unwrap();
    (0..LAST).for_each(|_| producer.append(&Entry::new("update", "here")).unwrap());
    let (told, closed) = mpsc::channel();
    receipt.when_durable(move |_| told.send(log.close()).unwrap()).unwrap();
    assert_eq!(closed.recv().unwrap().unwrap_err().kind(), ErrorKind::Invalid);
    std::process::exit(7);
}

fn close_connection_and_exit(socket: &Path) {
    let connection = Connection::open(socket).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("update", "first")).unwrap();
    let receipt = producer.flush().unwrap();
    (0..LAST).for_each(|_| producer.append(&Entry::new("update", "from another")).unwrap());
    let (told, closed) = mpsc::channel();
    receipt.when_durable(move |_| told.send(connection.close()).unwrap()).unwrap();
    assert_eq!(closed.recv().unwrap().unwrap_err().kind(), ErrorKind::Invalid);
    std::process::exit(7);
}

#[test]
fn what_is_told_cannot_wait_for_a_log() {
    let (world, log) = world();
    let listening = Listen::default().stream(&world.socket).start(&log).unwrap();
    let client = Connection::open(&world.socket).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("update", "first")).unwrap();
    let first = producer.flush().unwrap();
    let mut remote = client.producer().unwrap();
    remote.append(&Entry::new("update", "second")).unwrap();
    let second = remote.flush().unwrap();
    // The second is told by the thread that the client reads by, and by no other where that has not been told yet.
    for wait in 0..2 {
        let (told, outcome) = mpsc::channel();
        producer.append(&Entry::new("update", "later")).unwrap();
        let later = producer.flush().unwrap();
        remote.append(&Entry::new("update", "later")).unwrap();
        let far = remote.flush().unwrap();
        let tell = move |_| {
            let waited = match wait {
                0 => later.checkpointed().and_then(|()| later.durable_within(Duration::MAX)),
                _ => far.durable_within(Duration::MAX),
            };
            told.send(waited).unwrap();
        };
        match wait {
            0 => first.when_durable(tell).unwrap(),
            _ => second.when_durable(tell).unwrap(),
        }
        // It may have become durable meanwhile; then there was nothing to wait for.
        match outcome.recv().unwrap() {
            Ok(come) => assert!(come),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid, "{error}"),
        }
    }
    let (told, outcome) = mpsc::channel();
    remote.append(&Entry::new("update", "last")).unwrap();
    let last = remote.flush().unwrap();
    last.when_durable(move |_| told.send(client.close()).unwrap()).unwrap();
    assert_eq!(outcome.recv().unwrap().unwrap_err().kind(), ErrorKind::Invalid);
    drop(remote);
    drop(listening);
    log.close().unwrap();
    assert_eq!(entries(&world.directory), 7);
}

#[test]
fn a_log_is_opened_again_while_receipts_and_producers_of_it_are_left() {
    let (world, log) = world();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("update", "first").subject("anna")).unwrap();
    let receipt = producer.flush().unwrap();
    log.close().unwrap();
    receipt.durable().unwrap();
    let again = Log::open(&world.directory, Options::default()).unwrap();
    let mut other = again.producer().unwrap();
    other.append(&Entry::new("update", "second").subject("anna")).unwrap();
    assert_eq!(producer.append(&Entry::new("update", "late")).unwrap_err().kind(), ErrorKind::Closed);
    drop((producer, receipt));
    other.append(&Entry::new("update", "third").subject("berta")).unwrap();
    other.flush().unwrap().durable().unwrap();
    again.close().unwrap();
    assert_eq!(entries(&world.directory), 3);
}

/// Whoever is told, by the thread that makes room, waits for no room: it would stop the log, or the connection, for `append_timeout`.
#[test]
fn appending_in_what_is_told_does_not_wait() {
    const NEVER: Duration = Duration::from_secs(3600);
    let place = tempfile::tempdir().unwrap();
    let (directory, socket) = (place.path().join("audit"), place.path().join("audit.sock"));
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default().append_timeout(NEVER)).unwrap();
    let listening = Listen::default().stream(&socket).start(&log).unwrap();
    let client = Connection::open(&socket).unwrap().append_timeout(NEVER);
    let payload = [7; 1000];
    let large = Entry::new("fill", "x").payload(&payload);

    let here = Arc::new(Mutex::new(log.producer().unwrap()));
    let full = told_elsewhere(|told| {
        let filled = here.clone();
        let mut producer = here.lock().unwrap();
        producer.append(&Entry::new("read", "x")).unwrap();
        let receipt = producer.flush().unwrap();
        drop(producer);
        let fill = move || until_refused(|entry| filled.lock().unwrap().append(entry));
        receipt.when_durable(move |_| told(&fill)).unwrap();
    });
    assert_eq!(full, ErrorKind::Timeout);
    // Nothing is left of that: who is not told of anything waits until there is room.
    here.lock().unwrap().append(&large).unwrap();

    let there = Arc::new(Mutex::new(client.producer().unwrap()));
    let full = told_elsewhere(|told| {
        let filled = there.clone();
        let mut producer = there.lock().unwrap();
        producer.append(&Entry::new("read", "x")).unwrap();
        let receipt = producer.flush().unwrap();
        drop(producer);
        let fill = move || until_refused(|entry| filled.lock().unwrap().append(entry));
        receipt.when_durable(move |_| told(&fill)).unwrap();
    });
    assert_eq!(full, ErrorKind::Timeout);
    there.lock().unwrap().append(&large).unwrap();
    drop(there);
    client.close().unwrap();
    drop(here);
    listening.stop();
    log.close().unwrap();
}

fn until_refused(mut append: impl FnMut(&Entry<'_>) -> bulla::Result<()>) -> ErrorKind {
    let payload = [7; 1000];
    let entry = Entry::new("fill", "x").payload(&payload);
    loop {
        if let Err(error) = append(&entry) {
            return error.kind();
        }
    }
}

/// What somebody gives a receipt to tell, until it is told by another thread: what is durable already this one tells.
type Told = Box<dyn FnOnce(&dyn Fn() -> ErrorKind) + Send>;

fn told_elsewhere(give: impl Fn(Told)) -> ErrorKind {
    let this = std::thread::current().id();
    loop {
        let (tell, outcome) = mpsc::channel();
        give(Box::new(move |fill| {
            let elsewhere = std::thread::current().id() != this;
            tell.send(elsewhere.then(fill)).unwrap();
        }));
        if let Some(kind) = outcome.recv().unwrap() {
            return kind;
        }
    }
}
