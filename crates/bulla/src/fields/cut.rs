//! Rules that cut off the end of a field.

/// A URL up to its query or fragment. It is searched as bytes, since it need not be UTF-8; and where it is, no other character has
/// the bytes of `?` or `#` in it.
pub(crate) fn strip_query(url: &[u8]) -> &[u8] {
    let end = url.iter().position(|byte| matches!(byte, b'?' | b'#'));
    &url[..end.unwrap_or(url.len())]
}

/// At most `limit` bytes of a payload. Where those are UTF-8, the cut is not inside a character.
pub(crate) fn cap(payload: &[u8], limit: usize) -> &[u8] {
    let Some(kept) = payload.get(..limit) else { return payload };
    if payload.len() == limit {
        return payload;
    }
    match std::str::from_utf8(kept) {
        // The only thing wrong is that the last character is cut.
        Err(error) if error.error_len().is_none() => &kept[..error.valid_up_to()],
        _ => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls() {
        for (url, expected) in [
            (&b"/path?token=secret"[..], &b"/path"[..]),
            (b"/path#secret", b"/path"),
            (b"/path#a?b", b"/path"),
            (b"/path?a#b?c", b"/path"),
            (b"?secret", b""),
            (b"#secret", b""),
            (b"", b""),
            (b"/path", b"/path"),
            (b"/path?", b"/path"),
            (b"https://example.com/a/b?c=d&e=https://x/?y", b"https://example.com/a/b"),
            (b"user_42/email", b"user_42/email"),
            (b"/\xff\xfe?\xff", b"/\xff\xfe"),
            (b"/a%3Fb", b"/a%3Fb"),
            ("/weiß?ß".as_bytes(), "/weiß".as_bytes()),
            ("/ｆｕｌｌ？width".as_bytes(), "/ｆｕｌｌ？width".as_bytes()),
        ] {
            assert_eq!(strip_query(url), expected, "{}", url.escape_ascii());
        }
    }

    #[test]
    fn payloads() {
        for (payload, limit, expected) in [
            (&b""[..], 1, &b""[..]),
            (b"abc", 3, b"abc"),
            (b"abc", 4, b"abc"),
            (b"abcd", 3, b"abc"),
            ("aß".as_bytes(), 3, "aß".as_bytes()),
            ("aßb".as_bytes(), 3, "aß".as_bytes()),
            ("aß".as_bytes(), 2, b"a"),
            ("€".as_bytes(), 2, b""),
            ("€".as_bytes(), 1, b""),
            ("a\u{1f600}b".as_bytes(), 4, b"a"),
            ("a\u{1f600}b".as_bytes(), 5, "a\u{1f600}".as_bytes()),
            // What is not UTF-8 is cut where it is said, and what only begins like a character goes.
            (b"\xff\xc3\x9f", 2, b"\xff\xc3"),
            (b"a\xc3zz", 2, b"a"),
            (b"\x80\x80\x80", 2, b"\x80\x80"),
        ] {
            assert_eq!(cap(payload, limit), expected, "{} {limit}", payload.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn of_a_url_only_what_precedes_its_query_matters(path in "[^?#]{0,30}", a in "[?#]\\PC{0,30}", b in "[?#]\\PC{0,30}") {
            let strip = |rest: &str| strip_query(format!("{path}{rest}").as_bytes()).to_vec();
            prop_assert_eq!(strip(&a), strip(&b));
            prop_assert_eq!(strip(&a), path.as_bytes());
            prop_assert_eq!(strip(""), path.as_bytes());
        }

        #[test]
        fn text_is_cut_to_the_most_text_that_fits(text in "\\PC{0,40}", limit in 1_usize..60) {
            let kept = std::str::from_utf8(cap(text.as_bytes(), limit)).unwrap();
            prop_assert!(text.starts_with(kept) && kept.len() <= limit);
            let next = text[kept.len()..].chars().next();
            prop_assert!(next.is_none_or(|next| kept.len() + next.len_utf8() > limit));
        }

        #[test]
        fn bytes_are_cut_and_stay_so(bytes: Vec<u8>, more: Vec<u8>, limit in 1_usize..60) {
            let kept = cap(&bytes, limit);
            prop_assert!(bytes.starts_with(kept) && kept.len() <= limit);
            prop_assert!(kept.len() + 3 >= limit.min(bytes.len()), "no more than a character is lost");
            prop_assert_eq!(cap(kept, limit), kept);
            // Nothing behind the limit matters.
            if bytes.len() > limit {
                let other = [&bytes[..limit], b"x", &more].concat();
                prop_assert_eq!(cap(&other, limit), kept);
            }
        }
    }
}
