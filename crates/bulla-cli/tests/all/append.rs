use crate::support::{
    Mount, Place, arguments, bulla, bulla_with, command, command_under, eventually, exit, finish, lines,
    may_mount,
};
use bulla::{Log, Options};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn it_reads_standard_input_files_and_both() {
    let place = Place::new();
    let (first, last) = (place.write("first", &lines(0..10)), place.write("last", &lines(20..30)));
    let ran = place.append(&[&first, "-", &last], &lines(10..20)).exits(exit::DONE);
    assert_eq!(
        ran.out,
        format!(
            "30 accepted, 0 refused, 30 committed\nevery line up to {last}:10 is durable or was refused\n"
        )
    );
    assert_eq!(ran.err, "", "nothing is told in a pipe but what is amiss");
    place.append(&[], &lines(30..40)).exits(exit::DONE);
    let entries = place.entries();
    for (number, entry) in entries.iter().enumerate() {
        assert_eq!((&entry["entry"], &entry["location"]), (&json!(number), &json!(format!("key/{number}"))));
    }
    assert_eq!(entries.len(), 40);
}

#[test]
fn what_went_in_comes_out() {
    let place = Place::new();
    let line = json!({
        "time": "2026-01-02T03:04:05.000000006Z", "operation": "delete", "location_base64": "/w==",
        "subject": ["a", "b"], "controller": "c", "processor": "", "purpose": "p", "actor": "é",
        "client": "::1", "stream": "s", "status": 0, "duration": 18_446_744_073_709_551_615_u64,
        "size": 1, "flags": 4_294_967_295_u32, "payload": "{}\u{0}\n",
    });
    place.append(&[], format!("{line}\r\n{{\"operation\":\"x\"}}").as_bytes()).exits(exit::DONE);
    let mut entries = place.entries();
    assert_eq!(entries[0].as_object_mut().unwrap().remove("entry"), Some(json!(0)));
    assert_eq!(entries[0], line);
    let fields = entries[1].as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(fields, ["entry", "operation", "time"]);
}

#[test]
fn json_is_one_object() {
    let place = Place::new();
    let ran = place.append(&["--json"], b"{\"operation\":\"x\"}\nnonsense\n").exits(exit::SOME_REFUSED);
    let up_to = json!({"input": "stdin", "number": 1, "line": 2});
    let expected = json!({
        "accepted": 1, "refused": 1, "committed": 1, "durable_prefix": 1, "lost": 0, "dropped": 0,
        "up_to": up_to, "interrupted": false,
    });
    assert_eq!(ran.json(), expected);
}

#[test]
fn empty_input_is_no_error() {
    let place = Place::new();
    assert_eq!(place.append(&[], b"").exits(exit::DONE).out, "0 accepted, 0 refused, 0 committed\n");
    place.append(&["--format", "combined", &place.write("empty", b"")], b"").exits(exit::DONE);
    place.run("verify", &[]).exits(exit::DONE);
    assert_eq!(place.info("entries"), 0);
}

/// A line of each kind that is refused, with what has to be in the reason.
fn refused() -> Vec<(Vec<u8>, &'static str)> {
    let text = |line: &str| line.as_bytes().to_vec();
    let long = |field: &str, length: usize| {
        format!("{{\"operation\":\"x\",\"{field}\":\"{}\"}}", "y".repeat(length)).into_bytes()
    };
    vec![
        (text(""), "empty"),
        (text("nonsense"), "not JSON at column 2"),
        (text("{\"operation\":\"x\""), "not JSON"),
        (text("[1]"), "not a JSON object"),
        (text("{\"operation\":\"x\"} {}"), "not JSON"),
        (text("{\"location\":\"x\"}"), "`operation` is missing"),
        (text("{\"operation\":\"\"}"), "`operation` is missing or empty"),
        (text("{\"operation\":\"x\",\"colour\":\"red\"}"), "`colour` is not a field"),
        (text("{\"operation\":\"x\",\"entry\":1}"), "assigned by the log"),
        (text("{\"operation\":\"x\",\"operation\":\"y\"}"), "given twice"),
        (text("{\"operation\":1}"), "`operation` must be a string"),
        (text("{\"operation\":\"x\",\"status\":-1}"), "`status` must be a whole number"),
        (text("{\"operation\":\"x\",\"time\":\"yesterday\"}"), "`time` must be"),
        (text("{\"operation\":\"x\",\"payload\":\"\",\"payload_base64\":\"\"}"), "both given"),
        (text("{\"operation\":\"x\",\"payload_base64\":\"?\"}"), "base64"),
        (b"{\"operation\":\"\xff\"}".to_vec(), "not JSON"),
        (b"\xff\xfe\0\0".to_vec(), "not JSON"),
        (long("location", 64 * 1024 + 1), "`location` is longer than 65536 bytes"),
        (long("payload", 16 * 1024 * 1024 + 1), "`payload` is longer than 16777216 bytes"),
        (format!("{{\"operation\":\"x\",\"subject\":{:?}}}", ["s"; 65]).into_bytes(), "at most 64"),
    ]
}

