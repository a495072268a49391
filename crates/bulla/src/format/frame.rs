//! A frame as it lies in a segment: header ‖ commitment ‖ body ‖ seal.
//!
//! ```text
//! offset  size  field
//!      0     4  "Bulf"
//!      4     1  format version, 1
//!      5     1  kind, as in the commitment
//!      6     2  length of the commitment, 152
//!      8     4  length of the body
//!     12     8  the group's first frame: frames that share it were made durable by one sync
//!     20     4  CRC-32C of bytes 0 to 19
//!     24   152  commitment
//!    176     …  body
//!      …    32  seal
//! ```

use bulla_crypto::seal_chain::Seal;
use bulla_proof::commitment::{Commitment, CommitmentError, FrameKind, LogId};
use bulla_proof::hash::{Hash, Sha256};
use bulla_store::StoreFile;
use std::{fmt, io};

/// Bytes before the commitment.
pub(crate) const HEADER: usize = 24;
/// Bytes before the body.
pub(crate) const HEAD: usize = HEADER + Commitment::LENGTH;
/// Bytes of a seal.
pub(crate) const SEAL: usize = 32;

const MAGIC: &[u8; 4] = b"Bulf";
const VERSION: u8 = 1;
/// The length of a commitment, as the header has it.
const COMMITMENT: [u8; 2] = [Commitment::LENGTH.to_le_bytes()[0], 0];
const _: () = assert!(Commitment::LENGTH < 256);

/// Writes the part of a frame before its body.
pub(crate) fn encode_head(commitment: &[u8; Commitment::LENGTH], body: usize, group: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(MAGIC);
    head[4] = VERSION;
    head[5] = commitment[1];
    head[6..8].copy_from_slice(&COMMITMENT);
    head[8..12].copy_from_slice(&u32::try_from(body).expect("a body is under 4 GiB").to_le_bytes());
    head[12..20].copy_from_slice(&group.to_le_bytes());
    let crc = crc32c::crc32c(&head[..20]);
    head[20..24].copy_from_slice(&crc.to_le_bytes());
    head[HEADER..].copy_from_slice(commitment);
    head
}

/// What stands before a frame's body, and where.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) offset: u64,
    pub(crate) group: u64,
    pub(crate) commitment: Commitment,
    pub(crate) encoded: [u8; Commitment::LENGTH],
}

impl Head {
    /// Bytes of the whole frame.
    pub(crate) fn length(&self) -> u64 {
        frame_length(&self.commitment)
    }

    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length()
    }

    pub(crate) fn body_offset(&self) -> u64 {
        self.offset + HEAD as u64
    }
}

/// Bytes of the frame that `commitment` describes.
pub(crate) fn frame_length(commitment: &Commitment) -> u64 {
    (HEAD + SEAL) as u64 + commitment.body_length
}

/// Why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// The file ends inside it.
    Truncated,
    /// The header's mark or checksum is wrong.
    Header,
    /// It is of a newer format version.
    NewerVersion(u8),
    /// The commitment is not one.
    Commitment(CommitmentError),
    /// Header and commitment disagree.
    Disagree,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the segment ends inside the frame"),
            Self::Header => write!(f, "the frame's header is damaged"),
            Self::NewerVersion(version) => write!(f, "the frame is of format version {version}"),
            Self::Commitment(error) => write!(f, "the commitment is damaged: {error}"),
            Self::Disagree => write!(f, "the frame's header disagrees with its commitment"),
        }
    }
}

/// Parses the part of a frame before its body; `offset` is where in its segment it begins.
///
/// # Errors
/// Where it is not one.
pub(crate) fn parse_head(bytes: &[u8], offset: u64) -> Result<Head, FrameError> {
    let head: &[u8; HEAD] =
        bytes.get(..HEAD).and_then(|head| head.try_into().ok()).ok_or(FrameError::Truncated)?;
    let (header, commitment) = head.split_at(HEADER);
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or_default());
    if &header[..4] != MAGIC || word(20) != crc32c::crc32c(&header[..20]) {
        return Err(FrameError::Header);
    }
    if header[4] != VERSION {
        return Err(FrameError::NewerVersion(header[4]));
    }
    if header[6..8] != COMMITMENT {
        return Err(FrameError::Disagree);
    }
    let encoded = commitment.try_into().map_err(|_| FrameError::Truncated)?;
    let commitment = Commitment::decode(commitment).map_err(FrameError::Commitment)?;
    if u64::from(word(8)) != commitment.body_length || header[5] != commitment.kind as u8 {
        return Err(FrameError::Disagree);
    }
    let group = u64::from_le_bytes(header[12..20].try_into().unwrap_or_default());
    if group > commitment.frame {
        return Err(FrameError::Disagree);
    }
    Ok(Head { offset, group, commitment, encoded })
}

