//! [`Template`]: a pattern of keys that says where in them a data subject stands.
//!
//! | Written | Stands for |
//! |---|---|
//! | `{subject}` | a run: whose data it is; at most one in a template |
//! | `{}` | a run that says nothing |
//! | `*` | any bytes, or none; at most one in a template, and no run directly behind it |
//! | `\{` `\}` `\*` `\\` `\x0A` | the character itself, and any byte by two hexadecimal digits |
//! | anything else | itself |
//!
//! A run is one or more bytes, none of which is the separator (`:`, unless the rule names another character). Between two runs
//! there is some text, or nobody could tell where one ends.
//!
//! A template matches a key as a whole. Where it could in several ways, this one counts: what is behind `*` is matched from the
//! key's end, and takes as little of the key as it can; then what is before `*` from its beginning, each run in turn taking as little as
//! it can; but a run directly before `*` takes all up to the next separator: `user:{subject}*` is `user:42` and `user:42:email`, and
//! of both the subject is `42`. It is the same for whoever reads the rule and in every version, because whose data it is must be.
//!
//! Matching takes time in proportion to the key's length, whatever template and key are: a run ends where the text behind it
//! occurs first, and a later occurrence could never match more. What is behind the first occurrence was without a separator up to the
//! later one; and a text with a separator in it can begin at one place only, the one that puts its separator on the run's end.

use std::ops::Range;

/// The longest template, in bytes as it is written.
pub const MAX_TEMPLATE: usize = 1024;

/// A template that was read.
#[derive(Clone)]
pub struct Template {
    written: String,
    separator: u8,
    /// What is matched from the key's beginning.
    front: Vec<Part>,
    /// Whether there may be anything between what the front took and what the back took.
    star: bool,
    /// What is matched from the key's end: the last part first, and its bytes reversed.
    back: Vec<Part>,
}

#[derive(Clone)]
enum Part {
    Text(Text),
    Run { subject: bool },
}

/// A text that is searched for without looking at any byte of a key twice (Knuth, Morris, Pratt).
#[derive(Clone)]
struct Text {
    bytes: Vec<u8>,
    /// How many bytes of the text are still matched when those before index `i` are, and the one at `i` is not.
    fallback: Vec<u16>,
}

/// A key, or as much of it as is known.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Whether there are no more of them.
    pub whole: bool,
}

/// Whether a key is of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is not.
    No,
    /// What is known of the key does not tell.
    Undecided,
    /// It is, and where the subject stands in it, if the template has one.
    Yes(Option<Range<usize>>),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Up to which byte of the text it could be one.
    pub at: usize,
    /// What is wrong there, and what is allowed.
    pub what: String,
}

impl Template {
    /// Reads a template. A separator is any ASCII character that means nothing else in a template.
    ///
    /// # Errors
    /// It is none, and where that shows.
    pub fn parse(written: &str, separator: char) -> Result<Self, TemplateError> {
        let wrong = |at: usize, what: String| Err(TemplateError { at, what });
        if !separator.is_ascii() || matches!(separator, '{' | '}' | '*' | '\\') {
            let allowed = "a separator is one ASCII character other than `{`, `}`, `*` and `\\`";
            return wrong(0, format!("`{}` separates nothing: {allowed}", separator.escape_default()));
        }
        if written.is_empty() {
            return wrong(0, "it is empty".to_owned());
        }
        if written.len() > MAX_TEMPLATE {
            return wrong(MAX_TEMPLATE, format!("it is longer than {MAX_TEMPLATE} bytes"));
        }
        let (mut front, mut back, mut star) = (Vec::new(), Vec::new(), false);
        let (mut rest, mut subjects) = (written, 0);
        while let Some(first) = rest.chars().next() {
            let at = written.len() - rest.len();
            let parts = if star { &mut back } else { &mut front };
            match first {
                '*' if star => {
                    return wrong(
                        at,
                        "there is one `*` already; `{}` stands for a part of a key, too".to_owned(),
                    );
                }
                '*' => {
                    star = true;
                    rest = &rest[1..];
                }
                '{' => {
                    let subject = rest.starts_with("{subject}");
                    if !subject && !rest.starts_with("{}") {
                        return wrong(at, what_begins(rest));
                    }
                    subjects += usize::from(subject);
                    if subjects > 1 {
                        return wrong(at, "there is one `{subject}` already".to_owned());
                    }
                    if matches!(parts.last(), Some(Part::Run { .. })) || (star && parts.is_empty()) {
                        let what = "nothing says where this begins: put some text before it";
                        return wrong(at, what.to_owned());
                    }
                    parts.push(Part::Run { subject });
                    rest = &rest[if subject { "{subject}".len() } else { 2 }..];
                }
                '}' => {
                    return wrong(at, "this closes nothing; one that is in keys is written `\\}`".to_owned());
                }
                _ => {
                    let (text, behind) = literal(rest).map_err(|behind| TemplateError {
                        at: written.len() - behind,
                        what: "`\\` begins one of `\\{`, `\\}`, `\\*`, `\\\\` and `\\xHH`".to_owned(),
                    })?;
                    parts.push(Part::Text(Text { bytes: text, fallback: Vec::new() }));
                    rest = behind;
                }
            }
        }
        // Without `*` the key's end is where the last text ends, so it is looked for there; then the run before it is what is left.
        if !star && front.len() > 1 && matches!(front.last(), Some(Part::Text(_))) {
            back.extend(front.pop());
        }
        back.reverse();
        for part in &mut back {
            if let Part::Text(text) = part {
                text.bytes.reverse();
            }
        }
        for part in front.iter_mut().chain(&mut back) {
            if let Part::Text(text) = part {
                text.fallback = fallback(&text.bytes);
            }
        }
        Ok(Template { written: written.to_owned(), separator: separator as u8, front, star, back })
    }