#[test]
fn a_refused_line_is_told_with_number_and_reason_and_stops_no_other() {
    let place = Place::new();
    let rejects = place.path("rejects");
    let (mut kept, mut accepted) = (Vec::new(), 0);
    // As many as are told one by one.
    for refused in refused().chunks(10) {
        let good = lines(0..refused.len().try_into().unwrap());
        let mut input = Vec::new();
        for ((line, _), good) in refused.iter().zip(good.split_inclusive(|&byte| byte == b'\n')) {
            input.extend_from_slice(good);
            for text in [&mut input, &mut kept] {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
        }
        let file = place.write("input", &input);
        let ran =
            place.append(&[&file, "--rejects", rejects.to_str().unwrap()], b"").exits(exit::SOME_REFUSED);
        let (count, last) = (refused.len(), 2 * refused.len());
        let counts = format!("{count} accepted, {count} refused, {count} committed");
        assert_eq!(ran.out, format!("{counts}\nevery line up to {file}:{last} is durable or was refused\n"));
        assert_eq!(ran.err.lines().count(), refused.len());
        for (index, ((_, reason), told)) in refused.iter().zip(ran.err.lines()).enumerate() {
            let place = format!("{file}:{}: ", 2 * index + 2);
            assert!(told.starts_with(&place) && told.contains(reason), "{place}{reason}: {told}");
            assert!(told.len() < 1000, "a reason has no value in it: {told}");
        }
        accepted += count;
    }
    assert!(std::fs::read(&rejects).unwrap() == kept, "rejects are the lines, byte for byte");
    assert_eq!(place.entries().len(), accepted);
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn of_many_refused_lines_ten_are_told_and_of_the_others_how_many_and_why() {
    let place = Place::new();
    let rejects = place.path("rejects");
    let each = |number: u32| match number % 4 {
        0 => "\n".to_owned(),
        1 => format!("{}nonsense\n", " ".repeat(1 + number as usize % 90)),
        2 => "{\"operation\":1}\n".to_owned(),
        _ => "{\"operation\":\"x\"}\n".to_owned(),
    };
    let input = (0..400).map(each).collect::<String>();
    let ran =
        place.append(&["--rejects", rejects.to_str().unwrap()], input.as_bytes()).exits(exit::SOME_REFUSED);
    assert!(ran.out.starts_with("100 accepted, 300 refused, 100 committed\n"), "{ran:?}");
    let told = ran.err.lines().collect::<Vec<_>>();
    let [first @ .., so_far, syntax, value, empty] = &told[..] else { panic!("{ran:?}") };
    assert!(first.len() == 10 && first.iter().all(|line| line.starts_with("stdin:")), "{ran:?}");
    assert_eq!(*so_far, "100 lines were refused so far, up to stdin:133");
    assert!(syntax.starts_with("and 97 more: the line is not JSON: "), "{ran:?}");
    assert!(value.starts_with("and 97 more: `operation` must be"), "{ran:?}");
    assert_eq!(*empty, "and 96 more: the line is empty", "{ran:?}");
    assert_eq!(std::fs::read_to_string(&rejects).unwrap().lines().count(), 300);

    // However many reasons somebody finds, they are summed up.
    let named = |number: u32| format!("{{\"operation\":\"x\",\"field_{number}\":1}}\n");
    let input = (0..2000).map(named).collect::<String>();
    let ran = place.append(&[], input.as_bytes()).exits(exit::SOME_REFUSED);
    assert_eq!(ran.err.lines().count(), 10 + 2 + 20 + 1, "{ran:?}");
    assert_eq!(ran.err.lines().last(), Some("and 1970 more for other reasons"), "{ran:?}");
}

#[test]
fn rejects_are_added_to_and_never_to_an_input() {
    let place = Place::new();
    let rejects = place.write("rejects", b"earlier\n");
    place.append(&["--rejects", &rejects], b"later\r\n").exits(exit::SOME_REFUSED);
    assert_eq!(std::fs::read(&rejects).unwrap(), b"earlier\nlater\r\n");
    place.append(&["--rejects", &rejects, &rejects], b"").exits(exit::USAGE);
    let nowhere = place.path("no/rejects");
    place.append(&["--rejects", nowhere.to_str().unwrap()], &lines(0..1)).exits(exit::ENVIRONMENT);
    assert_eq!(place.info("entries"), 0);
}

#[test]
fn rejects_are_not_added_to_standard_input_either() {
    let place = Place::new();
    let rejects = place.write("rejects", b"nonsense\n");
    for more in [&["--rejects", &rejects][..], &["--rejects", &rejects, "-"]] {
        let mut child = command(place.arguments("append", more));
        let ran = finish(child.stdin(std::fs::File::open(&rejects).unwrap()).spawn().unwrap());
        assert!(ran.exits(exit::USAGE).err.contains("is an input"));
    }
    assert_eq!(std::fs::read(&rejects).unwrap(), b"nonsense\n");
    assert_eq!(place.info("entries"), 0);
    // A device gives back nothing of what is written to it.
    place.run("append", &["--rejects", "/dev/null"]).exits(exit::DONE);
}

#[test]
fn rejects_are_not_added_to_the_log_or_its_keys() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let segment = place.segment();
    let link = |target: &Path, name| {
        std::os::unix::fs::symlink(target, place.path(name)).unwrap();
        place.path(name)
    };
    let refused = [
        (place.audit().join("checkpoint"), "where the log lies"),
        (place.audit().join("rejects"), "where the log lies"),
        (segment.clone(), "where the log lies"),
        (place.keys("seal.state"), "where its keys lie"),
        (place.keys("rejects"), "where its keys lie"),
        (link(&place.audit(), "directory").join("rejects"), "where the log lies"),
        (link(&segment, "file"), "where the log lies"),
        (link(&place.keys("rejects"), "to what is not there"), "where its keys lie"),
        (link(Path::new("to what is not there"), "to a link"), "where its keys lie"),
    ];
    for (rejects, said) in refused {
        let ran = place.append(&["--rejects", rejects.to_str().unwrap()], b"nonsense\n").exits(exit::USAGE);
        assert!(ran.err.contains(said), "{}: {ran:?}", rejects.display());
    }
    assert!(!place.keys("rejects").exists() && !place.audit().join("rejects").exists());
    place.run("verify", &["--strict"]).exits(exit::DONE);
    place.append(&[], &lines(0..1)).exits(exit::DONE);
}

#[test]
fn where_the_object_cannot_be_written_standard_error_has_the_counts() {
    let place = Place::new();
    let input = place.write("input", &[&lines(0..10)[..], b"nonsense\n", &lines(10..20)].concat());
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for more in [&["--json", &input][..], &[&input]] {
        let child = command(place.arguments("append", more)).stdout(full()).spawn().unwrap();
        let ran = finish(child).exits(exit::ENVIRONMENT);
        for told in
            ["standard output", "20 of them, the first, are committed; 1 line was refused", "input:21 "]
        {
            assert!(ran.err.contains(told), "{told}: {ran:?}");
        }
    }
    // Of a failure of its own it is told, too, and that ends it.
    std::fs::remove_file(place.keys("signing.key")).unwrap();
    let child = command(place.arguments("append", &["--json"])).stdout(full()).spawn().unwrap();
    let ran = finish(child).exits(exit::REFUSED);
    for told in ["signing.key is missing", "standard output", "no entry was accepted", "no line is durable"] {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
}

/// What was refused and is told to be in the file is there, whole lines of it, and `up_to` is the line before the first that is not.
#[test]
fn refused_lines_that_are_told_are_in_the_file_where_its_disk_is_full() {
    if !may_mount("append::refused_lines_that_are_told_are_in_the_file_where_its_disk_is_full") {
        return;
    }
    // Lines of one page together, longer than what waits to be written, and some between entries.
    for (length, every) in [(700, 1), (20_000, 1), (700, 3)] {
        let place = Place::new();
        let mount = Mount::new(&place.path("disk"), "size=64k");
        let rejects = place.path("disk/rejects");
        let line = |number: u32| match number % every {
            0 => format!("nonsense {number:06} {}\n", "x".repeat(length)),
            _ => format!("{{\"operation\":\"x\",\"location\":\"{number}\"}}\n"),
        };
        let input = place.write("input", (1..=300).map(line).collect::<String>().as_bytes());
        let more = ["--json", "--rejects", rejects.to_str().unwrap(), &input];
        let ran = place.append(&more, b"").exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("rejects: No space left on device"), "{ran:?}");
        let (told, kept) = (ran.json(), std::fs::read_to_string(&rejects).unwrap());
        let refused = u32::try_from(told["refused"].as_u64().unwrap()).unwrap();
        let expected = (1..=refused).map(|index| line(index * every)).collect::<String>();
        assert!(refused > 0 && kept == expected, "{refused} of {} bytes", kept.len());
        assert_eq!(told["up_to"]["line"], (refused + 1) * every - 1);
        drop(mount);
        // Whoever goes on with the next line has every one, once.
        let rest = (((refused + 1) * every)..=300).map(line).collect::<String>();
        let rejects = place.write("rejects", kept.as_bytes());
        place.append(&["--rejects", &rejects], rest.as_bytes()).exits(exit::SOME_REFUSED);
        let all = (1..=300 / every).map(|index| line(index * every)).collect::<String>();
        assert!(std::fs::read_to_string(&rejects).unwrap() == all);
    }
}

#[test]
fn refused_lines_that_no_sync_has_covered_are_not_told_to_be_kept() {
    let place = Place::new();
    let rejects = place.write("rejects", b"");
    let input = place.write("input", b"{\"operation\":\"x\"}\nnonsense\n{\"operation\":\"y\"}\n");
    let fails = "inject=fsync:error=EIO";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", fails, "-P", &rejects];
    let arguments = place.arguments("append", &["--json", "--rejects", &rejects, &input]);
    let child = command_under(&strace, &arguments).spawn();
    let ran = finish(child.expect("this test needs strace: `apt-get install strace`"));
    let told = ran.exits(exit::ENVIRONMENT).json();
    assert_eq!(
        (&told["refused"], &told["committed"], &told["up_to"]["line"]),
        (&0.into(), &2.into(), &1.into())
    );
}

#[test]
fn rejects_that_cannot_be_written_are_told_and_what_was_appended_is_committed() {
    let place = Place::new();
    let ran = place.append(&["--rejects", "/dev/full"], b"{\"operation\":\"x\"}\nnonsense\n");
    let ran = ran.exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("/dev/full") && ran.err.contains("1 of them"), "{ran:?}");
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn a_line_of_any_length_is_read_in_bounded_memory() {
    let place = Place::new();
    let mut child = command(place.arguments("append", &["--rejects", "/dev/null"]))
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..130 {
        std::io::Write::write_all(&mut stdin, &piece).unwrap();
    }
    std::io::Write::write_all(&mut stdin, b"\n{\"operation\":\"after\"}\n").unwrap();
    // All but what fits a pipe was read by now.
    let peak = peak_memory(child.id());
    assert!((128 * 1024..160 * 1024).contains(&peak), "{peak} KiB");
    drop(stdin);
    let ran = finish(child).exits(exit::SOME_REFUSED);
    assert!(ran.err.starts_with("stdin:1: the line is longer than 134217728 bytes"), "{ran:?}");
    assert!(ran.err.contains("not among the rejects"), "{ran:?}");
    assert_eq!(place.entries()[0]["operation"], "after");
}

/// The most memory that a process has had so far, in KiB.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn the_largest_payload_goes_through() {
    let place = Place::new();
    let payload = "p".repeat(16 * 1024 * 1024);
    let line = format!("{{\"operation\":\"x\",\"payload\":\"{payload}\"}}\n");
    place.append(&[], line.as_bytes()).exits(exit::DONE);
    assert!(place.entries()[0]["payload"] == payload.as_str());
}

