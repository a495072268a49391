//! The form in which a key, or a part of one, stands in an entry as subject and location: text that says every byte.
//!
//! - Whatever is UTF-8 stands as it is, but `%`, which is `%25`.
//! - Of what is not UTF-8 each byte is `%` and two hexadecimal digits in capitals: the byte `FF` is `%FF`. What is not UTF-8 are the
//!   bytes that [`slice::utf8_chunks`] calls invalid.
//! - What has more than 64 KiB in this form ([`MAX_STRING`]) is cut: its beginning, between characters and between such
//!   groups of three; `%~`; how many bytes all of it has, in decimal; `~`; and in 64 small hexadecimal digits the HMAC-SHA-256 of all
//!   of it under a key of the proxy's. The beginning is as long as fits.
//!
//! Two keys never have the same form: [`decode`] gives back each that was not cut, from no other text; and one that was cut has
//! `%~` in it, which nothing else can have, and differs from any other that was cut in its digest.

use bulla_proof::entry::MAX_STRING;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::borrow::Cow;
use std::fmt::Write;

/// The keyed digest with which a cut text goes on.
pub fn digest(key: &[u8; 32], bytes: &[u8]) -> [u8; 32] {
    // A key of any length is one for HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

/// The form of all bytes of a text, cut where it is too long, with a digest under `key`.
pub fn encode<'a>(bytes: &'a [u8], key: &[u8; 32]) -> Cow<'a, str> {
    let text = uncut(bytes);
    if text.len() <= MAX_STRING {
        return text;
    }
    Cow::Owned(cut(bytes, bytes.len() as u64, &digest(key, bytes)))
}

/// The form of a text that is too long, of which only the beginning is there: all that its beginning does not say is in its length and digest.
pub fn cut(beginning: &[u8], length: u64, digest: &[u8; 32]) -> String {
    let mut end = format!("%~{length}~");
    for byte in digest {
        let _ = write!(end, "{byte:02x}");
    }
    // No byte takes less than one, so no more than this is shown. A character that goes on behind it is not.
    let mut beginning = &beginning[..beginning.len().min(MAX_STRING)];
    let unfinished = |tail: &[u8]| {
        std::str::from_utf8(tail).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    if let Some(start) =
        (beginning.len().saturating_sub(3)..beginning.len()).find(|it| unfinished(&beginning[*it..]))
    {
        beginning = &beginning[..start];
    }
    let mut text = uncut(beginning).into_owned();
    let mut most = text.len().min(MAX_STRING - end.len());
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    // `%` only ever begins a group of three.
    if let Some(group) = text.as_bytes()[..most].iter().rposition(|byte| *byte == b'%')
        && group + 3 > most
    {
        most = group;
    }
    text.truncate(most);
    text + &end
}

/// The bytes that a form is of; `None` where it is of none, or was cut.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        match first {
            b'%' => {
                let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &behind[2..];
            }
            byte => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    // One form for one text: not `%41` for `A`, nor `%ff` for `%FF`.
    (uncut(&bytes) == text).then_some(bytes)
}

/// The form of all bytes of a text, however long it is.
pub fn uncut(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !bytes.contains(&b'%')
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    for chunk in bytes.utf8_chunks() {
        for (index, valid) in chunk.valid().split('%').enumerate() {
            text.push_str(if index > 0 { "%25" } else { "" });
            text.push_str(valid);
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Cow::Owned(text)
}