/// Whether these bytes, where a frame of a log should begin, can be what a crash left of a write: of the bytes that all
/// frames of the log have in common each is as it is in all of them, or zero, because it was never written.
pub(crate) fn may_be_torn(bytes: &[u8], log: LogId) -> bool {
    let common: [(usize, &[u8]); 5] =
        [(0, MAGIC), (4, &[VERSION]), (6, &COMMITMENT), (HEADER, &[VERSION]), (HEADER + 8, &log.0)];
    let written = |at: usize| bytes.get(at).copied().filter(|byte| *byte != 0);
    let fits = |&(start, values): &(usize, &[u8])| {
        (start..).zip(values).all(|(at, value)| written(at).is_none_or(|byte| byte == *value))
    };
    let kinds = [5, HEADER + 1].map(|at| written(at).is_none_or(|kind| kind <= FrameKind::Gap as u8));
    common.iter().all(fits) && kinds == [true, true]
}

/// Why a frame could not be read.
pub(crate) enum ReadError {
    Frame(FrameError),
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Frame(FrameError::Truncated),
            _ => ReadError::Io(error),
        }
    }
}

/// Reads the head of the frame at `offset` of a file of `length` bytes, and checks that the file has all of it.
pub(crate) fn read_head(file: &dyn StoreFile, offset: u64, length: u64) -> Result<Head, ReadError> {
    let mut bytes = [0; HEAD];
    file.read_exact_at(&mut bytes, offset)?;
    let head = parse_head(&bytes, offset).map_err(ReadError::Frame)?;
    if head.end() > length {
        return Err(ReadError::Frame(FrameError::Truncated));
    }
    Ok(head)
}

/// Where the frame at `offset` of a file of `length` bytes ends by its header alone, of which the commitment need not be one; nothing
/// where the header is unsound, or the file has not all of it.
pub(crate) fn end_by_header(file: &dyn StoreFile, offset: u64, length: u64) -> io::Result<Option<u64>> {
    if length.saturating_sub(offset) < (HEAD + SEAL) as u64 {
        return Ok(None);
    }
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, offset)?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or_default());
    let is_sound = &header[..4] == MAGIC && word(20) == crc32c::crc32c(&header[..20]);
    let end = offset + (HEAD + SEAL) as u64 + u64::from(word(8));
    Ok((is_sound && end <= length).then_some(end))
}

/// Reads a frame's seal.
pub(crate) fn read_seal(file: &dyn StoreFile, frame_end: u64) -> io::Result<Seal> {
    let mut seal = [0; SEAL];
    file.read_exact_at(&mut seal, frame_end - SEAL as u64)?;
    Ok(seal)
}