    /// What the first eight bytes of its keys have in common: those that the mask has are these.
    pub(super) fn head(&self) -> (u64, u64) {
        let Some(Part::Text(text)) = self.front.first() else { return (0, 0) };
        let mask = first_eight(&vec![0xff; text.bytes.len()]);
        (first_eight(&text.bytes), mask)
    }

    /// Whether it has a `{subject}`.
    pub fn has_subject(&self) -> bool {
        self.front.iter().chain(&self.back).any(|part| matches!(part, Part::Run { subject: true }))
    }

    /// As it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether a key is of this template, and where its subject stands.
    pub fn find(&self, key: Key<'_>) -> Match {
        match key.whole {
            true => self.find_whole(key.bytes),
            false => self.find_beginning(key.bytes),
        }
    }

    fn find_whole(&self, key: &[u8]) -> Match {
        // Most keys are of another template, and differ in its first bytes.
        if let Some(Part::Text(text)) = self.front.first()
            && !key.starts_with(&text.bytes)
        {
            return Match::No;
        }
        let (end, mut subject) = match self.back.is_empty() {
            true => (key.len(), None),
            false => match take::<true>(&self.back, key, self.separator, true) {
                Taken::Yes(taken, subject) => {
                    (key.len() - taken, subject.map(|it| key.len() - it.end..key.len() - it.start))
                }
                Taken::No | Taken::Undecided => return Match::No,
            },
        };
        match take::<false>(&self.front, &key[..end], self.separator, true) {
            Taken::Yes(taken, in_front) if self.star || taken == end => {
                subject = subject.or(in_front);
                Match::Yes(subject)
            }
            _ => Match::No,
        }
    }

    fn find_beginning(&self, bytes: &[u8]) -> Match {
        match take::<false>(&self.front, bytes, self.separator, false) {
            Taken::No => Match::No,
            Taken::Yes(_, subject) if self.star && self.back.is_empty() => Match::Yes(subject),
            // The front would have to take all of the key, and there is more of it.
            Taken::Yes(..) if self.back.is_empty() => Match::No,
            Taken::Yes(..) | Taken::Undecided => Match::Undecided,
        }
    }
}

/// It may be shown: it is what an operator wrote.
impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Template({:?})", self.written)
    }
}

