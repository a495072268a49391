//! Where an export goes: standard output, or a file that is there whole or not at all.
//!
//! A file is written beside its place under another name, synced, and only then renamed; what was there before
//! stays until then. On any failure, and on a signal, the unfinished file is removed: it holds personal data. A signal
//! that comes after the renaming interrupts nothing any more.

use crate::exit::Failure;
use crate::interrupt::{self, Came};
use crate::log_paths::LogPaths;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Refuses to print a JSON object between what else would go to standard output: `what`, where no file is named for it.
pub(crate) fn refuse_json_among(what: &str, json: bool, output: Option<&Path>) -> Result<(), Failure> {
    match json && file_in(output).is_none() {
        true => Err(Failure::usage(format!(
            "--json prints where the {what} would go: name a file for that with -o FILE"
        ))),
        false => Ok(()),
    }
}

pub(crate) struct Destination {
    writer: BufWriter<Box<dyn Write + Send>>,
    unfinished: Option<Unfinished>,
}

impl Destination {
    /// Standard output, or the file `path`, which is not to lie in `place`; `-` is standard output too.
    pub(crate) fn open(path: Option<&Path>, place: &LogPaths) -> Result<Self, Failure> {
        let name = Arc::<Name>::default();
        let on_signal = name.clone();
        match file_in(path) {
            None => interrupt::exit_at_once(),
            Some(_) => interrupt::exit_after(move || on_signal.remove()),
        }?;
        Destination::begin(path, name, place)
    }

    /// The same of a command that finishes what it began before a signal ends it ([`interrupt::finish_first`]).
    pub(crate) fn open_to_finish(
        path: Option<&Path>,
        place: &LogPaths,
        (json, find_out): (bool, &str),
    ) -> Result<Self, Failure> {
        let name = Arc::<Name>::default();
        let on_signal = name.clone();
        interrupt::finish_first(json, find_out, move || {
            on_signal.remove();
        })?;
        Destination::begin(path, name, place)
    }

    fn begin(path: Option<&Path>, name: Arc<Name>, place: &LogPaths) -> Result<Self, Failure> {
        match file_in(path) {
            None => Ok(Destination::to(Box::new(io::stdout()), None)),
            Some(path) => {
                place.refuse_inside(path)?;
                Destination::file(path, name)
                    .map_err(|error| Failure::io(format!("writing {}", path.display()), &error))
            }
        }
    }

    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.writer
    }

    /// Whether what was written is thrown away unless [`Destination::finish`] is reached.
    pub(super) fn is_all_or_nothing(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Takes so much room for what will be written, as far as the file system gives any before that. A device or a pipe has none.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        let Some(Unfinished { file, .. }) = &self.unfinished else { return Ok(()) };
        match retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            reserved => Ok(reserved?),
        }
    }

    /// Everything is written: have whoever it goes to take all of it. A file is synced, and not in its place yet.
    pub(crate) fn write_out(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.unfinished.as_ref().map_or(Ok(()), Unfinished::sync)
    }

    /// Everything is written: make it so.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write_out()?;
        self.unfinished.map_or(Ok(()), Unfinished::publish)
    }

    fn to(writer: Box<dyn Write + Send>, unfinished: Option<Unfinished>) -> Self {
        Destination { writer: BufWriter::with_capacity(256 * 1024, writer), unfinished }
    }

    fn file(path: &Path, name: Arc<Name>) -> io::Result<Self> {
        // A link stays one, and what is behind it is replaced. A device or a pipe is written to, never replaced.
        let target = match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            target => target?,
        };
        if fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(Destination::to(Box::new(OpenOptions::new().write(true).open(&target)?), None));
        }
        let file = name.create_beside(&target)?;
        let writer = file.try_clone()?;
        Ok(Destination::to(Box::new(writer), Some(Unfinished { file, name, target })))
    }
}

/// The file that is named, unless it is standard output.
fn file_in(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| path.as_os_str() != "-")
}

/// A file that is removed when dropped.
struct Unfinished {
    file: File,
    name: Arc<Name>,
    target: PathBuf,
}

impl Unfinished {
    fn sync(&self) -> io::Result<()> {
        // Gives back what was reserved and not used; where that fails, the file is whole all the same.
        let _ = self.file.metadata().and_then(|metadata| self.file.set_len(metadata.len()));
        self.file.sync_all()
    }

    fn publish(self) -> io::Result<()> {
        self.name.rename(&self.target)?;
        let directory = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.name.remove();
    }
}

/// The name that an unfinished file has, while it has one.
#[derive(Default)]
struct Name(Mutex<Stage>);

/// How far a file has come.
#[derive(Default)]
enum Stage {
    /// There is none, or none any more.
    #[default]
    None,
    Unfinished(PathBuf),
    Published,
}

impl Name {
    fn create_beside(&self, target: &Path) -> io::Result<File> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file");
        let base = target.file_name().ok_or_else(invalid)?;
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in 0.. {
            let mut name = OsString::from(".");
            name.push(base);
            name.push(format!(".{}-{attempt}.tmp", std::process::id()));
            let name = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
                // Left by a process that was killed and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
                opened => {
                    let file = opened?;
                    *current = Stage::Unfinished(name);
                    return Ok(file);
                }
            }
        }
        Err(invalid())
    }

    fn rename(&self, target: &Path) -> io::Result<()> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Unfinished(name) = &*current {
            fs::rename(name, target)?;
            *current = Stage::Published;
        }
        Ok(())
    }

    /// Removes the file, unless it was published before.
    fn remove(&self) -> Came {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Stage::Published => return Came::TooLate,
            // What cannot be removed stays; there is nobody to tell.
            Stage::Unfinished(name) => drop(fs::remove_file(name)),
            Stage::None => {}
        }
        *current = Stage::None;
        Came::InTime
    }
}
