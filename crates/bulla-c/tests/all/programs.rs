//! Programs in C and C++, with gcc and clang, under address and undefined-behaviour sanitizers, and one under valgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where cargo puts the libraries that these tests are built beside.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn ran(command: &mut Command) -> Output {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: `make setup` installs it"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    output
}

/// Compiles a program, and gives its path.
fn compile(compiler: &str, source: &Path, options: &[&str], place: &Path) -> PathBuf {
    let program = place.join(compiler.to_owned() + source.file_stem().unwrap().to_str().unwrap());
    let mut command = Command::new(compiler);
    command.args([
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Wshadow",
        "-Wconversion",
        "-Werror",
        "-pedantic",
        "-pthread",
    ]);
    command.args(options);
    command.arg("-I").arg(manifest().join("include")).arg(source).arg("-o").arg(&program);
    command.arg("-L").arg(libraries()).arg("-lbulla_c");
    ran(&mut command);
    program
}

fn run(program: &Path, arguments: &[&Path]) -> String {
    let mut command = run_in(program.parent().unwrap(), program);
    String::from_utf8(ran(command.args(arguments)).stdout).unwrap()
}

/// What runs a program in a place.
fn run_in(place: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    // The library is found by the name under which it is installed.
    let installed = place.join("libbulla.so.1");
    if !installed.exists() {
        std::os::unix::fs::symlink(libraries().join("libbulla_c.so"), &installed).unwrap();
    }
    command.current_dir(place).env("LD_LIBRARY_PATH", place).env("UBSAN_OPTIONS", "print_stacktrace=1");
    command
}

#[test]
fn every_misuse_is_refused() {
    for compiler in ["gcc", "clang"] {
        let place = tempfile::tempdir().unwrap();
        let source = manifest().join("tests/c/misuse.c");
        let sanitized =
            ["-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GNU_SOURCE"];
        let program = compile(compiler, &source, &sanitized, place.path());
        let told = run(&program, &[&place.path().join("audit"), &place.path().join("audit.sock")]);
        assert_eq!(told, "every misuse was refused\n", "{compiler}");
    }
}

#[test]
fn a_forked_child_waits_for_nothing_of_its_parents_threads() {
    let place = tempfile::tempdir().unwrap();
    let options = ["-std=c11", "-D_GNU_SOURCE"];
    let program = compile("gcc", &manifest().join("tests/c/forks.c"), &options, place.path());
    let told = run(&program, &[&place.path().join("audit"), &place.path().join("audit.sock")]);
    assert_eq!(told, "300 children appended\n");
}

#[test]
fn what_is_told_of_a_receipt_closes_the_log_and_an_exit_behind_it_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let options = ["-std=c11", "-D_GNU_SOURCE"];
    let program = compile("gcc", &manifest().join("tests/c/closing.c"), &options, place.path());
    let directory = place.path().join("audit");
    run(&program, &[&directory]);
    let log = bulla::Log::open(&directory, bulla::Options::default()).unwrap();
    assert_eq!(log.recovery(), bulla::Recovery::default(), "it was closed");
    log.close().unwrap();
    let report = bulla::Verify::open(&directory).unwrap().run().unwrap();
    assert!(report.ok && report.entries == 10 + 1 + 200_000, "{report:?}");
}

/// Compiles the program in the README, and makes the log that it opens.
fn of_the_readme(place: &Path) -> PathBuf {
    let readme = std::fs::read_to_string(manifest().join("../../README.md")).unwrap();
    let program = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let source = place.join("program.c");
    std::fs::write(&source, program).unwrap();
    bulla::Init::default().create(place.join("audit")).unwrap();
    compile("clang", &source, &["-std=c11"], place)
}

#[test]
fn the_program_in_the_readme_does_what_it_says() {
    let place = tempfile::tempdir().unwrap();
    let program = of_the_readme(place.path());
    ran(&mut run_in(place.path(), &program));
    let directory = place.path().join("audit");
    let keys = bulla::default_keys(&directory);
    let reader = bulla::Reader::open_with_keys(&directory, keys).unwrap();
    let query = bulla::Query::new().subject("user_42").purpose("fulfilling a request");
    assert_eq!(reader.for_each(&query, |_, _| Ok(())).unwrap().entries, 1);
}

