//! A secret of one log as a line of text: `<header> <log id> <base64 of 32 bytes> <check>`.
//!
//! The check is the first 4 bytes, in hexadecimal digits, of the SHA-256 of all that stands before it, without the blank: a
//! file that the medium has changed must not accuse the log, nor give out other pseudonyms. Of a secret of 256 random bits
//! it gives nothing away that helps.

use bulla_proof::commitment::LogId;
use bulla_proof::hash::{Hash, sha256};
use bulla_store::{Error, ErrorKind, Result};
use std::fmt::Write;
use zeroize::Zeroizing;

/// The line.
pub fn render(header: &str, log: LogId, secret: &[u8; 32]) -> Zeroizing<String> {
    let secret = Zeroizing::new(Hash(*secret).to_base64());
    // Nothing is left behind by growing.
    let mut line = Zeroizing::new(String::with_capacity(128));
    // Writing to a `String` cannot fail.
    let _ = write!(line, "{header} {log} {}", secret.as_str());
    let check = check(&line);
    let _ = writeln!(line, " {check}");
    line
}

/// Reads the line of `log`; `what` says of what.
///
/// # Errors
/// `Invalid` where it is not one or is damaged, `Refused` where it is another log's.
pub fn parse(what: &str, header: &str, text: &str, log: LogId) -> Result<Zeroizing<[u8; 32]>> {
    // Blanks before it, and several in a row, come from whoever types it from paper.
    let mut line = Zeroizing::new(String::with_capacity(text.len()));
    for word in text.split_ascii_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let words = line.rsplit_once(' ').and_then(|(before, check)| {
        let (id, secret) = before.strip_prefix(header)?.strip_prefix(' ')?.split_once(' ')?;
        Some((before, id, secret, check))
    });
    let Some((before, id, secret, told)) = words else {
        return Err(Error::invalid(format!("it is not a {what} (`{header} LOG KEY CHECK`)")));
    };
    if check(before) != told {
        let message =
            format!("it is no {what} any more: its last word is not the check of what stands before it");
        return Err(Error::invalid(message));
    }
    if LogId::parse(id) != Some(log) {
        return Err(Error::new(ErrorKind::Refused, format!("it is the {what} of another log, {id}")));
    }
    let secret = Hash::from_base64(secret).map(|secret| Zeroizing::new(secret.0));
    secret.ok_or_else(|| Error::invalid("its key is not 32 bytes of base64"))
}

fn check(before: &str) -> String {
    let digest = sha256(&[before.as_bytes()]);
    digest.0[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: LogId = LogId([7; 16]);

    #[test]
    fn comes_back_and_every_changed_byte_is_found() {
        let line = render("bulla-x-v1", LOG, &[5; 32]);
        assert_eq!(*parse("x", "bulla-x-v1", &line, LOG).unwrap(), [5; 32]);
        let typed = format!("  {}\n\n", line.trim_end().replace(' ', "  \t "));
        assert_eq!(
            *parse("x", "bulla-x-v1", &typed, LOG).unwrap(),
            [5; 32],
            "how many blanks are around words counts for nothing"
        );
        for (at, to) in (0..line.len() - 1).flat_map(|at| [(at, b'0'), (at, b'a'), (at, b'B'), (at, b' ')]) {
            let mut bytes = line.as_bytes().to_vec();
            if std::mem::replace(&mut bytes[at], to) != to {
                let error = parse("x", "bulla-x-v1", std::str::from_utf8(&bytes).unwrap(), LOG).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Invalid, "{at} {to}");
            }
        }
    }

    #[test]
    fn another_logs_is_refused_and_another_file_is_none() {
        let line = render("bulla-x-v1", LOG, &[5; 32]);
        assert_eq!(parse("x", "bulla-x-v1", &line, LogId([8; 16])).unwrap_err().kind(), ErrorKind::Refused);
        for other in ["", "bulla-x-v1", "bulla-x-v1 a b c d", &line.replace("x-v1", "y-v1")] {
            assert_eq!(
                parse("x", "bulla-x-v1", other, LOG).unwrap_err().kind(),
                ErrorKind::Invalid,
                "{other}"
            );
        }
    }
}
