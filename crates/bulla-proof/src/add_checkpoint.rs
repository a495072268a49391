//! What is posted to a witness ([C2SP tlog-witness](https://c2sp.org/tlog-witness), `add-checkpoint`): the size of the tree that it is
//! believed to have cosigned last, a proof that the new tree begins with that, and the checkpoint of the new tree.

use crate::checkpoint::parse_size;
use crate::hash::Hash;
use std::fmt::Write;

/// The path below a witness's prefix.
pub const PATH: &str = "add-checkpoint";
/// The longest body that is read, in bytes.
pub const MOST: usize = 64 << 10;
/// The most hashes of a proof.
pub const MOST_HASHES: usize = 63;

/// What is posted, taken apart. Nothing of it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The size of the tree that was cosigned last; 0 where none was.
    pub old_size: u64,
    /// A consistency proof from that tree to the checkpoint's: RFC 6962, section 2.1.2.
    pub proof: Vec<Hash>,
    /// The checkpoint, as a signed note.
    pub note: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// Which part of it is not as the specification has it.
    pub fn parse(body: &'a [u8]) -> Result<Self, &'static str> {
        if body.len() > MOST {
            return Err("a request has at most 64 KiB");
        }
        let (first, mut rest) = line(body).ok_or("the first line has no end")?;
        let old_size = first.strip_prefix("old ").and_then(parse_size);
        let old_size =
            old_size.ok_or("the first line is `old` and the size of the tree that was cosigned last")?;
        let mut proof = Vec::new();
        loop {
            let (hash, behind) = line(rest).ok_or("there is no empty line before the checkpoint")?;
            rest = behind;
            if hash.is_empty() {
                return Ok(Request { old_size, proof, note: rest });
            }
            if proof.len() == MOST_HASHES {
                return Err("a consistency proof has at most 63 hashes");
            }
            proof.push(Hash::from_base64(hash).ok_or("a line of the proof is not the base64 of 32 bytes")?);
        }
    }

    /// The body.
    ///
    /// # Panics
    /// Where the note is not UTF-8.
    pub fn render(&self) -> String {
        let note = std::str::from_utf8(self.note).expect("a note is UTF-8");
        let mut body = format!("old {}\n", self.old_size);
        for hash in &self.proof {
            // Writing to a `String` cannot fail.
            let _ = writeln!(body, "{}", hash.to_base64());
        }
        body + "\n" + note
    }
}

/// The first line without its end, and what is behind it.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=";

    #[test]
    fn a_request_is_read_as_it_is_written() {
        let hash = Hash::from_base64(HASH).unwrap();
        for (old_size, count) in [(0, 0), (7, 1), (u64::MAX, MOST_HASHES)] {
            let request =
                Request { old_size, proof: vec![hash; count], note: b"origin\n1\nx\n\n\xe2\x80\x94 a b\n" };
            assert_eq!(Request::parse(request.render().as_bytes()), Ok(request));
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let long = format!("old 1\n{}\nnote", format!("{HASH}\n").repeat(MOST_HASHES + 1));
        let longer = format!("old 0\n\n{}", "a".repeat(MOST));
        for (body, why) in [
            ("", "no end"),
            ("old 1", "no end"),
            ("new 1\n\n", "first line"),
            ("old 01\n\n", "first line"),
            ("old +1\n\n", "first line"),
            ("old -1\n\n", "first line"),
            ("old  1\n\n", "first line"),
            ("old 1 \n\n", "first line"),
            ("old \n\n", "first line"),
            ("old 18446744073709551616\n\n", "first line"),
            ("old 1\r\n\r\n", "first line"),
            ("old 1\n", "empty line"),
            ("old 1\nPlRN\n\nnote", "base64 of 32 bytes"),
            ("old 1\nnote", "empty line"),
            (&long, "63 hashes"),
            (&longer, "64 KiB"),
        ] {
            let refused = Request::parse(body.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{body:?}: {refused}");
        }
        assert!(Request::parse(b"old \xff\n\n").is_err());
    }
}
