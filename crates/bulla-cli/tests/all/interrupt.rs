use crate::support::{
    Mount, Place, command, command_under, eventually, exit, finish, incompressible, lines, may_mount, signal,
};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};

/// A command that has committed a thousand entries and waits for more, on a pipe that stays open.
pub(crate) fn waiting(place: &Place, arguments: &[&str], stdout: Stdio) -> (Child, ChildStdin) {
    // Who runs these tests may have started them so that they ignore it, which is inherited.
    waiting_under(&["env", "--default-signal=HUP"], place, arguments, stdout)
}

fn waiting_under(words: &[&str], place: &Place, arguments: &[&str], stdout: Stdio) -> (Child, ChildStdin) {
    let mut command = command_under(words, &place.arguments("append", arguments));
    let mut child = command.stdin(Stdio::piped()).stdout(stdout).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&lines(0..1000)).unwrap();
    eventually("the entries are committed", || place.info("entries") == 1000);
    (child, stdin)
}

#[test]
fn a_signal_drains_and_says_what_was_committed() {
    for stop in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let (child, mut stdin) = waiting(&place, &[], Stdio::piped());
        // Of this nobody knows whether it is read before the signal; of the line without an end, that it is not.
        stdin.write_all(&lines(1000..1500)).unwrap();
        stdin.write_all(b"{\"operation\":\"unfinished\"").unwrap();
        signal(&child, stop);
        let ran = finish(child).exits(exit::INTERRUPTED);
        drop(stdin);
        let entries = place.entries();
        let count = entries.len();
        let counts = format!("interrupted: {count} accepted, 0 refused, {count} committed");
        let up_to = format!("every line up to stdin:{count} is durable or was refused");
        assert_eq!(ran.out, format!("{counts}\n{up_to}\n"));
        assert!((1000..=1500).contains(&count), "{count}");
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(entry["location"], format!("key/{number}"));
        }
        assert!(place.run("verify", &[]).exits(exit::DONE).err.is_empty(), "it was closed, not killed");
        assert_eq!(place.append(&[], b"").exits(exit::DONE).err, "", "nothing to recover");
    }
}

/// As `nohup` leaves it.
#[test]
fn a_hangup_that_was_ignored_stays_ignored() {
    let place = Place::new();
    let (child, mut stdin) = waiting_under(&["nohup"], &place, &[], Stdio::piped());
    signal(&child, Signal::HUP);
    stdin.write_all(&lines(1000..1500)).unwrap();
    drop(stdin);
    let ran = finish(child).exits(exit::DONE);
    assert!(ran.out.starts_with("1500 accepted, 0 refused, 1500 committed\n"), "{ran:?}");
}

#[test]
fn a_signal_before_a_named_pipe_has_a_writer_ends_it() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = command(place.arguments("append", &[pipe.to_str().unwrap()])).spawn().unwrap();
    eventually("the log is open", || place.info("locked") == true);
    signal(&child, Signal::INT);
    let ran = finish(child).exits(exit::INTERRUPTED);
    assert_eq!(ran.out, "interrupted: 0 accepted, 0 refused, 0 committed\n");
}

/// Six hundred attempts would be waited for, ten minutes, and as many at a new segment.
#[test]
fn a_signal_does_not_wait_for_a_full_disk() {
    if !may_mount("interrupt::a_signal_does_not_wait_for_a_full_disk") {
        return;
    }
    let place = Place::new();
    let log = place.path("log");
    std::fs::rename(place.audit(), &log).unwrap();
    let mount = Mount::new(&place.audit(), "size=4m");
    let copied = std::process::Command::new("cp").arg("-a").arg(log.join(".")).arg(place.audit()).status();
    assert!(copied.unwrap().success());
    let file = place.audit().join("bulla.toml");
    let settings = std::fs::read_to_string(&file).unwrap() + "retries = 600\n";
    std::fs::write(&file, settings).unwrap();
    let (child, mut stdin) = waiting(&place, &[], Stdio::piped());
    let _ = std::fs::write(place.audit().join("filler"), vec![0; 8 << 20]);
    // As much as a pipe holds is not read yet; the rest is staged, and some of it is being written.
    stdin.write_all(&incompressible(100)).unwrap();
    let start = std::time::Instant::now();
    signal(&child, Signal::INT);
    let ran = finish(child).exits(exit::ENVIRONMENT);
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(ran.err.contains("nothing can be committed"), "{ran:?}");
    std::fs::remove_file(place.audit().join("filler")).unwrap();
    place.append(&[], b"").exits(exit::DONE);
    assert!(place.entries().len() >= 1000);
    drop(mount);
}

/// Files that cannot grow stand for a disk that is full, without a mount.
const FULL: &[&str] = &["prlimit", "--fsize=0:unlimited"];

