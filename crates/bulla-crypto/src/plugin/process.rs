//! A plugin as a process: its pipes, its time limit, its end.
//!
//! Invariants: every wait has the deadline, so a plugin that hangs costs the limit and no more; what it writes is
//! bounded; when this is dropped the process is gone, and unless it ended in order so is all that it started in its
//! group.
#![expect(clippy::disallowed_methods, reason = "the one module that starts programs, which it finds in PATH")]

use super::plain;
use crate::clock::Deadline;
use bulla_store::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use zeroize::{Zeroize, Zeroizing};

/// The most that a plugin may write in one run, in bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// The longest line of a message, in bytes.
const MAX_LINE: usize = 16 << 10;
/// How much of what it says on standard error an error repeats.
const MAX_COMPLAINT: usize = 400;
/// How long a plugin that has done its work may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// A running plugin.
pub(super) struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    limit: Duration,
    deadline: Deadline,
    /// What was read of its output and not yet taken; never moved, for it may hold a key.
    pending: Zeroizing<Vec<u8>>,
    read: usize,
    complaint: Vec<u8>,
    ended: bool,
}

impl Process {
    /// Starts `age-plugin-NAME` from `PATH`.
    ///
    /// # Errors
    /// `Unavailable` where there is none, or it does not start.
    pub(super) fn start(name: &str, machine: &str, limit: Duration) -> Result<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = find(&path, name).ok_or_else(|| {
            Error::unavailable(format!(
                "there is no age-plugin-{name} in PATH: install it, or put its directory into PATH"
            ))
        })?;
        let failed = |error| Error::io(format!("starting {}", program.display()), error);
        let mut child = Command::new(&program)
            .arg(format!("--age-plugin={machine}"))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that what it starts can be ended with it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Process {
            name: name.to_owned(),
            child,
            stdin,
            stdout,
            stderr,
            limit,
            deadline: Deadline::after(limit),
            pending: Zeroizing::new(Vec::with_capacity(MAX_LINE)),
            read: 0,
            complaint: Vec::new(),
            ended: false,
        };
        process.make_non_blocking().map_err(failed)?;
        Ok(process)
    }

    fn make_non_blocking(&self) -> io::Result<()> {
        let pipes = [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// `Unavailable` where the plugin hangs, or has ended.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            self.step(&mut bytes)?;
        }
        Ok(())
    }

    /// The next line that the plugin writes, without its end.
    ///
    /// # Errors
    /// `Unavailable` where the plugin hangs, has ended, or writes too much.
    pub(super) fn line(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line = Zeroizing::new(self.pending[..end].to_vec());
                let rest = self.pending.len() - end - 1;
                self.pending.copy_within(end + 1.., 0);
                self.pending[rest..].zeroize();
                self.pending.truncate(rest);
                return Ok(line);
            }
            if self.pending.len() == MAX_LINE {
                return Err(self.failed(&format!("wrote a line of over {MAX_LINE} bytes")));
            }
            if self.stdout.is_none() {
                return Err(self.failed("ended before it had answered"));
            }
            self.step(&mut &[][..])?;
        }
    }

    /// Runs `ask`, which waits for a person. That time does not count against the plugin's limit.
    pub(super) fn while_asking<T>(&mut self, ask: impl FnOnce() -> T) -> T {
        let left = self.deadline.left();
        let answer = ask();
        self.deadline = Deadline::after(left);
        answer
    }

    /// An error of this plugin's, with what it said on standard error.
    pub(super) fn failed(&self, what: &str) -> Error {
        let complaint = plain(&self.complaint);
        let said = if complaint.is_empty() { String::new() } else { format!("; it said: {complaint}") };
        Error::unavailable(format!("age-plugin-{} {what}{said}", self.name))
    }

    /// Lets the plugin end, now that it has nothing more to do.
    pub(super) fn end(mut self) {
        drop(self.stdin.take());
        let time = GRACE.min(self.deadline.left());
        self.ended = self.wait(time);
    }

    /// Waits for the pipes and moves what can be moved.
    fn step(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let left = self.deadline.left();
        if left.is_zero() {
            let what = self.failed(&format!(
                "did not answer within {:?} and was stopped: see whether what it talks to is there, or give it \
                 more time (the setting `plugin_timeout`; to read, BULLA_PLUGIN_TIMEOUT)",
                self.limit
            ));
            return Err(Error::io(what, io::ErrorKind::TimedOut.into()));
        }
        let broken = |error: io::Error| Error::io("waiting for a plugin", error);
        let mut pipes = Vec::with_capacity(3);
        pipes.extend(self.stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        pipes.extend(self.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        if !bytes.is_empty() {
            pipes.extend(self.stdin.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        }
        match poll(&mut pipes, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(broken(error.into())),
        }
        drop(pipes);
        self.read_errors();
        self.read_output()?;
        if !bytes.is_empty() {
            self.write_some(bytes)?;
        }
        Ok(())
    }

    fn read_output(&mut self) -> Result<()> {
        let Some(stdout) = &mut self.stdout else { return Ok(()) };
        let mut chunk = Zeroizing::new([0; MAX_LINE]);
        let room = MAX_LINE - self.pending.len();
        if room == 0 {
            return Ok(());
        }
        match stdout.read(&mut chunk[..room]) {
            Ok(0) => {
                self.stdout = None;
                // What it wrote to standard error came before that.
                self.read_errors();
            }
            Ok(count) => {
                self.pending.extend_from_slice(&chunk[..count]);
                self.read += count;
            }
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(Error::io(format!("reading from age-plugin-{}", self.name), error)),
        }
        match self.read > MAX_OUTPUT {
            true => Err(self.failed(&format!("wrote over {MAX_OUTPUT} bytes and was stopped"))),
            false => Ok(()),
        }
    }

    /// Keeps the beginning of what the plugin writes to standard error. The rest is read, too, or the plugin would wait until
    /// somebody does.
    fn read_errors(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut chunk = [0; 4096];
        match stderr.read(&mut chunk) {
            Ok(0) => self.stderr = None,
            Ok(count) => {
                let room = MAX_COMPLAINT.saturating_sub(self.complaint.len());
                self.complaint.extend_from_slice(&chunk[..count.min(room)]);
            }
            Err(error) if is_later(&error) => {}
            Err(_) => self.stderr = None,
        }
    }

    fn write_some(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let Some(stdin) = &mut self.stdin else { return Err(self.failed("takes no input")) };
        match stdin.write(bytes) {
            Ok(count) => {
                *bytes = &bytes[count..];
                Ok(())
            }
            Err(error) if is_later(&error) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.read_errors();
                Err(self.failed("ended before it had read its task"))
            }
            Err(error) => Err(Error::io(format!("writing to age-plugin-{}", self.name), error)),
        }
    }

    /// Whether the process has ended within `time`. Then it is gone for good.
    fn wait(&mut self, time: Duration) -> bool {
        // Kernels before 5.3 have no such descriptor; there the plugin is ended at once.
        if let Ok(end) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Timespec::try_from(time).ok().as_ref());
        }
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // This has to come before it is waited for: as long as it is not, its process number is given to nobody else.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // A process that does not end even now hangs in the kernel, and is not waited for.
        self.wait(GRACE);
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The program of a plugin. A directory that is not absolute is no place to run programs from.
fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    let program = format!("age-plugin-{name}");
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(&program))
        .find(|program| is_executable(program))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
