//! What a file holds: as it stands there, or unpacked where it is compressed.

use crate::framing::{self, Unpacked};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The device and inode of a file.
pub(super) type Node = (u64, u64);

pub(super) fn node(metadata: &Metadata) -> Node {
    (metadata.dev(), metadata.ino())
}

/// The content of a file, from which bytes are taken at places that only grow, but for the beginning.
pub(super) enum Content {
    /// What is in the file.
    Plain(File),
    /// What the file unpacks to.
    Packed(Packed),
}

/// Invariant: `held` is what stands at `start`, up to where `reader` is.
pub(super) struct Packed {
    file: File,
    reader: Unpacked<FromStart>,
    held: Vec<u8>,
    start: u64,
}

impl Content {
    /// Opens a file for reading, and says what it is: compressed where its name and its first bytes say so, since anybody may write such bytes at the
    /// beginning of a log.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Metadata)> {
        // A pipe that has come in the place of a file is not waited for.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
        }
        let (mut plain, mut magic) = (Content::Plain(file), [0; 4]);
        let read = plain.fill(0, &mut magic)?;
        match plain {
            Content::Plain(file) if is_named_packed(path) && framing::is_packed(&magic[..read]) => {
                Ok((Content::Packed(Packed::new(file)?), metadata))
            }
            plain => Ok((plain, metadata)),
        }
    }

    /// The same; `None` where no regular file is at the path.
    pub(super) fn find(path: &Path) -> io::Result<Option<(Self, Metadata)>> {
        match Content::open(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fills `buffer` with what stands at `from`, as far as there is so much. Returns how many bytes there were.
    pub(super) fn fill(&mut self, from: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Plain(file) => {
                let mut filled = 0;
                while filled < buffer.len() {
                    match file.read_at(&mut buffer[filled..], from + filled as u64) {
                        Ok(0) => break,
                        Ok(read) => filled += read,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(filled)
            }
            Content::Packed(packed) => packed.fill(from, buffer),
        }
    }

    /// Whether nothing can be added to it.
    pub(super) fn is_packed(&self) -> bool {
        matches!(self, Content::Packed(_))
    }

    /// Whether it is all there: what compresses a file to `path` may not be done with it.
    pub(super) fn is_complete(&self, path: &Path) -> bool {
        match self {
            Content::Plain(_) => !is_named_packed(path),
            Content::Packed(packed) => FromStart::of(&packed.file)
                .and_then(|file| io::copy(&mut framing::unpack(file), &mut io::sink()))
                .is_ok(),
        }
    }

    /// What is known of the file now.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        match self {
            Content::Plain(file) => file.metadata(),
            Content::Packed(packed) => packed.file.metadata(),
        }
    }
}

/// Whether a file's name says that it is compressed.
fn is_named_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
}

/// A file, read from its beginning wherever others read it.
struct FromStart {
    file: File,
    place: u64,
}

impl FromStart {
    fn of(file: &File) -> io::Result<Self> {
        Ok(FromStart { file: file.try_clone()?, place: 0 })
    }
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

impl Packed {
    fn new(file: File) -> io::Result<Self> {
        let reader = framing::unpack(FromStart::of(&file)?);
        Ok(Packed { file, reader, held: Vec::new(), start: 0 })
    }

    fn fill(&mut self, from: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if from < self.start {
            *self = Packed::new(self.file.try_clone()?)?;
        }
        let wanted = from + buffer.len() as u64;
        let mut room = [0; 16 * 1024];
        while self.start + (self.held.len() as u64) < wanted {
            // What precedes is not asked for again, but for the beginning.
            let unwanted = usize::try_from(from - self.start).unwrap_or(usize::MAX).min(self.held.len());
            self.held.drain(..unwanted);
            self.start += unwanted as u64;
            match self.reader.read(&mut room) {
                Ok(0) => break,
                Ok(read) => self.held.extend_from_slice(&room[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let begin = usize::try_from(from - self.start).unwrap_or(usize::MAX).min(self.held.len());
        let there = &self.held[begin..];
        let length = there.len().min(buffer.len());
        buffer[..length].copy_from_slice(&there[..length]);
        Ok(length)
    }
}
