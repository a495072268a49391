//! A test in a process of its own, where no other test has a thread, and limits and traces are of it alone.

use std::process::Command;

/// The environment variable that tells a test that it runs in a process of its own.
pub const ALONE: &str = "BULLA_TEST_ALONE";

/// Whether this process was started by [`alone`]: then the test does its work, and otherwise starts itself so.
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// The command that runs one test of this binary, by its full name, as the last words of `command`.
///
/// # Panics
/// Where nobody knows which binary this is.
pub fn alone(mut command: Command, test: &str) -> Command {
    command.arg(std::env::current_exe().expect("this binary has a path"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    command
}
