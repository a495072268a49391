use super::{Limits, Next, find, line_too_long, rest_of_line};

/// Each line is a record.
///
/// Invariants: the first `searched` bytes hold no `\n`. While `skipping`, the beginning of the line has been let go.
#[derive(Debug, Default)]
pub(super) struct Lines {
    searched: usize,
    skipping: bool,
}

impl Lines {
    pub(super) fn is_skipping(&self) -> bool {
        self.skipping
    }

    pub(super) fn next(&mut self, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        if self.skipping {
            let (next, is_over) = rest_of_line(bytes, ends, || line_too_long(limits));
            self.skipping = !is_over;
            return next;
        }
        let searched = std::mem::take(&mut self.searched).min(bytes.len());
        match find(b'\n', &bytes[searched..]).map(|place| searched + place) {
            Some(length) if length > limits.bytes => {
                Next::Refused { consumed: length + 1, reason: line_too_long(limits) }
            }
            Some(length) => Next::Record { consumed: length + 1, content: 0..length },
            None if bytes.len() > limits.bytes => {
                self.skipping = true;
                Next::Passed { consumed: bytes.len() }
            }
            None if ends && !bytes.is_empty() => {
                Next::Record { consumed: bytes.len(), content: 0..bytes.len() }
            }
            None => {
                self.searched = bytes.len();
                Next::More
            }
        }
    }
}
