//! `bulla mirror`: to a directory, through a program in the place of ssh, and through a real sshd; killed on either side, refused, cut off.

use crate::support::{
    Mount, Place, arguments, bulla, command, copy, eventually, exit, finish, lines, may_mount, not_tested,
    parse_lines, signal,
};
use crate::witness::Cosigner;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A log with entries, and where its mirror is to lie.
fn filled() -> (Place, PathBuf) {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let to = place.path("copy");
    (place, to)
}

/// What a verification with the log's key says of the mirror, which has to be sound.
#[track_caller]
fn verified(place: &Place, to: &Path) -> Value {
    let ran = bulla(arguments!["verify", to, "--key", place.verifier_key(), "--json"]).exits(exit::DONE);
    ran.json()
}

fn size(place: &Place) -> Value {
    place.info("tree_size")
}

/// A program in the place of ssh, which passes what is to be run there to a shell here. Before, it does `first`.
fn stand_in(place: &Place, first: &str) -> String {
    let path = place.write(
        "reach",
        format!("#!/bin/sh\n{first}\nfor last; do :; done\nexec sh -c \"$last\"\n").as_bytes(),
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The words that mirror to another host by `ssh`.
fn over(place: &Place, ssh: &str, to: &Path, more: &[&str]) -> Vec<std::ffi::OsString> {
    let far = format!("elsewhere:{}", to.display());
    let mut words = arguments!["mirror", place.audit(), far, "--ssh", ssh];
    words.extend(arguments!["--remote-bulla", env!("CARGO_BIN_EXE_bulla")]);
    words.extend(more.iter().map(std::ffi::OsString::from));
    words
}

fn killed(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn once_ships_what_there_is_and_says_what_that_is() {
    let (place, to) = filled();
    let ran = bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::DONE);
    let frames = size(&place);
    assert!(
        ran.out.starts_with(&format!("{}: {frames} frames, 10 entries, signed ", to.display())),
        "{ran:?}"
    );
    let report = verified(&place, &to);
    assert_eq!(
        (&report["tree_size"], &report["entries"], &report["findings"]),
        (&frames, &10.into(), &Value::Array(vec![]))
    );
    // Whoever has an identity reads it as the log.
    let identity = place.keys("identity.age");
    let read = bulla(arguments!["export", &to, "--identity", &identity, "--keys", place.path("audit.keys")])
        .exits(exit::DONE);
    assert_eq!(read.out, place.run("export", &[]).exits(exit::DONE).out);
    place.append(&[], &lines(10..20)).exits(exit::DONE);
    let ran = bulla(arguments!["mirror", place.audit(), &to, "--once", "--json"]).exits(exit::DONE);
    let told = parse_lines(&ran.out);
    assert_eq!((&told[0]["entries"], &told[told.len() - 1]["entries"]), (&10.into(), &20.into()));
    let last = &told[told.len() - 1];
    assert_eq!(
        (&last["frames"], &last["behind"]["frames"], &last["connected"]),
        (&size(&place), &0.into(), &true.into())
    );
}

#[test]
fn a_mirror_that_is_killed_again_and_again_follows_the_log() {
    let (place, to) = filled();
    let ssh = stand_in(&place, "");
    // A receiver may take a moment to hear that its sender is gone.
    let is_free = || fs::File::open(to.join("LOCK")).is_ok_and(|lock| lock.try_lock().is_ok());
    for round in 1..9 {
        eventually("nobody has the lock", || !to.exists() || is_free());
        let here = arguments!["mirror", place.audit(), &to];
        let words = if round % 2 == 0 { here } else { over(&place, &ssh, &to, &[]) };
        let mirror = command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        place.append(&[], &lines(0..round * 40)).exits(exit::DONE);
        if round % 3 == 0 {
            let covers = || bulla(arguments!["info", &to, "--json"]).json()["tree_size"] == size(&place);
            eventually("the mirror has what the log has", || to.join("bulla.toml").exists() && covers());
        }
        // While it is at work, and once it is killed.
        for at_work in [Some(mirror), None] {
            if to.join("bulla.toml").exists() {
                verified(&place, &to);
            }
            at_work.into_iter().for_each(killed);
        }
    }
    eventually("nobody has the lock", is_free);
    bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::DONE);
    assert_eq!(verified(&place, &to)["tree_size"], size(&place));
}

#[test]
fn a_mirror_is_interrupted_at_once() {
    let (place, to) = filled();
    let mirror = command(arguments!["mirror", place.audit(), &to]).spawn().unwrap();
    eventually("it has begun", || to.join("bulla.toml").exists());
    signal(&mirror, Signal::INT);
    finish(mirror).exits(exit::INTERRUPTED);
    verified(&place, &to);
}

#[test]
fn a_line_that_fails_is_taken_up_again_and_told() {
    let (place, to) = filled();
    // It lets the second attempt through, and the first one only for a moment.
    let mark = place.path("mark");
    let first = format!(
        "if [ -e '{0}' ]; then :; else touch '{0}'; for last; do :; done; timeout -s KILL 2 sh -c \"$last\"; exit 255; fi",
        mark.display()
    );
    let ssh = stand_in(&place, &first);
    let mut mirror = command(over(&place, &ssh, &to, &["--json"])).spawn().unwrap();
    eventually("the first attempt is over", || mark.exists() && to.join("bulla.toml").exists());
    std::thread::sleep(std::time::Duration::from_millis(2500));
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let expected = size(&place);
    eventually("it goes on", || bulla(arguments!["info", &to, "--json"]).json()["tree_size"] == expected);
    mirror.kill().unwrap();
    let ran = mirror.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    let told = parse_lines(&out);
    assert!(told.iter().any(|line| line["connected"] == Value::Bool(false)), "{out}");
    assert!(err.contains("trying again in 1 s"), "{err}");
}

#[test]
fn what_cannot_be_a_mirror_is_refused_before_anything_is_written() {
    let (place, to) = filled();
    let refused = |words, code, why: &str| {
        let ran = bulla(words).exits(code);
        assert!(ran.err.contains(why), "{why}: {ran:?}");
    };
    let audit = place.audit();
    refused(arguments!["mirror", &audit, audit.join("copy")], exit::USAGE, "are one in the other");
    refused(arguments!["mirror", &audit, &audit], exit::USAGE, "are one in the other");
    refused(arguments!["mirror", &audit, place.path("audit.keys").join("copy")], exit::USAGE, "its keys");
    refused(arguments!["mirror", place.path("nothing"), &to], exit::ENVIRONMENT, "is not a log");
    refused(arguments!["mirror", &audit, "-oProxyCommand=touch:x"], exit::USAGE, "");
    refused(arguments!["mirror", &audit, "host:"], exit::USAGE, "no directory follows the host");
    refused(arguments!["mirror", "--receive", &to, "--once"], exit::USAGE, "cannot be used with");
    refused(
        arguments!["mirror", &audit, "elsewhere:copy", "--ssh", "/nowhere/ssh"],
        exit::ENVIRONMENT,
        "starting /nowhere/ssh",
    );
    let silent = stand_in(&place, "echo Welcome to this host; exit 1");
    refused(over(&place, &silent, &to, &[]), exit::ENVIRONMENT, "a shell that prints something");
    let home = place.path("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("letters"), "").unwrap();
    refused(arguments!["mirror", &audit, &home], exit::REFUSED, "it has `letters`");
    refused(over(&place, &stand_in(&place, ""), &home, &[]), exit::REFUSED, "it has `letters`");
    assert!(!to.exists());
}

#[test]
fn a_log_that_was_put_back_is_a_violation_here_and_there() {
    let (place, to) = filled();
    for name in ["audit", "audit.keys"] {
        copy(&place.path(name), &place.path(&format!("{name}.before")));
    }
    place.append(&[], &lines(10..20)).exits(exit::DONE);
    bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::DONE);
    let before = verified(&place, &to);
    for name in ["audit", "audit.keys"] {
        fs::remove_dir_all(place.path(name)).unwrap();
        copy(&place.path(&format!("{name}.before")), &place.path(name));
    }
    let ssh = stand_in(&place, "");
    for words in [arguments!["mirror", place.audit(), &to, "--json"], over(&place, &ssh, &to, &["--json"])] {
        let ran = bulla(words).exits(exit::VIOLATION);
        assert!(ran.err.contains("violation pin-mismatch: the source has"), "{ran:?}");
        assert!(parse_lines(&ran.out).pop().unwrap()["error"].as_str().unwrap().contains("pin-mismatch"));
    }
    place.append(&[], &lines(20..60)).exits(exit::DONE);
    let ran = bulla(arguments!["mirror", place.audit(), &to]).exits(exit::VIOLATION);
    assert!(ran.err.contains("violation pin-mismatch: the first"), "{ran:?}");
    assert_eq!(verified(&place, &to), before);
}

/// What is wrong with a log on several paths its own host sees, and not the one that has the copy.
#[test]
fn a_log_that_is_none_or_not_there_ends_a_mirror_alike_here_and_there() {
    let place = Place::new();
    let backup = place.path("backup");
    place.run("config", &["set", "backup_paths", backup.to_str().unwrap()]).exits(exit::DONE);
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let ssh = stand_in(&place, "");
    let ends = |code, said: &str| {
        let to = ["here", "there"].map(|name| place.path(name));
        let here = arguments!["mirror", place.audit(), &to[0], "--once", "--json"];
        for words in [here, over(&place, &ssh, &to[1], &["--once", "--json"])] {
            let ran = bulla(words).exits(code);
            assert!(ran.err.lines().last().unwrap().contains(said), "{ran:?}");
            assert!(
                parse_lines(&ran.out).pop().unwrap()["error"].as_str().unwrap().contains(said),
                "{ran:?}"
            );
        }
        to.into_iter().for_each(|to| drop(fs::remove_dir_all(to)));
    };
    fs::copy(backup.join("path"), place.audit().join("path")).unwrap();
    ends(exit::VIOLATION, "says that it is the path");
    fs::remove_file(place.audit().join("path")).unwrap();
    fs::rename(&backup, place.path("away")).unwrap();
    ends(exit::ENVIRONMENT, "/backup is a path of the log, and is missing");
    fs::rename(place.path("away"), &backup).unwrap();
    bulla(over(&place, &ssh, &place.path("there"), &["--once"])).exits(exit::DONE);
}

/// On a disk that is not mounted a copy would begin anew on another one, and what the old one says would be held against nobody.
#[test]
fn a_copy_is_begun_aloud_and_not_with_what_is_above_it() {
    let (place, to) = filled();
    let above = place.path("disk");
    let away = above.join("copy");
    for words in [
        arguments!["mirror", place.audit(), &away, "--once"],
        over(&place, &stand_in(&place, ""), &away, &["--once"]),
    ] {
        let ran = bulla(words).exits(exit::REFUSED);
        let expected = format!("there is no directory {}: is its disk mounted?", above.display());
        assert!(ran.err.contains(&expected), "{ran:?}");
        assert!(!above.exists());
    }
    let begun = format!("nothing of the log is in {} yet: this is a first copy", to.display());
    for told in [1, 0] {
        let ran = bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::DONE);
        assert_eq!(ran.err.matches(&begun).count(), told, "{ran:?}");
    }
    let to = place.path("there");
    let ran = bulla(over(&place, &stand_in(&place, ""), &to, &["--once"])).exits(exit::DONE);
    assert!(
        ran.err.contains(&format!(
            "nothing of the log is in elsewhere:{} yet: this is a first copy",
            to.display()
        )),
        "{ran:?}"
    );
}