#[test]
fn stream_and_subject_are_given_where_the_entry_has_none() {
    let place = Place::new();
    let input = br#"{"operation":"a","client":"c1","actor":"a1","location":"l1"}
{"operation":"b","client":"c1","stream":"own","subject":"own"}
{"operation":"c","client":"c1","subject":[]}
{"operation":"d"}
"#;
    place.append(&["--stream", "given", "--subject-from", "client"], input).exits(exit::DONE);
    let entries = place.entries();
    let field = |name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("stream"), [json!("given"), json!("own"), json!("given"), json!("given")]);
    assert_eq!(field("subject"), [json!("c1"), json!("own"), json!([]), json!(null)]);

    for (field, subject) in [("actor", "a1"), ("location", "l1")] {
        let place = Place::new();
        place.append(&["--subject-from", field], input).exits(exit::DONE);
        assert_eq!(place.entries()[0]["subject"], subject);
    }
    place.append(&["--subject-from", "status"], b"").exits(exit::USAGE);
    place.append(&["--stream", &"s".repeat(64 * 1024 + 1)], b"").exits(exit::USAGE);
}

#[test]
fn a_location_that_is_no_text_is_nobodys_name() {
    let place = Place::new();
    let ran = place
        .append(&["--subject-from", "location"], b"{\"operation\":\"a\",\"location_base64\":\"/w==\"}\n");
    assert!(ran.exits(exit::SOME_REFUSED).err.contains("`location` is not UTF-8"));
}

