use crate::support::{Place, command, command_under, exit, finish, incompressible, lines, parse_lines};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

const ENTRIES: &str = r#"{"time":"2026-01-01T00:00:00Z","operation":"read","location":"1","subject":["ada","bob"],"processor":"p"}
{"time":"2026-01-02T00:00:00Z","operation":"write","location":"2","subject":"ada","stream":"default"}
{"time":"2026-01-03T00:00:00Z","operation":"read","location":"3","subject":"adam","stream":"other"}
{"time":"2026-01-04T00:00:00Z","operation":"read","location":"4","processor":"q"}
"#;

fn filled() -> Place {
    let place = Place::new();
    place.append(&[], ENTRIES.as_bytes()).exits(exit::DONE);
    place
}

#[test]
fn filters_choose_what_meets_them_all() {
    let place = filled();
    let chosen = |filter: &[&str]| {
        let entries = parse_lines(&place.run("export", filter).exits(exit::DONE).out);
        entries.iter().map(|entry| entry["location"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for (filter, expected) in [
        (&[][..], "1234"),
        (&["--subject", "ada"], "12"),
        (&["--subject", "a"], ""),
        (&["--stream", "default"], "124"),
        (&["--stream", "other"], "3"),
        (&["--operation", "read"], "134"),
        (&["--processor", "q"], "4"),
        (&["--from", "2026-01-02"], "234"),
        (&["--to", "2026-01-02"], "1"),
        (&["--from", "2026-01-02T00:00:00.000000001Z", "--to", "2026-01-04T00:00:00Z"], "3"),
        (&["--from", "2026-01-01T01:00:00+01:00", "--operation", "read", "--subject", "ada"], "1"),
        (&["--from", "2026-01-03T02:00", "--zone", "+02:00"], "34"),
        (&["--from", "2026-01-03T02:00:00.1", "--zone", "+02:00"], "4"),
        (&["--from", "2026-01-02", "--to", "2026-01-03", "--zone", "-01:00"], "3"),
        (&["--to", "yesterday"], "1234"),
        (&["--from", "2026-01-01", "--to", "now"], "1234"),
        (&["--from", "today", "--to", "tomorrow"], ""),
        (&["--entries", "1..2"], "23"),
        (&["--entries", "3"], "4"),
        (&["--entries", "2.."], "34"),
        (&["--entries", "..0"], "1"),
        (&["--entries", "1..", "--subject", "ada"], "2"),
        (&["--entries", "4..9"], ""),
        (&["--entry", "2"], "3"),
        (&["--entry", "2", "--subject", "ada"], ""),
        (&["--entry", "4"], ""),
    ] {
        assert_eq!(chosen(filter), expected, "{filter:?}");
    }
    for (times, said) in [
        (&["--from", "last week"][..], "--from last week: not a time: give `yesterday`"),
        (&["--to", "2026-02-30"], "--to 2026-02-30: not a time"),
        (&["--to", "today", "--zone", "Europe/Nowhere"], "not a time zone: give `UTC`"),
        (&["--from", "2026-01-02", "--to", "2026-01-02"], "--to is not after --from"),
        (&["--from", "today", "--to", "yesterday"], "--to is not after --from"),
    ] {
        let ran = place.run("export", times).exits(exit::USAGE);
        assert!(ran.err.contains(said), "{times:?}: {ran:?}");
    }
    place.run("export", &["--format", "xml"]).exits(exit::USAGE);
    place.run("export", &["--entry", "1", "--entries", "1"]).exits(exit::USAGE);
    for numbers in ["", "..", "2..1", "x", "1-2", "-1", "1..2..3", "18446744073709551616"] {
        let ran = place.run("export", &[&format!("--entries={numbers}")]).exits(exit::USAGE);
        assert!(ran.err.contains("--entries"), "{ran:?}");
    }
}

/// Each entry has one of the values of each field, and no two have the same ones.
#[test]
fn every_field_is_a_filter_by_value_and_by_beginning_and_one_of_several_values_suffices() {
    for erasure in ["on", "off"] {
        let place = Place::empty();
        place.run("init", &["--erasure", erasure]).exits(exit::DONE);
        let mut entries = String::new();
        for number in 1..=3 {
            let status = [200, 404, 499][number - 1];
            entries += &format!(
                r#"{{"operation":"o/{number}","location":"l/{number}","subject":"s/{number}","stream":"t/{number}","#
            );
            entries += &format!(
                r#""processor":"p/{number}","controller":"c/{number}","purpose":"u/{number}","actor":"a/{number}","#
            );
            entries += &format!(
                "\"client\":\"k/{number}\",\"status\":{status},\"duration\":{number},\"size\":{number},\"flags\":{number}}}\n"
            );
        }
        // Nothing but what every entry has.
        entries += "{\"operation\":\"other\"}\n";
        place.append(&[], entries.as_bytes()).exits(exit::DONE);
        let chosen = |filter: &[&str]| {
            let entries = parse_lines(&place.run("export", filter).exits(exit::DONE).out);
            entries.iter().map(|entry| entry["entry"].to_string()).collect::<String>()
        };
        for (field, letter) in [
            ("operation", "o"),
            ("location", "l"),
            ("subject", "s"),
            ("stream", "t"),
            ("processor", "p"),
            ("controller", "c"),
            ("purpose", "u"),
            ("actor", "a"),
            ("client", "k"),
        ] {
            let option = format!("--{field}");
            let of = |number: u32| format!("{letter}/{number}");
            assert_eq!(chosen(&[&option, &of(2)]), "1", "{field}");
            assert_eq!(chosen(&[&option, &of(3), &option, &of(1)]), "02", "{field}");
            assert_eq!(chosen(&[&option, letter]), "", "{field}");
            let prefix = |text: &str| format!("{field}={text}");
            assert_eq!(chosen(&["--prefix", &prefix(letter), "--entries", "..2"]), "012", "{field}");
            assert_eq!(chosen(&["--prefix", &prefix(&of(1)), &option, &of(2)]), "01", "{field}");
            assert_eq!(chosen(&["--prefix", &prefix("x")]), "", "{field}");
            assert_eq!(
                chosen(&[&option, &of(2), "--operation", "o/2", "--operation", "o/3"]),
                match field {
                    "operation" => "12",
                    _ => "1",
                }
            );
        }
        for field in ["--duration", "--size", "--flags"] {
            for (numbers, expected) in
                [("2", "1"), ("2..3", "12"), ("2..", "12"), ("..1", "0"), ("0", ""), ("4..", "")]
            {
                assert_eq!(chosen(&[field, numbers]), expected, "{field} {numbers}");
            }
            assert_eq!(chosen(&[field, "1", field, "3.."]), "02", "{field}");
        }
        for (status, expected) in
            [("404", "1"), ("4xx", "12"), ("400..498", "1"), ("..399", "0"), ("5xx", "")]
        {
            assert_eq!(chosen(&["--status", status]), expected, "{status}");
        }
        assert_eq!(chosen(&["--status", "4xx", "--status", "200", "--prefix", "location=l/"]), "012");
        let proven =
            place.run("prove", &["--prefix", "actor=a/", "--status", "4xx", "-o", &place.write("p", b"")]);
        assert!(proven.exits(exit::DONE).err.starts_with("proves 2 entries"), "{erasure}");
    }
}

#[test]
fn a_filter_that_is_none_is_refused_with_what_would_be_one() {
    use std::os::unix::ffi::OsStrExt;
    let place = filled();
    for (option, value, said) in [
        ("--prefix", "location", "no FIELD=TEXT"),
        ("--prefix", "payload=x", "`payload` is no field of text; those are subject, stream"),
        ("--prefix", "status=4", "is no field of text"),
        ("--status", "4xxx", "`4xxx` is not a number"),
        ("--status", "+4xx", "`+4xx` is not a number"),
        ("--size", "+4", "`+4` is not a number"),
        ("--status", "40xx", "`40xx` is not a number"),
        ("--status", "500..400", "the first comes after the last"),
        ("--size", "..", "it names no number"),
        ("--duration", "-1", "unexpected"),
    ] {
        let ran = place.run("export", &[option, value]).exits(exit::USAGE);
        assert!(ran.err.contains(option) || ran.err.contains(said), "{ran:?}");
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{ran:?}");
    }
    // Locations are bytes, and everything else is text.
    let bytes = std::ffi::OsStr::from_bytes(b"\xff");
    for (option, code) in [("--location", exit::DONE), ("--actor", exit::USAGE)] {
        let mut arguments = place.arguments("export", &[option]);
        arguments.push(bytes.to_owned());
        crate::support::bulla(arguments).exits(code);
    }
    for other in [["--consistency", "x"], ["--event", "1"]] {
        for filter in [["--actor", "ada"], ["--prefix", "actor=a"], ["--from", "2026-01-01"]] {
            let ran = place.run("prove", &[other, filter].concat()).exits(exit::USAGE);
            assert!(ran.err.contains("cannot be used with"), "{ran:?}");
        }
    }
    let ran = place.run("export", &["--withhold-personal", "--actor", "ada"]).exits(exit::USAGE);
    assert!(ran.err.contains("actor"), "{ran:?}");
}

#[test]
fn a_query_says_how_much_it_read() {
    let place = filled();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    for (filter, told) in [
        (&[][..], ""),
        (&["--entries", "0"], "read 1 of 2 blocks\n"),
        (&["--entries", "3..4"], "read 2 of 2 blocks\n"),
        (&["--operation", "nothing"], "0 entries\nread 0 of 2 blocks\n"),
        (&["--to", "2026-01-02", "--format", "csv"], "read 1 of 2 blocks\n"),
        (
            &["--entries", "0", "--salvage"],
            "left out: nothing; no damage was found, seals were not looked at\n",
        ),
    ] {
        assert_eq!(place.run("export", filter).exits(exit::DONE).err, told, "{filter:?}");
    }
}

#[test]
fn of_a_data_subject_of_whom_nothing_is_found_it_is_said_whether_they_are_known() {
    let place = filled();
    let file = place.write("out", b"");
    let unknown = "is not known here: never met, or erased";
    for (filter, told, standing) in [
        (&["--subject", "ada", "--operation", "delete"][..], "data subject `ada` is known here", "known"),
        (&["--subject", "Ada"], unknown, "not-known"),
        (&["--subject", "Ada", "--salvage"], unknown, "not-known"),
        (&["--subject", "Ada", "--operation", "delete"], unknown, "not-known"),
    ] {
        let ran = place.run("export", filter).exits(exit::DONE);
        assert!(
            ran.err.starts_with("0 entries\n") && ran.err.contains(told) && ran.out.is_empty(),
            "{ran:?}"
        );
        let json = place.run("export", &[filter, &["--json", "-o", &file]].concat()).exits(exit::DONE).json();
        assert_eq!((&json["entries"], &json["undecided"]), (&0.into(), &0.into()));
        assert_eq!(
            (&json["subjects"][0]["subject"], &json["subjects"][0]["standing"]),
            (&filter[1].into(), &standing.into())
        );
        let detail = json["subjects"][0]["detail"].as_str().unwrap();
        assert!(ran.err.contains(&format!("data subject `{}` {detail}\n", filter[1])), "{detail}");
        let ran = place.run(
            "tail",
            &[filter[..2].to_vec(), vec!["--operation", "delete", "--to", "2026-01-05"]].concat(),
        );
        assert!(ran.exits(exit::DONE).err.starts_with("0 entries\n"), "{filter:?}");
        let ran =
            place.run("prove", &[&filter[..2], &["--operation", "delete"]].concat()).exits(exit::REFUSED);
        assert!(ran.err.contains("nothing to prove") && ran.err.contains("the data subject is "), "{ran:?}");
        assert!(!ran.err.contains(filter[1]), "an error is kept where no name must be: {ran:?}");
    }
    // Each of several, and no word of them where something is found.
    let ran =
        place.run("export", &["--subject", "ada", "--subject", "Ada", "--status", "1"]).exits(exit::DONE);
    assert!(
        ran.err.contains("`ada` is known here") && ran.err.contains("`Ada` is not known here"),
        "{ran:?}"
    );
    let ran = place
        .run("export", &["--subject", "ada", "--subject", "Ada", "--json", "-o", &file])
        .exits(exit::DONE);
    assert!(!ran.err.contains("known"), "{ran:?}");
    assert_eq!((&ran.json()["entries"], &ran.json()["subjects"]), (&2.into(), &serde_json::json!([])));
    place.run("export", &["--json"]).exits(exit::USAGE);
    place.run("export", &["--json", "-o", "-"]).exits(exit::USAGE);

    // A log without a vault knows whom its entries name.
    let place = Place::empty();
    place.run("init", &["--erasure", "off"]).exits(exit::DONE);
    place.append(&[], ENTRIES.as_bytes()).exits(exit::DONE);
    for (filter, told) in [
        (&["--subject", "Ada"][..], "`Ada` is not known here: no entry of the log names them"),
        (&["--subject", "Ada", "--from", "2026-01-02"], "`Ada` may be known or not, which this cannot tell"),
        (&["--subject", "ada", "--operation", "delete"], "`ada` may be known or not, which this cannot tell"),
    ] {
        let ran = place.run("export", filter).exits(exit::DONE);
        assert!(ran.err.starts_with("0 entries\n") && ran.err.contains(told), "{ran:?}");
    }
}

#[test]
fn nobody_is_said_not_to_be_known_while_something_may_be_there_that_is_not_signed() {
    for erasure in ["on", "off"] {
        let place = Place::empty();
        place.run("init", &["--erasure", erasure]).exits(exit::DONE);
        // The writer below signs nothing while it is asked.
        place.run("config", &["set", "checkpoint_interval", "1 h"]).exits(exit::DONE);
        place.append(&[], ENTRIES.as_bytes()).exits(exit::DONE);
        let (file, (_, recipient)) = (place.write("out", b""), bulla::keys::identities::generate());
        let told = |tail: bool| {
            let after = place.info("tree_size").as_u64().unwrap() - 1;
            let notice = format!("what is not signed yet, after frame {after}, is not looked at");
            for more in [&[][..], &["--salvage"]] {
                for (name, standing) in [("Ada", if tail { "cannot-tell" } else { "not-known" }), ("", "")] {
                    let name = if name.is_empty() { &[][..] } else { &["--subject", name][..] };
                    let ran = place.run("export", &[name, more, &["--json", "-o", &file]].concat());
                    let ran = ran.exits(exit::DONE);
                    assert_eq!(ran.err.matches("notice unsigned-tail").count(), usize::from(tail), "{ran:?}");
                    assert_eq!(ran.json()["unsigned"], tail, "{ran:?}");
                    let subject = &ran.json()["subjects"][0];
                    assert_eq!(subject["standing"].as_str().unwrap_or_default(), standing, "{ran:?}");
                }
            }
            let recipient = ["--recipient", &recipient];
            for (command, option) in [("prove", &[][..]), ("grant", &recipient)] {
                if (command, erasure) == ("grant", "off") {
                    continue;
                }
                let asked = |name| [option, &["--subject", name, "-o", &file]].concat();
                let ran = place.run(command, &asked("Ada")).exits(exit::REFUSED);
                assert_eq!(ran.err.contains(&notice), tail, "{ran:?}");
                assert_eq!(ran.err.contains("is not known here"), !tail, "{ran:?}");
                let found = [&asked("ada")[..], &["--json"]].concat();
                let ran = place.run(command, &found).exits(exit::DONE);
                assert_eq!(ran.err.contains("notice unsigned-tail"), tail, "{ran:?}");
                assert_eq!(ran.json()["unsigned"], tail, "{ran:?}");
            }
            let known = ["--subject", "ada", "--operation", "delete"];
            let ran = place.run("export", &known).exits(exit::DONE);
            let said = if tail { "no entry of theirs that is signed" } else { "no entry of theirs that can" };
            assert!(
                erasure == "off" || ran.err.contains("is known here") && ran.err.contains(said),
                "{ran:?}"
            );
        };
        told(false);
        // As a writer leaves it that was killed: the beginning of a frame.
        let whole = std::fs::read(place.segment()).unwrap();
        std::fs::write(place.segment(), [&whole[..], &whole[..100]].concat()).unwrap();
        told(true);
        std::fs::write(place.segment(), &whole).unwrap();
        // A writer may have them in its memory alone.
        let log = bulla::Log::open(place.audit(), bulla::Options::default()).unwrap();
        told(true);
        log.close().unwrap();
        told(false);
    }
}

#[test]
fn an_export_can_be_appended_again_without_its_numbers() {
    let place = filled();
    let out = place.run("export", &[]).exits(exit::DONE).out;
    let ran = place.append(&[], out.as_bytes()).exits(exit::SOME_REFUSED);
    assert!(ran.out.starts_with("0 accepted, 4 refused, 0 committed\n"), "{ran:?}");
    assert!(ran.err.contains("assigned by the log"), "{ran:?}");
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let place = filled();
    let file = place.write("out", b"earlier");
    place.run("export", &["-o", &file]).exits(exit::DONE);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), place.run("export", &[]).out);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    std::fs::write(&file, "earlier").unwrap();
    place.damage(0.7);
    place.run("export", &["-o", &file]).exits(exit::VIOLATION);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "earlier");
    let nowhere = place.path("no/such/directory/out");
    place.run("export", &["-o", nowhere.to_str().unwrap()]).exits(exit::ENVIRONMENT);

    let left = std::fs::read_dir(place.path("")).unwrap().map(|item| item.unwrap().file_name());
    let mut left = left.collect::<Vec<_>>();
    left.sort();
    assert_eq!(left, ["audit", "audit.keys", "out"], "nothing unfinished stays");
}

