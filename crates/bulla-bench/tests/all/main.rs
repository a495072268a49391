//! Every command, on few entries: that there are figures, and those of one run agree with each other. Nothing here looks
//! at how fast anything was.

#![allow(clippy::unwrap_used)]

mod languages;
mod proxied;

use bulla_workload::Workload;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs a command of the tool on few entries; its results, and what it printed.
fn bench(arguments: &[&str]) -> (Value, String) {
    let place = tempfile::tempdir().unwrap();
    bench_in(&place, arguments)
}

fn bench_in(place: &TempDir, arguments: &[&str]) -> (Value, String) {
    let json = place.path().join("results.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-bench"));
    command.args(arguments).args(["--entries", "2000", "--rounds", "1", "--memory", "128"]);
    command.arg("--json").arg(&json).arg("--place").arg(place.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let results = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let left = std::fs::read_dir(place.path()).unwrap().filter(|item| item.as_ref().unwrap().path().is_dir());
    assert_eq!(left.count(), 0, "what was measured is gone");
    (results, String::from_utf8(output.stdout).unwrap())
}

/// The median of a figure of a contender of a case.
#[track_caller]
fn median(results: &Value, case: usize, contender: usize, figure: &str) -> f64 {
    let value = &results["cases"][case]["contenders"][contender]["summary"][figure]["median"];
    value.as_f64().unwrap_or_else(|| panic!("{figure} of contender {contender} of case {case}"))
}

#[track_caller]
fn all_positive(results: &Value, contender: usize, figures: &[&str]) {
    for figure in figures {
        assert!(median(results, 0, contender, figure) > 0.0, "{figure}");
    }
}

#[test]
fn workloads_are_appended_by_bulla_and_by_the_conventional_pipeline() {
    for workload in ["gdpr", "gdpr-50", "json", "tenants", "web", "web-subjects", "web-adversarial"] {
        let entropy =
            Workload::ALL.into_iter().find(|known| known.name() == workload).unwrap().entropy_per_entry();
        let (results, table) = bench(&[workload, "--baseline"]);
        for contender in 0..2 {
            all_positive(
                &results,
                contender,
                &[
                    "entries_per_second",
                    "logical_gib_per_second",
                    "disk_bytes_per_entry",
                    "logical_bytes_per_entry",
                    "text_bytes_per_entry",
                    "bound_bytes_per_entry",
                    "memory_mib",
                    "input_mib",
                    "cpu_ns_per_entry",
                    "feed_ns_per_entry",
                ],
            );
            assert_eq!(median(&results, 0, contender, "entries"), 2000.0);
            let disk = median(&results, 0, contender, "disk_bytes_per_entry");
            assert!(disk > entropy, "{workload}: {disk}");
            assert_eq!(
                median(&results, 0, 0, "logical_bytes_per_entry"),
                median(&results, 0, contender, "logical_bytes_per_entry"),
                "both are given the same"
            );
        }
        all_positive(
            &results,
            0,
            &["verified_entries_per_second", "blocks", "units", "files", "integrity_share"],
        );
        let has_people = !matches!(workload, "web" | "web-adversarial");
        let of_vault = &results["cases"][0]["contenders"][0]["summary"]["vault_bytes_per_person"];
        assert_eq!(of_vault.is_object(), has_people, "{workload}");
        all_positive(
            &results,
            0,
            &["stage_ns.encode", "stage_ns.hash", "stage_ns.encrypt", "stage_ns.commit", "syncs"],
        );
        all_positive(
            &results,
            1,
            &["stage_ns.compress", "stage_ns.encrypt", "stage_ns.encode", "stage_ns.write"],
        );
        assert!(table.contains("conventional") && table.contains(workload), "{table}");
    }
}

