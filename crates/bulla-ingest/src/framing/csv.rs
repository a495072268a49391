use super::{Limits, Next, record_too_long, rest_of_line};
use crate::Refusal;

/// Where a place is between columns and quotes, as csv-core has it: a quote opens a column at its beginning only, two within
/// one are one, and what follows the closing one is taken as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// At the beginning of a column.
    #[default]
    Start,
    /// Outside of quotes, in a column.
    Outside,
    /// Between quotes.
    Inside,
    /// Behind a quote that closes, unless another one follows.
    Closed,
}

impl Quotes {
    #[inline]
    pub(crate) fn after(self, byte: u8, delimiter: u8) -> Self {
        match (self, byte) {
            (Quotes::Inside, b'"') => Quotes::Closed,
            (Quotes::Inside, _) | (Quotes::Start | Quotes::Closed, b'"') => Quotes::Inside,
            (_, byte) if byte == delimiter => Quotes::Start,
            _ => Quotes::Outside,
        }
    }
}

/// Records of columns.
///
/// Invariants: the first `scanned` bytes hold no end of a record, behind them `quotes` is so, and they hold `lines` line ends.
/// While `skipping`, the beginning of the record has been let go.
#[derive(Debug)]
pub(super) struct Csv {
    delimiter: u8,
    scanned: usize,
    quotes: Quotes,
    lines: usize,
    skipping: bool,
}

impl Csv {
    pub(super) fn new(delimiter: u8) -> Self {
        Csv { delimiter, scanned: 0, quotes: Quotes::Start, lines: 0, skipping: false }
    }

    pub(super) fn is_skipping(&self) -> bool {
        self.skipping
    }

    pub(super) fn next(&mut self, bytes: &[u8], ends: bool, limits: Limits) -> Next {
        if self.skipping {
            let (next, is_over) = rest_of_line(bytes, ends, || record_too_long(limits));
            self.skipping = !is_over;
            return next;
        }
        let known = bytes.len().min(limits.bytes.saturating_add(1));
        let mut quotes = self.quotes;
        for (place, &byte) in bytes[..known].iter().enumerate().skip(self.scanned) {
            if byte == b'\n' {
                if quotes != Quotes::Inside {
                    self.begin_again();
                    return Next::Record { consumed: place + 1, content: 0..place };
                }
                self.lines += 1;
                if self.lines >= limits.lines {
                    self.begin_again();
                    let reason = format!("a column between quotes goes on over {} lines", limits.lines);
                    return Next::Refused { consumed: place + 1, reason: Refusal::new(reason) };
                }
            }
            quotes = quotes.after(byte, self.delimiter);
        }
        (self.scanned, self.quotes) = (known, quotes);
        if known > limits.bytes {
            self.begin_again();
            self.skipping = true;
            return Next::Passed { consumed: known };
        }
        if !ends || bytes.is_empty() {
            return Next::More;
        }
        self.begin_again();
        match quotes {
            Quotes::Inside => Next::Refused {
                consumed: bytes.len(),
                reason: Refusal::new("the input ends inside of a column between quotes"),
            },
            _ => Next::Record { consumed: bytes.len(), content: 0..bytes.len() },
        }
    }

    fn begin_again(&mut self) {
        *self = Csv::new(self.delimiter);
    }
}