/// What cannot be read of the log is not waited for where nothing has arrived.
#[test]
fn once_fails_at_once_where_nothing_has_arrived() {
    let (place, cosigner) = (Place::empty(), Cosigner::new("ed25519"));
    place.run("init", &["--witness-policy", &cosigner.policy(&place)]).exits(exit::DONE);
    let (pipe, to) = (place.audit().join("checkpoint.witnessed"), place.path("copy"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for _ in 0..2 {
        let ran = bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("checkpoint.witnessed") && !ran.err.contains("trying again"), "{ran:?}");
    }
    fs::remove_file(pipe).unwrap();
    bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::DONE);
}

#[test]
fn the_key_that_is_named_binds_the_log() {
    let (place, to) = filled();
    let other = Place::new();
    let ran =
        bulla(arguments!["mirror", place.audit(), &to, "--key", other.verifier_key()]).exits(exit::VIOLATION);
    assert!(ran.err.contains("violation key-mismatch"), "{ran:?}");
    bulla(arguments!["mirror", place.audit(), &to, "--once", "--key", place.verifier_key()])
        .exits(exit::DONE);
    verified(&place, &to);
}

#[test]
fn a_full_disk_leaves_the_mirror_as_it_was() {
    const TEST: &str = "mirror::a_full_disk_leaves_the_mirror_as_it_was";
    if !may_mount(TEST) {
        return;
    }
    let (place, _) = filled();
    let mount = place.path("small");
    let _mount = Mount::new(&mount, "size=1M");
    let to = mount.join("copy");
    bulla(arguments!["mirror", place.audit(), &to, "--once"]).exits(exit::DONE);
    let before = verified(&place, &to);
    place.append(&[], &crate::support::incompressible(300)).exits(exit::DONE);
    // Attempts that come to nothing are told, and the waits between them grow, so that those of `--once` come to an end.
    for more in [&[][..], &["--once"]] {
        let mut words = arguments!["mirror", place.audit(), &to];
        words.extend(more.iter().map(std::ffi::OsString::from));
        let mut mirror = command(words).spawn().unwrap();
        let told = BufReader::new(mirror.stderr.take().unwrap()).lines();
        let told = told.take(3).collect::<Result<Vec<_>, _>>().unwrap();
        killed(mirror);
        for (line, delay) in told.iter().zip(["1 s", "2 s", "4 s"]) {
            let ends = format!("; trying again in {delay}");
            assert!(line.contains("No space left on device") && line.ends_with(&ends), "{more:?}: {told:?}");
        }
        assert_eq!(told.len(), 3);
    }
    assert_eq!(verified(&place, &to)["tree_size"], before["tree_size"]);
}

