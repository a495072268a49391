use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::io::{self, BufReader, Chain, Cursor, Read};
use zstd::stream::read::Decoder;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// How what is compressed by others begins, by whom, and what decompresses it: it is not read, and no text either.
const OTHERS: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"BZh91AY&SY", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Whether content that begins so is compressed by gzip or zstd.
///
/// ```
/// assert!(bulla_ingest::framing::is_packed(&[0x1f, 0x8b, 8]) && !bulla_ingest::framing::is_packed(b"(a)"));
/// ```
pub fn is_packed(beginning: &[u8]) -> bool {
    beginning.starts_with(GZIP) || beginning.starts_with(ZSTD)
}

/// What `source` has, decompressed where it begins as gzip or zstd do: as many members or frames as follow each other. Takes at
/// most 128 MiB for the window of zstd; what was compressed with a larger one (`--long` beyond 27) is refused.
pub fn unpack<R: Read>(source: R) -> Unpacked<R> {
    Unpacked { state: State::Unknown(Some(source)), head: Vec::with_capacity(ZSTD.len()) }
}

/// What [`unpack`] returns.
///
/// An error of the source before it is known what it is loses nothing: the next read goes on. Damage is an error of the kind
/// [`InvalidData`](io::ErrorKind::InvalidData) or [`InvalidInput`](io::ErrorKind::InvalidInput), and what begins as xz, bzip2, lz4 and zip do
/// one of the kind [`Unsupported`](io::ErrorKind::Unsupported); an end before that of the compressed
/// data [`UnexpectedEof`](io::ErrorKind::UnexpectedEof).
pub struct Unpacked<R: Read> {
    state: State<R>,
    /// What was read to know what it is.
    head: Vec<u8>,
}

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

enum State<R: Read> {
    /// There is a source as long as that is so.
    Unknown(Option<R>),
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Whole<R>>>>),
    Zstd(Box<Decoder<'static, BufReader<Whole<R>>>>),
}

impl<R: Read> Unpacked<R> {
    /// Reads until the first bytes say what it is.
    fn decide(&mut self) -> io::Result<()> {
        let State::Unknown(source) = &mut self.state else { return Ok(()) };
        let Some(unread) = source else { return Err(io::Error::other("it could not be decompressed")) };
        let magics = || [GZIP, ZSTD].into_iter().chain(OTHERS.map(|(magic, ..)| magic));
        while magics().any(|magic| magic.len() > self.head.len() && magic.starts_with(&self.head)) {
            let mut byte = [0];
            if unread.read(&mut byte)? == 0 {
                break;
            }
            self.head.push(byte[0]);
        }
        let (is_gzip, is_zstd) = (self.head.starts_with(GZIP), self.head.starts_with(ZSTD));
        if let Some((_, by, tool)) = OTHERS.iter().find(|(magic, ..)| self.head.starts_with(magic)) {
            let what = format!(
                "it is compressed by {by}, and gzip and zstd alone are read: decompress it first, as `{tool}` does"
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let Some(source) = source.take() else { return Ok(()) };
        let whole = Cursor::new(std::mem::take(&mut self.head)).chain(source);
        self.state = match () {
            () if is_gzip => State::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(whole)))),
            () if is_zstd => State::Zstd(Box::new(Decoder::with_buffer(BufReader::new(whole))?)),
            () => State::Plain(whole),
        };
        Ok(())
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decide()?;
        match &mut self.state {
            State::Unknown(_) => Ok(0),
            State::Plain(source) => source.read(buffer),
            State::Gzip(decoder) => decoder.read(buffer),
            State::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

impl<R: Read> fmt::Debug for Unpacked<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Unknown(_) => "unknown",
            State::Plain(_) => "plain",
            State::Gzip(_) => "gzip",
            State::Zstd(_) => "zstd",
        };
        f.debug_struct("Unpacked").field("is", &state).finish_non_exhaustive()
    }
}
