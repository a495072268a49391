//! Templates against a matcher that tries everything, and against keys that would keep one busy.

use crate::subject::{Key, MAX_TEMPLATE, Match, Template};
use proptest::prelude::*;
use std::ops::Range;

fn template(written: &str) -> Template {
    Template::parse(written, ':').unwrap()
}

/// The subject: `None` where the key is of another template, empty where the template says none.
fn subject<'a>(written: &str, key: &'a [u8]) -> Option<&'a [u8]> {
    match template(written).find(Key { bytes: key, whole: true }) {
        Match::Yes(range) => Some(range.map_or(&b""[..], |range| &key[range])),
        Match::No => None,
        Match::Undecided => panic!("{written}: a whole key says all"),
    }
}

#[test]
fn templates_say_where_the_subject_stands() {
    for (written, key, expected) in [
        ("user:{subject}:*", "user:42:email", Some("42")),
        ("user:{subject}:*", "user:42:", Some("42")),
        ("user:{subject}:*", "user:42:a:b", Some("42")),
        ("user:{subject}:*", "user:42", None),
        ("user:{subject}:*", "user::email", None),
        ("user:{subject}:*", "users:42:email", None),
        ("user:{subject}:*", "user:", None),
        ("user:{subject}:*", "", None),
        ("user:{subject}", "user:42", Some("42")),
        ("user:{subject}", "user:42:email", None),
        ("user:{subject}*", "user:42", Some("42")),
        ("user:{subject}*", "user:42:email", Some("42")),
        ("user:{subject}*", "user::email", None),
        ("session:{}:{subject}", "session:f00:42", Some("42")),
        ("session:{}:{subject}", "session:f00:42:x", None),
        ("session:{}:{subject}", "session:f00", None),
        ("{subject}", "42", Some("42")),
        ("{subject}", "4:2", None),
        ("*", "anything:at\0all", Some("")),
        ("*", "", Some("")),
        ("key*", "key17", Some("")),
        ("key", "key", Some("")),
        ("key", "key1", None),
        ("*:user:{subject}", "a:b:user:42", Some("42")),
        ("*:user:{subject}", ":user:42", Some("42")),
        ("*:user:{subject}", "user:42", None),
        ("*:user:{subject}", "a:user:1:user:2", Some("2")),
        ("user:{subject}:*:email", "user:42:private:email", Some("42")),
        ("user:{subject}:*:email", "user:42:email", None),
        ("user_{subject}_*", "user_a_b_c", Some("a")),
        ("user-{subject}-end", "user-a-b-end", Some("a-b")),
        ("{}-{subject}", "a-b-c", Some("b-c")),
        ("{}--{subject}--{}", "a-b--c-d--e", Some("c-d")),
        ("user:\\{{subject}\\}:*", "user:{42}:email", Some("42")),
        ("\\*\\\\\\x00{subject}", "*\\\x0042", Some("42")),
        ("größe:{subject}", "größe:ä", Some("ä")),
        ("[ab]?{subject}", "[ab]?1", Some("1")),
    ] {
        assert_eq!(subject(written, key.as_bytes()), expected.map(str::as_bytes), "{written} {key}");
    }
    assert_eq!(subject("b:\\xff\\xFE:{subject}", b"b:\xff\xfe:\x80"), Some(&b"\x80"[..]), "keys are bytes");
}

#[test]
fn a_separator_is_what_the_rule_says() {
    let found = |separator, key: &'static str| {
        let template = Template::parse("user/{subject}/*", separator).unwrap();
        match template.find(Key { bytes: key.as_bytes(), whole: true }) {
            Match::Yes(Some(range)) => Some(&key[range]),
            _ => None,
        }
    };
    assert_eq!(found('/', "user/a:b/c"), Some("a:b"));
    assert_eq!(found(':', "user/a:b/c"), None);
}

