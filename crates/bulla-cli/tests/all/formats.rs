//! CSV and Parquet, read by programs that know nothing of Bulla: Python's csv module, pandas, pyarrow and DuckDB.

use crate::support::{Mount, Place, arguments, bulla, command, exit, incompressible, lines, may_mount};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

const FORMATS: [&str; 3] = ["jsonl", "csv", "parquet"];

/// Values that a careless writer or reader breaks, one line each.
fn nasty() -> Vec<u8> {
    let texts = [
        "",
        " ",
        "plain",
        "a,b",
        "\"",
        "say \"hi\"",
        "\"\"",
        "line\nbreak",
        "carriage\rreturn",
        "both\r\n",
        "tab\there",
        "grüße, 世界 🌍",
        "\u{feff}mark",
        "=1+1",
        "@SUM(A1)",
        "-1",
        "NULL",
        "null",
        "NA",
        "NaN",
        "None",
        "\\N",
        "\\",
        "1e5",
        "007",
        "true",
        "[",
        "[\"a\"]",
        "{}",
        "'",
        ";",
        "\u{1}\u{7f}",
        "\u{2028}",
    ];
    let mut lines = Vec::new();
    let mut add = |fields: Value| {
        let mut fields = fields;
        let day = 1 + lines.len() % 28;
        let entry = fields.as_object_mut().unwrap();
        entry.entry("time").or_insert(format!("2026-02-{day:02}T23:59:59.123456789Z").into());
        entry.entry("operation").or_insert("read".into());
        lines.push(fields.to_string());
    };
    add(serde_json::json!({}));
    for text in texts {
        for name in ["location", "subject", "payload", "purpose"] {
            add(serde_json::json!({ name: text }));
        }
        let all = [
            "controller",
            "processor",
            "purpose",
            "actor",
            "client",
            "stream",
            "location",
            "subject",
            "payload",
        ];
        let all = all.into_iter().map(|name| (name.to_owned(), text.into()));
        add(Value::Object(all.collect()));
        add(serde_json::json!({ "operation": format!("o{text}") }));
        add(serde_json::json!({ "subject": [text, "other", text] }));
    }
    add(serde_json::json!({ "subject": [] }));
    add(serde_json::json!({ "subject": (0..64).map(|number| format!("s{number}")).collect::<Vec<_>>() }));
    for bytes in ["/w==", "gICAgA==", "YWJj/w=="] {
        add(serde_json::json!({ "location_base64": bytes }));
        add(serde_json::json!({ "payload_base64": bytes, "location": "text" }));
        add(serde_json::json!({ "payload_base64": bytes, "location_base64": bytes }));
    }
    for number in [0, 1, u64::from(u32::MAX)] {
        add(serde_json::json!({ "status": number, "flags": number }));
    }
    for number in [0, 1, 1 << 53, (1 << 53) + 1, u64::MAX] {
        add(serde_json::json!({ "size": number }));
        add(serde_json::json!({ "duration": number, "size": 0 }));
    }
    // The last nanosecond on either side is infinite to DuckDB.
    for time in [
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999999Z",
        "1677-09-21T00:12:43.145224194Z",
        "2262-04-11T23:47:16.854775806Z",
    ] {
        add(serde_json::json!({ "time": time }));
    }
    add(serde_json::json!({ "payload": "x\"\n".repeat(100_000) }));
    (lines.join("\n") + "\n").into_bytes()
}

/// Runs one of `tests/readers` on an export and the same one as JSON lines.
fn check(script: &str, export: &Path, jsonl: &Path) -> Result<String, String> {
    check_with(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"), script, export, jsonl)
}

fn check_with(python: &Path, script: &str, export: &Path, jsonl: &Path) -> Result<String, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(
        python.exists(),
        "{} is not there: `make test` or scripts/setup.sh installs pandas and DuckDB, which this test reads with",
        python.display()
    );
    let script = here.join("tests/readers").join(script);
    // What is compiled of pandas at the first use is kept: it takes longer than the test.
    let mut command = Command::new(python);
    let ran =
        command.env_remove("PYTHONDONTWRITEBYTECODE").arg(script).args([export, jsonl]).output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    if ran.status.success() { Ok(out) } else { Err(out + &String::from_utf8(ran.stderr).unwrap()) }
}

