//! The second implementation of the format, `interop/bulla_reader`.

use std::path::Path;
use std::process::Command;

/// The second reader, with one of its commands: `verify`, `export` or `check`.
///
/// # Panics
///
/// Where what it needs is not installed.
#[must_use]
pub fn second_reader(command: &str) -> Command {
    let mut reader = second_readers_python();
    reader.args(["-m", "bulla_reader", command]);
    reader
}

/// The Python that the second reader is installed in, which finds it under `bulla_reader`.
///
/// # Panics
///
/// Where what it needs is not installed.
#[must_use]
pub fn second_readers_python() -> Command {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let python = workspace.join(".venv/bin/python");
    assert!(
        python.exists(),
        "{} is not there: `make test` or scripts/setup.sh installs what the second reader needs",
        python.display()
    );
    let mut command = Command::new(python);
    command.arg("-B").env("PYTHONPATH", workspace.join("interop"));
    command
}
