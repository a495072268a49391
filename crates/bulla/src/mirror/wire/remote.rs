//! [`Remote`]: the log at the other end of a line, as a store that is read.

use super::message::{Answer, MOST_READ, Request, VERSION};
use crate::mirror::Shipped;
use bulla_proof::hash::Hash;
use bulla_store::{Error, Item, Lock, Result, Store, StoreFile};
use std::collections::VecDeque;
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
    ahead: Ahead,
}

/// So many pieces of a file are under way at most.
const MOST_AHEAD: usize = 8;

/// Pieces of a file that were asked for, and have not come yet, one behind the other.
#[derive(Default)]
struct Ahead {
    path: String,
    /// Where each begins, and how many bytes of it were asked for.
    pieces: VecDeque<(u64, usize)>,
    /// Where a read begins that goes on behind all that was asked for.
    next: u64,
    /// How many may be asked for at once. It doubles with each read that goes on where the one before ended: so no more comes in vain than was
    /// wanted before.
    window: usize,
}

impl Ahead {
    /// Whether a read of the file from `offset` on goes on where the one before it ended.
    fn goes_on(&self, path: &str, offset: u64) -> bool {
        self.path == path && self.pieces.front().map_or(self.next, |(at, _)| *at) == offset
    }
}

impl Line {
    fn send(&mut self, request: &Request) -> io::Result<()> {
        self.require_sound()?;
        let sent = request.write(&mut self.output);
        self.broken = sent.is_err();
        sent
    }

    /// The answer to the first request that has none yet.
    fn answer(&mut self) -> io::Result<Answer> {
        self.require_sound()?;
        let answer = Answer::read(&mut self.input);
        self.broken = answer.is_err();
        match answer? {
            Answer::Failed { kind, message } => Err(io::Error::new(kind, message)),
            answer => Ok(answer),
        }
    }

    fn require_sound(&self) -> io::Result<()> {
        match self.broken {
            true => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection has failed")),
            false => Ok(()),
        }
    }

    fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        self.pass_over_ahead()?;
        self.send(request)?;
        self.answer()
    }

    /// Takes the answers to what was asked for ahead, which nobody wants any more.
    fn pass_over_ahead(&mut self) -> io::Result<()> {
        while self.ahead.pieces.pop_front().is_some() {
            // That a piece is not to be had is nothing to whoever asks for something else.
            self.answer().map(drop).or_else(|error| if self.broken { Err(error) } else { Ok(()) })?;
        }
        Ok(())
    }

    /// Up to `count` bytes of a file that has `length`, from `offset` on; and asks for what follows them while they are on their way, where the
    /// file is read from one end to the other.
    fn read(&mut self, path: &str, length: u64, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        if self.ahead.goes_on(path, offset) && self.ahead.pieces.front().is_none_or(|piece| piece.1 == count)
        {
            self.ahead.window = (self.ahead.window * 2).min(MOST_AHEAD);
        } else {
            self.pass_over_ahead()?;
            self.ahead = Ahead { path: path.to_owned(), pieces: VecDeque::new(), next: offset, window: 1 };
        }
        while self.ahead.pieces.len() < self.ahead.window && self.ahead.next < length {
            let left = usize::try_from(length - self.ahead.next).unwrap_or(usize::MAX);
            let piece = if self.ahead.pieces.is_empty() { count } else { MOST_READ.min(left) };
            let (offset, count) = (self.ahead.next, u32::try_from(piece).unwrap_or(u32::MAX));
            self.send(&Request::Read { offset, count, path: path.to_owned() })?;
            self.ahead.pieces.push_back((offset, piece));
            self.ahead.next += piece as u64;
        }
        self.ahead.pieces.pop_front();
        match self.answer()? {
            Answer::Bytes(bytes) if bytes.len() <= count => Ok(bytes),
            _ => self.unasked(),
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
                let line = Line { input, output, broken: false, known: Hash::ZERO, ahead: Ahead::default() };
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
        let bytes = self.remote.line().read(&self.path, self.length, offset, count)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    const MIB: u64 = 1 << 20;
    /// Of every file: its last piece is a short one.
    const LENGTH: u64 = 20 * MIB - 5;
    /// A receiver that asks for less than is waited for would wait for ever.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// The byte of every file at `offset`.
    fn byte(offset: u64) -> u8 {
        u8::try_from(offset / 1000 % 251).unwrap()
    }

    fn answer(stream: &mut UnixStream, request: &Request) {
        let answer = match request {
            Request::Open { .. } => Answer::Opened { length: LENGTH, first: Vec::new() },
            Request::Read { offset, count, .. } => {
                Answer::Bytes((*offset..offset + u64::from(*count)).map(byte).collect())
            }
            request => panic!("{request:?}"),
        };
        answer.write(stream).unwrap();
    }

    /// A receiver, and a sender that does `serve`.
    fn line(serve: impl FnOnce(UnixStream) + Send + 'static) -> (Remote, std::thread::JoinHandle<()>) {
        let (mut sender, receiver) = UnixStream::pair().unwrap();
        sender.set_read_timeout(Some(PATIENCE)).unwrap();
        let serving = std::thread::spawn(move || {
            Answer::Hello { version: VERSION, once: true, key: String::new() }.write(&mut sender).unwrap();
            serve(sender);
        });
        let input = Box::new(receiver.try_clone().unwrap());
        (Remote::connect(input, Box::new(receiver)).unwrap(), serving)
    }

    fn read(file: &dyn StoreFile, offset: u64) {
        let mut bytes = vec![0; 1 << 20];
        assert_eq!(file.read_at(&mut bytes, offset).unwrap() as u64, MIB.min(LENGTH - offset));
        let mut left = bytes.iter().zip(offset..LENGTH);
        assert!(left.all(|(found, at)| *found == byte(at)), "from {offset} on");
    }

    #[test]
    fn a_file_that_is_read_from_one_end_is_asked_for_ahead() {
        let (remote, serving) = line(|mut stream| {
            let mut waiting = VecDeque::from([Request::read(&mut stream).unwrap()]);
            // The file, and one, two, four and eight pieces of it before the first of them is answered.
            let mut answered = 0;
            let mut out = stream.try_clone().unwrap();
            for under_way in [1, 1, 2, 4].into_iter().chain([8; 10]) {
                while waiting.len() < under_way {
                    waiting.push_back(Request::read(&mut stream).unwrap());
                }
                answer(&mut out, &waiting.pop_front().unwrap());
                answered += 1;
            }
            assert_eq!((answered, waiting.len()), (14, 7));
            waiting.iter().for_each(|request| answer(&mut out, request));
        });
        let file = remote.open("segments/00000000000000000000.seg").unwrap();
        (0..20).for_each(|piece| read(&*file, piece * MIB));
        drop((file, remote));
        serving.join().unwrap();
    }

    #[test]
    fn what_was_asked_for_ahead_is_passed_over_where_something_else_is_wanted() {
        let (remote, serving) = line(|mut stream| {
            while let Ok(request) = Request::read(&mut stream) {
                answer(&mut stream, &request);
            }
        });
        let file = remote.open("segments/00000000000000000000.seg").unwrap();
        for offset in [0, 1, 2, 3, 9, 10, 11, 2, 19] {
            read(&*file, offset * MIB + 5);
        }
        let other = remote.open("segments/00000000000000000007.seg").unwrap();
        read(&*other, 7);
        read(&*file, 8);
        let mut short = [0; 10];
        other.read_at(&mut short, 30).unwrap();
        assert_eq!(short, [byte(30); 10]);
        drop((file, other, remote));
        serving.join().unwrap();
    }
}
