//! A file that is made, all or nothing, where there is none: an order to erase names people, and is given once.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes the file `path`, readable by its owner only and synced with its directory. What is there already is left alone.
///
/// # Errors
/// `AlreadyExists` where something is; else where the file cannot be made: then there is none.
pub(crate) fn make(path: &Path, content: &[u8]) -> io::Result<()> {
    Begun::at(path)?.finish(content)
}

/// A file that can be made, as far as that is known before there is anything to be in it. Dropped, it is none.
pub(crate) struct Begun {
    file: File,
    unfinished: Unfinished,
    path: PathBuf,
}

impl Begun {
    /// Begins the file `path` under another name beside it.
    ///
    /// # Errors
    /// Where no file can be made there.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let (file, unfinished) = Unfinished::beside(path)?;
        Ok(Begun { file, unfinished, path: path.to_owned() })
    }

    /// Makes it, as [`make`] does.
    ///
    /// # Errors
    /// As [`make`].
    pub(crate) fn finish(self, content: &[u8]) -> io::Result<()> {
        let Begun { mut file, unfinished, path } = self;
        file.write_all(content)?;
        file.sync_all()?;
        unfinished.publish(&path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// A file under another name, which is removed when dropped.
struct Unfinished(PathBuf);

impl Unfinished {
    fn beside(path: &Path) -> io::Result<(File, Self)> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file");
        let base = path.file_name().ok_or_else(invalid)?;
        for attempt in 0..1000 {
            let mut name = OsString::from(".");
            name.push(base);
            name.push(format!(".{}-{attempt}.tmp", std::process::id()));
            let name = path.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
                // Left by a process that was killed and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok((opened?, Unfinished(name))),
            }
        }
        Err(invalid())
    }

    fn publish(self, path: &Path) -> io::Result<()> {
        match renameat_with(CWD, &self.0, CWD, path, RenameFlags::NOREPLACE) {
            // Not every file system can.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => fs::hard_link(&self.0, path),
            renamed => Ok(renamed?),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Where it was renamed it is gone.
        let _ = fs::remove_file(&self.0);
    }
}
