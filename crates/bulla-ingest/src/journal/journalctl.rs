//! `journalctl`, as it is run, and what it says besides entries.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

/// So many bytes of what it says on its standard error are kept; what is beyond is passed over.
const SAID: usize = 4096;

/// With this it begins to say that there is no journal, or none that may be read; with the first of these it ends well nevertheless.
pub(super) const NO_JOURNAL: &str = "No journal files were ";

/// A `journalctl` that runs, until this is dropped.
pub(super) struct Running {
    child: Child,
    output: ChildStdout,
    errors: ChildStderr,
    said: Vec<u8>,
}

/// What it said of the journals that it was to read.
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    /// On one line; empty where it had nothing to say.
    pub(super) said: String,
}

fn command(arguments: &[String]) -> Command {
    let mut command = Command::new("journalctl");
    command.arg("--no-pager").args(arguments);
    // A group of its own: what a terminal tells to end is whoever follows, which ends it.
    command.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    command
}

/// Has it open the journals and read nothing: it says of those that are not there, or may not be read, what it keeps to itself with
/// `--quiet`, which the export format implies.
pub(super) fn ask(arguments: &[String]) -> io::Result<Answer> {
    let mut child = command(arguments).arg("--lines=0").stdout(Stdio::null()).spawn()?;
    let mut said = Vec::new();
    // Whatever it says beyond that it cannot write, and ends.
    let read = child.stderr.take().map_or(Ok(0), |errors| errors.take(SAID as u64).read_to_end(&mut said));
    let status = child.wait()?;
    read?;
    Ok(Answer { status, said: on_one_line(&said) })
}

impl Running {
    /// Starts it; neither of its outputs is waited for.
    pub(super) fn start(arguments: &[String]) -> io::Result<Self> {
        let mut child = command(arguments)
            .args(["--output=export", "--quiet", "--all"])
            .stdout(Stdio::piped())
            .spawn()?;
        let (output, errors) =
            child.stdout.take().zip(child.stderr.take()).ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        rustix::io::ioctl_fionbio(&errors, true)?;
        Ok(Running { child, output, errors, said: Vec::new() })
    }

    /// What becomes readable when there is more.
    pub(super) fn wakes(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Lest it waits for somebody to read that.
        self.hear();
        self.output.read(buffer)
    }

    /// Waits for its end, which the end of its output foretells.
    pub(super) fn end(mut self) -> io::Result<Answer> {
        let status = self.child.wait()?;
        self.hear();
        Ok(Answer { status, said: on_one_line(&self.said) })
    }

    fn hear(&mut self) {
        let mut buffer = [0; SAID];
        while let Ok(read @ 1..) = self.errors.read(&mut buffer) {
            let room = SAID - self.said.len();
            self.said.extend_from_slice(&buffer[..read.min(room)]);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Where it has ended that is so already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn on_one_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