/// Reads what a command tells until it says that it waits.
fn until_it_waits(told: &mut impl BufRead) -> String {
    let mut all = String::new();
    while !all.contains("waiting, and trying again: ") {
        assert!(told.read_line(&mut all).unwrap() > 0, "it ended without a word: {all}");
    }
    all
}

/// A thousand attempts would be waited for, a quarter of an hour.
#[test]
fn a_signal_while_the_log_is_opened_ends_it_and_says_that_nothing_was_taken() {
    let place = Place::empty();
    // A vault that cannot be written is not waited for while it is opened.
    place.run("init", &["--erasure", "off"]).exits(exit::DONE);
    place.run("config", &["set", "retries", "1000"]).exits(exit::DONE);
    for json in [false, true] {
        let more = if json { &["--json"][..] } else { &[] };
        let mut child = command_under(FULL, &place.arguments("append", more)).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let said = until_it_waits(&mut told);
        assert!(said.contains("File too large"), "{said}");
        signal(&child, Signal::TERM);
        let ran = finish(child).exits(exit::INTERRUPTED);
        if json {
            let told = ran.json();
            assert_eq!((&told["interrupted"], &told["accepted"]), (&json!(true), &json!(0)), "{told}");
            assert_eq!(told["up_to"], json!({ "input": "stdin", "number": 1, "line": 0 }));
        } else {
            assert_eq!(ran.out, "interrupted: 0 accepted, 0 refused, 0 committed\n");
        }
    }
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    assert_eq!(place.entries().len(), 10);
}

#[test]
fn a_second_signal_ends_the_waiting_and_what_was_committed_is_told() {
    let place = Place::new();
    place.run("config", &["set", "retries", "1000"]).exits(exit::DONE);
    let (mut child, mut stdin) = waiting_under(&["env"], &place, &["--json"], Stdio::piped());
    let process = child.id().to_string();
    let full =
        std::process::Command::new("prlimit").args(["--pid", &process, "--fsize=0:unlimited"]).status();
    assert!(full.unwrap().success());
    stdin.write_all(&lines(1000..1100)).unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let said = until_it_waits(&mut told);
    // Two of one kind could come as one.
    signal(&child, Signal::INT);
    signal(&child, Signal::TERM);
    let rest = std::io::read_to_string(told).unwrap();
    let ran = finish(child).exits(exit::ENVIRONMENT);
    let (prefix, up_to) =
        ("at least 1000 of them, the first, are committed", "every line up to stdin:1000 is");
    assert!(rest.contains(prefix) && rest.contains(up_to), "{said}{rest}");
    let told = ran.json();
    assert_eq!((&told["committed"], &told["up_to"]["line"]), (&json!(1000), &json!(1000)), "{told}");
    assert_eq!(told["interrupted"], true);
    assert!(rest.contains(told["error"].as_str().unwrap()), "{told}: {rest}");
    drop(stdin);
    place.append(&[], b"").exits(exit::DONE);
    assert!(place.entries().len() >= 1000);
}