/// Exports to a file in each format, with these options.
fn export(place: &Place, options: &[&str]) -> [PathBuf; 3] {
    FORMATS.map(|format| {
        let file = place.path(&format!("out.{format}"));
        let to = ["--format", format, "-o", file.to_str().unwrap()];
        place.run("export", &[&to, options].concat()).exits(exit::DONE);
        file
    })
}

/// Checks both formats, and returns what the check of the Parquet file printed last.
fn all_alike(files: &[PathBuf; 3]) -> Value {
    let [jsonl, csv, _] = files;
    check("check_csv.py", csv, jsonl).unwrap_or_else(|error| panic!("{error}"));
    parquet_alike(files)
}

/// Checks the Parquet file, and returns what that printed last.
fn parquet_alike([jsonl, _, parquet]: &[PathBuf; 3]) -> Value {
    let told = check("check_parquet.py", parquet, jsonl).unwrap_or_else(|error| panic!("{error}"));
    // `make spark` has Spark read the same files.
    if let Some(python) = std::env::var_os("BULLA_SPARK_PYTHON") {
        let told = check_with(Path::new(&python), "check_spark.py", parquet, jsonl);
        println!("{}", told.unwrap_or_else(|error| panic!("{error}")));
    }
    serde_json::from_str(told.lines().last().unwrap()).unwrap()
}

#[test]
fn nothing_is_lost_in_any_format() {
    let place = Place::new();
    place.append(&[], &nasty()).exits(exit::DONE);
    let files = export(&place, &[]);
    let told = all_alike(&files);
    assert_eq!(told["row_groups"], 1);
    for name in ["origin", "vkey", "root"] {
        assert_eq!(told["about"][format!("bulla.{name}")], place.info(name), "{told}");
    }
    assert_eq!(told["about"]["bulla.tree_size"], place.info("tree_size").to_string());
    assert_eq!(told["about"]["bulla.query"], "{}");

    // The checks see a difference where there is one.
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let other = PathBuf::from(place.write("other.jsonl", text.replacen("hi", "ho", 1).as_bytes()));
    assert!(check("check_csv.py", &files[1], &other).unwrap_err().contains("is not"));
    assert!(check("check_parquet.py", &files[2], &other).unwrap_err().contains("is not"));
}

#[test]
fn a_query_and_an_empty_log_come_out_alike() {
    let place = Place::new();
    let told = all_alike(&export(&place, &[]));
    assert_eq!(told["row_groups"], 0);
    assert_eq!(std::fs::read_to_string(place.path("out.csv")).unwrap().lines().count(), 1);

    place.append(&[], &lines(0..1000)).exits(exit::DONE);
    let query = ["--subject", "s3", "--entries", "100..499", "--from", "2020-01-01"];
    let told = all_alike(&export(&place, &query));
    assert_eq!(std::fs::read_to_string(place.path("out.jsonl")).unwrap().lines().count(), 40);
    let asked = serde_json::from_str::<Value>(told["about"]["bulla.query"].as_str().unwrap()).unwrap();
    let expected =
        serde_json::json!({ "subject": "s3", "entries": "100..499", "from": "2020-01-01T00:00:00Z" });
    assert_eq!(asked, expected);
    all_alike(&export(&place, &["--subject", "nobody"]));
    for (query, expected) in [
        (
            &["--subject", "s3", "--subject", "s4", "--prefix", "location=key/1", "--prefix", "actor="][..],
            serde_json::json!({ "subject": ["s3", "s4"], "prefix": { "location": "key/1", "actor": "" } }),
        ),
        (
            &["--status", "4xx", "--status", "500..", "--size", "7"],
            serde_json::json!({ "status": ["400..499", "500.."], "size": "7" }),
        ),
    ] {
        let told = all_alike(&export(&place, query));
        let asked = serde_json::from_str::<Value>(told["about"]["bulla.query"].as_str().unwrap()).unwrap();
        assert_eq!(asked, expected);
    }
}

#[test]
fn many_rows_make_several_row_groups() {
    let place = Place::new();
    place.append(&[], &lines(0..140_000)).exits(exit::DONE);
    assert_eq!(parquet_alike(&export(&place, &[]))["row_groups"], 2);
}

#[test]
fn large_values_make_row_groups_small() {
    let place = Place::new();
    place.append(&[], &incompressible(4300)).exits(exit::DONE);
    let files = export(&place, &[]);
    let told = parquet_alike(&files);
    assert!(told["row_groups"].as_u64().unwrap() >= 2, "{told}");
    goes_to_a_pipe(
        &place,
        "parquet",
        &files[FORMATS.iter().position(|format| *format == "parquet").unwrap()],
    );
}

