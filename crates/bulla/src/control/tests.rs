//! Clients of all kinds, against a server that answers by itself.

use super::client::{Client, batches, bytes_of, bytes_of_name, through_writer, through_writer_with};
use super::link::{Link, Served, Stop};
use super::message::{Answer, LIMIT, MAX_GROUPS, Request, Response, Secret, Status, VERSION, decode, encode};
use super::server::{CONNECTIONS, PATIENCE, Server, admit};
use super::{SOCKET, socket};
use bulla_crypto::group::GroupSecret;
use bulla_proof::commitment::LogId;
use bulla_store::{Effect, Error, ErrorKind, FileSystem, Result};
use bulla_vault::ReplicaState;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Uid;
use std::cell::Cell;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// So long that a test that waits for it has failed.
const NEVER: Duration = Duration::from_secs(3600);
/// Soon over.
const SHORT: Duration = Duration::from_millis(50);

/// A server in a directory of its own.
struct Place {
    directory: TempDir,
    server: Option<Server>,
}

impl Place {
    fn new(patience: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = Some(Server::serve(&FileSystem::new(directory.path()), patience, answer).unwrap());
        Place { directory, server }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn connect(&self) -> Link {
        Link::new(socket::connect(self.path()).unwrap().unwrap(), None)
    }

    fn stop(&mut self) {
        self.server.take().unwrap().stop();
    }

    /// Whether somebody who means well is served, if need be in the end: patience may be short.
    fn serves(&self) -> bool {
        let served = || Client::connect(self.path()).ok().flatten();
        (0..1000).any(|_| served().is_some_and(|client| client.status() == &status()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

fn status() -> Status {
    let vault_replicas = vec![ReplicaState { path: "/mnt/a".to_owned(), failure: Some("full".to_owned()) }];
    let origin = "example.com/audit".to_owned();
    Status { log: LogId([7; 16]), origin, process: 42, acknowledged: 5, vault_replicas }
}

fn answer(request: Request) -> Result<Answer> {
    match request {
        Request::Status => Ok(Answer::Status(status())),
        Request::Rotate => panic!("somebody asked for it"),
        Request::Secrets { groups, .. } => {
            let secret = |group: &Vec<u64>| group.first().map(|_| Secret(GroupSecret::new([9; 32])));
            Ok(Answer::Secrets(groups.iter().map(secret).collect()))
        }
        _ => Err(Error::new(ErrorKind::Refused, "not here")),
    }
}

fn soon() -> Option<Instant> {
    Instant::now().checked_add(NEVER)
}

fn response(link: &Link) -> Response {
    decode(&link.receive(soon()).unwrap().unwrap()).unwrap()
}

/// Whether the server has ended the connection.
fn ended(link: &Link) -> bool {
    match link.receive(soon()) {
        Ok(message) => message.is_none(),
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

fn is_error(response: &Response, expected: &str) -> bool {
    matches!(response, Response::Error { kind, .. } if kind == expected)
}

fn secrets_of(groups: Vec<Vec<u64>>) -> Request {
    Request::Secrets { log: LogId([7; 16]), epoch_random: [1; 32], frame: 3, groups }
}

/// A message of some version.
fn versioned(version: u32, message: &str) -> String {
    format!(r#"{{"version":{version},"message":{message}}}"#)
}

#[test]
fn what_came_of_what_was_asked_is_told_with_the_error() {
    for effect in [None, Some(Effect::Done), Some(Effect::Unknown)] {
        let directory = tempfile::tempdir().unwrap();
        let fails = move |request: Request| match request {
            Request::Status => Ok(Answer::Status(status())),
            _ => {
                let error = || Error::unavailable("the disk is gone");
                Err(effect.map_or_else(error, |effect| error().with_effect(effect)))
            }
        };
        let server = Server::serve(&FileSystem::new(directory.path()), NEVER, fails).unwrap();
        let error = Client::connect(directory.path()).unwrap().unwrap().rotate().unwrap_err();
        server.stop();
        assert_eq!((error.effect(), &*error.to_string()), (effect, "the disk is gone"));
    }
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let place = Place::new(NEVER);
    let link = place.connect();
    for _ in 0..3 {
        link.send(&encode(&Request::Status).unwrap(), soon()).unwrap();
        assert!(matches!(response(&link), Response::Answer(Answer::Status(told)) if told == status()));
        link.send(&encode(&Request::ErasedUpTo).unwrap(), soon()).unwrap();
        assert!(is_error(&response(&link), "refused"));
    }
}

#[test]
fn what_is_no_message_is_told_so_and_ends_its_connection_only() {
    let place = Place::new(NEVER);
    let good = place.connect();
    let deep = "[".repeat(100_000);
    for (message, kind) in [
        (&b"{}"[..], "invalid"),
        (b"", "invalid"),
        (b"\xff\xfe", "invalid"),
        (versioned(VERSION, r#""format-the-disk""#).as_bytes(), "invalid"),
        (versioned(VERSION, r#""status","message":"status""#).as_bytes(), "invalid"),
        (versioned(VERSION, r#"{"number":{"subject":"x","more":1}}"#).as_bytes(), "invalid"),
        (
            versioned(VERSION, r#"{"secrets":{"log":"7","epoch_random":[],"frame":0,"groups":[]}}"#)
                .as_bytes(),
            "invalid",
        ),
        (versioned(VERSION - 1, r#""status""#).as_bytes(), "unavailable"),
        (versioned(VERSION + 1, r#""status""#).as_bytes(), "unavailable"),
        (deep.as_bytes(), "invalid"),
    ] {
        let link = place.connect();
        link.send(message, soon()).unwrap();
        assert!(is_error(&response(&link), kind), "{}", String::from_utf8_lossy(message));
        assert!(ended(&link));
    }
    good.send(&encode(&Request::Status).unwrap(), soon()).unwrap();
    assert!(matches!(response(&good), Response::Answer(_)));
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_anything_is_read() {
    let place = Place::new(NEVER);
    for length in [u32::try_from(LIMIT).unwrap() + 1, u32::MAX] {
        let link = place.connect();
        rustix::io::write(link.socket(), &length.to_le_bytes()).unwrap();
        assert!(is_error(&response(&link), "invalid"));
        assert!(ended(&link));
    }
    let link = place.connect();
    link.send(&vec![b' '; LIMIT], soon()).unwrap();
    assert!(is_error(&response(&link), "invalid"), "the longest one is read");
}

#[test]
fn who_says_nothing_or_half_of_something_is_let_go() {
    let place = Place::new(SHORT);
    let silent = place.connect();
    let half = place.connect();
    rustix::io::write(half.socket(), &[100, 0, 0, 0, b'{']).unwrap();
    let less = place.connect();
    rustix::io::write(less.socket(), &[100, 0]).unwrap();
    for link in [&silent, &half, &less] {
        assert!(ended(link));
    }
    assert!(place.serves());
}

#[test]
fn who_reads_nothing_is_let_go() {
    let place = Place::new(SHORT);
    let link = place.connect();
    let request = encode(&secrets_of(vec![vec![1]; MAX_GROUPS])).unwrap();
    let failed = (0..10_000).find_map(|_| link.send(&request, soon()).err()).unwrap();
    let expected = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    assert!(expected.contains(&failed.kind()), "{failed}");
    assert!(place.serves());
}

#[test]
fn the_ninth_is_told_to_wait_and_is_served_when_one_has_gone() {
    let place = Place::new(NEVER);
    let mut links = (0..CONNECTIONS).map(|_| place.connect()).collect::<Vec<_>>();
    for link in &links {
        link.send(&encode(&Request::Status).unwrap(), soon()).unwrap();
        assert!(matches!(response(link), Response::Answer(_)));
    }
    for _ in 0..100 {
        let link = place.connect();
        assert!(matches!(response(&link), Response::Busy) && ended(&link));
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| place.serves());
        links.pop();
        assert!(waiting.join().unwrap(), "a client asks again by itself");
    });
    for link in &links {
        link.send(&encode(&Request::Status).unwrap(), soon()).unwrap();
        assert!(matches!(response(link), Response::Answer(_)), "nobody else noticed");
    }
}

#[test]
fn a_panic_ends_its_connection_only() {
    let place = Place::new(NEVER);
    let (other, link) = (place.connect(), place.connect());
    link.send(&encode(&Request::Rotate).unwrap(), soon()).unwrap();
    assert!(is_error(&response(&link), "unavailable") && ended(&link));
    other.send(&encode(&Request::Status).unwrap(), soon()).unwrap();
    assert!(matches!(response(&other), Response::Answer(_)));
}

/// Hangs where it is not so.
#[test]
fn stopping_waits_for_no_client() {
    let mut place = Place::new(NEVER);
    let silent = place.connect();
    let half = place.connect();
    rustix::io::write(half.socket(), &[100, 0, 0, 0, b'{']).unwrap();
    let greedy = place.connect();
    let request = encode(&secrets_of(vec![vec![1]; MAX_GROUPS])).unwrap();
    // Until it is not taken any more.
    let full = (0..10_000).find_map(|_| greedy.send(&request, Instant::now().checked_add(SHORT)).err());
    assert_eq!(full.unwrap().kind(), io::ErrorKind::TimedOut);
    place.stop();
    assert!(ended(&silent) && ended(&half));
    assert!(Client::connect(place.path()).unwrap().is_none());
    assert!(!place.path().join(SOCKET).exists());
}

#[test]
fn a_socket_that_was_left_is_nobody_s_and_is_replaced() {
    let mut place = Place::new(NEVER);
    let (name, left) = (place.path().join(SOCKET), place.path().join("left"));
    std::fs::rename(&name, &left).unwrap();
    place.stop();
    std::fs::rename(&left, &name).unwrap();
    std::fs::write(place.path().join("control.sock.tmp"), "left, too").unwrap();
    assert!(std::fs::metadata(&name).unwrap().file_type().is_socket());
    assert!(Client::connect(place.path()).unwrap().is_none());

    place.server = Some(Server::serve(&FileSystem::new(place.path()), NEVER, answer).unwrap());
    assert!(place.serves());
    let found = std::fs::metadata(&name).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

/// A link is not followed, though a writer listens where it leads.
#[test]
fn what_is_no_socket_is_nobody_s_and_a_link_to_one_is_replaced() {
    let elsewhere = Place::new(NEVER);
    let place = tempfile::tempdir().unwrap();
    let name = place.path().join(SOCKET);
    let nobody = || assert!(Client::connect(place.path()).unwrap().is_none());
    std::fs::write(&name, "").unwrap();
    nobody();
    std::fs::remove_file(&name).unwrap();
    std::fs::create_dir(&name).unwrap();
    nobody();
    std::fs::remove_dir(&name).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join(SOCKET), &name).unwrap();
    nobody();
    let server = Server::serve(&FileSystem::new(place.path()), NEVER, answer).unwrap();
    assert!(Client::connect(place.path()).unwrap().is_some() && elsewhere.serves());
    server.stop();
}

#[test]
fn a_path_may_be_long() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("d".repeat(120)).join("e".repeat(120));
    std::fs::create_dir_all(&directory).unwrap();
    let server = Server::serve(&FileSystem::new(&directory), NEVER, answer).unwrap();
    assert_eq!(Client::connect(&directory).unwrap().unwrap().status(), &status());
    server.stop();
    assert!(Client::connect(&directory).unwrap().is_none());
    assert!(Client::connect(root.path().join("nowhere")).unwrap().is_none());
}

#[test]
fn the_writer_s_user_and_root_may_ask() {
    let user = |id| Uid::from_raw(id);
    for (peer, own, admitted) in
        [(1000, 1000, true), (0, 1000, true), (0, 0, true), (1000, 0, false), (1001, 1000, false)]
    {
        let outcome = admit(user(peer), user(own));
        assert_eq!(outcome.is_ok(), admitted, "{peer} asks {own}");
        assert!(outcome.err().is_none_or(|error| error.kind() == ErrorKind::Refused));
    }
}

#[test]
fn secrets_come_as_they_were_and_as_many_as_asked_for() {
    let bytes = (0..=u8::MAX).cycle().take(MAX_GROUPS);
    let secrets = || bytes.clone().map(|byte| (byte % 3 > 0).then(|| GroupSecret::new([byte; 32])));
    let sent = Response::Answer(Answer::Secrets(secrets().map(|it| it.map(Secret)).collect()));
    let message = encode(&sent).unwrap();
    let Response::Answer(Answer::Secrets(came)) = decode(&message).unwrap() else { panic!("another answer") };
    assert!(
        came.iter()
            .map(|it| it.as_ref().map(|it| &it.0))
            .eq(secrets().collect::<Vec<_>>().iter().map(Option::as_ref))
    );
    for wrong in ["", "AAAA", "=", &"A".repeat(44), &"A".repeat(60)] {
        let text =
            format!("{{\"version\":{VERSION},\"message\":{{\"answer\":{{\"secrets\":[\"{wrong}\"]}}}}}}");
        assert!(decode::<Response>(text.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn a_message_keeps_the_limit() {
    let number = |length: usize| Request::Numbers { subjects: vec!["x".repeat(length)] };
    let frame = encode(&number(0)).unwrap().len();
    assert_eq!(encode(&number(LIMIT - frame)).unwrap().len(), LIMIT);
    assert_eq!(encode(&number(LIMIT - frame + 1)).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn groups_are_asked_for_in_messages_that_fit() {
    let (one, many) = ([u64::MAX], [u64::MAX; 64]);
    for groups in [vec![], vec![&one[..]; 10_000], vec![&many[..]; 1000], vec![&one[..], &many, &[]]] {
        let batches = batches(&groups, |group| bytes_of(group)).collect::<Vec<_>>();
        assert_eq!(batches.concat(), groups);
        for batch in batches {
            let request = secrets_of(batch.iter().map(|group| group.to_vec()).collect());
            assert!(batch.len() <= MAX_GROUPS && encode(&request).unwrap().len() < LIMIT);
        }
    }
}

#[test]
fn names_are_asked_for_in_messages_that_fit() {
    let (many, long) = (vec![u64::MAX; 64], "\u{1}".repeat(1 << 16));
    for name in ["x", &long] {
        let asked = vec![(many.clone(), name.to_owned()); 20];
        let bytes = |(numbers, name): &(Vec<u64>, String)| bytes_of(numbers) + bytes_of_name(name);
        let batches = batches(&asked, bytes).collect::<Vec<_>>();
        assert_eq!(batches.concat(), asked);
        for batch in batches {
            assert!(encode(&Request::Whose { asked: batch.to_vec() }).unwrap().len() < LIMIT);
        }
    }
}

/// Both are told to whoever asks, and that the log is open.
#[test]
fn a_writer_of_an_earlier_version_is_named_with_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
    let older = VERSION - 1;
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            // It answers the request that comes first, and the one after the lock was found to be held, and closes each connection.
            for _ in 0..2 {
                let (socket, _) = listener.accept().unwrap();
                let link = Link::new(socket.into(), None);
                link.receive(soon()).unwrap().unwrap();
                let response = r#"{"error":{"kind":"unavailable","text":"another version"}}"#;
                let response = versioned(older, response);
                link.send(response.as_bytes(), soon()).unwrap();
            }
        });
        let locked = || Err(Error::new(ErrorKind::Locked, "another writer has it open"));
        through_writer(directory.path(), Client::rotate, locked).unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    let told = [
        "another writer has it open".to_owned(),
        format!("speaks version {older} of the control socket"),
        format!("this one version {VERSION}"),
    ];
    assert!(told.iter().all(|told| error.to_string().contains(told)), "{error}");
}

#[test]
fn an_answer_that_is_none_is_no_mistake_of_whoever_asks() {
    let (bare, odd) = (
        format!("{{\"version\":{VERSION}}}"),
        format!("{{\"version\":{VERSION},\"message\":{{\"yes\":1}}}}"),
    );
    for answer in ["", "{", "[]", &bare, &odd] {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                let link = Link::new(listener.accept().unwrap().0.into(), None);
                link.receive(soon()).unwrap().unwrap();
                link.send(answer.as_bytes(), soon()).unwrap();
            });
            Client::connect(directory.path()).map(drop).unwrap_err()
        });
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{answer}: {error}");
        assert!(error.to_string().contains(SOCKET), "{answer}: {error}");
    }
}

#[test]
fn a_writer_that_comes_or_goes_meanwhile_is_found_or_not_missed() {
    let mut place = Place::new(PATIENCE);
    let path = PathBuf::from(place.path());
    let refused = || Error::new(ErrorKind::Refused, "no");
    let process = |client: &Client| Ok(client.status().process);
    assert_eq!(through_writer(&path, process, || Err(refused())).unwrap(), 42);
    let error = through_writer(&path, |_| Err::<u32, _>(refused()), || Ok(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "what the writer refuses is not done behind its back");
    // It goes after it was found.
    let gone = through_writer(&path, |client| client.rotate(), || Ok(7));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::Unavailable, "one that panicked is still there");
    let ask = |_: &Client| Err(Error::new(ErrorKind::Closed, "gone"));
    assert_eq!(through_writer(&path, ask, || Ok(7)).unwrap(), 7);
    // It comes after it was looked for.
    place.stop();
    let server = Cell::new(None);
    let locked = || {
        server.set(Some(Server::serve(&FileSystem::new(&path), PATIENCE, answer).unwrap()));
        Err(Error::new(ErrorKind::Locked, "locked"))
    };
    assert_eq!(through_writer(&path, process, locked).unwrap(), 42);
    server.take().unwrap().stop();
}

/// As one that is opening the log, or closing it, and one whose socket could not be made.
#[test]
fn a_writer_that_has_the_lock_and_does_not_listen_is_waited_for_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let process = |client: &Client| Ok(client.status().process);
    let locked = || Err(Error::new(ErrorKind::Locked, "locked"));
    let (mut pauses, mut server) = (0, None);
    // It listens by and by.
    let listens = || {
        pauses += 1;
        if pauses == 3 {
            server = Some(Server::serve(&FileSystem::new(path), PATIENCE, answer).unwrap());
        }
        pauses < 5
    };
    assert_eq!(through_writer_with(path, process, locked, listens).unwrap(), 42);
    assert_eq!(pauses, 3);
    // One that listens is asked at once, and so is told what it refuses.
    let refused = |_: &Client| Err::<u32, _>(Error::new(ErrorKind::Refused, "no"));
    let error = through_writer_with(path, refused, locked, || panic!("it is waited for")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    server.take().unwrap().stop();
    // It lets go by and by.
    let mut tried = 0;
    let alone = || {
        tried += 1;
        if tried == 4 { Ok(7) } else { locked() }
    };
    assert_eq!(through_writer_with(path, process, alone, || true).unwrap(), 7);
    assert_eq!(tried, 4);
    // It does neither.
    let mut left = 0..5;
    let error = through_writer_with(path, process, locked, || left.next().is_some()).unwrap_err();
    assert_eq!((error.kind(), left.len()), (ErrorKind::Locked, 0));
}

/// What is left to tell after the stop is told to all that take it, and nobody who takes nothing is waited for longer than to `grace`.
#[test]
fn waits_may_go_on_for_a_while_after_the_stop_all_together() {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let fill = |link: &Link| while link.put(&[0; 1 << 16], Some(Instant::now())).is_ok() {};
    for grace in [Duration::ZERO, SHORT, NEVER] {
        let stop = Arc::new(Stop::new().unwrap());
        let (end, other) = pair();
        let served = Served::with_grace(end, stop.clone(), grace);
        fill(&served);
        let put = thread::scope(|scope| {
            let waiting = scope.spawn(|| served.put(b"x", None));
            stop.set();
            if grace == NEVER {
                // It still goes on, once there is room.
                let other = Link::new(other.try_clone().unwrap(), None);
                while other.read_some(&mut [0; 1 << 16], Some(Instant::now() + SHORT)).is_ok() {}
            }
            waiting.join().unwrap()
        });
        if grace == NEVER {
            put.unwrap();
            continue;
        }
        assert_eq!(put.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // There is no more time for what comes after it, and none is needed where there is room.
        assert_eq!(
            served.put(b"x", Some(Instant::now() + NEVER)).unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
        let (end, _other) = pair();
        Served::with_grace(end, stop.clone(), grace).put(b"x", None).unwrap();
        // Others wait for nothing once it is set.
        let (end, _other) = pair();
        let ended = Served::new(end, Some(stop));
        fill(&ended);
        assert_eq!(ended.put(b"x", None).unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }
}
