//! The process that listens is another one: in a namespace of its own, or with a child that it forked off, which has copies
//! of all its sockets for as long as it lives.

use super::{Raw, lines, location};
use crate::helpers::{not_tested, own_processes};
use bulla::control::{Client, SOCKET, through_writer};
use bulla::socket::{Connection, Listen};
use bulla::{Entry, ErrorKind, Init, Log, Options, Query, Reader, default_keys};
use bulla_testkit::alone;
use serde_json::json;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

/// Has the process that listens know where.
const PLACE: &str = "BULLA_TEST_PLACE";
/// So long that a test that waits for it has failed.
const NEVER: Duration = Duration::from_secs(20);

/// The process that listens.
struct Elsewhere {
    place: tempfile::TempDir,
    process: Child,
    told: UnixStream,
    forked: Option<libc::pid_t>,
}

impl Elsewhere {
    /// Has `command` start this test once more, which then is to [`listen`].
    fn start(test: &str, command: Command) -> Self {
        let place = tempfile::tempdir().unwrap();
        Init::default().create(place.path().join("audit")).unwrap();
        let telling = UnixListener::bind(place.path().join("told")).unwrap();
        let mut command = alone(command, &format!("socket::elsewhere::{test}"));
        let process = command.env(PLACE, place.path()).spawn().unwrap();
        let told = telling.accept().unwrap().0;
        let mut elsewhere = Elsewhere { place, process, told, forked: None };
        elsewhere.is_done();
        elsewhere
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn is_done(&mut self) {
        self.told.read_exact(&mut [0]).unwrap();
    }

    fn tell(&mut self, order: u8) {
        self.told.write_all(&[order]).unwrap();
    }

    fn fork(&mut self) {
        self.tell(b'f');
        let mut child = [0; 4];
        self.told.read_exact(&mut child).unwrap();
        self.forked = Some(libc::pid_t::from_ne_bytes(child));
    }

    fn close(&mut self) {
        self.tell(b'c');
        self.is_done();
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // It ends when it is told nothing more.
        let _ = self.told.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
        if let Some(child) = self.forked {
            // SAFETY: a system call; the child lives until it is killed.
            let _ = unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }
}

/// Whether this is the process that listens: it has done so then.
fn is_elsewhere() -> bool {
    let place = std::env::var_os(PLACE);
    place.iter().for_each(|place| listen(Path::new(place)));
    place.is_some()
}

/// Listens, and does what it is told, a byte for each order: to fork off a child, to let a client in at a socket where nobody is
/// greeted to the end, to close the log.
fn listen(place: &Path) {
    let mut told = UnixStream::connect(place.join("told")).unwrap();
    let log = Log::open(place.join("audit"), Options::default()).unwrap();
    let listen = Listen::default().stream(place.join("audit.sock")).datagrams(place.join("audit.datagrams"));
    let mut handles = Some((listen.start(&log).unwrap(), log));
    let mute = UnixListener::bind(place.join("mute.sock")).unwrap();
    let mut let_in = Vec::new();
    let mut order = [0];
    told.write_all(b"!").unwrap();
    while told.read(&mut order).unwrap() == 1 {
        match order[0] {
            b'f' => told.write_all(&fork_off().to_ne_bytes()).unwrap(),
            b'a' => {
                let mut client = mute.accept().unwrap().0;
                client.write_all(b"\0").unwrap();
                while unread(&client) > 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let_in.push(client);
                told.write_all(b"!").unwrap();
            }
            _ => {
                let (listening, log) = handles.take().unwrap();
                listening.stop();
                log.close().unwrap();
                told.write_all(b"!").unwrap();
            }
        }
    }
}

/// Bytes that the other side has not read yet.
fn unread(client: &UnixStream) -> libc::c_int {
    let mut bytes = 0;
    // SAFETY: the kernel writes a number to `bytes`.
    assert_eq!(unsafe { libc::ioctl(client.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) }, 0);
    bytes
}

/// A child that does nothing, until it is killed.
fn fork_off() -> libc::pid_t {
    // SAFETY: the child makes system calls only, and ends by a signal: its own, should nobody else send one.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::alarm(120);
            loop {
                libc::pause();
            }
        }
    }
    assert!(child > 0);
    child
}

#[test]
fn closing_ends_connections_also_of_which_a_child_has_copies() {
    if is_elsewhere() {
        return;
    }
    let mut elsewhere =
        Elsewhere::start("closing_ends_connections_also_of_which_a_child_has_copies", Command::new("env"));
    let mut client = Raw::connect(&elsewhere.path("audit.sock"));
    assert_eq!(client.ask(&lines([0]))["accepted"], 1);
    let control = UnixStream::connect(default_keys(&elsewhere.path("audit")).join(SOCKET)).unwrap();
    // Once another one is served, the one before it is.
    Client::connect(default_keys(&elsewhere.path("audit"))).unwrap().unwrap();
    let datagrams = UnixDatagram::unbound().unwrap();
    datagrams.connect(elsewhere.path("audit.datagrams")).unwrap();
    datagrams.send(&lines([1])).unwrap();
    elsewhere.fork();
    elsewhere.close();
    for mut connection in [client.0, control] {
        connection.set_read_timeout(Some(NEVER)).unwrap();
        assert_eq!(connection.read(&mut [0]).unwrap(), 0, "the end");
    }
    datagrams.send(&lines([2])).unwrap_err();
    let nobody = Connection::open(elsewhere.path("audit.sock")).unwrap_err();
    assert!(nobody.to_string().contains("nobody listens there"), "{nobody}");
    assert_eq!(locations(&elsewhere.path("audit")), ["0", "1"]);
}