/// What fails before anything of the log is there ends it: somebody is to look at that.
#[test]
fn a_first_copy_onto_a_full_disk_ends_at_once() {
    if !may_mount("mirror::a_first_copy_onto_a_full_disk_ends_at_once") {
        return;
    }
    let (place, _) = filled();
    let mount = place.path("small");
    let _mount = Mount::new(&mount, "size=64k");
    let mut filler = fs::File::create(mount.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[0; 512]).is_ok() {}
    for more in [&[][..], &["--once"]] {
        let mut words = arguments!["mirror", place.audit(), mount.join("copy")];
        words.extend(more.iter().map(std::ffi::OsString::from));
        let ran = bulla(words).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("No space left on device") && !ran.err.contains("trying again"), "{ran:?}");
    }
}

/// A server of ssh on this host, for this user alone, with what reaches it.
struct Sshd {
    process: Child,
    destination: String,
    ssh: String,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Sshd {
    fn start(place: &Place, to: &Path) -> Option<Self> {
        let program = "/usr/sbin/sshd";
        let user =
            String::from_utf8(Command::new("id").arg("-un").output().ok()?.stdout).ok()?.trim().to_owned();
        for key in ["host", "own"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(place.path(key));
            command.status().ok().filter(std::process::ExitStatus::success)?;
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (host, authorized) = (place.path("host"), place.path("own.pub"));
        let configuration = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPidFile none\n",
            host.display(),
            authorized.display()
        );
        let configuration = place.write("sshd_config", configuration.as_bytes());
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f", &configuration]).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(fs::File::create(place.path("sshd.log")).unwrap());
        let mut process = command.spawn().ok()?;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if process.try_wait().unwrap().is_some() || std::time::Instant::now() > deadline {
                let _ = process.kill();
                let _ = process.wait();
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let own = place.path("own");
        let ssh = format!(
            "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            own.display()
        );
        Some(Sshd { process, destination: format!("ssh://{user}@127.0.0.1:{port}{}", to.display()), ssh })
    }

    fn words(&self, place: &Place, more: &[&str]) -> Vec<std::ffi::OsString> {
        let mut words = arguments!["mirror", place.audit(), &self.destination, "--ssh", &self.ssh];
        words.extend(arguments!["--remote-bulla", env!("CARGO_BIN_EXE_bulla")]);
        words.extend(more.iter().map(std::ffi::OsString::from));
        words
    }
}

#[test]
fn over_a_real_ssh_the_same_arrives() {
    const TEST: &str = "mirror::over_a_real_ssh_the_same_arrives";
    // For root it wants a directory of its own, which is made where nobody else sees it.
    let _run = match rustix::process::geteuid().is_root() && !Path::new("/run/sshd").exists() {
        false => None,
        true if !may_mount(TEST) => return,
        true => Some(Mount::new(Path::new("/run"), "size=1M")),
    };
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all("/run/sshd").unwrap();
    }
    let (place, _) = filled();
    let to = place.path("it's a copy");
    let Some(sshd) = Sshd::start(&place, &to) else {
        return not_tested(TEST, "no sshd that this user can run, or it does not start");
    };
    let ran = bulla(sshd.words(&place, &["--once"]));
    if ran.code != exit::DONE && !to.exists() {
        let log = fs::read_to_string(place.path("sshd.log")).unwrap_or_default();
        return not_tested(TEST, &format!("sshd lets nobody in here: {} {log}", ran.err));
    }
    ran.exits(exit::DONE);
    assert_eq!(verified(&place, &to)["tree_size"], size(&place));
    // The connection is cut while it follows, on the server's side.
    let mut mirror = command(sshd.words(&place, &[])).stdout(Stdio::null()).spawn().unwrap();
    place.append(&[], &lines(10..40)).exits(exit::DONE);
    let expected = size(&place);
    eventually("it follows", || bulla(arguments!["info", &to, "--json"]).json()["tree_size"] == expected);
    let children = Command::new("ps").args(["-o", "pid=", "--ppid", &sshd.process.id().to_string()]).output();
    let children =
        children.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    for child in children.split_whitespace() {
        Command::new("kill").args(["-9", child]).status().unwrap();
    }
    place.append(&[], &lines(40..70)).exits(exit::DONE);
    let expected = size(&place);
    eventually("it goes on", || bulla(arguments!["info", &to, "--json"]).json()["tree_size"] == expected);
    mirror.kill().unwrap();
    mirror.wait().unwrap();
    verified(&place, &to);
}

/// Without what a key directory says of the log's paths the copy would end where the log has gone on elsewhere.
#[test]
fn a_key_directory_that_cannot_be_read_is_no_word_that_there_are_no_other_paths() {
    let (place, to) = filled();
    let keys = place.path("audit.keys");
    let refused = |words: Vec<std::ffi::OsString>, code, why: &str| {
        let ran = bulla(words).exits(code);
        assert!(ran.err.contains(why) && !to.exists(), "{why}: {ran:?}");
    };
    let mirror = || arguments!["mirror", place.audit(), &to, "--once"];
    let with = |more: Vec<std::ffi::OsString>| [mirror(), more].concat();
    let settings = keys.join("settings.toml");
    let text = fs::read(&settings).ok();
    let _ = fs::remove_file(&settings);
    fs::create_dir(&settings).unwrap();
    refused(mirror(), exit::ENVIRONMENT, "say where else the log may lie");
    refused(with(arguments!["--keys", place.path("none")]), exit::REFUSED, "the key directory");
    fs::remove_dir(&settings).unwrap();
    text.into_iter().for_each(|text| fs::write(&settings, text).unwrap());
    // Keys that lie elsewhere are found there; where there are none, nothing is missing.
    let elsewhere = place.path("elsewhere");
    fs::rename(&keys, &elsewhere).unwrap();
    bulla(with(arguments!["--keys", &elsewhere])).exits(exit::DONE);
    bulla(mirror()).exits(exit::DONE);
    assert_eq!(verified(&place, &to)["tree_size"], size(&place));
}

/// Paths that are named stand in for the settings, and for nothing that says which of them are lost.
#[test]
fn a_list_of_paths_that_cannot_be_read_is_refused_with_a_way_out() {
    let (place, to) = filled();
    let (settings, paths) = (place.keys("settings.toml"), place.keys("paths"));
    fs::write(&settings, "[settings\n").unwrap();
    let also = place.path("also");
    let mirror = || arguments!["mirror", place.audit(), &to, "--once", "--also", &also];
    fs::write(&paths, "bulla paths").unwrap();
    let ran = bulla(mirror()).exits(exit::ENVIRONMENT);
    assert!(
        ran.err.contains("paths is damaged: ") && ran.err.contains("restore it from a backup"),
        "{ran:?}"
    );
    fs::remove_file(&paths).unwrap();
    fs::create_dir(&paths).unwrap();
    let ran = bulla(mirror()).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("which of them are lost: let this user read it"), "{ran:?}");
    assert!(!to.exists());
}

