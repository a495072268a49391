//! Where a log and its keys lie, and what of the keys is at hand.

use crate::exit::{Exit, Failure};
use bulla::keys::files;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The arguments that every subcommand has.
#[derive(clap::Args, Debug)]
pub(crate) struct Place {
    /// The log's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Where its keys and state lie [default: DIR.keys]
    #[arg(long, value_name = "PATH")]
    keys: Option<PathBuf>,
}

impl Place {
    pub(crate) fn directory(&self) -> PathBuf {
        // `.` and `..` have no name that `.keys` could be put behind.
        match self.directory.file_name() {
            Some(_) => self.directory.clone(),
            None => self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone()),
        }
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.keys.clone().unwrap_or_else(|| bulla::default_keys(&self.directory()))
    }

    /// The text of the seal key in `given`, or else of the one in the key directory, if there is one.
    pub(crate) fn seal_key(
        &self,
        given: Option<&Path>,
    ) -> Result<Option<(PathBuf, Zeroizing<String>)>, Failure> {
        self.secret(given, files::SEAL_KEY)
    }

    /// A file that is named and is not there is a key that is missing; one that is not named need not be there.
    pub(crate) fn secret(
        &self,
        given: Option<&Path>,
        name: &str,
    ) -> Result<Option<(PathBuf, Zeroizing<String>)>, Failure> {
        let path = given.map_or_else(|| self.keys().join(name), Path::to_owned);
        match read_small(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match given {
                None => Ok(None),
                Some(_) => Err(Failure::new(Exit::Refused, format!("{}: {error}", path.display()))),
            },
            Err(error) => Err(Failure::io(path.display(), &error)),
        }
    }
}

/// What is wrong with the content of a file that the user named.
pub(crate) fn error_in(path: &Path, error: bulla::Error) -> Failure {
    let failure = Failure::from(error);
    Failure { message: format!("{}: {}", path.display(), failure.message), ..failure }
}

/// Reads a file that holds a key, as text.
pub(crate) fn read_small(path: &Path) -> io::Result<Zeroizing<String>> {
    const LIMIT: u64 = 64 * 1024;
    // With room for all of it from the start: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(64 * 1024 + 1));
    let read = File::open(path)?.take(LIMIT + 1).read_to_string(&mut text)?;
    if read as u64 > LIMIT {
        return Err(io::Error::other(format!("it has over {LIMIT} bytes; no key file has")));
    }
    Ok(text)
}
