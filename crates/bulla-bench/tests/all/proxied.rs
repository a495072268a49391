//! The proxy before a server, on few commands: that what is sent, what the server carried out and what the log has is counted, and that
//! a run fails where they differ.

use crate::{assert_is_xml, median};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const TABLE: [&str; 5] =
    ["async, mapped", "async, unmapped, no erasure", "before-reply, mapped", "haproxy", "direct"];

/// The command, which is another crate's: built here with this crate's profile, so that no run is against one that is missing or old.
pub(crate) fn bulla() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build().join("bulla"))
}

/// Builds what is beside the tool, the command and the libraries; the folder that all are in. A package alone would have other features of what
/// it depends on than tests of the whole workspace have, and all of that were built once more.
fn build() -> &'static Path {
    let folder = Path::new(env!("CARGO_BIN_EXE_bulla-bench")).parent().unwrap();
    let profile = match folder.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", profile, "--workspace", "--all-targets"]);
    let built =
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).arg("--target-dir").arg(folder.parent().unwrap());
    let built = built.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder
}

/// A program that is the proxy but for what these lines of a shell do first, which know it as `$bulla` and its configuration as `$2`.
fn wrapped(place: &Path, bulla: &Path, lines: &str) -> PathBuf {
    let file = place.join("wrapped");
    std::fs::write(&file, format!("#!/usr/bin/env bash\nbulla={bulla:?}\n{lines}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn run(place: &Path, bulla: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-bench"));
    command.args(arguments).args(["--rounds", "1", "--bulla"]).arg(bulla).arg("--place").arg(place);
    command.arg("--json").arg(place.join("results.json")).output().unwrap()
}

fn results(place: &Path, output: &Output) -> (Value, String) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = std::fs::read_to_string(place.join("results.json")).unwrap();
    (serde_json::from_str(&results).unwrap(), String::from_utf8(output.stdout.clone()).unwrap())
}

#[track_caller]
fn fails(output: &Output, said: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains(said), "{error}");
}

const PROXY: [&str; 9] = ["proxy", "--commands", "600", "--seconds", "0.1", "--idle", "20", "--value", "2"];

#[test]
fn commands_through_the_proxy_are_counted_and_its_bars_are_told() {
    let bulla = bulla();
    let place = tempfile::tempdir().unwrap();
    let plots = place.path().join("plots");
    let arguments = [&PROXY[..], &["--plots", plots.to_str().unwrap()]].concat();
    let (results, printed) = results(place.path(), &run(place.path(), bulla, &arguments));
    // Of SET and GET each. `redis-benchmark` looks at the configuration twice.
    for (case, commands) in [(0, 600), (1, 4800)] {
        for contender in 2..5 {
            let entries = median(&results, case, contender, "entries");
            assert_eq!(entries, f64::from(2 * commands + 2), "contender {contender} of case {case}");
            assert!(median(&results, case, contender, "disk_bytes_per_entry") > 0.0);
        }
        for contender in 0..5 {
            assert!(median(&results, case, contender, "commands_per_second") > 0.0);
        }
        assert!(median(&results, case, 4, "sync_us_median") > 0.0);
    }
    for way in ["direct", "haproxy", "proxy"] {
        let at = ["p50", "p99", "p99_9", "max"]
            .map(|percentile| median(&results, 2, 0, &format!("{way}_{percentile}_ns")));
        assert!(at.is_sorted() && at[0] > 0.0, "{way}: {at:?}");
    }
    assert!(median(&results, 3, 0, "alone_mb") > 0.0);
    for figure in ["idle_extra_mb", "value_extra_mb"] {
        median(&results, 3, 0, figure);
    }
    assert_eq!(results["claims"].as_array().unwrap().len(), 8);
    assert!(TABLE.iter().all(|way| printed.contains(way)), "{printed}");
    assert_is_xml(&plots.join("proxy-latency.svg"));
}

#[test]
fn a_run_in_which_commands_go_around_the_proxy_fails() {
    let bulla = bulla();
    let place = tempfile::tempdir().unwrap();
    // It says that it listens where the server does.
    let around = "server=$(sed -n '/upstream/,$ s/^address = \"\\(.*\\)\"/\\1/p' \"$2\")
exec \"$bulla\" \"$@\" 2> >(sed -u \"s/listening at [0-9.:]*/listening at $server/\" >&2)";
    let wrapped = wrapped(place.path(), bulla, around);
    let output = run(place.path(), &wrapped, &PROXY);
    fails(&output, "the log has 0 entries and the proxy counted 0: there have to be 1202");
}

#[test]
fn roles_of_gdprbench_leave_the_entries_that_the_client_counted() {
    let bulla = bulla();
    let place = tempfile::tempdir().unwrap();
    let arguments = ["gdprbench", "--records", "60", "--operations", "60"];
    let (results, printed) = results(place.path(), &run(place.path(), bulla, &arguments));
    for (case, role) in ["controller", "customer", "processor", "regulator"].into_iter().enumerate() {
        let commands = median(&results, case, 0, "commands");
        for contender in 1..3 {
            assert_eq!(
                median(&results, case, contender, "commands"),
                commands,
                "the same is asked on every way"
            );
            // Two commands load a record.
            assert!(median(&results, case, contender, "entries") >= commands + 120.0, "{role}");
        }
        assert!(printed.contains(role), "{printed}");
    }
}

#[test]
fn a_run_whose_entries_are_somebody_else_s_fails() {
    let bulla = bulla();
    let place = tempfile::tempdir().unwrap();
    let default = "sed -i '1i default_subject = \"usr0\"' \"$2\"\nexec \"$bulla\" \"$@\"";
    let wrapped = wrapped(place.path(), bulla, default);
    let output = run(place.path(), &wrapped, &["gdprbench", "--records", "60", "--operations", "60"]);
    fails(&output, "of usr0 the log has ");
}

#[test]
fn a_command_or_a_processor_that_is_not_there_is_said() {
    let place = tempfile::tempdir().unwrap();
    fails(&run(place.path(), Path::new("/nowhere/bulla"), &["proxy"]), "/nowhere/bulla");
    let output = run(place.path(), Path::new("/bin/sh"), &["proxy", "--cores", "900"]);
    fails(&output, "there are no processors [900] to run on");
}
