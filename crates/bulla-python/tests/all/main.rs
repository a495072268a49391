//! The package as Python has it: its tests are Python's (`tests/*.py`), run against what this workspace has built just now; and its
//! wheel, built and installed as a user would.
#![allow(clippy::disallowed_methods, reason = "tests run interpreters and look at files")]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn workspace() -> PathBuf {
    manifest().join("../..").canonicalize().unwrap()
}

/// Where cargo puts the libraries that these tests depend on, of which this package's is one.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The interpreter that `make setup` installs packages for.
fn python() -> Command {
    let mut command = Command::new(workspace().join(".venv/bin/python"));
    command.arg("-B").env_remove("PYTHONPATH");
    command
}

fn ran(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: `make setup` installs it"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text.into_owned()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == "__pycache__" => {}
            true => copy(&entry.path(), &place),
            false => drop(std::fs::copy(entry.path(), place).unwrap()),
        }
    }
}

/// The package, with the library that was built beside these tests.
fn package() -> &'static Path {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let place = tempfile::tempdir().unwrap();
        let package = place.path().join("bulla_audit");
        copy(&manifest().join("python/bulla_audit"), &package);
        // A copy: whoever builds the package meanwhile, as the test of the wheel does, may put another one in its place.
        std::fs::copy(libraries().join("libbulla_python.so"), package.join("_native.abi3.so")).unwrap();
        place
    });
    place.path()
}

/// Runs the tests in a file of Python.
fn tests_in(name: &str) {
    let mut command = python();
    let tests = manifest().join("tests");
    command.args(["-m", "unittest", "-v", name]).current_dir(&tests).env("PYTHONPATH", package());
    let told = ran(&mut command);
    // A file without tests passes, too.
    let ran = told.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|ran| ran > 0), "{told}");
    assert!(!told.contains("skipped"), "{told}");
}

macro_rules! files {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                tests_in(stringify!($name));
            }
        )+

        #[test]
        fn every_file_of_tests_is_run() {
            let files = std::fs::read_dir(manifest().join("tests")).unwrap().map(|entry| entry.unwrap().path());
            let tests = files.filter_map(|path| {
                let name = path.file_name()?.to_str()?.strip_suffix(".py")?;
                name.starts_with("test_").then(|| name.to_owned())
            });
            assert_eq!(tests.collect::<BTreeSet<_>>(), BTreeSet::from([$(stringify!($name).to_owned()),+]));
        }
    };
}

files!(
    test_arrow,
    test_asgi,
    test_asyncio,
    test_batches,
    test_context,
    test_django,
    test_gunicorn,
    test_handler,
    test_let_go,
    test_log,
    test_processes,
    test_sqlalchemy,
    test_structlog,
    test_types,
);

/// Python makes no log with rules for fields.
#[test]
fn whoever_asks_for_what_a_rule_leaves_of_no_value_is_warned() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    bulla::Init::default().field("client", "truncate-ip:24/48").create(&directory).unwrap();
    let program = r#"
import sys, warnings
import bulla_audit

with bulla_audit.Log(sys.argv[1]) as log:
    log.producer().append("read", client="192.0.2.7")
reader = bulla_audit.Reader(sys.argv[1])

def asked(client):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = len(list(reader.query(client=client)))
    assert all(issubclass(warning.category, bulla_audit.QueryWarning) for warning in caught), caught
    return found, [str(warning.message) for warning in caught]

found, told = asked("192.0.2.7")
assert found == 0 and len(told) == 1 and told[0].endswith("filter for 192.0.2.0"), (found, told)
assert asked("192.0.2.0") == (1, []), asked("192.0.2.0")
"#;
    ran(python().args(["-c", program]).arg(&directory).env("PYTHONPATH", package()));
}

/// A program in a document, between the fences of its language.
fn program_in(document: &str) -> String {
    let text = std::fs::read_to_string(workspace().join(document)).unwrap();
    text.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

#[test]
fn the_wheel_installs_into_a_clean_environment_and_works_there() {
    let place = tempfile::tempdir().unwrap();
    let wheels = place.path().join("wheels");
    let mut build = Command::new(workspace().join(".venv/bin/maturin"));
    build
        .args(["build", "--quiet", "--profile", "dev", "--manifest-path"])
        .arg(manifest().join("Cargo.toml"));
    ran(build.arg("--out").arg(&wheels).arg("--interpreter").arg(workspace().join(".venv/bin/python")));
    let wheel = std::fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    let name = wheel.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("bulla_audit-") && name.contains("-cp310-abi3-"), "{name}");

    let clean = place.path().join("clean");
    ran(python().args(["-m", "venv", "--without-pip"]).arg(&clean));
    let interpreter = clean.join("bin/python");
    let mut install = python();
    install.args(["-m", "pip", "--python"]).arg(&interpreter);
    ran(install.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(&wheel));
    for (document, told) in [("crates/bulla-python/README.md", "1 entry proven\n"), ("README.md", "")] {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("program.py"), program_in(document)).unwrap();
        if document == "README.md" {
            ran(Command::new(&interpreter)
                .current_dir(place.path())
                .args(["-c", "import bulla_audit; bulla_audit.create('audit')"]));
        }
        let mut program = Command::new(&interpreter);
        assert_eq!(ran(program.arg("program.py").current_dir(place.path())), told, "{document}");
    }
    let mut demo = Command::new(&interpreter);
    let told = ran(demo.arg(manifest().join("demo/demo.py")).current_dir(place.path()));
    assert!(told.ends_with("100000 entries went in, 100000 came back\n"), "{told}");
}
