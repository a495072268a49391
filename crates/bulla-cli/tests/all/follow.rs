//! `append --follow`: each record of a file once, whatever becomes of the file and of whoever follows it.

use crate::support::{Mount, Place, command, eventually, exit, finish, may_mount, not_tested, signal};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A log of a program that numbers its lines, which are JSON, and a log that it is followed into.
struct World {
    place: Place,
    written: u64,
    rotated: u64,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        fs::create_dir(place.path("logs")).unwrap();
        let mut world = World { place, written: 0, rotated: 0 };
        // The log has heard of the path.
        world.write(1);
        world.catch_up();
        world
    }

    fn log(&self) -> PathBuf {
        self.place.path("logs").join("app.log")
    }

    fn rotated(&self, number: u64) -> PathBuf {
        self.place.path("logs").join(format!("app.log.{number}"))
    }

    fn pattern(&self) -> String {
        self.place.path("logs").join("*.log").into_os_string().into_string().unwrap()
    }

    fn write(&mut self, lines: u64) {
        self.write_to(lines, self.log());
    }

    fn write_to(&mut self, lines: u64, path: PathBuf) {
        let range = self.written + 1..=self.written + lines;
        let text: String = range.map(|number| format!("{{\"operation\":\"n{number}\"}}\n")).collect();
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
        self.written += lines;
    }

    fn rename(&mut self) {
        self.rotated += 1;
        fs::rename(self.log(), self.rotated(self.rotated)).unwrap();
        File::create(self.log()).unwrap();
    }

    fn copy_and_truncate(&mut self) {
        self.rotated += 1;
        fs::copy(self.log(), self.rotated(self.rotated)).unwrap();
        OpenOptions::new().write(true).truncate(true).open(self.log()).unwrap();
    }

    /// As `gzip` does it.
    fn compress(&self, number: u64) {
        let Ok(content) = fs::read(self.rotated(number)) else { return };
        let packed = self.rotated(number).with_extension(format!("{number}.gz"));
        let mut gzip = GzEncoder::new(File::create(packed).unwrap(), Compression::fast());
        gzip.write_all(&content).unwrap();
        gzip.finish().unwrap();
        fs::remove_file(self.rotated(number)).unwrap();
    }

    fn follow(&self, more: &[&str]) -> Child {
        let arguments = self.place.arguments("append", &[&["--follow", &self.pattern()], more].concat());
        command(arguments).spawn().unwrap()
    }

    /// What it says on standard error.
    fn catch_up(&self) -> String {
        self.place.append(&["--follow", "--once", &self.pattern()], b"").exits(exit::DONE).err
    }

    /// What is in the directory: names, lengths and first lines.
    fn files(&self) -> String {
        let files = fs::read_dir(self.place.path("logs")).unwrap().flatten();
        let mut files: Vec<_> =
            files.map(|file| (file.file_name(), fs::read(file.path()).unwrap())).collect();
        files.sort();
        let first =
            |content: &[u8]| String::from_utf8_lossy(&content[..content.len().min(24)]).trim().to_owned();
        files
            .iter()
            .map(|(name, content)| format!("{} {} {:?}; ", name.display(), content.len(), first(content)))
            .collect()
    }

    /// Each line that was written is an entry, once.
    #[track_caller]
    fn check(&self, told: &str) {
        let mut found = BTreeMap::<String, u64>::new();
        for entry in self.place.entries() {
            *found.entry(entry["operation"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let names = (1..=self.written).map(|number| format!("n{number}"));
        let missing: Vec<_> = names.filter(|name| !found.contains_key(name)).collect();
        let more: Vec<_> =
            found.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name.clone()).collect();
        if !missing.is_empty() || !more.is_empty() {
            let few = |all: &[String]| format!("{} from {:?} to {:?}", all.len(), all.first(), all.last());
            let sources = self.place.run("sources", &[]).out;
            let (missing, more) = (few(&missing), few(&more));
            panic!("{told}: missing {missing}, more than once {more}\n{}\n{sources}", self.files());
        }
        assert_eq!(found.len() as u64, self.written, "{told}");
    }
}

#[test]
fn files_are_read_once_through_every_kind_of_rotation_and_restart() {
    let mut world = World::new();
    for round in 0..2 {
        world.write(100);
        world.catch_up();
        world.write(10);
        world.rename();
        world.write(10);
        world.catch_up();
        world.write(10);
        world.copy_and_truncate();
        world.write(500);
        world.catch_up();
        world.write(10);
        world.rename();
        world.compress(world.rotated);
        world.write(10);
        world.catch_up();
        world.check(&format!("round {round}"));
    }
    // Each is where it is by now, by its content, and none is behind.
    let sources = world.place.run("sources", &["--json"]).exits(exit::DONE).json();
    let told = |member: &str| -> Vec<_> {
        let sources = sources["sources"].as_array().unwrap();
        sources.iter().map(|source| source[member].clone()).collect()
    };
    assert!(told("lag").iter().all(|lag| *lag == 0), "{sources}");
    assert!(told("file").iter().all(|file| *file != "gone"), "{sources}");
    // Its path is the stream of an entry that names none.
    assert_eq!(world.place.entries()[0]["stream"], world.log().to_str().unwrap());
}

#[test]
fn a_live_follower_takes_what_comes_until_a_signal_and_the_next_one_goes_on() {
    let mut world = World::new();
    let follower = world.follow(&["--stream", "app", "--json"]);
    world.write(1000);
    let log_has = |count: u64| world.place.info("entries").as_u64().unwrap() >= count;
    eventually("it has what was written", || log_has(1001));
    // A writer that has not noticed yet.
    let before = world.rotated(1);
    world.rename();
    world.write_to(5, before);
    world.write(5);
    let follower = {
        let log_has = |count: u64| world.place.info("entries").as_u64().unwrap() >= count;
        eventually("it has that of both files", || log_has(1011));
        follower
    };
    signal(&follower, Signal::TERM);
    let told = finish(follower).exits(exit::DONE).json();
    assert_eq!(told, json!({ "sources": 2, "accepted": 1010, "refused": 0, "committed": 1010, "lost": 0 }));
    world.write(5);
    world.catch_up();
    world.check("after a signal");
    assert_eq!(world.place.entries()[1]["stream"], "app");
}

#[test]
fn several_sources_and_those_that_come_later_are_followed_each_once() {
    let place = Place::new();
    let (one, two) = (place.write("one.txt", b"a\nb\n"), place.write("two.log", b"c\n"));
    let pattern = place.path("*.log").into_os_string().into_string().unwrap();
    // Named twice, by itself and by a pattern.
    let sources = ["--follow", "--once", "--format", "raw", &one, &two, &pattern];
    place.append(&sources, b"").exits(exit::DONE);
    let three = place.write("three.log", b"d\n");
    place.append(&sources, b"").exits(exit::DONE);
    let entries = place.entries();
    let told: Vec<_> = entries.iter().map(|entry| (&entry["payload"], &entry["stream"])).collect();
    let mut expected = [
        (json!("a"), json!(one)),
        (json!("b"), json!(one)),
        (json!("c"), json!(two)),
        (json!("d"), json!(three)),
    ];
    assert_eq!(told.len(), 4);
    expected.sort_by_key(|(payload, _)| payload.to_string());
    let mut told: Vec<_> =
        told.into_iter().map(|(payload, stream)| (payload.clone(), stream.clone())).collect();
    told.sort_by_key(|(payload, _)| payload.to_string());
    assert_eq!(told, expected);
}

#[test]
fn the_log_itself_is_not_followed_into_itself() {
    let place = Place::new();
    place.write("a.log", b"a\n");
    let all = place.path("**").join("*").into_os_string().into_string().unwrap();
    let ran = place.append(&["--follow", "--once", "--format", "raw", &all], b"").exits(exit::DONE);
    assert_eq!(ran.out, "1 accepted, 0 refused, 1 committed, of 1 source\n");
}

#[test]
fn refused_records_are_told_with_their_place_and_kept() {
    let place = Place::new();
    let log = place.write("app.log", b"{\"operation\":\"a\"}\nbad\n{\"operation\":\"b\"}\nworse\n");
    let rejects = place.path("rejects");
    let options = ["--follow", "--once", "--rejects", rejects.to_str().unwrap(), &log];
    let ran = place.append(&options, b"").exits(exit::SOME_REFUSED);
    assert!(ran.err.contains(&format!("{log}, byte 18: the line is not JSON at column 1")), "{}", ran.err);
    assert!(ran.err.contains(&format!("{log}, byte 40: ")), "{}", ran.err);
    assert_eq!(ran.out, "2 accepted, 2 refused, 2 committed, of 1 source\n");
    assert_eq!(fs::read(&rejects).unwrap(), b"bad\nworse\n");
    let listed = || place.run("sources", &["--json"]).exits(exit::DONE).json()["sources"].clone();
    let is_up_to = |end: u64, passed: u64| {
        let source = &listed()[0];
        let told = ["place", "passed", "lag", "missing", "beyond"].map(|name| source[name].as_u64().unwrap());
        assert_eq!(told, [end, passed, 0, 0, 0], "{source}");
    };
    let add = |text: &str| {
        OpenOptions::new().append(true).open(&log).unwrap().write_all(text.as_bytes()).unwrap();
    };
    is_up_to(46, 6);
    // What no entry came after is not refused again, by whoever goes on.
    let ran = place.append(&options, b"").exits(exit::DONE);
    assert_eq!(ran.out, "0 accepted, 0 refused, 0 committed, of 1 source\n");
    add("worst\n");
    place.append(&options, b"").exits(exit::SOME_REFUSED);
    is_up_to(52, 12);
    add("{\"operation\":\"c\"}\n");
    place.append(&options, b"").exits(exit::DONE);
    assert_eq!(fs::read(&rejects).unwrap(), b"bad\nworse\nworst\n");
    is_up_to(70, 0);
    // Where the key directory has forgotten it, it is refused once more.
    add("bad again\n");
    place.append(&options, b"").exits(exit::SOME_REFUSED);
    fs::remove_file(place.path("audit.keys/sources.passed")).unwrap();
    place.append(&options, b"").exits(exit::SOME_REFUSED);
    place.append(&options, b"").exits(exit::DONE);
    assert_eq!(fs::read(&rejects).unwrap(), b"bad\nworse\nworst\nbad again\nbad again\n");
    is_up_to(80, 10);
    // What replaced it is read.
    let content = fs::read(&log).unwrap();
    fs::write(&log, [&content[..70], b"{\"operation\":\"d\"}\n"].concat()).unwrap();
    place.append(&options, b"").exits(exit::DONE);
    let operations: Vec<_> = place.entries().iter().map(|entry| entry["operation"].clone()).collect();
    assert_eq!(operations, ["a", "b", "c", "d"]);
    // Rejects that would be followed, or lie in the log.
    let ran = place.append(&["--follow", "--rejects", &log, &log], b"").exits(exit::USAGE);
    assert!(ran.err.contains("it is followed"), "{}", ran.err);
}

/// Of a file that has no entry, too; and after a signal.
#[test]
fn what_was_refused_by_a_follower_that_was_ended_is_not_refused_by_the_next() {
    let place = Place::new();
    let log = place.write("app.log", b"bad\n");
    let rejects = place.path("rejects");
    let options = ["--follow", "--rejects", rejects.to_str().unwrap(), &log];
    let mut content = b"bad\n".to_vec();
    let follower = command(place.arguments("append", &options)).spawn().unwrap();
    eventually("the record is refused", || fs::read(&rejects).is_ok_and(|found| found == content));
    signal(&follower, Signal::TERM);
    finish(follower).exits(exit::SOME_REFUSED);
    let listed = place.run("sources", &["--json"]).exits(exit::DONE).json();
    let source = &listed["sources"][0];
    assert_eq!([&source["place"], &source["passed"], &source["lag"]], [&json!(4), &json!(4), &json!(0)]);
    content.extend_from_slice(b"worse\n");
    OpenOptions::new().append(true).open(&log).unwrap().write_all(b"worse\n").unwrap();
    let once = [&options[..], &["--once"]].concat();
    let ran = place.append(&once, b"").exits(exit::SOME_REFUSED);
    assert_eq!(ran.out, "0 accepted, 1 refused, 0 committed, of 1 source\n");
    place.append(&once, b"").exits(exit::DONE);
    assert_eq!(fs::read(&rejects).unwrap(), content);
}

#[test]
fn what_cannot_be_followed_is_told_and_keeps_nothing_else_from_it() {
    let place = Place::new();
    let good = place.write("good.log", b"{\"operation\":\"a\"}\n");
    let directory = place.path("directory.log");
    fs::create_dir(&directory).unwrap();
    let not_there = place.path("not-there.log").into_os_string().into_string().unwrap();
    let ran = place.append(&["--follow", "--once", directory.to_str().unwrap(), &not_there, &good], b"");
    // What could be read was, and whoever runs this from cron learns of the rest.
    let ran = ran.exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("directory.log: it is no regular file, and is not followed"), "{}", ran.err);
    assert!(ran.err.contains("not-there.log: it is not there yet"), "{}", ran.err);
    assert!(ran.err.contains("1 accepted"), "{}", ran.err);
    let pattern = place.path("none*.log").into_os_string().into_string().unwrap();
    let ran = place.append(&["--follow", "--once", &pattern], b"").exits(exit::DONE);
    assert!(ran.err.contains("nothing like this is there yet"), "{}", ran.err);
    let ran = place.append(&["--follow", "--once", "[", &good], b"").exits(exit::USAGE);
    assert!(ran.err.contains("it is not there, and is no pattern"), "{}", ran.err);
    place.append(&["--follow"], b"").exits(exit::USAGE);
    place.append(&["--once", &good], b"").exits(exit::USAGE);
    place.append(&["--follow", "--acks", &good], b"").exits(exit::USAGE);
    if rustix::process::geteuid().is_root() {
        return not_tested("a file that may not be read", "this is root, who may read any");
    }
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&good, fs::Permissions::from_mode(0o0)).unwrap();
    let other = place.write("other.log", b"{\"operation\":\"b\"}\n");
    let ran = place.append(&["--follow", "--once", &good, &other], b"").exits(exit::DONE);
    assert!(ran.err.contains("Permission denied"), "{}", ran.err);
}

