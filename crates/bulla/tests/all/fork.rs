//! A forked child has its parent's handles, and must not use them.
#![allow(unsafe_code)]

use crate::helpers::{not_tested, own_processes};
use bulla::control::Client;
use bulla::store::{FileSystem, Store};
use bulla::{
    Entry, Error, ErrorKind, Init, Log, Options, Place, Producer, Receipt, Result, Source, SourceId, Step,
};
use bulla_testkit::{alone, is_alone};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn in_a_child_every_handle_refuses() {
    forking("in_a_child_every_handle_refuses", fork_and_compare);
}

#[test]
fn a_child_that_has_not_come_to_its_exec_keeps_no_lock() {
    forking("a_child_that_has_not_come_to_its_exec_keeps_no_lock", fork_and_close);
}

#[test]
fn a_lock_that_a_child_drops_stays_its_parents() {
    forking("a_lock_that_a_child_drops_stays_its_parents", fork_and_drop);
}

#[test]
fn a_log_that_a_child_lets_go_of_stays_its_parents() {
    forking("a_log_that_a_child_lets_go_of_stays_its_parents", fork_and_let_go);
}

#[test]
fn a_child_with_its_parents_number_is_told_apart() {
    const TEST: &str = "a_child_with_its_parents_number_is_told_apart";
    match own_processes() {
        _ if is_alone() => fork_into_another_namespace(),
        Some(command) => forking_by(command, TEST),
        None => not_tested(TEST, "it takes a namespace of processes: root, or user namespaces"),
    }
}

/// Runs a test that forks in a process of its own, where no other test has a thread.
fn forking(test: &str, run: fn()) {
    if is_alone() {
        return run();
    }
    let mut command = Command::new("env");
    command.arg("RUST_BACKTRACE=0");
    forking_by(command, test);
}

fn forking_by(command: Command, test: &str) {
    let output = alone(command, &format!("fork::{test}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// What any program that is started meanwhile is for an instant: a copy of this process with all its files open.
fn fork_and_close() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    // SAFETY: the child makes system calls only, and ends by a signal: its own, should the parent not send one.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::alarm(60);
            loop {
                libc::pause();
            }
        }
    }
    assert!(child > 0);
    let store = FileSystem::new(&directory);
    assert!(store.is_locked("LOCK").unwrap());
    log.close().unwrap();
    let locked = store.is_locked("LOCK").unwrap();
    let reopened = Log::open(&directory, Options::default()).map(drop);
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours and not waited for yet.
    unsafe {
        assert_eq!(libc::kill(child, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL, "it was there: {status}");
    assert!(!locked);
    reopened.unwrap();
}

fn fork_and_drop() {
    let place = tempfile::tempdir().unwrap();
    let store = FileSystem::new(place.path());
    let mut lock = Some(store.lock("LOCK").unwrap());
    // SAFETY: the child drops a lock, takes one, which takes no lock of a thread, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(lock.take());
        // One of its own it does release.
        let own = store.lock("OTHER").map(drop).and_then(|()| store.is_locked("OTHER"));
        let failed = !matches!(own, Ok(false));
        // SAFETY: ends the child without running what the parent has registered.
        unsafe { libc::_exit(failed.into()) }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    assert!(store.is_locked("LOCK").unwrap());
    assert_eq!(store.lock("LOCK").unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(lock);
    store.lock("LOCK").unwrap();
}

/// This process is the first one of a namespace, and so is the child.
fn fork_into_another_namespace() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    let entry = Entry::new("read", "x");
    producer.append(&entry).unwrap();
    let receipt = producer.flush().unwrap();
    receipt.durable().unwrap();
    assert_eq!(std::process::id(), 1);
    // SAFETY: a system call, about the children of this thread.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0);
    let mut handles = Some((log, producer));
    // SAFETY: the child uses its own memory, and is refused before it takes a lock, which is what this test is about.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a system call. Should the child wait for somebody who is missing, it ends by this.
        unsafe { libc::alarm(60) };
        let (log, mut producer) = handles.take().unwrap();
        let refused = [
            std::process::id() == 1,
            refuses(producer.append(&entry)),
            refuses(producer.flush()),
            refuses(receipt.durable()),
            refuses(log.close()),
        ];
        let failed = refused.iter().position(|&refused| !refused).map_or(0, |index| index as i32 + 1);
        // SAFETY: ends the child without running what the parent has registered.
        unsafe { libc::_exit(failed) }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    let (log, producer) = handles.take().unwrap();
    drop(producer);
    log.close().unwrap();
}

/// Threads of the parent are at work at each fork, and may have locked, or be changing, whatever the log has.
fn fork_and_let_go() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let mut log = Some(Log::open(&directory, Options::default()).unwrap());
    let (producers, over) = (log.as_ref().unwrap().producers(), AtomicBool::new(false));
    let appended = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut producer = producers.producer().unwrap();
            while !over.load(Ordering::Relaxed) {
                producer.append(&Entry::new("read", "x").subject("anna")).unwrap();
                producer.flush().unwrap().durable().unwrap();
                appended.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 0..100 {
            let before = appended.load(Ordering::Relaxed);
            // SAFETY: the child lets go of what it has, looks at its files by system calls, and ends by `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: a system call. Should the child wait for somebody who is missing, it ends by this.
                unsafe { libc::alarm(60) };
                let open = open_files();
                let log = log.take().unwrap();
                let refused = match round % 2 {
                    0 => refuses(log.close()),
                    _ => {
                        drop(log);
                        true
                    }
                };
                let failed = !refused || open == 0 || open_files() != open;
                // SAFETY: ends the child without running what the parent has registered.
                unsafe { libc::_exit(failed.into()) }
            }
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: `status` is valid, and the child is ours.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "round {round}: {status}");
            while appended.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    log.take().unwrap().close().unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    assert_eq!(log.recovery(), bulla::Recovery::default());
}

/// How many of the first files this process has open, found out without memory of the allocator.
fn open_files() -> usize {
    // SAFETY: it asks for flags, of a file that is open or is none.
    (0..200).filter(|file| unsafe { libc::fcntl(*file, libc::F_GETFD) } >= 0).count()
}

fn fork_and_compare() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    let source = log.source(SourceId([1; 16]), b"label").unwrap();
    let entry = Entry::new("read", "x");
    producer.append(&entry).unwrap();
    let receipt = producer.flush().unwrap();
    receipt.checkpointed().unwrap();
    let before = files(place.path());

    let mut handles = Some((log, producer, receipt, source));
    // SAFETY: the child uses its own memory and the allocator, which `fork` of the C library keeps usable; it takes
    // no lock that a thread of the parent could hold, which is what this test is about, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let (log, producer, receipt, source) = handles.take().unwrap();
        let failed = use_in_child(log, producer, &receipt, &source, &place.path().join("other"));
        // SAFETY: ends the child without running what the parent has registered.
        unsafe { libc::_exit(failed) }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child crashed: {status}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "the number of the check that failed in the child");

    let mut after = files(place.path());
    after.retain(|path, _| !path.starts_with(place.path().join("other")) && !path.ends_with("signing.key"));
    let mut before = before;
    before.retain(|path, _| !path.ends_with("signing.key"));
    after.retain(|path, _| !path.starts_with(place.path().join("other.keys")));
    assert_eq!(before, after);

    // The parent goes on, and still holds its lock.
    let (log, mut producer, _, source) = handles.unwrap();
    assert_eq!(Log::open(&directory, Options::default()).unwrap_err().kind(), ErrorKind::Locked);
    let client = Client::connect(bulla::default_keys(&directory)).unwrap().unwrap();
    assert_eq!(client.status().process, std::process::id(), "the socket is still the parent's");
    client.rotate().unwrap();
    producer.append_from(&entry, &source, &Place { range: 0..1, check: 0 }).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();
    drop(producer);
    log.close().unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    assert_eq!(log.recovery(), bulla::Recovery::default());
}

