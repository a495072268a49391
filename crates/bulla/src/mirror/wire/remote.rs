//! [`Remote`]: the log at the other end of a line, as a store that is read.

use super::message::{Answer, MOST_READ, Request, VERSION};
use crate::mirror::Shipped;
use bulla_proof::hash::Hash;
use bulla_store::{Error, Item, Lock, Result, Store, StoreFile};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the module. Clones share the line.
#[derive(Clone)]
pub struct Remote {
    line: Arc<Mutex<Line>>,
    /// What the sender asks for: that this ends when all is here that is there now, and the key that the log has to be signed by, or "".
    pub(super) once: bool,
    pub(super) key: Arc<str>,
}

struct Line {
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
    /// After an error nobody knows which answer would come next.
    broken: bool,
    /// What the log was when it was waited for last.
    known: Hash,
}

impl Line {
    fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        if self.broken {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection has failed"));
        }
        self.broken = true;
        request.write(&mut self.output)?;
        let answer = Answer::read(&mut self.input)?;
        self.broken = false;
        match answer {
            Answer::Failed { kind, message } => Err(io::Error::new(kind, message)),
            answer => Ok(answer),
        }
    }

    /// That an answer is not one to what was asked.
    fn unasked<T>(&mut self) -> io::Result<T> {
        self.broken = true;
        Err(io::Error::new(io::ErrorKind::InvalidData, "the other side answered what was not asked"))
    }
}

impl Remote {
    /// Takes up a line on which a sender has begun to speak.
    ///
    /// # Errors
    /// `Unavailable` where it is none, or one of another version.
    pub fn connect(mut input: Box<dyn Read + Send>, output: Box<dyn Write + Send>) -> Result<Self> {
        let hello = Answer::read(&mut input).map_err(|error| Error::io("hearing from the sender", error))?;
        match hello {
            Answer::Hello { version: VERSION, once, key } => {
                let line = Line { input, output, broken: false, known: Hash::ZERO };
                Ok(Remote { line: Arc::new(Mutex::new(line)), once, key: key.into() })
            }
            Answer::Hello { version, .. } => Err(Error::unavailable(format!(
                "the sender speaks version {version} of what mirrors speak, and this program version {VERSION}: use the same \
                 release on both sides"
            ))),
            _ => Err(Error::unavailable("the sender does not begin as one does")),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the sender something that it does not answer.
    pub(super) fn tell(&self, request: &Request) -> Result<()> {
        let told = request.write(&mut self.line().output);
        told.map_err(|error| Error::io("telling the sender", error))
    }

    /// Tells the sender what has arrived.
    pub(super) fn tell_state(&self, shipped: Shipped) -> Result<()> {
        self.tell(&Request::State(shipped))
    }

    /// Waits until the log is another one than when it was waited for last, or for so long.
    pub(super) fn wait(&self, time: Duration) -> Result<()> {
        let mut line = self.line();
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let asked = Request::Wait { milliseconds, known: line.known };
        let answered = match line.ask(&asked) {
            Ok(Answer::News(digest)) => {
                line.known = digest;
                Ok(())
            }
            Ok(_) => line.unasked(),
            Err(error) => Err(error),
        };
        answered.map_err(|error| Error::io("waiting for the sender", error))
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the source of a mirror is not written to"))
}

impl Store for Remote {
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let mut line = self.line();
        match line.ask(&Request::Open { path: path.to_owned() })? {
            Answer::Opened { length, first } if first.len() as u64 <= length => {
                Ok(Box::new(RemoteFile { remote: self.clone(), path: path.to_owned(), length, first }))
            }
            _ => line.unasked(),
        }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        let mut line = self.line();
        match line.ask(&Request::List { path: directory.to_owned() })? {
            Answer::Names(items) => Ok(items),
            _ => line.unasked(),
        }
    }

    /// Whether a writer is at work is for the sender to know: what is read here is what a checkpoint covers.
    fn is_locked(&self, _: &str) -> io::Result<bool> {
        Ok(true)
    }

    fn describe(&self, path: &str) -> String {
        match path {
            "" => "the source".to_owned(),
            path => format!("{path} of the source"),
        }
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn StoreFile>> {
        read_only()
    }

    fn open_write(&self, _: &str) -> io::Result<Box<dyn StoreFile>> {
        read_only()
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        read_only()
    }

    fn create_directory(&self, _: &str) -> io::Result<()> {
        read_only()
    }

    fn remove_directory(&self, _: &str) -> io::Result<()> {
        read_only()
    }

    fn sync_directory(&self, _: &str) -> io::Result<()> {
        read_only()
    }

    fn lock(&self, _: &str) -> io::Result<Box<dyn Lock>> {
        read_only()
    }
}

/// A file at the other end, as it was when it was opened: of what was added since nothing is seen.
#[derive(Debug)]
struct RemoteFile {
    remote: Remote,
    path: String,
    length: u64,
    first: Vec<u8>,
}

impl StoreFile for RemoteFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.length || buffer.is_empty() {
            return Ok(0);
        }
        if let Some(known) =
            usize::try_from(offset).ok().and_then(|at| self.first.get(at..)).filter(|it| !it.is_empty())
        {
            let count = known.len().min(buffer.len());
            buffer[..count].copy_from_slice(&known[..count]);
            return Ok(count);
        }
        let left = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
        let count = buffer.len().min(MOST_READ).min(left);
        let mut line = self.remote.line();
        let asked = Request::Read {
            offset,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            path: self.path.clone(),
        };
        match line.ask(&asked)? {
            Answer::Bytes(bytes) if bytes.len() <= count => {
                buffer[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            _ => line.unasked(),
        }
    }

    fn write_at(&self, _: &mut [IoSlice<'_>], _: u64) -> io::Result<()> {
        read_only()
    }

    fn sync(&self) -> io::Result<()> {
        read_only()
    }

    fn set_length(&self, _: u64) -> io::Result<()> {
        read_only()
    }
}