/// It is a pin: a mirror that began anew would forget what it was.
#[test]
fn a_copy_without_its_configuration_is_damaged_and_no_directory_of_somebody_else() {
    let (place, to) = filled();
    let mirror = || bulla(arguments!["mirror", place.audit(), &to, "--once"]);
    mirror().exits(exit::DONE);
    fs::remove_file(to.join("bulla.toml")).unwrap();
    let ran = mirror().exits(exit::VIOLATION);
    assert!(ran.err.contains("no bulla.toml") && ran.err.contains("from the source"), "{ran:?}");
    fs::copy(place.audit().join("bulla.toml"), to.join("bulla.toml")).unwrap();
    mirror().exits(exit::DONE);
    assert_eq!(verified(&place, &to)["tree_size"], size(&place));
}

/// What a receiver says that cannot be so: nothing has arrived there.
#[test]
fn a_receiver_that_says_it_is_done_is_not_believed() {
    let (place, to) = filled();
    let done = [&1_u32.to_le_bytes()[..], &[6]].concat();
    let claim = [&51_u32.to_le_bytes()[..], &[5], &[0; 10], &[0xff; 8], &[0; 32]].concat();
    for (said, why) in [
        (done.clone(), "the receiver says that all has arrived"),
        ([claim, done].concat(), "the receiver says that it has"),
    ] {
        let said = place.write("said", &said);
        let evil = stand_in(&place, &format!("cat {said}; exit 0"));
        let ran = bulla(over(&place, &evil, &to, &["--once"])).exits(exit::ENVIRONMENT);
        assert!(ran.out.is_empty() && ran.err.contains(why), "{ran:?}");
    }
}