#[test]
fn a_full_disk_costs_no_record_and_doubles_none() {
    if !may_mount("follow::a_full_disk_costs_no_record_and_doubles_none") {
        return;
    }
    let place = Place::empty();
    let disk = Mount::new(&place.path("disk"), "size=1m");
    let directory = place.path("disk").join("audit");
    let log = place.path("app.log");
    let line = |number: u64| {
        let payload = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        format!("{{\"operation\":\"n{number}\",\"payload\":\"{payload:032x}\"}}\n")
    };
    let text: String = (1..=60_000).map(line).collect();
    fs::write(&log, text).unwrap();
    let keys = place.path("keys");
    let bulla = |subcommand: &str, more: &[&str]| {
        let words = [subcommand, directory.to_str().unwrap(), "--keys", keys.to_str().unwrap()];
        crate::support::bulla(words.iter().chain(more))
    };
    bulla("init", &[]).exits(exit::DONE);
    let ran = bulla("append", &["--follow", "--once", log.to_str().unwrap()]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("No space left on device"), "{}", ran.err);
    // The disk is made larger; nothing else is done.
    let output = std::process::Command::new("mount")
        .args(["-o", "remount,size=64m"])
        .arg(place.path("disk"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    bulla("append", &["--follow", "--once", log.to_str().unwrap()]).exits(exit::DONE);
    let identity = keys.join("identity.age");
    let exported = bulla("export", &["--identity", identity.to_str().unwrap()]).exits(exit::DONE).out;
    let mut numbers: Vec<u64> = crate::support::parse_lines(&exported)
        .iter()
        .map(|entry| entry["operation"].as_str().unwrap()[1..].parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=60_000));
    drop(disk);
}

/// What writes journals without a journald; Debian has it in a package of its own.
const JOURNAL_REMOTE: &str = "/lib/systemd/systemd-journal-remote";

/// Adds entries of these numbers to a journal.
fn write_journal(journal: &std::path::Path, numbers: std::ops::Range<u64>) {
    let mut text = Vec::new();
    for number in numbers {
        let time = 1_764_154_800_000_000 + number * 1000;
        text.extend_from_slice(
            format!("__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={number}000\n").as_bytes(),
        );
        text.extend_from_slice(
            format!("_BOOT_ID={:032x}\nSYSLOG_IDENTIFIER=n{number}\nMESSAGE\n", 7).as_bytes(),
        );
        let message = format!("two\nlines {number}");
        text.extend_from_slice(&(message.len() as u64).to_le_bytes());
        text.extend_from_slice(format!("{message}\n\n").as_bytes());
    }
    let mut writer = std::process::Command::new(JOURNAL_REMOTE);
    writer.arg("-o").arg(journal).arg("-").stdin(Stdio::piped()).stderr(Stdio::null());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(&text).unwrap();
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_journal_is_read_once_by_its_cursors() {
    if !std::path::Path::new(JOURNAL_REMOTE).exists() {
        return not_tested(
            "journald's entries",
            "systemd-journal-remote is not installed: `make setup` does",
        );
    }
    let place = Place::new();
    let journal = place.path("a.journal");
    let source = format!("journal:{}", journal.display());
    let map =
        b"format = \"journal-export\"\noperation = \"{/SYSLOG_IDENTIFIER}\"\npayload = \"{/MESSAGE}\"\n";
    let map = place.write("journal.toml", map);
    let once = ["--follow", "--once", "--map", &map, &source];
    write_journal(&journal, 1..40);
    let ran = place.append(&once, b"").exits(exit::DONE);
    assert_eq!(ran.out, "39 accepted, 0 refused, 39 committed, of 1 source\n");
    // Killed while more comes, again and again.
    for round in 2..8 {
        let arguments = place.arguments("append", &["--follow", "--map", &map, &source]);
        let mut follower = command(arguments).spawn().unwrap();
        write_journal(&journal, (round - 1) * 40..round * 40);
        std::thread::sleep(Duration::from_millis(15 * round));
        follower.kill().unwrap();
        follower.wait().unwrap();
    }
    place.append(&once, b"").exits(exit::DONE);
    let operations: Vec<_> =
        place.entries().iter().map(|entry| entry["operation"].as_str().unwrap().to_owned()).collect();
    assert!(operations.into_iter().eq((1..280).map(|number| format!("n{number}"))));
    assert_eq!(place.entries()[278]["payload"], "two\nlines 279");
    let listed = place.run("sources", &["--json"]).exits(exit::DONE).json();
    assert_eq!(
        (&listed["sources"][0]["name"], &listed["sources"][0]["place"]),
        (&json!(source), &json!(280))
    );

    // What is refused is refused once, by whoever goes on behind it.
    let none = b"format = \"journal-export\"\noperation = \"{/NOBODY_HAS_THIS}\"\n";
    let none = place.write("none.toml", none);
    write_journal(&journal, 280..283);
    let refuse = ["--follow", "--once", "--map", &none, &source];
    for (status, refused) in [(exit::SOME_REFUSED, 3), (exit::DONE, 0)] {
        let ran = place.append(&refuse, b"").exits(status);
        assert_eq!(ran.out, format!("0 accepted, {refused} refused, 0 committed, of 1 source\n"));
        let listed = place.run("sources", &["--json"]).exits(exit::DONE).json();
        let told = ["place", "passed", "missing"].map(|name| listed["sources"][0][name].clone());
        assert_eq!(told, [283, 3, 0]);
    }
    write_journal(&journal, 283..284);
    let ran = place.append(&once, b"").exits(exit::DONE);
    assert_eq!(ran.out, "1 accepted, 0 refused, 1 committed, of 1 source\n");
    let listed = place.run("sources", &["--json"]).exits(exit::DONE).json();
    let told = ["place", "passed", "missing"].map(|name| listed["sources"][0][name].clone());
    assert_eq!(told, [284, 0, 0]);

    let ran = place.append(&["--follow", "--once", "journal:/nowhere.journal"], b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("journal:/nowhere.journal: journalctl ended"), "{}", ran.err);
    let ran = place.append(&["--follow", "--once", "--format", "syslog", &source], b"").exits(exit::USAGE);
    assert!(ran.err.contains("give --format journal-export"), "{}", ran.err);
}

/// Numbers that are drawn from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// `BULLA_TORTURE_ROUNDS` says how often it is killed, and `BULLA_TORTURE_SEED` what is drawn.
#[test]
fn killed_anywhere_each_record_is_in_the_log_once() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let rounds = number("BULLA_TORTURE_ROUNDS").unwrap_or(12);
    let seed = number("BULLA_TORTURE_SEED").unwrap_or(1);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut world = World::new();
    for round in 0..rounds {
        if round % 20 == 19 {
            world.place.run("verify", &[]).exits(exit::DONE);
            world = World::new();
        }
        let mut follower = world.follow(&[]);
        // It is killed while it opens the log, while it reads, while it waits, while files are rotated.
        for _ in 0..random.below(6) {
            match random.below(8) {
                0 => world.rename(),
                1 => world.copy_and_truncate(),
                2 => world.compress(world.rotated),
                3 => std::thread::sleep(Duration::from_millis(random.below(60))),
                _ => world.write(random.below(3000)),
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        follower.kill().unwrap();
        follower.wait().unwrap();
        // Some are killed again before anybody has caught up.
        if random.below(3) > 0 {
            let told = world.catch_up();
            world.check(&format!("seed {seed}, after kill {round}, {told}"));
        }
    }
    world.catch_up();
    world.check(&format!("seed {seed}, at the end"));
    world.place.run("verify", &[]).exits(exit::DONE);
    println!(
        "swept: {rounds} kills of whoever follows files that are written, renamed, copied and compressed: each line once"
    );
}