#[test]
fn nothing_is_written_into_the_log_or_its_keys() {
    let place = filled();
    let elsewhere = place.path("other keys");
    std::os::unix::fs::symlink(place.audit(), place.path("link")).unwrap();
    std::os::unix::fs::symlink(place.audit().join("checkpoint"), place.path("file")).unwrap();
    let before = place.run("verify", &["--json"]).exits(exit::DONE).out;
    for (file, said) in [
        ("audit/out", "where the log lies"),
        ("audit/segments/out", "where the log lies"),
        ("audit/checkpoint", "where the log lies"),
        ("link/out", "where the log lies"),
        ("file", "where the log lies"),
        ("nowhere/../audit/out", "where the log lies"),
        ("audit.keys/out", "where its keys lie"),
        ("audit.keys/signing.key", "where its keys lie"),
    ] {
        let path = place.path(file);
        for subcommand in [&["export"][..], &["prove", "--entry", "1"]] {
            let options = [&subcommand[1..], &["-o", path.to_str().unwrap()]].concat();
            let ran = place.run(subcommand[0], &options).exits(exit::USAGE);
            assert!(ran.err.contains(said) && ran.out.is_empty(), "{file}: {ran:?}");
        }
    }
    assert_eq!(place.run("verify", &["--json"]).exits(exit::DONE).out, before);
    std::fs::rename(place.path("audit.keys"), &elsewhere).unwrap();
    let out = elsewhere.join("out");
    let keys = ["--keys", elsewhere.to_str().unwrap(), "-o", out.to_str().unwrap()];
    place.run("export", &keys).exits(exit::USAGE);
    // A name that only begins like the log's is another place.
    let beside = place.path("audit.jsonl");
    place.run("export", &[&keys[..3], &[beside.to_str().unwrap()]].concat()).exits(exit::DONE);
}