/// valgrind ends what asks the processor for what it does not know; it finds what is read or written outside of what was allocated, and
/// what is lost. Of values that were never set it is not asked: code that is little optimised, as here, copies and compares such halves of values
/// whose other half decides.
#[test]
fn a_program_runs_under_valgrind_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let program = of_the_readme(place.path());
    let mut command = run_in(place.path(), Path::new("valgrind"));
    command.args(["--quiet", "--error-exitcode=9", "--undef-value-errors=no"]);
    command.args(["--leak-check=full", "--errors-for-leak-kinds=definite,indirect"]).arg(&program);
    let told = ran(&mut command);
    assert_eq!(String::from_utf8_lossy(&told.stdout), "");
    let report = bulla::Verify::open(place.path().join("audit")).unwrap().run().unwrap();
    assert!(report.ok && report.entries == 1, "{report:?}");
}

#[test]
fn the_demonstration_does_what_it_says() {
    let place = tempfile::tempdir().unwrap();
    let program = compile("gcc", &manifest().join("demo/demo.c"), &["-std=c11"], place.path());
    let told = run(&program, &[&place.path().join("audit")]);
    let lines = told.lines().collect::<Vec<_>>();
    assert!(lines[0].starts_with("verify with: bulla verify "), "{told}");
    assert_eq!(lines[1], "entry 42: read user_42/email");
    assert!(told.contains("\n100 entries of user_42\n"), "{told}");
    assert!(told.contains(" entries, signed by the log\n"), "{told}");
    assert_eq!(lines.last(), Some(&"100000 entries went in, 100000 came back"));
}

#[test]
fn the_layers_for_cpp_hold() {
    for compiler in ["g++", "clang++"] {
        for source in ["modern.cpp", "thesis.cpp"] {
            let place = tempfile::tempdir().unwrap();
            let sanitized = ["-std=c++17", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
            let program =
                compile(compiler, &manifest().join("tests/cpp").join(source), &sanitized, place.path());
            let told = run(&program, &[&place.path().join("audit"), &place.path().join("audit.sock")]);
            assert_eq!(told, "all of it holds\n", "{compiler} {source}");
        }
    }
}

#[test]
fn a_log_in_cpp_is_closed_while_other_threads_use_it() {
    for compiler in ["g++", "clang++"] {
        let place = tempfile::tempdir().unwrap();
        let sanitized = ["-std=c++17", "-fsanitize=thread"];
        let program = compile(compiler, &manifest().join("tests/cpp/threads.cpp"), &sanitized, place.path());
        // The library is built without it, so what that does is not looked at: how its threads wait for each other would not be seen.
        let suppressed = place.path().join("suppressed");
        std::fs::write(&suppressed, "called_from_lib:libbulla\n").unwrap();
        let mut command = run_in(place.path(), &program);
        command.env("TSAN_OPTIONS", format!("suppressions={}", suppressed.display()));
        let told = ran(command.arg(place.path().join("audit"))).stdout;
        assert_eq!(String::from_utf8(told).unwrap(), "2 were refused\n", "{compiler}");
    }
}

#[test]
fn the_demonstration_in_cpp_does_what_it_says() {
    let place = tempfile::tempdir().unwrap();
    let program = compile("g++", &manifest().join("demo/demo.cpp"), &["-std=c++17"], place.path());
    let told = run(&program, &[&place.path().join("audit")]);
    assert!(
        told.contains("\n100 entries of user_42\n") && told.contains(" entries, signed by the log\n"),
        "{told}"
    );
    assert_eq!(told.lines().last(), Some("100000 entries went in, 100000 came back"));
}

#[test]
fn nothing_but_the_interface_is_exported() {
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only", "--format=posix"]).arg(libraries().join("libbulla_c.so"));
    let symbols = String::from_utf8(ran(&mut command).stdout).unwrap();
    let names = symbols.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>();
    let header = std::fs::read_to_string(manifest().join("include/bulla.h")).unwrap();
    for name in &names {
        assert!(
            header.contains(&format!(" {name}(")) || header.contains(&format!("*{name}(")),
            "{name} is in no header"
        );
    }
    assert!(names.len() >= 25, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("bulla_")), "{names:?}");
}
