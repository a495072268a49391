//! age stanzas as text: what headers of age files and messages of plugins are made of.
//!
//! ```text
//! -> TAG ARGUMENT…
//! the body in base64, 64 characters a line; the last line is shorter, and may be empty
//! ```

use age_core::format::Stanza;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use zeroize::Zeroizing;

/// Characters of base64 in a full line.
const COLUMNS: usize = 64;

/// Appends a stanza. Where `text` has to grow, the old memory is overwritten, so that no copy of a secret is left behind.
pub(crate) fn write(text: &mut Zeroizing<Vec<u8>>, tag: &str, arguments: &[&str], body: &[u8]) {
    let mut words = format!("-> {tag}");
    for argument in arguments {
        words.push(' ');
        words.push_str(argument);
    }
    words.push('\n');
    let mut encoded = Zeroizing::new(String::with_capacity(body.len().div_ceil(3) * 4));
    BASE64_STANDARD_NO_PAD.encode_string(body, &mut encoded);
    let length = words.len() + encoded.len() + encoded.len() / COLUMNS + 1;
    if text.capacity() - text.len() < length {
        let mut larger = Zeroizing::new(Vec::with_capacity((text.len() + length) * 2));
        larger.extend_from_slice(text);
        *text = larger;
    }
    text.extend_from_slice(words.as_bytes());
    let mut lines = encoded.as_bytes().chunks_exact(COLUMNS);
    for line in &mut lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(lines.remainder());
    text.push(b'\n');
}

/// A stanza that is read line by line.
pub(crate) struct Partial {
    tag: String,
    arguments: Vec<String>,
    encoded: Zeroizing<Vec<u8>>,
}

/// What a stanza is after another line.
pub(crate) enum Read {
    More(Partial),
    Whole(Stanza),
}

impl Partial {
    /// Begins a stanza whose body has at most `limit` bytes; `None` where the line begins none.
    pub(crate) fn begin(line: &[u8], limit: usize) -> Option<Self> {
        let words = std::str::from_utf8(line).ok()?.strip_prefix("-> ")?;
        let mut words = words.split(' ').map(|word| {
            let fits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
            fits.then(|| word.to_owned())
        });
        let tag = words.next()??;
        let arguments = words.collect::<Option<Vec<_>>>()?;
        let encoded = Zeroizing::new(Vec::with_capacity(limit.div_ceil(3) * 4 + COLUMNS));
        Some(Partial { tag, arguments, encoded })
    }

    /// Takes a line of the body; `None` where it is not one, or the body gets too long.
    pub(crate) fn take(mut self, line: &[u8]) -> Option<Read> {
        if line.len() > COLUMNS || self.encoded.len() + line.len() > self.encoded.capacity() {
            return None;
        }
        self.encoded.extend_from_slice(line);
        if line.len() == COLUMNS {
            return Some(Read::More(self));
        }
        let body = BASE64_STANDARD_NO_PAD.decode(&*self.encoded).ok()?;
        Some(Read::Whole(Stanza { tag: self.tag, args: self.arguments, body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: &[u8]) -> String {
        let mut text = Zeroizing::new(Vec::new());
        write(&mut text, "tag", &["one", "two"], body);
        String::from_utf8(text.to_vec()).unwrap()
    }

    fn read(text: &str) -> Option<Stanza> {
        let mut lines = text.lines().map(str::as_bytes);
        let mut partial = Partial::begin(lines.next()?, 200)?;
        loop {
            match partial.take(lines.next()?)? {
                Read::More(more) => partial = more,
                Read::Whole(stanza) => return lines.next().is_none().then_some(stanza),
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 47, 48, 49, 95, 96, 97, 200] {
            let body = vec![7; length];
            let text = written(&body);
            assert!(text.ends_with('\n') && text.lines().skip(1).all(|line| line.len() <= 64), "{text}");
            assert!(text.lines().last().unwrap().len() < 64, "{text}");
            let stanza = read(&text).unwrap();
            assert_eq!((stanza.tag.as_str(), stanza.body.len()), ("tag", length));
            assert_eq!(stanza.args, ["one", "two"]);
        }
        assert_eq!(written(b""), "-> tag one two\n\n");
    }

    #[test]
    fn what_is_none_is_not_read() {
        for text in [
            "tag\n\n",
            "->tag\n\n",
            "-> \n\n",
            "-> tag  two\n\n",
            "-> tag \x07\n\n",
            "-> tag\n=\n",
            "-> tag\nA\n",
            "-> tag\nAB\n",
            "-> tag\n\u{e9}\n",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
        assert!(read(&written(&[1; 300])).is_none(), "over the limit");
        let long = format!("-> tag\n{}\n", "A".repeat(65));
        assert!(read(&long).is_none(), "{long}");
    }
}