const KEY_FILES: &str = include_str!("../../../bulla/src/keys/files.rs");
const READ: [&str; 4] = ["settings.toml", "paths", "seal.state", "LOCK"];
const UNIT: &str = include_str!("../../../../packaging/bulla-mirror.service");

/// The service does what `docs/operating.md` says: it mirrors by a command line that is one, and is not started again after what a
/// person has to look at; systemd knows each line of it, and lets it do little.
#[test]
fn the_service_is_one_and_may_do_little() {
    const MOST: u32 = 16;
    let start = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/bulla ")).unwrap();
    let (place, to) = filled();
    let words = start.split(' ').map(|word| match word {
        "/var/lib/bulla/audit" => place.audit().into_os_string(),
        "${DESTINATION}" => to.clone().into_os_string(),
        "${KEY}" => place.verifier_key().into(),
        "${SSH}" => "ssh".into(),
        word => word.into(),
    });
    bulla(words.chain(["--once".into()]).collect::<Vec<std::ffi::OsString>>()).exits(exit::DONE);
    verified(&place, &to);
    let ends = format!("RestartPreventExitStatus={} {} {}\n", exit::VIOLATION, exit::USAGE, exit::REFUSED);
    assert!(UNIT.contains(&ends) && UNIT.contains(&format!("SuccessExitStatus={}\n", exit::INTERRUPTED)));
    // Of the key directory it reads what names the log's paths, and how far the log has come; whatever else may lie there is hidden.
    let hidden = UNIT
        .lines()
        .filter_map(|line| line.strip_prefix("InaccessiblePaths="))
        .flat_map(|line| line.split(' '));
    let hidden =
        hidden.map(|path| path.strip_prefix("-/var/lib/bulla/audit.keys/").unwrap()).collect::<Vec<_>>();
    for (name, _) in KEY_FILES.split("pub const ").skip(1).filter_map(|line| line.split_once("\";")) {
        let name = name.split_once("= \"").unwrap().1;
        let is_read = READ.contains(&name);
        assert_ne!(hidden.contains(&name), is_read, "{name}");
    }
    assert!(hidden.contains(&"roots") && hidden.len() > 10, "{hidden:?}");
    for name in fs::read_dir(place.path("audit.keys")).unwrap().map(|item| item.unwrap().file_name()) {
        let name = name.to_str().unwrap();
        assert!(hidden.contains(&name) || READ.contains(&name), "{name}");
    }
    let file = place.path("bulla-mirror.service");
    fs::write(&file, UNIT.replace("/usr/bin/bulla", env!("CARGO_BIN_EXE_bulla"))).unwrap();
    let ask = |words: &[&str]| Command::new("systemd-analyze").args(words).arg(&file).output();
    let Ok(checked) = ask(&["verify", "--man=no"]) else {
        return not_tested("what systemd says of the service", "systemd-analyze is not here");
    };
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && !told.contains("bulla-mirror.service"), "{told}");
    let asked = ask(&["security", "--offline=yes", "--no-pager", &format!("--threshold={MOST}")]).unwrap();
    let told = String::from_utf8_lossy(&asked.stdout);
    if !told.contains("Overall exposure level") {
        return not_tested("how much the service may do", "this systemd-analyze cannot tell it of a file");
    }
    assert!(asked.status.success(), "{told}");
}