#[test]
fn a_client_learns_that_who_listened_was_killed_whatever_a_child_of_that_has_open() {
    const TEST: &str = "a_client_learns_that_who_listened_was_killed_whatever_a_child_of_that_has_open";
    if is_elsewhere() {
        return;
    }
    let own = rustix::process::getpid();
    if rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty()).is_err() {
        return not_tested(TEST, "this kernel has no pidfd_open");
    }
    let mut elsewhere = Elsewhere::start(TEST, Command::new("env"));
    let connection = Connection::open(elsewhere.path("audit.sock")).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "0")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    let (tells, greeted) = mpsc::channel();
    let mute = elsewhere.path("mute.sock");
    std::thread::spawn(move || tells.send(Connection::open(mute).map(drop)));
    elsewhere.tell(b'a');
    elsewhere.is_done();
    elsewhere.fork();
    elsewhere.kill();
    let unsure = (|| {
        producer.append(&Entry::new("read", "1"))?;
        producer.flush()?.durable_within(NEVER)
    })();
    let unsure = unsure.unwrap_err();
    assert_eq!(unsure.kind(), ErrorKind::Closed);
    let greeted = greeted.recv_timeout(NEVER).unwrap().unwrap_err();
    for error in [unsure, greeted] {
        assert!(error.to_string().contains("the process that listens there is gone"), "{error}");
    }
    let writer = Client::connect(default_keys(&elsewhere.path("audit"))).unwrap();
    assert!(writer.is_none(), "a child answers nobody");
    // None of them is let in, and there is room for few.
    for _ in 0..10 {
        let open = || Log::open(elsewhere.path("audit"), Options::default()).map(drop);
        let error = through_writer(default_keys(&elsewhere.path("audit")), |_| Ok(()), open).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("forked off have its lock: end them"), "{error}");
    }
    let error = Connection::open_within(elsewhere.path("audit.sock"), Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("answers nobody: end that one"), "{error}");
}

#[test]
fn a_client_outside_of_the_namespace_of_who_listens_is_let_in() {
    const TEST: &str = "a_client_outside_of_the_namespace_of_who_listens_is_let_in";
    if is_elsewhere() {
        return;
    }
    let Some(command) = own_processes() else {
        return not_tested(TEST, "it takes a namespace of processes: root, or user namespaces");
    };
    let mut elsewhere = Elsewhere::start(TEST, command);
    let mut client = Raw::connect(&elsewhere.path("audit.sock"));
    assert_eq!(client.ask(&lines([0]))["accepted"], 1);
    let connection = Connection::open(elsewhere.path("audit.sock")).unwrap();
    let mut producer = connection.producer().unwrap();
    producer.append(&Entry::new("read", "1")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    connection.close().unwrap();
    UnixDatagram::unbound().unwrap().send_to(&lines([2]), elsewhere.path("audit.datagrams")).unwrap();
    let writer = Client::connect(default_keys(&elsewhere.path("audit"))).unwrap().unwrap();
    assert_eq!(writer.status().process, 1, "the first one of its namespace");
    writer.rotate().unwrap();
    elsewhere.close();
    assert_eq!(locations(&elsewhere.path("audit")), ["0", "1", "2"]);
}

#[test]
fn a_client_waits_where_many_connect_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("audit.sock");
    let listener = UnixListener::bind(&path).unwrap();
    // It has room for one that was not let in yet.
    rustix::net::listen(&listener, 0).unwrap();
    let first = UnixStream::connect(&path).unwrap();
    let (tells, connected) = mpsc::channel();
    std::thread::spawn(move || tells.send(Connection::open(path).map(|second| second.origin().to_owned())));
    // Whoever does not wait has given up by then.
    connected.recv_timeout(Duration::from_millis(500)).expect_err("there is no room for it");
    drop((listener.accept().unwrap(), first));
    let mut second = Raw(listener.accept().unwrap().0);
    let greeting = json!({"version": 1, "origin": "example.com/busy", "window": 1, "max_message": 1 << 20});
    second.send(greeting.to_string().as_bytes());
    assert_eq!(connected.recv_timeout(NEVER).unwrap().unwrap(), "example.com/busy");
}

fn locations(audit: &Path) -> Vec<String> {
    let reader = Reader::open_with_keys(audit, default_keys(audit)).unwrap();
    let mut locations = Vec::new();
    let each = |_, entry: &Entry<'_>| {
        locations.push(location(entry));
        Ok(())
    };
    reader.for_each(&Query::new(), each).unwrap();
    locations
}

#[test]
fn who_listens_and_ends_before_it_greets_is_told_of() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("audit.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let ending = std::thread::spawn(move || {
        while listener.accept().is_ok_and(|(client, _)| client.shutdown(Shutdown::Both).is_ok()) {}
    });
    let error = Connection::open(&socket).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("has ended, or is just ending: connect again"), "{error}");
    drop(ending);
    let error = Connection::open("").unwrap_err();
    assert_eq!(error.to_string(), "\"\" names no socket: give the path of one");
}