#[test]
fn a_link_stays_a_link_and_a_device_a_device() {
    let place = filled();
    let file = place.write("out", b"");
    let link = place.path("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    place.run("export", &["-o", link.to_str().unwrap()]).exits(exit::DONE);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 4);

    place.run("export", &["-o", "/dev/null"]).exits(exit::DONE);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    let ran = place.run("export", &["-o", "/dev/full"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("No space left"), "{ran:?}");
}

#[test]
fn a_damaged_log_is_refused_before_anything_is_written() {
    let place = filled();
    place.damage(0.7);
    let ran = place.run("export", &[]).exits(exit::VIOLATION);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("can be salvaged"), "{ran:?}");
}

#[test]
fn salvage_leaves_out_what_is_damaged_and_says_so_last() {
    let place = Place::new();
    let payload = incompressible(1);
    // The one in the middle takes most of the log, so that the byte in the middle is one of its block.
    for input in [&lines(0..10), &payload, &lines(11..20)] {
        place.append(&[], input).exits(exit::DONE);
    }
    let whole = place.run("export", &["--salvage"]).exits(exit::DONE);
    assert_eq!(whole.err, "left out: nothing; no damage was found, seals were not looked at\n");

    place.damage(0.5);
    let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!(report["findings"][0]["entries"], serde_json::json!([10, 10]), "{report}");
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    let whole = whole.out.split_inclusive('\n').collect::<Vec<_>>();
    assert_eq!(ran.out, whole[..10].concat() + &whole[11..].concat());
    let told = ran.err.lines().collect::<Vec<_>>();
    assert!(
        told[0].starts_with("violation body-damaged") && told[0].contains("entries 10 to 10"),
        "{told:?}"
    );
    assert_eq!(*told.last().unwrap(), "left out: 1 entry, because of the damage said above");
}

#[test]
fn without_an_identity_that_fits_nothing_is_read() {
    let (place, other) = (filled(), Place::new());
    let identity = other.keys("identity.age");
    let ran = place.run("export", &["--identity", identity.to_str().unwrap()]).exits(exit::REFUSED);
    assert_eq!(ran.out, "");
    let ran = place.run("export", &["--identity", "no-such-file"]).exits(exit::REFUSED);
    assert!(ran.err.contains("no-such-file"), "{ran:?}");
    std::fs::rename(place.keys("identity.age"), place.path("identity.age")).unwrap();
    let ran = place.run("export", &[]).exits(exit::REFUSED);
    assert!(ran.err.contains("--identity"), "{ran:?}");
    let identity = place.path("identity.age");
    place.run("export", &["--identity", identity.to_str().unwrap()]).exits(exit::DONE);
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let place = Place::new();
    place.append(&[], &lines(0..50_000)).exits(exit::DONE);
    let mut child = command(place.arguments("export", &[])).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"{\"entry\":0");
    let ran = finish(child).exits(exit::DONE);
    assert_eq!(ran.err, "");
}

