//! Who asks, and who must not.

use super::{Place, append, plain};
use crate::helpers::not_tested;
use bulla::control::{Client, SOCKET};
use bulla::environment::Environment;
use bulla::store::Store;
use bulla::{ErrorKind, Log, Options};
use bulla_testkit::Memory;
use bulla_testkit::{ALONE, alone, is_alone};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

#[test]
fn a_log_says_who_writes_it_as_long_as_it_is_open() {
    let place = Place::new(plain().origin("example.com/audit"));
    assert!(Client::connect(place.keys()).unwrap().is_none());
    let log = place.open();
    append(&log, 5);
    let client = place.client();
    let status = client.status();
    assert_eq!((status.origin.as_str(), status.process), ("example.com/audit", std::process::id()));
    assert_eq!((status.log, status.acknowledged), (bulla::info(place.audit()).unwrap().id, 5));
    let mode = std::fs::metadata(place.keys().join(SOCKET)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let connected = UnixStream::connect(place.keys().join(SOCKET)).unwrap();
    log.close().unwrap();
    assert!(!place.keys().join(SOCKET).exists());
    // Reset where it was not accepted yet.
    let ended = (&connected)
        .read(&mut [0])
        .map_or_else(|error| error.kind() == io::ErrorKind::ConnectionReset, |read| read == 0);
    assert!(ended);
    assert_eq!(client.rotate().unwrap_err().kind(), ErrorKind::Closed);
    // And by dropping it.
    drop(place.open());
    assert!(!place.keys().join(SOCKET).exists());
}

#[test]
fn where_there_is_no_directory_or_no_thread_nobody_listens() {
    let (log, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
    plain().create_in(&*log, &*keys, &Environment::default()).unwrap();
    let opened = Log::open_stores(log, keys, Options::default(), Environment::default()).unwrap();
    assert!(opened.control_failure().is_none());
    opened.close().unwrap();

    let place = Place::new(plain());
    let store = |path| -> Arc<dyn Store> { Arc::new(bulla::store::FileSystem::new(path)) };
    let (audit, keys) = (store(place.audit()), store(place.keys()));
    let stepped = Log::open_stepped(audit, keys, Options::default(), Environment::default()).unwrap();
    assert!(Client::connect(place.keys()).unwrap().is_none());
    drop(stepped);
}

#[test]
fn a_log_that_cannot_listen_is_written_all_the_same_and_says_so() {
    let place = Place::new(plain());
    std::fs::create_dir(place.keys().join(SOCKET)).unwrap();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let failure = log.control_failure().unwrap();
    assert!(failure.to_string().contains(SOCKET), "{failure}");
    append(&log, 5);
    log.close().unwrap();
    place.verifies();
}

/// Nobody waits for them, whatever they do.
#[test]
fn a_crowd_that_talks_nonsense_keeps_nobody_from_appending() {
    let place = Place::new(plain());
    let log = place.open();
    let path = place.keys().join(SOCKET);
    let mut crowd = Vec::new();
    for index in 0..100_u8 {
        // Those that are turned away cannot always write.
        let mut stream = UnixStream::connect(&path).unwrap();
        let _ = match index % 4 {
            0 => Ok(()),
            1 => stream.write_all(&[index; 300]),
            2 => stream.write_all(&[200, 0, 0, 0, b'{']),
            _ => stream.write_all(b"\x22\0\0\0{\"version\":1,\"message\":\"status\"}"),
        };
        crowd.push(stream);
    }
    append(&log, 2000);
    log.flush().unwrap();
    drop(crowd);
    assert_eq!(place.client().status().acknowledged, 2000);
    log.close().unwrap();
    place.verifies();
}

const STRANGER: u32 = 65534;

/// Somebody else, who gets as far as the socket because the modes were loosened, is told that it is not for them.
#[test]
fn another_user_is_refused() {
    const TEST: &str = "control::clients::another_user_is_refused";
    if is_alone() {
        let keys = std::env::var_os("BULLA_TEST_KEYS").unwrap();
        let error = Client::connect(Path::new(&keys)).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains(&STRANGER.to_string()), "{error}");
        return;
    }
    if !is_root() {
        // Those who may have several users of their own are root among them.
        let mut others = Command::new("unshare");
        others.args(["--user", "--map-root-user", "--map-auto"]);
        let mut probe = Command::new("unshare");
        probe.args(others.get_args()).arg("true");
        if !probe.output().is_ok_and(|output| output.status.success()) {
            return not_tested(TEST, "it takes a second user: root, or subordinate ids and newuidmap");
        }
        let mut command = alone(others, TEST);
        let output = command.env_remove(ALONE).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let place = Place::new(plain());
    let log = place.open();
    let open_to_all =
        |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open_to_all(place.root.path(), 0o755);
    open_to_all(&place.keys(), 0o755);
    open_to_all(&place.keys().join(SOCKET), 0o666);
    // Where this program lies they may not reach.
    let program = place.root.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    open_to_all(&program, 0o755);
    let mut command = Command::new(program);
    command.args(["--exact", TEST, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    let output = command.env("BULLA_TEST_KEYS", place.keys()).uid(STRANGER).gid(STRANGER).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    append(&log, 5);
    log.close().unwrap();
}

/// Only root can be somebody else.
fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}
