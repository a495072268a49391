//! Root and a log of somebody else's: root's commands read it, ask its writer, and leave no file of root's there.

use crate::support::{Place, Ran, arguments, bulla, command, eventually, exit, finish, lines, not_tested};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A user who is not root, where there is a second one at all.
const OTHER: u32 = 1;

/// Tells a test that it is root among several users of its own.
const USERS: &str = "BULLA_TEST_USERS";

/// Whether this process may give files to other users. Where it may not, runs the test of that name where it may.
fn has_other_users(test: &str) -> bool {
    let place = tempfile::tempdir().unwrap();
    if chown(place.path(), Some(OTHER), Some(OTHER)).is_ok() {
        return true;
    }
    assert!(std::env::var_os(USERS).is_none(), "the namespace has other users");
    let words = ["--user", "--map-root-user", "--map-auto"];
    let can = Command::new("unshare").args(words).args(["chown", "1:1"]).arg(place.path()).output();
    if !can.is_ok_and(|output| output.status.success()) {
        not_tested(test, "it takes a second user: root, or subordinate ids and newuidmap");
        return false;
    }
    let mut command = Command::new("unshare");
    command.args(words).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(USERS, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// A log with an entry of `s0`'s, and everything below it, given to the other user.
fn theirs() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..1)).exits(exit::DONE);
    std::fs::set_permissions(place.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    // Where this program lies they may not reach. Another process copies it: what another thread starts meanwhile would have
    // the copy open for writing, if it were opened here, and nobody could start it.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_bulla")).arg(place.path("bulla")).status();
    assert!(copied.unwrap().success());
    for directory in [place.audit(), place.path("audit.keys")] {
        give(&directory);
    }
    place
}

fn give(path: &Path) {
    for path in below(path) {
        chown(path, Some(OTHER), Some(OTHER)).unwrap();
    }
}

/// The path, and everything below it.
fn below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        let items = std::fs::read_dir(path).unwrap();
        items.for_each(|item| found.extend(below(&item.unwrap().path())));
    }
    found
}

/// Whose each file is.
fn owners(place: &Place) -> BTreeMap<PathBuf, u32> {
    let paths = [place.audit(), place.path("audit.keys")].into_iter().flat_map(|path| below(&path));
    paths.map(|path| (path.clone(), std::fs::symlink_metadata(&path).unwrap().uid())).collect()
}

