//! The messages, and how they are told apart on the line: the length of what follows, u32; a byte that says what it is; its fields.

use crate::mirror::{Behind, Shipped};
use bulla_proof::hash::Hash;
use bulla_store::{ErrorKind, Item};
use std::io::{self, Read, Write};

/// The version of all this.
pub(super) const VERSION: u8 = 1;
/// The longest message, in bytes: the names of a hundred thousand segments.
const LONGEST: usize = 4 << 20;
/// So many bytes of a file are given out at once.
pub(super) const MOST_READ: usize = 1 << 20;
/// So many bytes of a file come with its length.
pub(super) const FIRST: usize = 64 << 10;
/// The longest path, in bytes.
const LONGEST_PATH: usize = 256;
/// The longest wait that is asked for at once, in milliseconds.
pub(super) const LONGEST_WAIT: u32 = 10_000;

/// What the receiver says.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// The length of a file, and its first bytes.
    Open { path: String },
    /// Up to `count` bytes of a file.
    Read { offset: u64, count: u32, path: String },
    /// The names in a directory.
    List { path: String },
    /// An answer once the log is another one than had this digest, or after so long.
    Wait { milliseconds: u32, known: Hash },
    /// What it holds. There is no answer.
    State(Shipped),
    /// It holds all that there was. Nothing follows.
    Done,
    /// Why it ends. Nothing follows.
    Failed { kind: ErrorKind, message: String },
}

/// What the sender says: first `Hello`, then an answer to each request that has one.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Hello {
        version: u8,
        once: bool,
        key: String,
    },
    Opened {
        length: u64,
        first: Vec<u8>,
    },
    Bytes(Vec<u8>),
    Names(Vec<Item>),
    /// What the log is now, as [`Request::Wait`] is given it.
    News(Hash),
    Failed {
        kind: io::ErrorKind,
        message: String,
    },
}

/// The errors of files that mean something to whoever asked; of every other one the message says all.
const IO_KINDS: [io::ErrorKind; 5] = [
    io::ErrorKind::NotFound,
    io::ErrorKind::NotADirectory,
    io::ErrorKind::IsADirectory,
    io::ErrorKind::InvalidInput,
    io::ErrorKind::PermissionDenied,
];

const KINDS: [ErrorKind; 9] = [
    ErrorKind::Invalid,
    ErrorKind::Timeout,
    ErrorKind::Closed,
    ErrorKind::Locked,
    ErrorKind::Unavailable,
    ErrorKind::Tampered,
    ErrorKind::Erased,
    ErrorKind::NoKey,
    ErrorKind::Refused,
];

/// The place of one in a list of kinds, from 1; 0 for what is not in it.
fn code<T: PartialEq>(kinds: &[T], kind: &T) -> u8 {
    kinds.iter().position(|other| other == kind).map_or(0, |at| u8::try_from(at + 1).unwrap_or(0))
}

fn of_code<T: Copy>(kinds: &[T], code: u8) -> Option<T> {
    usize::from(code).checked_sub(1).and_then(|at| kinds.get(at)).copied()
}

/// The fields of a message that is read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
    }

    fn short(&mut self) -> Option<u32> {
        self.take(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    }

    fn hash(&mut self) -> Option<Hash> {
        self.take(32).and_then(|bytes| bytes.try_into().ok()).map(Hash)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// All that is left.
    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// All that is left, where that is no more than may be.
    fn bytes(&mut self, most: usize) -> Option<Vec<u8>> {
        Some(self.rest()).filter(|bytes| bytes.len() <= most).map(<[u8]>::to_vec)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.rest().to_vec()).ok()
    }

    fn path(&mut self) -> Option<String> {
        self.text().filter(|path| path.len() <= LONGEST_PATH)
    }
}