#[test]
fn a_third_signal_ends_it_at_once() {
    let place = Place::new();
    // Standard output is a pipe that is full: after draining, the command hangs telling what it did.
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let (mut child, stdin) = waiting(&place, &[], writer.into());
    signal(&child, Signal::INT);
    eventually("the log is closed", || place.info("locked") == false);
    assert!(child.try_wait().unwrap().is_none());
    // Two that come at once may be taken for one.
    eventually("it ends", || {
        signal(&child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(exit::INTERRUPTED));
    drop((reader, stdin));
    assert_eq!(place.entries().len(), 1000);
}

#[test]
fn what_was_durable_when_it_was_killed_is_adopted_and_told() {
    let place = Place::new();
    place.run("config", &["set", "checkpoint_interval", "3600 s"]).exits(exit::DONE);
    let mut child = command(place.arguments("append", &[])).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&lines(0..1000)).unwrap();
    // Opening has signed the epoch: what is pending after that are entries.
    eventually("something is durable", || {
        let report = place.run("verify", &["--json"]).exits(exit::DONE).json();
        report["tree_size"].as_u64() > Some(0) && report["pending"].as_u64() > Some(0)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // With every key at hand it is sound, as far as it is signed.
    let report = place.run("verify", &["--json"]).exits(exit::DONE).json();
    assert_eq!(report["findings"][0]["kind"], "unsigned-tail", "{report}");
    let report = place.run("verify", &["--json", "--strict"]).exits(exit::VIOLATION).json();
    assert_eq!(report["findings"][0]["kind"], "unclosed", "{report}");

    let ran = place.append(&[], b"").exits(exit::DONE);
    place.run("verify", &[]).exits(exit::DONE);
    let entries = place.entries().len();
    assert!(entries > 0);
    assert!(ran.err.starts_with(&format!("recovered: {entries} entries in ")), "{ran:?}");
}

/// Reads what a command tells until it has taken a signal.
fn until_it_holds_back(told: &mut impl BufRead) {
    let mut all = String::new();
    while !all.contains("what was begun is finished first") {
        assert!(told.read_line(&mut all).unwrap() > 0, "it ended without a word: {all}");
    }
}

#[test]
fn a_signal_while_something_is_changed_waits_until_it_is_done_and_told() {
    let place = Place::empty();
    place.run("init", &["--erasure", "off"]).exits(exit::DONE);
    place.run("config", &["set", "retries", "1000"]).exits(exit::DONE);
    let mut child = command_under(FULL, &place.arguments("keys", &["rotate", "--json"])).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    until_it_waits(&mut told);
    signal(&child, Signal::TERM);
    until_it_holds_back(&mut told);
    let process = child.id().to_string();
    let freed = std::process::Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited"]).status();
    assert!(freed.unwrap().success());
    assert_eq!(finish(child).exits(exit::DONE).json(), json!({ "epoch": 0 }));
}

/// A writer that is stopped does not answer.
#[test]
fn a_signal_while_the_writer_erases_is_held_back_and_a_second_one_says_that_it_may_be_done() {
    for second in [false, true] {
        let place = Place::new();
        let (writer, stdin) = waiting(&place, &[], Stdio::piped());
        let certificate = place.path("erased.cert");
        let arguments = ["--subject", "s7", "--json", "-o", certificate.to_str().unwrap()];
        signal(&writer, Signal::STOP);
        let mut child = command(place.arguments("erase", &arguments)).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        eventually("signals are waited for", || signals_waited_for(&child).is_some());
        signal(&child, Signal::INT);
        until_it_holds_back(&mut told);
        if second {
            signal(&child, Signal::INT);
            let ran = finish(child).exits(exit::INTERRUPTED);
            let error = ran.json()["error"].as_str().unwrap().to_owned();
            assert!(
                error.contains("it may be") && error.contains("`bulla events DIR --kind erased`"),
                "{error}"
            );
            assert!(std::io::read_to_string(told).unwrap().contains(&error));
            signal(&writer, Signal::CONT);
            assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 2, "the log and its keys");
        } else {
            signal(&writer, Signal::CONT);
            let ran = finish(child).exits(exit::DONE);
            assert_eq!(ran.json()["unknown"], json!([]), "{ran:?}");
            assert!(certificate.exists());
        }
        drop(stdin);
        finish(writer).exits(exit::DONE);
        place.run("verify", &[]).exits(exit::DONE);
    }
}

#[test]
fn an_interrupted_export_leaves_no_file_behind() {
    let place = Place::new();
    place.append(&[], &lines(0..1000)).exits(exit::DONE);
    // Its identity comes out of a pipe that nobody writes to: by then the file is begun.
    let pipe = place.path("identity");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let out = place.path("out");
    let arguments = ["--identity", pipe.to_str().unwrap(), "-o", out.to_str().unwrap()];
    let child = command(place.arguments("export", &arguments)).spawn().unwrap();
    // Opening for writing returns once the command has the pipe open for reading.
    let writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let files = || std::fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(files(), 4, "the log, its keys, the pipe and the unfinished file");
    signal(&child, Signal::INT);
    finish(child).exits(exit::INTERRUPTED);
    drop(writer);
    assert_eq!(files(), 3);
}

/// How often the thread of a command that waits for signals has gone to sleep.
fn signals_waited_for(child: &Child) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).ok()?;
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let task = tasks.flatten().map(|task| task.path());
    let task = task.into_iter().find(|task| read(task.join("comm")).starts_with("bulla-signals"))?;
    let status = read(task.join("status"));
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[test]
fn a_signal_after_an_export_was_published_is_too_late() {
    for second in [false, true] {
        let place = Place::new();
        place.append(&[], &lines(0..1000)).exits(exit::DONE);
        let out = place.path("out");
        // Standard error is a pipe that is full: the command hangs telling what it read, with the file in its place.
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        while writer.write(&[0; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
        let arguments = ["--entries", "0..9", "-o", out.to_str().unwrap()];
        let mut command = command(place.arguments("export", &arguments));
        let mut child = command.stderr(writer).spawn().unwrap();
        drop(command);
        eventually("the file is published", || out.exists());
        let waited = signals_waited_for(&child).unwrap();
        signal(&child, Signal::INT);
        eventually("the signal was looked at", || signals_waited_for(&child).is_none_or(|now| now > waited));
        if second {
            signal(&child, Signal::INT);
            assert_eq!(child.wait().unwrap().code(), Some(exit::INTERRUPTED));
        } else {
            std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(exit::DONE));
        }
        assert_eq!(std::fs::read_to_string(&out).unwrap().lines().count(), 10);
    }
}