#[test]
fn what_nobody_took_to_its_end_is_not_recorded() {
    let place = filled();
    let size = place.info("tree_size");
    let ran = place.run("export", &["--record", "-o", "/dev/full"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("No space left") && !ran.err.contains("recorded"), "{ran:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = command(place.arguments("export", &["--record"])).stdout(writer).spawn().unwrap();
    let ran = finish(closed).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("the output was closed, so the export was not recorded"), "{ran:?}");
    assert_eq!(place.run("events", &["--kind", "exported"]).exits(exit::DONE).out, "");
    assert_eq!(place.info("tree_size"), size);
}

/// Nobody has a file that no record tells of; that there is a record of a file that nobody has is said.
#[test]
fn a_file_that_cannot_be_put_in_its_place_is_recorded_and_that_is_said() {
    let place = filled();
    let file = place.path("out").into_os_string().into_string().unwrap();
    // The log's own files are renamed within their directories (`renameat`).
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=rename:error=EIO"];
    let child = command_under(&strace, &place.arguments("export", &["--record", "-o", &file])).spawn();
    let ran =
        finish(child.expect("this test needs strace: `apt-get install strace`")).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("it is done: the export was recorded; what failed after that: "), "{ran:?}");
    assert!(!std::path::Path::new(&file).exists());
    assert_eq!(place.run("events", &["--kind", "exported"]).exits(exit::DONE).out.lines().count(), 1);
}

