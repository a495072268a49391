//! The second reader, `interop/bulla_reader`: what its own tests show of it, and what both say of logs that are changed at
//! random. `make interop` has as many rounds of that as wanted. Beside it, other people's tools.

use crate::support::workspace;
use bulla_testkit::second_readers_python;

/// Runs a script of `interop/` on the command, and fails as it does.
fn run(script: &str, arguments: &[&str]) {
    let script = workspace().join("interop").join(script);
    let ran = second_readers_python().arg(script).args(arguments).output().unwrap();
    let told = [ran.stdout, ran.stderr].map(|out| String::from_utf8_lossy(&out).into_owned()).concat();
    assert!(ran.status.success(), "{told}");
}

#[test]
fn the_second_reader_reads_every_vector() {
    run("test_vectors.py", &[]);
}

#[test]
fn both_readers_read_logs_of_every_kind_alike() {
    run("test_logs.py", &[env!("CARGO_BIN_EXE_bulla")]);
}

#[test]
fn both_readers_refuse_the_same_of_what_is_changed_at_random() {
    run("fuzz.py", &[env!("CARGO_BIN_EXE_bulla"), "--rounds", "60"]);
}

/// Those that take seconds; `make interop-tools` has all of them.
#[test]
fn other_peoples_tools_take_logs_as_they_are_and_no_others() {
    let command = env!("CARGO_BIN_EXE_bulla");
    run(
        "tools/run.py",
        &[command, "age", "tlog_scales", "aics_witness", "ml_dsa", "witness_policy", "witness_client"],
    );
}