impl Request {
    fn encode(&self) -> Vec<u8> {
        match self {
            Request::Open { path } => [&[1], path.as_bytes()].concat(),
            Request::Read { offset, count, path } => {
                [&[2], &offset.to_le_bytes()[..], &count.to_le_bytes(), path.as_bytes()].concat()
            }
            Request::List { path } => [&[3], path.as_bytes()].concat(),
            Request::Wait { milliseconds, known } => {
                [&[4], &milliseconds.to_le_bytes()[..], &known.0].concat()
            }
            Request::State(Shipped { frames, entries, signed_time, behind, advanced }) => {
                let mut bytes = vec![5, u8::from(*advanced), u8::from(signed_time.is_some())];
                bytes.extend_from_slice(&signed_time.unwrap_or_default().to_le_bytes());
                for number in [frames, entries, &behind.frames, &behind.entries, &behind.bytes] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                bytes
            }
            Request::Done => vec![6],
            Request::Failed { kind, message } => [&[7, code(&KINDS, kind)], message.as_bytes()].concat(),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let request = match fields.byte()? {
            1 => Request::Open { path: fields.path()? },
            2 => Request::Read { offset: fields.number()?, count: fields.short()?, path: fields.path()? },
            3 => Request::List { path: fields.path()? },
            4 => {
                let milliseconds = fields.short().filter(|time| *time <= LONGEST_WAIT)?;
                Request::Wait { milliseconds, known: fields.hash()? }
            }
            5 => {
                let (advanced, signed) = (fields.flag()?, fields.flag()?);
                let time = fields.number()?.cast_signed();
                let (frames, entries) = (fields.number()?, fields.number()?);
                let behind =
                    Behind { frames: fields.number()?, entries: fields.number()?, bytes: fields.number()? };
                let signed_time = signed.then_some(time);
                if !signed && time != 0 {
                    return None;
                }
                Request::State(Shipped { frames, entries, signed_time, behind, advanced })
            }
            6 => Request::Done,
            7 => Request::Failed { kind: of_code(&KINDS, fields.byte()?)?, message: fields.text()? },
            _ => return None,
        };
        fields.0.is_empty().then_some(request)
    }

    /// Writes it, at once.
    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        write(output, &self.encode())
    }

    /// Reads the next one.
    pub(super) fn read(input: &mut dyn Read) -> io::Result<Self> {
        read(input, Self::decode)
    }
}

impl Answer {
    fn encode(&self) -> Vec<u8> {
        match self {
            Answer::Hello { version, once, key } => {
                [b"\x80bulla-mirror".as_slice(), &[*version, u8::from(*once)], key.as_bytes()].concat()
            }
            Answer::Opened { length, first } => [&[0x81], &length.to_le_bytes()[..], first].concat(),
            Answer::Bytes(bytes) => [&[0x82], &bytes[..]].concat(),
            Answer::Names(items) => {
                let mut bytes = vec![0x83];
                for Item { name, directory } in items {
                    // No name of a file system is longer than 255 bytes, and with replacement characters three times that.
                    let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
                    bytes.push(u8::from(*directory));
                    bytes.extend_from_slice(&length.to_le_bytes());
                    bytes.extend_from_slice(&name.as_bytes()[..usize::from(length)]);
                }
                bytes
            }
            Answer::News(digest) => [&[0x84], &digest.0[..]].concat(),
            Answer::Failed { kind, message } => [&[0x85, code(&IO_KINDS, kind)], message.as_bytes()].concat(),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let answer = match fields.byte()? {
            0x80 => {
                fields.take(12).filter(|mark| mark == b"bulla-mirror")?;
                Answer::Hello { version: fields.byte()?, once: fields.flag()?, key: fields.text()? }
            }
            0x81 => Answer::Opened { length: fields.number()?, first: fields.bytes(FIRST)? },
            0x82 => Answer::Bytes(fields.bytes(MOST_READ)?),
            0x83 => {
                let mut items = Vec::new();
                while !fields.0.is_empty() {
                    let directory = fields.flag()?;
                    let length = u16::from_le_bytes([fields.byte()?, fields.byte()?]);
                    let name = String::from_utf8(fields.take(usize::from(length))?.to_vec()).ok()?;
                    items.push(Item { name, directory });
                }
                Answer::Names(items)
            }
            0x84 => Answer::News(fields.hash()?),
            0x85 => {
                let kind = match fields.byte()? {
                    0 => io::ErrorKind::Other,
                    code => of_code(&IO_KINDS, code)?,
                };
                Answer::Failed { kind, message: fields.text()? }
            }
            _ => return None,
        };
        fields.0.is_empty().then_some(answer)
    }

    /// Writes it, at once.
    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        write(output, &self.encode())
    }

    /// Reads the next one.
    pub(super) fn read(input: &mut dyn Read) -> io::Result<Self> {
        read(input, Self::decode)
    }
}

fn write(output: &mut dyn Write, message: &[u8]) -> io::Result<()> {
    if message.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message would be longer than any may be"));
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    output.write_all(&length.to_le_bytes())?;
    output.write_all(message)?;
    output.flush()
}