#[test]
fn what_is_no_template_is_refused_where_that_shows() {
    let long = "x".repeat(MAX_TEMPLATE + 1);
    let star = "there is one `*` already; `{}` stands for a part of a key, too";
    let brace = "only `{subject}` and `{}` begin with a brace; one that is in keys is written `\\{`";
    let open = "this brace is not closed, as in `{subject}` and `{}`; one that is in keys is written `\\{`";
    let begins = "nothing says where this begins: put some text before it";
    let escape = "`\\` begins one of `\\{`, `\\}`, `\\*`, `\\\\` and `\\xHH`";
    for (written, at, what) in [
        ("", 0, "it is empty"),
        (long.as_str(), MAX_TEMPLATE, "it is longer than 1024 bytes"),
        ("a*b*", 3, star),
        ("**", 1, star),
        (
            "user:{id}",
            5,
            "there is no `{id}`: `{subject}` is whose data it is, and `{}` any other part of a key; one that is in keys is written `\\{`",
        ),
        ("user:{subject", 5, open),
        ("user:{subject:{}", 5, open),
        ("user:{ä-}", 5, brace),
        ("a{}b}", 4, "this closes nothing; one that is in keys is written `\\}`"),
        ("{subject}:{subject}", 10, "there is one `{subject}` already"),
        ("{}{subject}", 2, begins),
        ("a*{subject}", 2, begins),
        ("ab\\n", 2, escape),
        ("\\", 0, escape),
        ("a\\x1", 1, escape),
        ("\\x+1", 0, escape),
        ("\\xé1", 0, escape),
    ] {
        let error = Template::parse(written, ':').unwrap_err();
        assert_eq!((error.at, error.what.as_str()), (at, what), "{written}");
    }
    for separator in ['{', '}', '*', '\\', 'ä'] {
        assert!(Template::parse("a", separator).is_err(), "{separator}");
    }
}

/// A part of a template, as the table at the head of its module has it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Byte(u8),
    Run,
    Subject,
    Star,
}

/// All ways to match tokens with a key: where each begins and ends.
fn all_ways(
    tokens: &[Token],
    key: &[u8],
    from: usize,
    way: &mut Vec<Range<usize>>,
    found: &mut Vec<Vec<Range<usize>>>,
) {
    let Some((first, rest)) = tokens.split_first() else {
        if from == key.len() {
            found.push(way.clone());
        }
        return;
    };
    for end in from..=key.len() {
        let taken = &key[from..end];
        let fits = match first {
            Token::Byte(byte) => taken == [*byte],
            Token::Run | Token::Subject => !taken.is_empty() && !taken.contains(&b':'),
            Token::Star => true,
        };
        if fits {
            way.push(from..end);
            all_ways(rest, key, end, way, found);
            way.pop();
        }
    }
}

/// The way that counts, by what the module says of it.
fn naive(tokens: &[Token], key: &[u8]) -> Option<Option<Range<usize>>> {
    let mut ways = Vec::new();
    all_ways(tokens, key, 0, &mut Vec::new(), &mut ways);
    let star = tokens.iter().position(|token| *token == Token::Star);
    if let Some(star) = star
        && star > 0
        && matches!(tokens[star - 1], Token::Run | Token::Subject)
    {
        // A run before `*` goes up to the next separator, or to where what is behind `*` begins.
        ways.retain(|way| way[star].is_empty() || key[way[star].start] == b':');
    }
    let before = star.unwrap_or(tokens.len());
    let best = ways.into_iter().min_by_key(|way| {
        let behind = way[before..].iter().skip(1).rev().map(Range::len);
        behind.chain(way[..before].iter().map(Range::len)).collect::<Vec<_>>()
    })?;
    Some(tokens.iter().zip(best).find(|(token, _)| **token == Token::Subject).map(|(_, range)| range))
}

fn written(tokens: &[Token]) -> String {
    let text = |token: &Token| match token {
        Token::Byte(byte) => (*byte as char).to_string(),
        Token::Run => "{}".to_owned(),
        Token::Subject => "{subject}".to_owned(),
        Token::Star => "*".to_owned(),
    };
    tokens.iter().map(text).collect()
}

fn tokens() -> impl Strategy<Value = Vec<Token>> {
    let byte = prop_oneof![3 => Just(b'a'), 2 => Just(b'b'), 2 => Just(b':')].prop_map(Token::Byte);
    let token =
        prop_oneof![5 => byte, 2 => Just(Token::Run), 1 => Just(Token::Subject), 1 => Just(Token::Star)];
    proptest::collection::vec(token, 1..9)
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![4 => Just(b'a'), 3 => Just(b'b'), 2 => Just(b':')], 0..12)
}