#[test]
fn options_reach_what_is_run() {
    let more = [
        "--erasure",
        "off",
        "--durability",
        "os",
        "--hash",
        "sha3-256",
        "--producers",
        "3",
        "--writers",
        "1",
    ];
    let (results, _) = bench(
        &[
            &["web-subjects", "--in-flight", "--profile", "fast", "--compression", "3", "--seed", "9"],
            &more[..],
        ]
        .concat(),
    );
    let knobs = &results["cases"][0]["contenders"][0]["trial"]["knobs"];
    for (name, value) in [("erasure", "off"), ("durability", "os"), ("hash", "sha3-256"), ("profile", "fast")]
    {
        assert_eq!(knobs[name], value);
    }
    assert_eq!((knobs["producers"].as_u64(), knobs["seed"].as_u64()), (Some(3), Some(9)));
    assert_eq!(median(&results, 0, 0, "input_mib"), 0.0);
    // Without erasure every entry is a unit; three producers share the entries.
    assert_eq!(median(&results, 0, 0, "units"), 2001.0);
    let (erasable, _) = bench(&["web-subjects"]);
    assert!(median(&erasable, 0, 0, "units") < 2000.0);
}

#[test]
fn the_lines_of_the_integrity_benchmark_are_appended_and_proven() {
    let (results, table) = bench(&["integrity", "--baseline"]);
    for contender in 0..4 {
        all_positive(&results, contender, &["append_ms_per_log", "disk_bytes_per_entry", "cpu_ns_per_entry"]);
    }
    all_positive(
        &results,
        0,
        &["verify_single_ms_per_log", "prove_together_ms_per_log", "proof_single_bytes_per_log"],
    );
    let disk = |contender| median(&results, 0, contender, "disk_bytes_per_entry");
    assert!(disk(1) < disk(2) && disk(2) < disk(3), "a hash for each hundred takes less than a tree");
    for contender in [2, 3] {
        all_positive(&results, contender, &["verify_ms_per_log"]);
    }
    assert!(table.contains("published: A 0.02 ms"));
}

#[test]
fn entries_of_two_sizes_are_appended_verified_and_exported() {
    for erasure in ["on", "off"] {
        let (results, table) = bench(&["sizes", "--erasure", erasure]);
        for (case, bytes) in [(0, 80.0..130.0), (1, 4096.0..4400.0)] {
            assert!(bytes.contains(&median(&results, case, 0, "logical_bytes_per_entry")));
            for figure in [
                "entries_per_second",
                "logical_gib_per_second",
                "disk_bytes_per_entry",
                "verified_entries_per_second",
                "exported_entries_per_second",
                "memory_mib",
            ] {
                assert!(median(&results, case, 0, figure) > 0.0, "{figure} of case {case}");
            }
        }
        assert!(table.contains("100 B") && table.contains("exported_entries_per_second"), "{table}");
    }
}

#[test]
fn latencies_are_told_by_percentile() {
    let (results, _) = bench(&["latency", "--rate", "100000"]);
    for case in 0..2 {
        let figure = |name: &str| median(&results, case, 0, name);
        for kind in ["append", "copy", "copy_beside"] {
            let at =
                ["p50", "p99", "p99_9", "max"].map(|percentile| figure(&format!("{kind}_{percentile}_ns")));
            assert!(at.is_sorted() && at[0] > 0.0, "{kind}: {at:?}");
        }
        assert!(figure("busy_threads") >= 1.0 && figure("log_processors") >= 0.0);
        assert!(figure("timer_ns") > 0.0 && figure("rate_per_second") == 100_000.0);
        assert!(results["cases"][case]["contenders"][0]["rounds"][0]["latencies"]["append"].is_array());
    }
    assert!((80.0..130.0).contains(&median(&results, 0, 0, "row_bytes")));
    assert!((4096.0..4400.0).contains(&median(&results, 1, 0, "row_bytes")));
}

#[test]
fn what_is_left_has_its_figures() {
    let (slow, _) = bench(&["slow", "--rate", "20000"]);
    all_positive(&slow, 0, &["disk_bytes_per_entry", "entries_per_block", "body_bytes_per_entry", "blocks"]);
    let (erase, _) = bench(&["erase"]);
    all_positive(&erase, 0, &["erasures", "erasure_ms_median", "erasure_ms_most"]);
    let (limits, table) = bench(&["limits"]);
    for limit in ["memcpy", "aes_256_gcm", "sha_256", "zstd_1"] {
        all_positive(&limits, 0, &[&format!("{limit}_gb_per_second"), &format!("{limit}_ns_per_entry")]);
    }
    assert!(table.contains("limit: AES-256-GCM"), "{table}");
}