#[test]
fn a_file_that_is_missing_is_found_before_anything_is_appended() {
    let place = Place::new();
    let good = place.write("good", &lines(0..10));
    for bad in ["no-such-file", place.audit().to_str().unwrap()] {
        let ran = place.append(&[&good, bad], b"").exits(exit::ENVIRONMENT);
        assert!(ran.err.contains(bad) && ran.err.contains("nothing was appended"), "{ran:?}");
        assert_eq!(place.info("entries"), 0);
    }
}

/// Whatever kept it from the first line: who goes on by what is told begins at the beginning.
#[test]
fn where_nothing_can_be_taken_it_says_so_with_its_counts() {
    type Spoil = fn(&Place) -> Option<Log>;
    fn with(spoil: impl FnOnce()) -> Option<Log> {
        spoil();
        None
    }
    let ways: [(&str, i32, &str, &[&str], Spoil); 8] = [
        ("another writer", exit::ENVIRONMENT, "stdin", &[], |place| {
            Some(Log::open(place.audit(), Options::default()).unwrap())
        }),
        ("damage", exit::VIOLATION, "stdin", &[], |place| {
            with(|| std::fs::write(place.segment(), b"").unwrap())
        }),
        ("no log", exit::ENVIRONMENT, "stdin", &[], |place| {
            with(|| std::fs::remove_dir_all(place.audit()).unwrap())
        }),
        ("no key", exit::REFUSED, "stdin", &[], |place| {
            with(|| std::fs::remove_file(place.keys("signing.key")).unwrap())
        }),
        ("another key", exit::REFUSED, "stdin", &[], |place| {
            let other = Place::new();
            with(|| assert!(std::fs::copy(other.keys("signing.key"), place.keys("signing.key")).is_ok()))
        }),
        ("no input", exit::ENVIRONMENT, "nofile", &["nofile", "-"], |_| None),
        ("no rejects", exit::ENVIRONMENT, "stdin", &["--rejects", "/nowhere/rejects"], |_| None),
        ("a full disk", exit::ENVIRONMENT, "stdin", &[], |place| {
            with(|| drop(place.run("config", &["set", "retries", "0"]).exits(exit::DONE)))
        }),
    ];
    for (what, code, input, more, spoil) in ways {
        let place = Place::new();
        place.append(&[], &lines(0..10)).exits(exit::DONE);
        let held = spoil(&place);
        let words: &[&str] = match what {
            "a full disk" => &["prlimit", "--fsize=0:unlimited"],
            _ => &["env"],
        };
        let run = |more: &[&str]| {
            finish(command_under(words, &place.arguments("append", more)).spawn().unwrap()).exits(code)
        };
        let ran = run(more);
        assert!(ran.err.ends_with("\nno entry was accepted\nno line is durable\n"), "{what}: {ran:?}");
        assert_eq!(ran.out, "", "{what}");
        let ran = run(&[&["--json"], more].concat());
        let told = ran.json();
        for count in ["accepted", "refused", "committed", "durable_prefix", "lost"] {
            assert_eq!(told[count], 0, "{what}: {told}");
        }
        assert_eq!(told["up_to"], json!({ "input": input, "number": 1, "line": 0 }), "{what}");
        assert_eq!(told["interrupted"], false, "{what}");
        let error = told["error"].as_str().unwrap();
        assert!(ran.err.starts_with(&format!("bulla: {error}\n")), "{what}: {ran:?}");
        if what == "a full disk" {
            // Which file, what was tried, and what to do.
            for said in ["vault.db: ", " while ", "look at the medium"] {
                assert!(error.contains(said), "{said}: {error}");
            }
        }
        drop(held);
    }
}

