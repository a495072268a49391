//! The receiver on another host, which a program like ssh starts, and whose standard input and output are the line to it.

use super::destination::Host;
use super::patient::Patient;
use bulla::{Error, ErrorKind};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// So long the receiver may say nothing, and take nothing of what it has asked for: it syncs what it has written, and compares what lay there,
/// and says how far it is between.
const SILENCE: Duration = Duration::from_secs(600);
/// So long whatever reaches it may take to end, once the line is closed.
const TO_END: Duration = Duration::from_secs(10);

/// See the module. It ends when this is dropped.
pub(super) struct FarSide {
    process: Child,
    name: String,
    input: Patient<ChildStdout>,
    /// Closing it ends the receiver.
    output: Option<Patient<ChildStdin>>,
}

impl FarSide {
    /// Has `program`, a command with arguments, run the receiver `bulla` on `host`.
    ///
    /// # Errors
    /// `Invalid` where no program is named, `Unavailable` where it cannot be started.
    pub(super) fn start(program: &str, host: &Host, bulla: &str) -> bulla::Result<Self> {
        Self::start_with(program, host, bulla, SILENCE)
    }

    fn start_with(program: &str, host: &Host, bulla: &str, silence: Duration) -> bulla::Result<Self> {
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
                input: Patient::new(input, silence),
                output: Some(Patient::writing(output, silence).map_err(failed)?),
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
    use super::*;

    #[test]
    fn a_path_is_one_word_to_a_shell_whatever_is_in_it() {
        for word in ["/srv/copy", "it's a b", "$(touch x)", "a\"b`c`", "''", "-n", "new\nline"] {
            let script = format!("printf %s {}", super::quoted(word));
            let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), word);
        }
    }

    /// More than any pipe holds.
    const MUCH: usize = 4 << 20;

    /// A receiver that is this script.
    fn receiver(script: &str, silence: Duration) -> (tempfile::TempDir, FarSide) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("script");
        std::fs::write(&path, script).unwrap();
        let host = Host { name: "host".to_owned(), port: None, path: "copy".to_owned() };
        let program = format!("sh {}", path.display());
        let far_side = FarSide::start_with(&program, &host, "bulla", silence).unwrap();
        (place, far_side)
    }

    #[test]
    fn a_receiver_that_takes_nothing_is_given_up() {
        let (_place, mut far_side) = receiver("exec sleep 30", Duration::from_secs(1));
        let error = far_side.line().1.write_all(&vec![7; MUCH]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
        assert!(error.to_string().contains("has taken nothing for 1 s"), "{error}");
        far_side.process.kill().unwrap();
    }

    #[test]
    fn a_receiver_that_takes_all_of_it_in_its_time_has_all_of_it() {
        let (_place, mut far_side) = receiver("sleep 1; exec wc -c", Duration::from_secs(60));
        far_side.line().1.write_all(&vec![7; MUCH]).unwrap();
        drop(far_side.output.take());
        let mut said = String::new();
        far_side.input.read_to_string(&mut said).unwrap();
        assert_eq!(said.trim(), MUCH.to_string());
    }
}