/// 0, or the number of the first check that fails.
fn use_in_child(log: Log, mut producer: Producer, receipt: &Receipt, source: &Source, other: &Path) -> i32 {
    let entry = Entry::new("forked", "x");
    let place = Place { range: 0..1, check: 0 };
    source.end();
    let mut checks = vec![
        refuses(producer.append(&entry)),
        refuses(producer.try_append(&entry)),
        refuses(producer.append_batch(std::slice::from_ref(&entry)).map_err(|error| error.error)),
        refuses(producer.append_from(&entry, source, &place)),
        refuses(producer.try_append_from(&entry, source, &place)),
        refuses(source.relabel(b"other")),
        refuses(log.source(SourceId([2; 16]), b"")),
        refuses(log.sources()),
        refuses(producer.flush()),
        refuses(receipt.durable()),
        refuses(receipt.durable_within(Duration::from_secs(3600))),
        refuses(receipt.checkpointed()),
        refuses(log.producer()),
        refuses(log.producers().producer()),
        refuses(log.flush()),
        refuses(log.step(Step::Linger)),
        refuses(log.step(Step::Checkpoint)),
        log.acknowledged() == 1,
    ];
    drop(producer);
    checks.push(refuses(log.close()));
    // A log of its own is another matter; and it does not bring the parent's handles back to life.
    checks.push(own_log(other).is_ok());
    checks.push(refuses(receipt.durable()));
    checks.iter().position(|&passed| !passed).map_or(0, |index| index as i32 + 1)
}

fn refuses<T>(result: Result<T, Error>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Closed)
}

fn own_log(directory: &Path) -> Result<()> {
    Init::default().create(directory)?;
    let log = Log::open(directory, Options::default())?;
    let mut producer = log.producer()?;
    producer.append(&Entry::new("read", "x"))?;
    producer.flush()?.checkpointed()?;
    drop(producer);
    log.close()
}

/// Every file below a directory, with what is in it.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for item in std::fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            // The control socket has no content.
            false if !path.is_file() => {}
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}