/// Reads a message. The end of the line is `ConnectionAborted`: `UnexpectedEof` is the end of a file.
fn read<T>(input: &mut dyn Read, decode: impl Fn(&[u8]) -> Option<T>) -> io::Result<T> {
    let ended = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was closed")
        }
        _ => error,
    };
    let none = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the other side sent {what}"));
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(ended)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(none(
            "what is no message of a mirror: a shell that prints something, or another program?",
        ));
    }
    let mut message = vec![0; length];
    input.read_exact(&mut message).map_err(ended)?;
    decode(&message).ok_or_else(|| none("a message that this version does not know"))
}

/// That these bytes are no message, or one of one spelling.
#[cfg(any(test, fuzzing))]
pub(super) fn check(bytes: &[u8]) {
    if let Some(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes, "a request has one spelling");
    }
    if let Some(answer) = Answer::decode(bytes) {
        assert_eq!(answer.encode(), bytes, "an answer has one spelling");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request> {
        let path = || "segments/00000000000000000000.seg".to_owned();
        let behind = Behind { frames: 1, entries: 2, bytes: 3 };
        let state = |signed_time| Shipped { frames: 4, entries: 5, signed_time, behind, advanced: true };
        let mut requests = vec![
            Request::Open { path: path() },
            Request::Read { offset: 1 << 40, count: 7, path: path() },
            Request::List { path: String::new() },
            Request::Wait { milliseconds: 10_000, known: Hash([7; 32]) },
            Request::State(state(Some(-1))),
            Request::State(state(None)),
            Request::Done,
        ];
        requests.extend(KINDS.map(|kind| Request::Failed { kind, message: "why".to_owned() }));
        requests
    }

    fn answers() -> Vec<Answer> {
        let item = |name: &str, directory| Item { name: name.to_owned(), directory };
        vec![
            Answer::Hello { version: 1, once: true, key: "a+b+c".to_owned() },
            Answer::Opened { length: 9, first: vec![1, 2, 3] },
            Answer::Bytes(Vec::new()),
            Answer::Names(vec![item("a", false), item("ü", true)]),
            Answer::News(Hash([9; 32])),
            Answer::Failed { kind: io::ErrorKind::NotFound, message: "none".to_owned() },
            Answer::Failed { kind: io::ErrorKind::Other, message: String::new() },
        ]
    }

    #[test]
    fn messages_come_back_as_they_went_in() {
        let mut line = Vec::new();
        requests().iter().for_each(|request| request.write(&mut line).unwrap());
        let mut read = &line[..];
        for request in requests() {
            assert_eq!(Request::read(&mut read).unwrap(), request);
        }
        assert_eq!(Request::read(&mut read).unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        let mut line = Vec::new();
        answers().iter().for_each(|answer| answer.write(&mut line).unwrap());
        let mut read = &line[..];
        for answer in answers() {
            assert_eq!(Answer::read(&mut read).unwrap(), answer);
        }
    }

    #[test]
    fn what_is_no_message_is_refused_whatever_is_cut_or_too_long() {
        let encoded = requests().iter().map(Request::encode).collect::<Vec<_>>();
        for bytes in encoded.iter().chain(&answers().iter().map(Answer::encode).collect::<Vec<_>>()) {
            for length in 0..bytes.len() {
                // Text and bytes may be shorter; nothing panics.
                let _ = (Request::decode(&bytes[..length]), Answer::decode(&bytes[..length]));
            }
        }
        assert_eq!(Request::decode(&[6, 0]), None);
        assert_eq!(Answer::decode(&[0x84; 34]), None);
        assert_eq!(Request::decode(&[[1].as_slice(), &[b'a'; 257]].concat()), None, "no path is so long");
        for (answer, most) in
            [(&[&[0x81], &u64::MAX.to_le_bytes()[..]].concat(), FIRST), (&vec![0x82], MOST_READ)]
        {
            let with = |count| Answer::decode(&[&answer[..], &vec![7; count]].concat());
            assert!(with(most).is_some() && with(most + 1).is_none(), "no answer has more than {most} bytes");
        }
        let wait =
            |milliseconds: u32| Request::decode(&[&[4], &milliseconds.to_le_bytes()[..], &[0; 32]].concat());
        assert!(wait(LONGEST_WAIT).is_some() && wait(LONGEST_WAIT + 1).is_none(), "no wait is longer");
        let mut long = &[0xff; 8][..];
        assert_eq!(Request::read(&mut long).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let mut greeting = &b"Welcome to this host\n"[..];
        let error = Answer::read(&mut greeting).unwrap_err();
        assert!(error.to_string().contains("a shell that prints something"), "{error}");
    }
}