/// Reads a frame's body, whose length its commitment bounds.
pub(crate) fn read_body(file: &dyn StoreFile, offset: u64, commitment: &Commitment) -> io::Result<Vec<u8>> {
    let mut body = vec![0; usize::try_from(commitment.body_length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut body, offset + HEAD as u64)?;
    Ok(body)
}

/// SHA-256 of a stretch of a file, read in pieces.
pub(crate) fn digest(file: &dyn StoreFile, offset: u64, length: u64) -> io::Result<Hash> {
    digest_each(file, offset, length, |_, _| Ok(()))
}

/// The same, with each piece that somebody wrote given to `written`, and where it begins. What nobody ever wrote to is zeros,
/// and not read.
pub(crate) fn digest_each(
    file: &dyn StoreFile,
    mut offset: u64,
    length: u64,
    mut written: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<Hash> {
    const PIECE: usize = 256 << 10;
    let (mut hasher, end) = (Sha256::new(), offset.saturating_add(length));
    let upto = |offset: u64, end: u64| usize::try_from(end - offset).unwrap_or(usize::MAX).min(PIECE);
    let mut buffer = vec![0; upto(offset, end)];
    while offset < end {
        let data = file.next_data(offset)?.clamp(offset, end);
        buffer.fill(0);
        while offset < data {
            let zeros = &buffer[..upto(offset, data)];
            hasher.update(zeros);
            offset += zeros.len() as u64;
        }
        let hole = data_end(file, offset)?.min(end);
        while offset < hole {
            let piece = &mut buffer[..upto(offset, hole)];
            file.read_exact_at(piece, offset)?;
            hasher.update(piece);
            written(offset, piece)?;
            offset += piece.len() as u64;
        }
    }
    Ok(hasher.finish())
}

/// Where what was written at `offset`, where something was, ends at the earliest.
fn data_end(file: &dyn StoreFile, offset: u64) -> io::Result<u64> {
    // One that has changed since does not keep anybody in place.
    Ok(Some(file.next_hole(offset)?).filter(|hole| *hole > offset).unwrap_or(u64::MAX))
}

/// The first place from `offset` on at which there is a sound head that `wanted` accepts. Where nobody ever wrote there is none,
/// and nothing is read.
pub(crate) fn find(
    file: &dyn StoreFile,
    mut offset: u64,
    length: u64,
    wanted: impl Fn(&Head) -> bool,
) -> io::Result<Option<u64>> {
    // It is near in most cases, so the pieces that are read begin small and grow.
    let mut size = 4 << 10;
    let mut piece = Vec::new();
    loop {
        // No head begins with a zero.
        offset = file.next_data(offset)?.max(offset);
        if offset >= length {
            return Ok(None);
        }
        let written = usize::try_from(data_end(file, offset)? - offset).unwrap_or(usize::MAX).min(size);
        piece.resize(size + HEAD, 0);
        // One may begin where something was written, and end in zeros.
        let take = (written + HEAD).min(usize::try_from(length - offset).unwrap_or(usize::MAX));
        file.read_exact_at(&mut piece[..take], offset)?;
        let starts = (0..take.min(written)).filter(|&start| piece[start] == MAGIC[0]);
        let heads = starts.filter_map(|start| parse_head(&piece[start..take], offset + start as u64).ok());
        if let Some(head) = heads.into_iter().find(&wanted) {
            return Ok(Some(head.offset));
        }
        offset += take.min(written) as u64;
        size = (size * 2).min(1 << 20);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_proof::hash::HashId;
    use std::io::IoSlice;
    use std::ops::Range;

    /// A head, and nothing else that anybody wrote.
    #[derive(Debug)]
    struct Sparse {
        at: u64,
        head: [u8; HEAD],
    }

    impl StoreFile for Sparse {
        fn length(&self) -> io::Result<u64> {
            Ok(1 << 50)
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let near = self.pages().start..self.pages().end + HEAD as u64;
            let read = offset..offset + buffer.len() as u64;
            assert!(near.start <= read.start && read.end <= near.end, "{read:?} is read, where nobody wrote");
            for (at, byte) in (offset..).zip(buffer.iter_mut()) {
                let place = at.checked_sub(self.at).and_then(|place| usize::try_from(place).ok());
                *byte = place.and_then(|place| self.head.get(place)).copied().unwrap_or(0);
            }
            Ok(buffer.len())
        }

        fn write_at(&self, _: &mut [IoSlice<'_>], _: u64) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn sync(&self) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn set_length(&self, _: u64) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn next_data(&self, offset: u64) -> io::Result<u64> {
            let pages = self.pages();
            Ok(if offset < pages.end { offset.max(pages.start) } else { 1 << 50 })
        }

        fn next_hole(&self, offset: u64) -> io::Result<u64> {
            Ok(if self.pages().contains(&offset) { self.pages().end } else { offset })
        }
    }

    impl Sparse {
        /// What is written, by pages, as file systems keep account of it.
        fn pages(&self) -> Range<u64> {
            self.at / 4096 * 4096..(self.at + HEAD as u64).next_multiple_of(4096)
        }
    }

    #[test]
    fn a_head_is_found_behind_zeros_that_nobody_wrote_and_they_are_not_read() {
        let commitment = Commitment {
            kind: FrameKind::Gap,
            codec: 0,
            hash: HashId::Sha256,
            content_log2: 0,
            sources_length: 0,
            log_id: LogId([7; 16]),
            frame: 9,
            first_entry: 0,
            entries: 1,
            earliest: 0,
            latest: 0,
            epoch: 5,
            units: 0,
            root: Hash::ZERO,
            body_length: 0,
            body_digest: Hash::ZERO,
        };
        for at in [0, 1 << 40, (1 << 40) + 4000, (1 << 50) - 4096] {
            let file = Sparse { at, head: encode_head(&commitment.encode(), 0, 9) };
            for from in [0, at / 2, at] {
                assert_eq!(find(&file, from, 1 << 50, |_| true).unwrap(), Some(at), "{at} from {from}");
            }
            assert_eq!(find(&file, at + 1, 1 << 50, |_| true).unwrap(), None, "{at}");
            assert_eq!(find(&file, 0, 1 << 50, |head| head.group == 8).unwrap(), None, "{at}");
        }
    }

    #[test]
    fn a_digest_has_the_zeros_that_nobody_wrote_and_they_are_not_read() {
        let file = Sparse { at: 1 << 40, head: [7; HEAD] };
        for (before, behind) in [(0, 0), (5, 9), (300 << 10, 1 << 20)] {
            let mut bytes = vec![0; before];
            bytes.extend([7; HEAD]);
            bytes.extend(vec![0; behind]);
            let mut written = Vec::new();
            let digest = digest_each(&file, (1 << 40) - before as u64, bytes.len() as u64, |at, piece| {
                written.push((at, piece.len() as u64));
                Ok(())
            });
            assert_eq!(digest.unwrap(), bulla_proof::hash::sha256(&[&bytes]), "{before}, {behind}");
            let end = (1 << 40) + (HEAD + behind).min(4096) as u64;
            assert_eq!(written, [(1 << 40, end - (1 << 40))], "{before}, {behind}");
        }
    }
}
