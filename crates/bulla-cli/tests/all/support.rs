//! Running the binary, and places to run it in.

use crate::json_members;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The exit codes of the contract.
pub(crate) mod exit {
    pub(crate) const DONE: i32 = 0;
    pub(crate) const VIOLATION: i32 = 1;
    pub(crate) const USAGE: i32 = 2;
    pub(crate) const SOME_REFUSED: i32 = 3;
    pub(crate) const ENVIRONMENT: i32 = 4;
    pub(crate) const REFUSED: i32 = 5;
    pub(crate) const INTERRUPTED: i32 = 130;
}

/// How a run of the command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "one object: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output
                .status
                .code()
                .unwrap_or_else(|| panic!("killed, perhaps for want of an end: {output:?}")),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulla"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same, started by another program that becomes it.
pub(crate) fn command_under(words: &[&str], arguments: &[OsString]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_bulla")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How long a command may take that a test waits for.
const DEADLINE: Timespec = Timespec { tv_sec: 240, tv_nsec: 0 };

/// How a command ended, and what it printed. One that does not end in time is killed, which [`Ran`] takes ill.
pub(crate) fn finish(child: Child) -> Ran {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&DEADLINE)) == Ok(0) {
                pidfd_send_signal(&process, Signal::KILL).unwrap();
            }
        });
        child.wait_with_output().unwrap().into()
    })
}

/// Runs it; what it prints in JSON has to be what the document of that says.
pub(crate) fn bulla(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    let arguments = arguments.into_iter().collect::<Vec<_>>();
    let ran = finish(command(&arguments).spawn().unwrap());
    json_members::check(&arguments, &ran.out);
    ran
}

/// Runs it with `input` as standard input.
pub(crate) fn bulla_with(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, input: &[u8]) -> Ran {
    let arguments = arguments.into_iter().collect::<Vec<_>>();
    let mut child = command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let ran = std::thread::scope(|scope| {
        // A command that ends before it has read everything is for the caller to judge.
        scope.spawn(move || drop(stdin.write_all(input)));
        finish(child)
    });
    json_members::check(&arguments, &ran.out);
    ran
}

/// Arguments of whatever mixture of strings and paths.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { vec![$(std::ffi::OsString::from(&$argument)),*] };
}
pub(crate) use arguments;

/// A temporary directory with a log `audit` in it.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    /// Without a log yet.
    pub(crate) fn empty() -> Self {
        Place { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn new() -> Self {
        let place = Place::empty();
        bulla(arguments!["init", place.audit()]).exits(exit::DONE);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.path("audit")
    }

    pub(crate) fn keys(&self, name: &str) -> PathBuf {
        self.path("audit.keys").join(name)
    }

    /// Runs `SUBCOMMAND audit` and what follows.
    pub(crate) fn run(&self, subcommand: &str, more: &[&str]) -> Ran {
        bulla(self.arguments(subcommand, more))
    }

    /// Has entries wait for company for as long as the input goes on: what one `append` takes is in one block, however slowly it comes.
    pub(crate) fn keep_together(self) -> Self {
        self.run("config", &["set", "linger", "1 h"]).exits(exit::DONE);
        self
    }

    pub(crate) fn append(&self, more: &[&str], input: &[u8]) -> Ran {
        bulla_with(self.arguments("append", more), input)
    }

    pub(crate) fn arguments(&self, subcommand: &str, more: &[&str]) -> Vec<OsString> {
        let mut arguments = arguments![subcommand, self.audit()];
        arguments.extend(more.iter().map(OsString::from));
        arguments
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// Every entry, as `export` prints it.
    pub(crate) fn entries(&self) -> Vec<Value> {
        parse_lines(&self.run("export", &[]).exits(exit::DONE).out)
    }

    pub(crate) fn verifier_key(&self) -> String {
        self.info("vkey").as_str().unwrap().to_owned()
    }

    pub(crate) fn info(&self, name: &str) -> Value {
        self.run("info", &["--json"]).exits(exit::DONE).json()[name].take()
    }

    /// The log's only segment.
    pub(crate) fn segment(&self) -> PathBuf {
        let mut segments = std::fs::read_dir(self.audit().join("segments")).unwrap();
        let segment = segments.next().unwrap().unwrap().path();
        assert!(segments.next().is_none());
        segment
    }

    /// Changes the byte of a segment at the fraction `at` of its length.
    pub(crate) fn damage(&self, at: f64) {
        let segment = self.segment();
        let mut bytes = std::fs::read(&segment).unwrap();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let position = (bytes.len() as f64 * at) as usize;
        bytes[position] ^= 0x40;
        std::fs::write(&segment, bytes).unwrap();
    }
}

pub(crate) fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

pub(crate) fn parse_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// So many entries, as JSON lines: `location` says which is which.
pub(crate) fn lines(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers
        .map(|number| {
            format!(
                "{{\"operation\":\"read\",\"location\":\"key/{number}\",\"subject\":\"s{}\"}}\n",
                number % 10
            )
        })
        .collect::<String>()
        .into_bytes()
}

/// So many entries that take their length on disk, 8 KiB each, whatever compresses them.
pub(crate) fn incompressible(count: u32) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let line = |_| {
        let payload = (0..1024).map(|_| format!("{:016x}", random())).collect::<String>();
        format!("{{\"operation\":\"write\",\"payload\":\"{payload}\"}}\n")
    };
    (0..count).map(line).collect::<String>().into_bytes()
}

/// Waits for what another process brings about.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

/// Says that something was not tested, where the harness does not keep it to itself.
pub(crate) fn not_tested(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "not tested: {what}: {why}");
}

/// Tells a test that it may mount file systems.
const MOUNTS: &str = "BULLA_TEST_MOUNTS";

/// Whether this is a process that may mount file systems, which nobody else sees. Where it is not, runs the test of that
/// name in one, which takes root or user namespaces.
pub(crate) fn may_mount(test: &str) -> bool {
    if std::env::var_os(MOUNTS).is_some() {
        return true;
    }
    let place = tempfile::tempdir().unwrap();
    let can = |words: &&&[&str]| {
        let script = "mount -t tmpfs tmpfs \"$0\"";
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["sh", "-c", script]).arg(place.path());
        command.output().is_ok_and(|output| output.status.success())
    };
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--mount", "--user", "--map-root-user"]];
    let Some(words) = ways.iter().find(can) else {
        not_tested(test, "it mounts file systems, which takes root or user namespaces");
        return false;
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(MOUNTS, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// A small file system of its own, gone when dropped.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// In a test that [`may_mount`].
    pub(crate) fn new(path: &Path, options: &str) -> Self {
        assert!(std::env::var_os(MOUNTS).is_some(), "others would see it");
        std::fs::create_dir_all(path).unwrap();
        mount(&["-t", "tmpfs", "-o", options, "tmpfs"], path);
        Mount(path.to_owned())
    }

    /// The mount, not the file system: what that was mounted with names users whom a namespace may not know.
    pub(crate) fn make_read_only(&self) {
        mount(&["-o", "remount,bind,ro"], &self.0);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str], path: &Path) {
    let output = Command::new("mount").args(arguments).arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Copies a directory to one that does not exist yet.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}
