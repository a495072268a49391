use super::{Limits, Next, find, line_too_long, rest_of_line};
use regex::bytes::Regex;

/// Which lines are one record.
#[derive(Clone, Debug)]
pub struct Multiline {
    /// How a line says whether it begins a record.
    pub rule: MultilineRule,
    /// The most lines of a record, at least 1: the line after them begins the next one.
    pub lines: usize,
    /// The most bytes of a record of several lines: the line that would go beyond begins the next one.
    pub bytes: usize,
}

/// How a line, without its end, says whether it begins a record. Whatever it says, the first line does.
#[derive(Clone, Debug)]
pub enum MultilineRule {
    /// It begins one if this is found in it.
    Begins(Regex),
    /// It goes on with the one before if this is found in it.
    Continues(Regex),
}

impl Multiline {
    fn is_beginning(&self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match &self.rule {
            MultilineRule::Begins(pattern) => pattern.is_match(line),
            MultilineRule::Continues(pattern) => !pattern.is_match(line),
        }
    }
}

/// Lines that are joined.
///
/// Invariants: the first `joined` bytes are `lines` whole lines of one record; there is no `\n` from there to `searched`. While
/// `skipping`, the beginning of a line that is a record of its own has been let go.
#[derive(Debug)]
pub(super) struct Joined {
    rule: Multiline,
    joined: usize,
    searched: usize,
    lines: usize,
    skipping: bool,
}

impl Joined {
    pub(super) fn new(rule: Multiline) -> Self {
        Joined { rule, joined: 0, searched: 0, lines: 0, skipping: false }
    }

    pub(super) fn is_skipping(&self) -> bool {
        self.skipping
    }

    pub(super) fn next(&mut self, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        if self.skipping {
            let (next, is_over) = rest_of_line(bytes, ends, || line_too_long(limits));
            self.skipping = !is_over;
            return next;
        }
        let limit = self.rule.bytes.min(limits.bytes);
        loop {
            let searched = self.searched.max(self.joined).min(bytes.len());
            let found = find(b'\n', &bytes[searched..]).map(|place| searched + place);
            let is_first = self.lines == 0;
            match found {
                Some(end) if is_first && end > limits.bytes => {
                    self.searched = 0;
                    return Next::Refused { consumed: end + 1, reason: line_too_long(limits) };
                }
                Some(end) if !is_first && (end > limit || self.ends_before(&bytes[self.joined..end])) => {
                    return self.take(self.joined, bytes);
                }
                Some(end) => {
                    self.lines += 1;
                    self.joined = end + 1;
                }
                None if is_first && bytes.len() > limits.bytes => {
                    self.skipping = true;
                    self.searched = 0;
                    return Next::Passed { consumed: bytes.len() };
                }
                None if !is_first && bytes.len() > limit.max(self.joined) => {
                    return self.take(self.joined, bytes);
                }
                None if ends && !bytes.is_empty() => return self.take_last(bytes),
                None => {
                    self.searched = bytes.len();
                    return Next::More;
                }
            }
        }
    }

    /// Whether the record ends before this line.
    fn ends_before(&self, line: &[u8]) -> bool {
        self.lines >= self.rule.lines.max(1) || self.rule.is_beginning(line)
    }

    fn take_last(&mut self, bytes: &[u8]) -> Next {
        let rest = &bytes[self.joined..];
        if !rest.is_empty() && self.lines > 0 && self.ends_before(rest) {
            return self.take(self.joined, bytes);
        }
        self.take(bytes.len(), bytes)
    }

    fn take(&mut self, consumed: usize, bytes: &[u8]) -> Next {
        (self.joined, self.searched, self.lines) = (0, 0, 0);
        let record = &bytes[..consumed];
        // Empty lines before the first one that begins a record are none.
        if record.trim_ascii().is_empty() {
            return Next::Passed { consumed };
        }
        let content = record.strip_suffix(b"\n").unwrap_or(record).len();
        Next::Record { consumed, content: 0..content }
    }
}
