use super::{Limits, Next, find, record_too_long};
use crate::Refusal;

/// The bytes of a length.
const LENGTH: usize = 8;

const NO_FIELD: &str = "a line is neither NAME=text nor the name of a field";

/// journald's export format: `NAME=text` lines, or a line `NAME`, a length of eight bytes, little-endian, so many bytes and a line
/// end; and an empty line behind each entry.
///
/// Invariants: `scanned` is where a field of the record begins, and everything before it is whole fields; there is no `\n` from there
/// to `searched`. While there is a `reason`, the beginning of the record has been let go, and it ends with the next empty line;
/// `is_line_start` says whether the byte before was a `\n`.
#[derive(Debug, Default)]
pub(super) struct Export {
    scanned: usize,
    searched: usize,
    reason: Option<Refusal>,
    is_line_start: bool,
}

impl Export {
    pub(super) fn is_skipping(&self) -> bool {
        self.reason.is_some()
    }

    pub(super) fn next(&mut self, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        if let Some(reason) = self.reason.take() {
            return self.skip(reason, bytes, ends);
        }
        if self.scanned == 0 {
            let blank = bytes.iter().take_while(|&&byte| byte == b'\n').count();
            if blank > 0 {
                return Next::Passed { consumed: blank };
            }
        }
        loop {
            let start = self.scanned;
            let searched = self.searched.max(start).min(bytes.len());
            let Some(end) = find(b'\n', &bytes[searched..]).map(|place| searched + place) else {
                return self.unfinished(bytes, ends, limits);
            };
            if end > limits.bytes {
                return self.give_up(start, record_too_long(limits), bytes, ends);
            }
            let line = &bytes[start..end];
            if line.is_empty() {
                self.begin_again();
                return Next::Record { consumed: end + 1, content: 0..start };
            }
            if find(b'=', line).is_some() {
                self.scanned = end + 1;
                continue;
            }
            if !is_name(line) {
                return self.give_up(end + 1, Refusal::new(NO_FIELD), bytes, ends);
            }
            match binary(bytes, end + 1, limits) {
                Binary::Ends(place) => self.scanned = place,
                Binary::Unfinished if ends => return self.refuse_rest(bytes),
                Binary::Unfinished => {
                    self.searched = end;
                    return Next::More;
                }
                Binary::None(reason) => return self.give_up(end + 1, reason, bytes, ends),
            }
        }
    }

    /// There is no further line end.
    fn unfinished(&mut self, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        if bytes.len() > limits.bytes {
            return self.give_up(self.scanned, record_too_long(limits), bytes, ends);
        }
        if !ends || bytes.is_empty() {
            self.searched = bytes.len();
            return Next::More;
        }
        let rest = &bytes[self.scanned..];
        if rest.is_empty() || find(b'=', rest).is_some() {
            self.begin_again();
            return Next::Record { consumed: bytes.len(), content: 0..bytes.len() };
        }
        match is_name(rest) {
            true => self.refuse_rest(bytes),
            false => self.refuse(bytes, NO_FIELD),
        }
    }

    fn refuse_rest(&mut self, bytes: &[u8]) -> Next {
        self.refuse(bytes, "the input ends inside of a field")
    }

    fn refuse(&mut self, bytes: &[u8], reason: &'static str) -> Next {
        self.begin_again();
        Next::Refused { consumed: bytes.len(), reason: Refusal::new(reason) }
    }

    /// The record goes on to the next empty line at or behind `from`, where a line begins, and is refused.
    fn give_up(&mut self, from: usize, reason: Refusal, bytes: &[u8], ends: bool) -> Next {
        self.begin_again();
        self.is_line_start = true;
        if from == 0 {
            return self.skip(reason, bytes, ends);
        }
        self.reason = Some(reason);
        Next::Passed { consumed: from }
    }

    fn skip(&mut self, reason: Refusal, bytes: &[u8], ends: bool) -> Next {
        for (place, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' && self.is_line_start {
                self.begin_again();
                return Next::Refused { consumed: place + 1, reason };
            }
            self.is_line_start = byte == b'\n';
        }
        if ends {
            self.begin_again();
            return Next::Refused { consumed: bytes.len(), reason };
        }
        self.reason = Some(reason);
        if bytes.is_empty() { Next::More } else { Next::Passed { consumed: bytes.len() } }
    }

    fn begin_again(&mut self) {
        *self = Export::default();
    }
}

enum Binary {
    /// It ends before this place.
    Ends(usize),
    Unfinished,
    None(Refusal),
}

/// The field whose length stands at `start`.
fn binary(bytes: &[u8], start: usize, limits: Limits) -> Binary {
    let data = start + LENGTH;
    let Some(length) = bytes.get(start..data).and_then(|length| length.try_into().ok()) else {
        return Binary::Unfinished;
    };
    let end = usize::try_from(u64::from_le_bytes(length)).ok().and_then(|length| data.checked_add(length));
    let Some(end) = end.filter(|&end| end <= limits.bytes) else {
        let limit = limits.bytes;
        let reason = format!(
            "a line has no `=`, and the eight bytes behind it are no length within the {limit} bytes of a record"
        );
        return Binary::None(Refusal::new(reason));
    };
    match bytes.get(end) {
        None => Binary::Unfinished,
        Some(b'\n') => Binary::Ends(end + 1),
        Some(_) => Binary::None(Refusal::new("a field does not end where its length says")),
    }
}

/// Whether this can be a field's name. journald's own rule is narrower: whoever writes the format need not be journald.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
