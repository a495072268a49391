//! The receiver on another host, which a program like ssh starts, and whose standard input and output are the line to it.

use super::destination::Host;
use super::patient::Patient;
use bulla::{Error, ErrorKind};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// So long the receiver may say nothing: it syncs what it has written, and compares what lay there, and says how far it is between.
const SILENCE: Duration = Duration::from_secs(600);
/// So long whatever reaches it may take to end, once the line is closed.
const TO_END: Duration = Duration::from_secs(10);

/// See the module. It ends when this is dropped.
pub(super) struct FarSide {
    process: Child,
    name: String,
    input: Patient<ChildStdout>,
    /// Closing it ends the receiver.
    output: Option<ChildStdin>,
}

impl FarSide {
    /// Has `program`, a command with arguments, run the receiver `bulla` on `host`.
    ///
    /// # Errors
    /// `Invalid` where no program is named, `Unavailable` where it cannot be started.
    pub(super) fn start(program: &str, host: &Host, bulla: &str) -> bulla::Result<Self> {
        let mut words = program.split_whitespace();
        let name = words.next().ok_or_else(|| Error::invalid("--ssh names no program"))?;
        let mut command = Command::new(name);
        command.args(words);
        if Path::new(name).file_name().is_some_and(|name| name == "ssh") {
            // A line that is dead is noticed within a minute.
            command.args(["-T", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"]);
        }
        if let Some(port) = host.port {
            command.args(["-p", &port.to_string()]);
        }
        command.arg(&host.name).arg(format!("{bulla} mirror --receive {}", quoted(&host.path)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error| Error::io(format!("starting {name}"), error);
        let mut process = command.spawn().map_err(failed)?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(output), Some(input)) => Ok(FarSide {
                process,
                name: name.to_owned(),
                input: Patient::new(input, SILENCE),
                output: Some(output),
            }),
            _ => Err(Error::unavailable(format!("{name} has no standard input and output"))),
        }
    }

    /// The line to it.
    pub(super) fn line(&mut self) -> (&mut dyn Read, &mut dyn Write) {
        static CLOSED: &str = "it is closed by `end` alone";
        (&mut self.input, self.output.as_mut().expect(CLOSED))
    }

    /// Closes the line, waits until what reached the receiver has ended, and gives what came of it: where the line failed, with how
    /// that ended.
    pub(super) fn end(mut self, served: bulla::Result<()>) -> bulla::Result<()> {
        let ended = self.wait();
        let is_of_line = |error: &Error| error.kind() == ErrorKind::Unavailable && error.io_error().is_some();
        match (served, ended) {
            (Err(error), Some(status)) if is_of_line(&error) && !status.success() => {
                let what = format!("{} ended ({status}), after what it says above, if anything", self.name);
                Err(error.after(what))
            }
            (served, _) => served,
        }
    }

    fn wait(&mut self) -> Option<ExitStatus> {
        drop(self.output.take());
        let since = Instant::now();
        while since.elapsed() < TO_END {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(_) => break,
            }
        }
        let _ = self.process.kill();
        self.process.wait().ok()
    }
}

impl Drop for FarSide {
    fn drop(&mut self) {
        if self.output.is_some() {
            self.wait();
        }
    }
}

/// A word to a POSIX shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_is_one_word_to_a_shell_whatever_is_in_it() {
        for word in ["/srv/copy", "it's a b", "$(touch x)", "a\"b`c`", "''", "-n", "new\nline"] {
            let script = format!("printf %s {}", super::quoted(word));
            let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), word);
        }
    }
}