#[test]
fn a_configuration_that_was_damaged_is_a_violation() {
    let place = filled();
    let file = place.audit().join("bulla.toml");
    let mut text = std::fs::read(&file).unwrap();
    text.push(0xff);
    std::fs::write(&file, text).unwrap();
    let say_so = || {
        for subcommand in [
            &["verify"][..],
            &["export"],
            &["export", "--subject", "ada"],
            &["prove", "--entry", "1"],
            &["tail"],
            &["info"],
            &["config"],
            &["config", "get", "linger"],
            &["config", "set", "linger", "20 ms"],
        ] {
            let ran = place.run(subcommand[0], &subcommand[1..]);
            assert!(ran.out.is_empty() || subcommand[0] == "verify", "{ran:?}");
            ran.exits(exit::VIOLATION);
        }
    };
    say_so();
    std::fs::remove_file(place.audit().join("checkpoint")).unwrap();
    say_so();
    // Without a segment and a checkpoint it may be anything.
    std::fs::remove_file(place.segment()).unwrap();
    for subcommand in ["info", "config"] {
        place.run(subcommand, &[]).exits(exit::USAGE);
    }
}

#[test]
fn salvage_with_a_filter_counts_what_the_filter_can_mean() {
    let place = Place::new().keep_together();
    let line = |day: u32| {
        let text = String::from_utf8(incompressible(1)).unwrap();
        text.replacen('{', &format!("{{\"time\":\"2026-01-{day:02}T00:00:00Z\",\"subject\":\"s\","), 1)
    };
    // Three blocks of two entries, of a day each; the byte in the middle is one of the second.
    for day in 1..=3 {
        place.append(&[], line(day).repeat(2).as_bytes()).exits(exit::DONE);
    }
    place.damage(0.5);
    let because = "because of the damage said above";
    for (filter, entries, told) in [
        (&[][..], 4, format!("2 entries, {because}")),
        (&["--from", "2026-01-03"], 2, "no entry; but the log is damaged, as said above".to_owned()),
        (&["--from", "2026-01-02"], 2, format!("up to 2 entries that may match, {because}")),
        (&["--subject", "s"], 4, format!("up to 2 entries that may match, {because}")),
        (&["--subject", "s", "--entries", "3.."], 2, format!("up to 1 entry that may match, {because}")),
        (&["--entries", "1..2"], 1, format!("1 entry, {because}")),
        (&["--entries", "0..1"], 2, "no entry; but the log is damaged, as said above".to_owned()),
    ] {
        let ran = place.run("export", &[&["--salvage"], filter].concat()).exits(exit::VIOLATION);
        assert_eq!(ran.out.lines().count(), entries, "{filter:?}");
        assert_eq!(ran.err.lines().last().unwrap(), format!("left out: {told}"), "{filter:?}");
    }
}