/// The first eight bytes of a text as one number; zeros where there are fewer.
pub(super) fn first_eight(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// What the parts of one end took of a key.
enum Taken {
    No,
    /// The key, as far as it is known, ends too early to tell.
    Undecided,
    /// How many bytes, and where among them the subject is.
    Yes(usize, Option<Range<usize>>),
}

/// Matches parts at one end of a key: at its beginning, or with `BACK` at its end, counted from there.
fn take<const BACK: bool>(parts: &[Part], key: &[u8], separator: u8, whole: bool) -> Taken {
    let byte = |index: usize| if BACK { key[key.len() - 1 - index] } else { key[index] };
    let find = |key: &[u8], from: usize| {
        let is_separator = |byte: &u8| *byte == separator;
        match BACK {
            true => key[..key.len() - from].iter().rev().position(is_separator).map(|it| from + it),
            false => key[from..].iter().position(is_separator).map(|it| from + it),
        }
    };
    let ran_out = if whole { Taken::No } else { Taken::Undecided };
    let (mut at, mut subject) = (0, None);
    let mut parts = parts.iter();
    while let Some(part) = parts.next() {
        let is_subject = match part {
            Part::Text(text) => {
                let there = text.bytes.len().min(key.len() - at);
                if (0..there).any(|index| byte(at + index) != text.bytes[index]) {
                    return Taken::No;
                }
                if there < text.bytes.len() {
                    return ran_out;
                }
                at += there;
                continue;
            }
            Part::Run { subject } => *subject,
        };
        if at == key.len() {
            return ran_out;
        }
        if byte(at) == separator {
            return Taken::No;
        }
        let run_end;
        let text_end;
        match parts.next() {
            Some(Part::Text(text)) if text.bytes[0] == separator => {
                let Some(end) = find(key, at + 1) else { return ran_out };
                let there = text.bytes.len().min(key.len() - end);
                if (0..there).any(|index| byte(end + index) != text.bytes[index]) {
                    return Taken::No;
                }
                if there < text.bytes.len() {
                    return ran_out;
                }
                run_end = end;
                text_end = end + there;
            }
            Some(Part::Text(text)) => {
                // The separator ends the run at the latest; `matched` bytes of the text end at `index`.
                let (mut limit, mut matched, mut index) = (None, 0, at + 1);
                loop {
                    if index == key.len() {
                        return ran_out;
                    }
                    let found = byte(index);
                    if found == separator && limit.is_none() {
                        limit = Some(index);
                    }
                    while matched > 0 && text.bytes[matched] != found {
                        matched = usize::from(text.fallback[matched]);
                    }
                    matched += usize::from(text.bytes[matched] == found);
                    index += 1;
                    if limit.is_some_and(|limit| index - matched > limit) {
                        return Taken::No;
                    }
                    if matched == text.bytes.len() {
                        break;
                    }
                }
                run_end = index - matched;
                text_end = index;
            }
            // Two runs never follow each other, so this is the end of the parts.
            Some(Part::Run { .. }) | None => {
                let end = find(key, at);
                if end.is_none() && !whole {
                    return Taken::Undecided;
                }
                run_end = end.unwrap_or(key.len());
                text_end = run_end;
            }
        }
        if is_subject {
            subject = Some(at..run_end);
        }
        at = text_end;
    }
    Taken::Yes(at, subject)
}

/// The text at the beginning of a template, with its escapes undone, and what is behind it.
///
/// # Errors
/// How many bytes there are from a `\` on that begins no escape.
fn literal(written: &str) -> Result<(Vec<u8>, &str), usize> {
    let (mut bytes, mut rest) = (Vec::new(), written);
    while let Some(first) = rest.chars().next() {
        match first {
            '{' | '}' | '*' => break,
            '\\' => {
                let escape = rest.as_bytes().get(1).copied();
                let (byte, length) = match escape {
                    Some(byte @ (b'{' | b'}' | b'*' | b'\\')) => (Some(byte), 2),
                    Some(b'x') => (rest.get(2..4).and_then(hexadecimal), 4),
                    _ => (None, 0),
                };
                let Some(byte) = byte else {
                    return Err(rest.len());
                };
                bytes.push(byte);
                rest = &rest[length..];
            }
            other => {
                bytes.extend_from_slice(&rest.as_bytes()[..other.len_utf8()]);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
    Ok((bytes, rest))
}

/// The byte that two hexadecimal digits say.
fn hexadecimal(digits: &str) -> Option<u8> {
    let digit = |byte: u8| byte.is_ascii_hexdigit();
    if digits.len() == 2 && digits.bytes().all(digit) { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// By index, how many bytes of the text end there and begin it, too.
fn fallback(text: &[u8]) -> Vec<u16> {
    let mut table = vec![0_u16; text.len() + 1];
    let mut matched = 0;
    for index in 1..text.len() {
        while matched > 0 && text[index] != text[matched] {
            matched = usize::from(table[matched]);
        }
        matched += usize::from(text[index] == text[matched]);
        // A text is no longer than a template, which is far below what this takes.
        table[index + 1] = u16::try_from(matched).unwrap_or(u16::MAX);
    }
    table
}

/// What is wrong with a text that begins with a brace, and not with `{subject}` or `{}`.
fn what_begins(rest: &str) -> String {
    let escaped = "one that is in keys is written `\\{`";
    let name = &rest[1..];
    match name.split_once('}').filter(|(name, _)| !name.contains('{')) {
        None => format!("this brace is not closed, as in `{{subject}}` and `{{}}`; {escaped}"),
        Some((name, _)) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => format!(
            "there is no `{{{name}}}`: `{{subject}}` is whose data it is, and `{{}}` any other part of a key; {escaped}"
        ),
        Some(_) => format!("only `{{subject}}` and `{{}}` begin with a brace; {escaped}"),
    }
}
