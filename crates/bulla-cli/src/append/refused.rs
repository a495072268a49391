//! Refused lines: told one by one, counted, and kept where the user asks for it.

use super::input::Input;
use crate::exit::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How many are told one by one to a person. A program is told of all.
const SHOWN: u64 = 20;

pub(super) struct Refused {
    count: u64,
    shown: u64,
    rejects: Option<Rejects>,
}

/// The file that gets the lines as they are. It is added to: nothing that an earlier run refused is lost.
struct Rejects {
    name: String,
    file: BufWriter<File>,
}

impl Refused {
    pub(super) fn open(rejects: Option<&Path>, inputs: &[Input]) -> Result<Self, Failure> {
        let shown = if io::stderr().is_terminal() { SHOWN } else { u64::MAX };
        let rejects = rejects.map(|path| Rejects::open(path, inputs)).transpose()?;
        Ok(Refused { count: 0, shown, rejects })
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the next refused line is told by itself.
    pub(super) fn tells_next(&self) -> bool {
        self.count < self.shown
    }

    /// A line was refused. `raw` is absent where it was too long to be held.
    pub(super) fn add(
        &mut self,
        input: &str,
        number: u64,
        reason: &str,
        raw: Option<&[u8]>,
    ) -> Result<(), Failure> {
        if self.tells_next() {
            let lost =
                if raw.is_none() && self.rejects.is_some() { "; it is not among the rejects" } else { "" };
            note!("{input}:{number}: {reason}{lost}");
        }
        self.count += 1;
        if let (Some(raw), Some(rejects)) = (raw, &mut self.rejects) {
            rejects.add(raw)?;
        }
        Ok(())
    }

    /// Makes the rejects durable, and tells how many lines were not told one by one.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.count > self.shown {
            note!("and {} more lines were refused", self.count - self.shown);
        }
        self.rejects.as_mut().map_or(Ok(()), Rejects::finish)
    }
}

impl Rejects {
    fn open(path: &Path, inputs: &[Input]) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let opened = file.and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| Failure::io(format!("writing {name}"), &error))?;
        if inputs.iter().any(|input| input.is(&metadata)) {
            return Err(Failure::usage(format!("{name} is an input: rejects cannot be added to it")));
        }
        Ok(Rejects { name, file: BufWriter::new(file) })
    }

    fn add(&mut self, raw: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(raw).and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| self.failed(&error))
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let synced = self.file.flush().and_then(|()| match self.file.get_ref().sync_all() {
            // A device or a pipe has nothing to sync.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        });
        synced.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::io(format!("writing {}", self.name), error)
    }
}