/// Starts `append` as the other user, with input to be given.
fn their_writer(place: &Place) -> Child {
    let mut command = Command::new(place.path("bulla"));
    command.args(place.arguments("append", &[])).uid(OTHER).gid(OTHER);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn their_append(place: &Place, input: &[u8]) -> Ran {
    let mut writer = their_writer(place);
    writer.stdin.take().unwrap().write_all(input).unwrap();
    finish(writer)
}

#[test]
fn root_writes_nothing_in_a_directory_that_is_somebody_else_s() {
    if !has_other_users("root::root_writes_nothing_in_a_directory_that_is_somebody_else_s") {
        return;
    }
    let place = theirs();
    let changes: &[&[&str]] = &[
        &["append"],
        &["erase", "--subject", "s0", "--reason", "asked"],
        &["hold", "add", "--subject", "s0", "--by", "legal", "--reason", "case"],
        &["config", "set", "linger", "7 ms"],
        &["config", "set", "compression", "3"],
        &["config", "set", "log.fields.client", "drop"],
        &["keys", "rotate"],
        &["restore"],
        &["export", "--record", "-o"],
    ];
    for whose in [&["audit", "audit.keys"][..], &["audit"], &["audit.keys"]] {
        for name in ["audit", "audit.keys"] {
            let owner = if whose.contains(&name) { OTHER } else { 0 };
            below(&place.path(name)).iter().for_each(|path| chown(path, Some(owner), Some(owner)).unwrap());
        }
        let before = owners(&place);
        for change in changes {
            let output = place.path("all.jsonl").into_os_string().into_string().unwrap();
            let mut more = change[1..].to_vec();
            if more.last() == Some(&"-o") {
                more.push(&output);
            }
            let ran = place.run(change[0], &more).exits(exit::REFUSED);
            assert!(ran.err.contains("belongs to user 1, ") && ran.err.contains("sudo -u '#1'"), "{ran:?}");
            assert!(ran.err.contains(whose[0]), "{ran:?}");
        }
        let mut after = owners(&place);
        after.retain(|path, owner| before.contains_key(path) || !is_shared_by_readers(path, *owner));
        assert_eq!(after, before, "of {whose:?}");
    }
    for name in ["audit", "audit.keys"] {
        give(&place.path(name));
    }
    their_append(&place, &lines(1..2)).exits(exit::DONE);
}

/// What SQLite makes beside a vault for whoever reads it: root's are its owner's.
fn is_shared_by_readers(path: &Path, owner: u32) -> bool {
    let of_readers = ["vault.db-shm", "vault.db-wal"];
    of_readers.contains(&path.file_name().unwrap().to_str().unwrap()) && owner == vault_owner(path)
}

fn vault_owner(path: &Path) -> u32 {
    std::fs::metadata(path.with_file_name("vault.db")).unwrap().uid()
}

#[test]
fn root_makes_no_log_in_a_directory_that_is_somebody_else_s() {
    if !has_other_users("root::root_makes_no_log_in_a_directory_that_is_somebody_else_s") {
        return;
    }
    for name in ["audit", "audit.keys"] {
        let place = Place::empty();
        std::fs::create_dir(place.path(name)).unwrap();
        chown(place.path(name), Some(OTHER), Some(OTHER)).unwrap();
        let ran = bulla(arguments!["init", place.audit()]).exits(exit::REFUSED);
        assert!(ran.err.contains("belongs to user 1, "), "{ran:?}");
        let left = below(&place.path(""));
        assert_eq!(left, [place.path(""), place.path(name)]);
    }
}

#[test]
fn what_root_reads_keeps_its_owner_and_nothing_of_root_s_is_left_there() {
    if !has_other_users("root::what_root_reads_keeps_its_owner_and_nothing_of_root_s_is_left_there") {
        return;
    }
    let place = theirs();
    std::fs::copy(place.audit().join("checkpoint"), place.path("checkpoint")).unwrap();
    let file = |name: &str| place.path(name).into_os_string().into_string().unwrap();
    let (checkpoint, proof, grown, grant) = (file("checkpoint"), file("proof"), file("grown"), file("grant"));
    let recipient = place.info("recipients")[0].as_str().unwrap().to_owned();
    let reads: &[&[&str]] = &[
        &["info"],
        &["events"],
        &["config"],
        &["hold", "list"],
        &["keys", "list"],
        &["verify"],
        &["export"],
        &["export", "--subject", "s0"],
        &["export", "--salvage"],
        &["tail", "--entries", "0..0"],
        &["prove", "--subject", "s0", "-o", &proof],
        &["prove", "--consistency", &checkpoint, "-o", &grown],
        &["grant", "--recipient", &recipient, "--subject", "s0", "-o", &grant],
    ];
    let before = owners(&place);
    for read in reads {
        place.run(read[0], &read[1..]).exits(exit::DONE);
        let mut after = owners(&place);
        after.retain(|path, owner| before.contains_key(path) || !is_shared_by_readers(path, *owner));
        assert_eq!(after, before, "{read:?}");
    }
    their_append(&place, &lines(1..2)).exits(exit::DONE);
    assert!(owners(&place).values().all(|owner| *owner == OTHER), "{:?}", owners(&place));
}

#[test]
fn root_asks_the_writer_that_is_at_work() {
    if !has_other_users("root::root_asks_the_writer_that_is_at_work") {
        return;
    }
    let place = theirs();
    let mut writer = their_writer(&place);
    eventually("the writer listens", || place.keys("control.sock").exists());
    place.run("keys", &["rotate"]).exits(exit::DONE);
    place.run("config", &["set", "linger", "7 ms"]).exits(exit::DONE);
    place.run("hold", &["add", "--subject", "s0", "--by", "legal", "--reason", "case"]).exits(exit::DONE);
    drop(writer.stdin.take());
    finish(writer).exits(exit::DONE);
    assert!(owners(&place).values().all(|owner| *owner == OTHER), "{:?}", owners(&place));
    their_append(&place, &lines(1..2)).exits(exit::DONE);
    let told = finish(command(place.arguments("info", &[])).spawn().unwrap()).exits(exit::DONE);
    assert!(told.out.contains("entries     2"), "{told:?}");
}
