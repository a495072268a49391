//! The inputs of `bulla append`.

use super::alarm::Alarm;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use rustix::fs::{Access, OFlags, access};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file, or standard input where there is no path.
#[derive(Debug)]
pub(super) struct Input {
    /// As it stands before the number of a line.
    pub(super) name: String,
    path: Option<PathBuf>,
    metadata: Metadata,
}

/// The inputs of these names, which all can be read: what is not there is found before anything is appended.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    match paths {
        [] => Ok(vec![Input::standard()?]),
        paths => paths.iter().map(|path| Input::find(path)).collect(),
    }
}

/// The name of the first of them, as it stands before the number of a line.
pub(super) fn first_name(paths: &[PathBuf]) -> String {
    match paths.first() {
        Some(path) if path.as_os_str() != "-" => path.display().to_string(),
        _ => "stdin".to_owned(),
    }
}

impl Input {
    fn standard() -> Result<Self, Failure> {
        let name = first_name(&[]);
        let metadata = standard_input().and_then(|file| file.metadata());
        let metadata = metadata.map_err(|error| Failure::io(format!("reading {name}"), &error))?;
        Ok(Input { name, path: None, metadata })
    }

    pub(super) fn find(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Input::standard();
        }
        // Not opened yet: there may be more files than a process may have open, and to open a pipe is to wait.
        let metadata = fs::metadata(path).and_then(|metadata| match metadata.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => access(path, Access::READ_OK).map(|()| metadata).map_err(io::Error::from),
        });
        let metadata = metadata.map_err(|error| {
            let message = format!("{}: {error}; nothing was appended", path.display());
            Failure::new(Exit::Environment, message)
        })?;
        Ok(Input { name: path.display().to_string(), path: Some(path.to_owned()), metadata })
    }

    /// Its length in bytes; `None` where that cannot be known, as of standard input, of which some may have been read before.
    pub(super) fn length(&self) -> Option<u64> {
        (self.path.is_some() && self.metadata.is_file()).then_some(self.metadata.len())
    }

    /// Whether it is the file that `other` describes, so that what is written to that would be read here. A terminal, or
    /// `/dev/null`, gives nothing back of what is written to it.
    pub(super) fn reads_back(&self, other: &Metadata) -> bool {
        let is_it = self.metadata.dev() == other.dev() && self.metadata.ino() == other.ino();
        is_it && !other.file_type().is_char_device()
    }

    /// Opens it; what it reads stops at a signal. `alarm` is raised whenever all that was read was looked at.
    pub(super) fn open<'a>(&self, interrupt: &'a Interrupt, alarm: Option<Alarm>) -> io::Result<Source<'a>> {
        let file = match &self.path {
            None => standard_input()?,
            // Without blocking, lest the wait for a pipe's writer cannot be interrupted.
            Some(path) => {
                let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
                OpenOptions::new().read(true).custom_flags(flags).open(path)?
            }
        };
        Ok(Source { file, interrupt, alarm })
    }
}

fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// A file whose reading a signal interrupts, though it be blocked.
pub(super) struct Source<'a> {
    file: File,
    interrupt: &'a Interrupt,
    alarm: Option<Alarm>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.alarm.iter().for_each(Alarm::raise);
        loop {
            self.interrupt.wait_readable(self.file.as_fd())?;
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}
