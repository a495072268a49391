//! The lines of a proof file: those up to the first empty one, and the signed note that follows it.

use super::error::ProofError;
use crate::hash::Hash;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The lines before the empty one, as they are taken off the front.
pub(super) struct Lines<'a> {
    /// What is left, if a line is.
    rest: Option<&'a [u8]>,
    /// The number of the next line, from 1.
    number: usize,
}

impl<'a> Lines<'a> {
    /// Cuts a file into its lines, from the second on, and the note.
    pub(super) fn split(file: &'a [u8]) -> Result<(Self, &'a [u8]), ProofError> {
        let blank = file.windows(2).position(|pair| pair == b"\n\n").ok_or(ProofError::NoCheckpoint)?;
        let (lines, note) = (&file[..blank], &file[blank + 2..]);
        let first = lines.iter().position(|&byte| byte == b'\n');
        Ok((Lines { rest: first.map(|end| &lines[end + 1..]), number: 2 }, note))
    }

    /// The first line of a file, without looking further.
    pub(super) fn first(file: &'a [u8]) -> Option<&'a str> {
        let end = file.iter().position(|&byte| byte == b'\n')?;
        std::str::from_utf8(&file[..end]).ok()
    }

    /// Takes the next line, if there is one and `parse` reads it.
    pub(super) fn take<T>(&mut self, parse: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let rest = self.rest?;
        let end = rest.iter().position(|&byte| byte == b'\n');
        let value = parse(std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()?)?;
        self.rest = end.map(|end| &rest[end + 1..]);
        self.number += 1;
        Some(value)
    }

    /// Takes the next line, which has to be there.
    pub(super) fn expect<T>(
        &mut self,
        expected: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, ProofError> {
        let number = self.number;
        self.take(parse).ok_or(ProofError::Line { number, expected })
    }

    /// Takes all lines that are left, each a hash.
    pub(super) fn hashes(mut self) -> Result<Vec<Hash>, ProofError> {
        let mut hashes = Vec::new();
        while self.rest.is_some() {
            hashes.push(self.expect("a hash in base64", Hash::from_base64)?);
        }
        Ok(hashes)
    }
}

/// Ends a file whose lines so far are in `file`.
pub(super) fn finish(file: &mut String, hashes: &[Hash], note: &[u8]) {
    for hash in hashes {
        file.push_str(&hash.to_base64());
        file.push('\n');
    }
    file.push('\n');
    // A signed note is UTF-8: it was parsed.
    file.push_str(&String::from_utf8_lossy(note));
}

/// Standard base64 with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads what [`encode`] writes, and no other spelling of it.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