#[test]
fn a_named_pipe_is_read_to_its_end() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&pipe, lines(0..10_000)).unwrap());
        bulla(arguments!["append", place.audit(), pipe]).exits(exit::DONE);
    });
    assert_eq!(place.info("entries"), 10_000);
}

#[test]
fn stats_end_with_a_summary() {
    let place = Place::new();
    let ran = place.append(&["--stats"], &lines(0..10)).exits(exit::DONE);
    assert!(ran.err.starts_with("10 entries of ") && ran.err.contains(" entries/s"), "{ran:?}");
    for told in ["entries committed         10\n", "waits for memory          0 times", "encrypt  "] {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
    let ran = place.append(&["--stats", "--json"], &lines(10..30)).exits(exit::DONE);
    let summary: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&summary["accepted"], &summary["stats"]["entries"]), (&20.into(), &20.into()));
    assert!(summary["stats"]["stages"]["encode"].as_u64().unwrap() > 0, "{ran:?}");
    assert_eq!(ran.err, "", "the object has it all");
}

#[test]
fn stats_of_each_second_are_objects_where_json_is_asked_for() {
    let place = Place::new();
    let mut child =
        command(place.arguments("append", &["--stats", "--json"])).stdin(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut stdin, mut fed) = (child.stdin.take().unwrap(), 0);
    // One comes when a second has gone by and lines came since.
    let told = std::thread::scope(|scope| {
        let told = scope.spawn(|| out.next().unwrap().unwrap());
        while !told.is_finished() {
            stdin.write_all(&lines(fed..fed + 64)).unwrap();
            fed += 64;
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        told.join().unwrap()
    });
    drop(stdin);
    let second: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(second["accepted"].as_u64() > Some(0) && second["refused"] == 0, "{second}");
    assert!(second["stats"]["entries"].is_u64() && second.get("up_to").is_none(), "{second}");
    let objects = out.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    assert_eq!(objects.last().unwrap()["accepted"], fed);
    finish(child).exits(exit::DONE);
}

/// The length of the largest file below a directory.
fn largest(directory: &Path) -> u64 {
    let items = std::fs::read_dir(directory).unwrap().map(|item| item.unwrap());
    let length = |item: std::fs::DirEntry| match item.metadata().unwrap() {
        metadata if metadata.is_dir() => largest(&item.path()),
        metadata => metadata.len(),
    };
    items.map(length).max().unwrap_or_default()
}

/// Lines of which every twentieth is refused, and each of the others is of somebody new.
pub(crate) fn strangers(numbers: std::ops::Range<u32>) -> Vec<String> {
    let line = |number| match number % 20 {
        0 => "nonsense\n".to_owned(),
        _ => format!("{{\"operation\":\"x\",\"location\":\"{number}\",\"subject\":\"person {number}\"}}\n"),
    };
    numbers.map(line).collect()
}

/// Where these entries are, that were accepted.
fn locations(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.filter(|number| number % 20 > 0).map(|number| number.to_string()).collect()
}

/// Starts it with files that may get no larger than those of the key directory are now, and 64 KiB: the vault's log of
/// changes outgrows that, as on a disk that is full, before a segment is written that would.
pub(crate) fn with_little_room(place: &Place, arguments: &[&str]) -> Command {
    place.run("config", &["set", "segment_size", "64 KiB"]).exits(exit::DONE);
    let limit =
        format!("--fsize={}:unlimited", largest(&place.path("audit.keys")).max(64 << 10) + (64 << 10));
    command_under(&["prlimit", &limit], &place.arguments("append", arguments))
}

/// Nothing that was accepted becomes a gap for a vault that cannot be written, and what is told of the lines is so.
#[test]
fn whoever_goes_on_after_the_line_that_is_told_when_the_vault_is_full_misses_nothing() {
    let place = Place::new();
    place.run("config", &["set", "checkpoint_interval", "10 ms"]).exits(exit::DONE);
    let inputs = [strangers(0..300), strangers(300..6000)];
    let names = ["stdin".to_owned(), place.write("second", inputs[1].concat().as_bytes())];
    let mut child =
        with_little_room(&place, &["--json", "-", &names[1]]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(inputs[0].concat().as_bytes()).unwrap();
    // The rest is too much for the vault, in however few blocks it comes.
    eventually("the first are committed", || place.info("entries") == 285);
    drop(child.stdin.take());
    let ran = finish(child).exits(exit::ENVIRONMENT);
    // Whichever comes first: a block that lacks keys, or what a checkpoint writes into the vault.
    let why = ["for want of its data subjects' keys", "vault.db: disk I/O error while writing"];
    assert!(why.iter().any(|why| ran.err.contains(why)), "{ran:?}");
    let told = ran.json();
    let prefix = told["durable_prefix"].as_u64().unwrap();
    assert_eq!((&told["committed"], &told["lost"]), (&json!(prefix), &json!(0)), "{told}");
    assert!(prefix >= 285 && prefix < told["accepted"].as_u64().unwrap(), "{told}");
    assert!(ran.err.contains(&format!("at least {prefix} of them, the first, are committed")), "{ran:?}");

    let number = usize::try_from(told["up_to"]["number"].as_u64().unwrap()).unwrap();
    let line = usize::try_from(told["up_to"]["line"].as_u64().unwrap()).unwrap();
    let name = &names[number - 1];
    assert_eq!(told["up_to"]["input"], json!(name));
    assert!(
        ran.err.contains(&format!("every line up to {name}:{line} is durable or was refused")),
        "{ran:?}"
    );
    let (done, rest) = inputs[number - 1].split_at(line);
    let before = inputs[..number - 1].iter().flatten().chain(done);
    let accepted = before.filter(|line| *line != "nonsense\n").count();
    assert_eq!(accepted as u64, prefix, "it is the last line of which that is so");
    let rest = rest.iter().chain(inputs[number..].iter().flatten()).cloned();
    place.append(&[], rest.collect::<String>().as_bytes()).exits(exit::SOME_REFUSED);

    let held = place.entries();
    let held = held.iter().map(|entry| entry["location"].as_str().unwrap()).collect::<Vec<_>>();
    let expected = locations(0..6000);
    assert_eq!(held[..accepted], expected[..accepted]);
    let missing = expected.iter().find(|location| !held.contains(&location.as_str()));
    assert_eq!(missing, None);
    let report = place.run("verify", &["--json"]).exits(exit::DONE).json();
    let gap = report["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == "gap");
    assert_eq!(gap, None);
}

/// It is said at once, though nothing has failed for good; and once there is room everything is committed, in order.
#[test]
fn a_vault_that_cannot_be_written_is_told_at_once_and_waited_for() {
    let place = Place::new();
    place.run("config", &["set", "retries", "1000"]).exits(exit::DONE);
    let input = place.write("input", strangers(0..6000).concat().as_bytes());
    let mut child = with_little_room(&place, &[&input]).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("waiting, and trying again: ") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "it ended without a word");
    }
    let process = child.id().to_string();
    let room = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited"]).status();
    assert!(room.unwrap().success());
    std::io::copy(&mut told, &mut std::io::sink()).unwrap();
    let ran = finish(child).exits(exit::SOME_REFUSED);
    assert!(ran.out.starts_with("5700 accepted, 300 refused, 5700 committed\n"), "{ran:?}");
    let held = place.entries();
    assert!(held.iter().map(|entry| entry["location"].as_str().unwrap()).eq(locations(0..6000)));
}

#[test]
fn closed_outputs_are_no_error() {
    let place = Place::new();
    let script = format!(
        "printf 'nonsense\\n{{\"operation\":\"x\"}}\\n' | {} append {} >&- 2>&-",
        env!("CARGO_BIN_EXE_bulla"),
        place.audit().display()
    );
    let status = std::process::Command::new("sh").arg("-c").arg(script).status().unwrap();
    assert_eq!(status.code(), Some(exit::SOME_REFUSED));
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn nothing_that_a_terminal_obeys_reaches_one_in_messages_or_entries() {
    const OBEYED: [char; 5] = ['\u{1b}', '\u{9b}', '\u{61c}', '\u{202e}', '\u{2069}'];
    let (place, text) = (Place::new(), OBEYED.iter().collect::<String>());
    let ran = place.append(&[&text], b"").exits(exit::ENVIRONMENT);
    let escaped = "\\u{1b}\\u{9b}\\u{61c}\\u{202e}\\u{2069}";
    assert!(ran.err.contains(escaped) && !ran.err.contains(OBEYED), "{ran:?}");
    let ran = place.append(&["--json", &text], b"").exits(exit::ENVIRONMENT);
    assert!(!ran.out.contains(OBEYED) && ran.json()["up_to"]["input"] == json!(text), "{ran:?}");
    let line = json!({"operation": text, "location": text}).to_string();
    place.append(&[], line.as_bytes()).exits(exit::DONE);
    for ran in [place.run("export", &[]), place.run("tail", &["--entries", "0..0"])] {
        let ran = ran.exits(exit::DONE);
        assert!(!ran.out.contains(OBEYED), "{ran:?}");
        let entry: serde_json::Value = serde_json::from_str(ran.out.trim_end()).unwrap();
        assert_eq!((&entry["operation"], &entry["location"]), (&json!(text), &json!(text)));
    }
}

/// `ulimit -f` without a word of how its signal is to be taken: it is an error, as a full disk is.
#[test]
fn a_file_size_limit_is_an_error_and_ends_nothing_without_a_word() {
    let place = Place::empty();
    place.run("init", &["--erasure", "off"]).exits(exit::DONE);
    place.run("config", &["set", "retries", "0"]).exits(exit::DONE);
    let input = place.write("input", &lines(0..10));
    let words = ["env", "--default-signal=XFSZ", "prlimit", "--fsize=0:unlimited"];
    let child = command_under(&words, &place.arguments("append", &["--json", &input])).spawn().unwrap();
    let ran = finish(child).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("File too large") && ran.err.ends_with("\nno line is durable\n"), "{ran:?}");
    let rest = place.path("out");
    let export = place.arguments("export", &["-o", rest.to_str().unwrap()]);
    place.append(&[&input], b"").exits(exit::DONE);
    let ran = finish(command_under(&words, &export).spawn().unwrap()).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("File too large") && !rest.exists(), "{ran:?}");
}

#[test]
fn an_unknown_option_or_format_is_usage() {
    let place = Place::new();
    let ran = place.append(&["--format", "cvs"], b"").exits(exit::USAGE);
    assert!(ran.err.contains("logfmt, csv, redis-monitor"), "{}", ran.err);
    place.append(&["--colour"], b"").exits(exit::USAGE);
    bulla_with(["append"], b"").exits(exit::USAGE);
    bulla_with(["append-all"], b"").exits(exit::USAGE);
    bulla_with(std::iter::empty::<&str>(), b"").exits(exit::USAGE);
}