#[test]
fn an_access_log_is_set_against_zstd() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("access.log");
    let line = |number: u32| {
        format!(
            "192.0.2.{} - - [17/May/2015:10:05:03 +0000] \"GET /{number} HTTP/1.1\" 200 {number} \"-\" \"curl/8\"\n",
            number % 200
        )
    };
    std::fs::write(&file, (0..3000).map(line).collect::<String>() + "not a line of it\n").unwrap();
    let (results, _) = bench_in(&place, &["access", file.to_str().unwrap()]);
    assert_eq!((median(&results, 0, 0, "entries"), median(&results, 0, 0, "refused")), (3000.0, 1.0));
    all_positive(&results, 0, &["exported_entries_per_second", "body_bytes_per_entry", "blocks"]);
    assert_eq!(median(&results, 0, 1, "entries"), 3000.0, "in the profile `max`, too");
    let [three, nineteen] =
        [3, 19].map(|level| median(&results, 0, 0, &format!("zstd_{level}_bytes_per_entry")));
    let text = median(&results, 0, 0, "text_bytes_per_entry");
    assert!(0.0 < nineteen && 0.0 < three && nineteen.max(three) < text, "{nineteen} {three} {text}");
}

#[test]
fn all_of_it_is_printed_plotted_and_printed_again_from_its_file() {
    let place = tempfile::tempdir().unwrap();
    // Kept out of the place whose directories are counted.
    let elsewhere = tempfile::tempdir().unwrap();
    let plots = elsewhere.path().join("plots");
    proxied::bulla();
    let (results, printed) =
        bench_in(&place, &["all", "--rate", "20000", "--plots", plots.to_str().unwrap()]);
    let cases = results["cases"].as_array().unwrap();
    let by_command =
        cases.iter().find(|case| case["name"] == "tenants, 100,000 entries, the command").unwrap();
    let figures = &by_command["contenders"][0]["summary"];
    assert_eq!(figures["entries"]["median"], 2000.0);
    for figure in
        ["disk_bytes_per_entry", "gzip_1_bytes_per_entry", "text_bytes_per_entry", "vault_bytes_per_person"]
    {
        assert!(figures[figure]["median"].as_f64().unwrap() > 0.0, "{figure}");
    }
    let claims = results["claims"].as_array().unwrap();
    assert!(claims.len() >= 20, "{claims:?}");
    assert!(results["machine"]["processors"].as_u64().unwrap() > 0 && results["command"].is_string());
    for published in ["thesis, 16+16 threads", "Loggr, 6 callers", "to reach"] {
        assert!(printed.contains(published), "{printed}");
    }
    for plot in ["throughput", "bytes", "memory", "stages", "latency"] {
        assert_is_xml(&plots.join(format!("{plot}.svg")));
    }
    let readme = elsewhere.path().join("README.md");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"), &readme).unwrap();
    let again = Command::new(env!("CARGO_BIN_EXE_bulla-bench"))
        .arg("report")
        .arg(place.path().join("results.json"))
        .arg("--readme")
        .arg(&readme)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), printed);
    let table = std::fs::read_to_string(&readme).unwrap();
    for row in ["two words", "fifty words", "`json`", "`tenants`", "by the command", "one producer", "Loggr"]
    {
        assert!(table.contains(row), "{row} in {table}");
    }
}

#[track_caller]
fn assert_is_xml(path: &Path) {
    const PARSE: &str = "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])";
    let parsed = Command::new("python3").args(["-c", PARSE]).arg(path).output().unwrap();
    assert!(parsed.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&parsed.stderr));
    assert!(
        std::fs::read_to_string(path).unwrap().matches("<rect").count() > 1
            || path.to_str().unwrap().ends_with("latency.svg")
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    let fails = |arguments: &[&str], code: i32, said: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_bulla-bench")).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(said), "{error}");
    };
    fails(&["web", "--seconds", "1", "--entries", "1"], 2, "cannot be used with");
    fails(&["web", "--producers", "0"], 2, "--producers");
    fails(&["access", "/nowhere/access.log", "--rounds", "1"], 4, "/nowhere/access.log");
    fails(&["report", "/nowhere/results.json"], 4, "/nowhere/results.json");
    fails(&["web", "--json", "/nowhere/results.json"], 4, "/nowhere/results.json");
}
