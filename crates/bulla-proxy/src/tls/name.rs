//! Whose certificate it is. It was verified before anybody asks, so that what it says is what its authority has signed.

use bulla::text::is_obeyed;
use bulla_proof::entry::MAX_STRING;
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The name: [`Established`](super::Established) says which.
pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let mut uris = certificate.valid_uri_names().filter(|name| usable(name));
    let mut dns_names = certificate.valid_dns_names().filter(|name| usable(name));
    let found = common_name(certificate.subject()).or_else(|| uris.next()).or_else(|| dns_names.next());
    found.map(str::to_owned)
}

/// Whether it can be an actor, and cannot be shown as something else than it is.
fn usable(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_STRING && !name.contains(is_obeyed)
}

/// The common name of a subject, where it has one and no other: RFC 5280, section 4.1.2.4.
fn common_name(subject: &[u8]) -> Option<&str> {
    let mut found = None;
    for set in elements(subject) {
        let (SET, attributes) = set? else { return None };
        for attribute in elements(attributes) {
            let (SEQUENCE, attribute) = attribute? else { return None };
            let (OBJECT_IDENTIFIER, kind, rest) = element(attribute)? else { return None };
            let (tag, value, _) = element(rest)?;
            if kind != COMMON_NAME {
                continue;
            }
            let text = match tag {
                UTF8_STRING | PRINTABLE_STRING | IA5_STRING => std::str::from_utf8(value).ok()?,
                _ => return None,
            };
            if found.replace(text).is_some() {
                return None;
            }
        }
    }
    found.filter(|name| usable(name))
}

/// The elements of a DER encoding one after the other, as tag and content; `None` in the place of what is none, and then the end.
fn elements(mut der: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    std::iter::from_fn(move || {
        if der.is_empty() {
            return None;
        }
        let first = element(der);
        der = first.map_or(&[], |(_, _, rest)| rest);
        Some(first.map(|(tag, content, _)| (tag, content)))
    })
}

/// The first element of a DER encoding: its tag, its content, and what is behind it. Tags of several bytes are in no name.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([tag, first], rest) = der.split_first_chunk()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81 => {
            rest.split_first_chunk().map(|(length, rest)| (usize::from(u8::from_be_bytes(*length)), rest))?
        }
        0x82 => {
            rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    (tag & 0x1f != 0x1f).then_some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let [high, low] = u16::try_from(length).unwrap().to_be_bytes();
        let length: &[u8] = match length {
            0..0x80 => &[low],
            0x80..0x100 => &[0x81, low],
            _ => &[0x82, high, low],
        };
        [&[tag], length, content].concat()
    }

    fn attribute(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        der(SEQUENCE, &[der(OBJECT_IDENTIFIER, kind), der(tag, value)].concat())
    }

    #[test]
    fn a_subject_has_one_common_name_or_none() {
        const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];
        let (long, longest) = ("a".repeat(200), "a".repeat(0xffff - 30));
        let one = |tag, value: &[u8]| der(SET, &attribute(COMMON_NAME, tag, value));
        let other = der(SET, &attribute(ORGANISATION, UTF8_STRING, b"bulla"));
        for (subject, expected) in [
            (vec![], None),
            (one(UTF8_STRING, "j\u{f6}rg".as_bytes()), Some("j\u{f6}rg")),
            (one(PRINTABLE_STRING, b"app"), Some("app")),
            (one(IA5_STRING, b"app@x"), Some("app@x")),
            (one(UTF8_STRING, long.as_bytes()), Some(long.as_str())),
            (one(UTF8_STRING, longest.as_bytes()), Some(longest.as_str())),
            ([other.clone(), one(UTF8_STRING, b"app"), other.clone()].concat(), Some("app")),
            (
                der(
                    SET,
                    &[attribute(ORGANISATION, UTF8_STRING, b"x"), attribute(COMMON_NAME, UTF8_STRING, b"y")]
                        .concat(),
                ),
                Some("y"),
            ),
            (other.clone(), None),
            // Which of two it is, nobody knows.
            ([one(UTF8_STRING, b"app"), one(UTF8_STRING, b"root")].concat(), None),
            (
                der(
                    SET,
                    &[attribute(COMMON_NAME, UTF8_STRING, b"a"), attribute(COMMON_NAME, UTF8_STRING, b"b")]
                        .concat(),
                ),
                None,
            ),
            // A text in UTF-16, or in no encoding that is known.
            (one(0x1e, b"\0a"), None),
            (one(0x14, b"a"), None),
            (one(UTF8_STRING, b"\xff"), None),
            (one(UTF8_STRING, b""), None),
            (one(UTF8_STRING, b"app\0root"), None),
            (one(UTF8_STRING, b"app\nroot"), None),
            (one(UTF8_STRING, "app\u{85}".as_bytes()), None),
            (one(UTF8_STRING, "\u{202e}toor".as_bytes()), None),
            // What is behind is no name.
            ([one(UTF8_STRING, b"app"), vec![0]].concat(), None),
            ([one(UTF8_STRING, b"app"), der(SEQUENCE, b"")].concat(), None),
        ] {
            assert_eq!(common_name(&subject), expected, "{}", subject.escape_ascii());
            // However it is cut off.
            for cut in 1..subject.len() {
                let _ = common_name(&subject[..cut]);
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>, value: Vec<u8>, tag: u8) {
            let _ = common_name(&bytes);
            let _ = common_name(&der(SET, &bytes));
            let subject = der(SET, &attribute(COMMON_NAME, tag, &value));
            if let Some(name) = common_name(&subject) {
                prop_assert_eq!(name.as_bytes(), &value);
            }
            let _ = of(&CertificateDer::from(bytes));
        }
    }
}