#[test]
fn what_goes_to_a_pipe_is_the_file() {
    let place = Place::new();
    place.append(&[], &lines(0..5000)).exits(exit::DONE);
    for (format, file) in FORMATS.into_iter().zip(&export(&place, &[])) {
        goes_to_a_pipe(&place, format, file);
    }
}

/// That an export to standard output is `file`, and that nobody minds where a reader has enough of it.
fn goes_to_a_pipe(place: &Place, format: &str, file: &Path) {
    let ran = command(place.arguments("export", &["--format", format])).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    assert!(ran.stdout == std::fs::read(file).unwrap(), "{format}: standard output is not the file");

    let mut child = command(place.arguments("export", &["--format", format])).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{format}, closed: {ran:?}");
}

#[test]
fn a_damaged_log_leaves_no_file_in_any_format() {
    let place = Place::new();
    for input in [&lines(0..5000), &incompressible(100), &lines(0..10)] {
        place.append(&[], input).exits(exit::DONE);
    }
    place.damage(0.9);
    for format in FORMATS {
        let file = place.path("out");
        let to = ["--format", format, "-o", file.to_str().unwrap()];
        // Of a narrow query, blocks before the damage are written before it is met.
        for query in [&[][..], &["--from", "2020-01-01"]] {
            place.run("export", &[&to, query].concat()).exits(exit::VIOLATION);
            let ran = place.run("export", &[&["--format", format], query].concat()).exits(exit::VIOLATION);
            assert_eq!(ran.out, "", "{format}");
        }
        let left = std::fs::read_dir(place.path("")).unwrap().count();
        assert_eq!(left, 2, "{format}: the log and its keys, and nothing else");
    }
    let mut left_out = String::new();
    let salvaged = FORMATS.map(|format| {
        let file = place.path(&format!("salvaged.{format}"));
        let to = ["--salvage", "--format", format, "-o", file.to_str().unwrap()];
        let ran = place.run("export", &to).exits(exit::VIOLATION);
        let last = ran.err.lines().last().unwrap();
        left_out = last.strip_prefix("left out: ").unwrap().split(' ').next().unwrap().to_owned();
        file
    });
    let told = all_alike(&salvaged);
    assert_eq!(told["about"]["bulla.left_out"], left_out);
    assert_eq!(told["about"]["bulla.no_key"], "0");
    assert_eq!(told["about"]["bulla.root"], Value::Null);
}

#[test]
fn a_full_disk_is_told_and_leaves_no_file_in_any_format() {
    if !may_mount("formats::a_full_disk_is_told_and_leaves_no_file_in_any_format") {
        return;
    }
    let place = Place::new();
    place.append(&[], &incompressible(1000)).exits(exit::DONE);
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "size=1m");
    for format in FORMATS {
        let out = disk.join("out");
        let ran = bulla(arguments!["export", place.audit(), "--format", format, "-o", out]);
        let ran = ran.exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("No space left on device"), "{ran:?}");
        assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0, "{format}");
        place.run("export", &["--format", format, "-o", "/dev/full"]).exits(exit::ENVIRONMENT);
    }
    drop(mount);
}

#[test]
fn a_csv_cell_is_quoted_where_it_has_to_be() {
    let place = Place::new();
    let input = r#"{"time":"2026-01-02T03:04:05.000000006Z","operation":"a,b","location":"","subject":["x","y"],"status":0}
{"time":"2026-01-02T03:04:05Z","operation":"say \"hi\"","subject":"[z","payload_base64":"/w=="}
"#;
    place.append(&[], input.as_bytes()).exits(exit::DONE);
    let out = place.run("export", &["--format", "csv"]).exits(exit::DONE).out;
    let expected = "entry,time,operation,location,subject,controller,processor,purpose,actor,client,stream,status,\
        duration,size,flags,payload,location_base64,payload_base64,withheld\r\n\
        0,2026-01-02T03:04:05.000000006Z,\"a,b\",\"\",\"[\"\"x\"\",\"\"y\"\"]\",,,,,,,0,,,,,,,\r\n\
        1,2026-01-02T03:04:05Z,\"say \"\"hi\"\"\",,\"[\"\"[z\"\"]\",,,,,,,,,,,,,/w==,\r\n";
    assert_eq!(out, expected);
}