/// A key that the template may well be of.
fn key_of(tokens: &[Token], parts: &[Vec<u8>]) -> Vec<u8> {
    let part = |(index, token): (usize, &Token)| match token {
        Token::Byte(byte) => vec![*byte],
        Token::Run | Token::Subject => {
            parts[index].iter().filter(|byte| **byte != b':').take(3).copied().collect()
        }
        Token::Star => parts[index][..parts[index].len().min(3)].to_vec(),
    };
    tokens.iter().enumerate().flat_map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_template_matches_as_trying_everything_does(
        tokens in tokens(),
        other in key(),
        parts in proptest::collection::vec(key(), 9),
    ) {
        let Ok(template) = Template::parse(&written(&tokens), ':') else { return Ok(()) };
        for key in [other, key_of(&tokens, &parts)] {
            let expected = naive(&tokens, &key).map_or(Match::No, Match::Yes);
            let found = template.find(Key { bytes: &key, whole: true });
            prop_assert_eq!(found, expected, "{} {}", written(&tokens), String::from_utf8_lossy(&key));
        }
    }

    /// What is told of a key's beginning is what would be told of the key, whatever it goes on with.
    #[test]
    fn what_a_beginning_decides_its_rest_does_not_change(
        tokens in tokens(),
        parts in proptest::collection::vec(key(), 9),
        rests in proptest::collection::vec(key(), 8),
        kept in 0_usize..12,
    ) {
        let Ok(template) = Template::parse(&written(&tokens), ':') else { return Ok(()) };
        let key = key_of(&tokens, &parts);
        let kept = kept.min(key.len());
        let told = template.find(Key { bytes: &key[..kept], whole: false });
        for rest in rests.iter().map(Vec::as_slice).chain([&key[kept..]]).filter(|rest| !rest.is_empty()) {
            let key = [&key[..kept], rest].concat();
            if told != Match::Undecided {
                let of_all = template.find(Key { bytes: &key, whole: true });
                prop_assert_eq!(&told, &of_all, "{} {:?}", written(&tokens), key);
            }
        }
    }

    #[test]
    fn no_text_breaks_the_parser(text in "[ab{}*:\\\\subjectx0é]{0,24}", separator in any::<char>()) {
        if let Err(error) = Template::parse(&text, separator) {
            prop_assert!(error.at <= text.len() && !error.what.is_empty());
        }
    }
}

#[test]
fn of_a_beginning_only_what_it_says_is_told() {
    let beginning =
        |written: &str, key: &str| template(written).find(Key { bytes: key.as_bytes(), whole: false });
    assert_eq!(beginning("user:{subject}:*", "user:42:aaa"), Match::Yes(Some(5..7)));
    assert_eq!(beginning("user:{subject}*", "user:42:aaa"), Match::Yes(Some(5..7)));
    assert_eq!(beginning("user:{subject}:*", "user:42"), Match::Undecided);
    assert_eq!(beginning("user:{subject}*", "user:42"), Match::Undecided);
    assert_eq!(beginning("user:{subject}:*:x", "user:42:aaa"), Match::Undecided);
    assert_eq!(beginning("user:{subject}", "user:42"), Match::Undecided);
    assert_eq!(beginning("user:{subject}", "user:42:a"), Match::No);
    assert_eq!(beginning("session:{}:{subject}", "user:42:a"), Match::No);
    assert_eq!(beginning("user:", "user:"), Match::No, "there is more of it");
}

/// Each of these takes a matcher that goes back longer than anybody waits: here a key is looked at once from either end.
#[test]
fn no_template_and_no_key_take_more_than_one_pass() {
    let key = "a".repeat(1 << 20);
    let some = MAX_TEMPLATE - 5;
    let never = |written: String| assert_eq!(subject(&written, key.as_bytes()), None, "{written}");
    never(format!("{{}}{}b", "a".repeat(some)));
    never(format!("{{}}{}b*", "a".repeat(some)));
    never(format!("*b{{}}{}", "a".repeat(some)));
    never(format!("{}b{{}}", "a".repeat(some)));
    never("{}ab".repeat(MAX_TEMPLATE / 4));
    never(format!("{}*x", "{}a".repeat(MAX_TEMPLATE / 3 - 1)));
    let found = subject(&format!("{}{{subject}}*", "{}a".repeat(300)), key.as_bytes());
    assert_eq!(found.map(<[u8]>::len), Some(key.len() - 600));
}