#[test]
fn salvage_without_a_key_is_refused_and_not_damaged() {
    let (place, other) = (Place::new().keep_together(), Place::new());
    place.append(&[], &incompressible(2)).exits(exit::DONE);
    let recipients = other.info("recipients")[0].as_str().unwrap().to_owned();
    place.run("config", &["set", "log.recipients", &recipients]).exits(exit::DONE);
    place.append(&[], &lines(0..3)).exits(exit::DONE);
    let epoch = "the identity does not open epoch";
    let salvage = |filter: &[&str]| place.run("export", &[&["--salvage"], filter].concat());

    let file = place.path("out");
    let ran = salvage(&["-o", file.to_str().unwrap()]).exits(exit::REFUSED);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2, "what can be read is there");
    let told = ran.err.lines().collect::<Vec<_>>();
    assert!(told[0].starts_with(&format!("no key for entries 2 to 4: {epoch}")), "{ran:?}");
    assert_eq!(
        told[1..],
        ["left out: 3 entries, for lack of a key; no damage was found, seals were not looked at"]
    );
    let ran = salvage(&["--subject", "s0", "--entries", "4"]).exits(exit::REFUSED);
    assert!(ran.err.contains(&format!("\nno key for entry 4: {epoch}")), "{ran:?}");
    assert!(
        ran.err
            .ends_with("left out: up to 1 entry that may match, for lack of a key; no damage was found, seals were not looked at\n")
    );
    let ran = salvage(&["--entries", "0..1"]).exits(exit::DONE);
    assert_eq!(ran.err, "left out: nothing; no damage was found, seals were not looked at\n");

    place.damage(0.3);
    let ran = salvage(&[]).exits(exit::VIOLATION);
    let last = "left out: 2 entries, because of the damage said above; 3 entries, for lack of a key";
    assert_eq!(ran.err.lines().last().unwrap(), last);
    assert!(!ran.err.contains("not-opened"), "{ran:?}");
    let ran = salvage(&["--entries", "2.."]).exits(exit::VIOLATION);
    let last = "left out: 3 entries, for lack of a key; and the log is damaged, as said above";
    assert_eq!(ran.err.lines().last().unwrap(), last);
}
