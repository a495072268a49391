//! [`Words`]: arguments, and whether what was asked of them could be answered.
//!
//! They are read as the server reads them. To it a word ends with its first zero byte, so that `STORE`, a zero and anything else
//! are `STORE`; a name of a command may be taken for another that is the same up to there.

use crate::resp::Arguments;

/// What of a word the server looks at: all up to the first zero byte. `None` where that was not kept.
pub(crate) fn until_zero(arguments: &Arguments, index: u64) -> Option<&[u8]> {
    let kept = arguments.get(index)?;
    match kept.iter().position(|byte| *byte == 0) {
        Some(end) => Some(&kept[..end]),
        None => Some(kept).filter(|_| arguments.is_whole(index)),
    }
}

/// The arguments of a command, of which some may not have been kept.
pub(super) struct Words<'a> {
    arguments: &'a Arguments,
    /// Something was asked that what is kept does not tell.
    pub(super) uncertain: bool,
}

impl<'a> Words<'a> {
    pub(super) fn new(arguments: &'a Arguments) -> Self {
        Words { arguments, uncertain: false }
    }

    /// How many there are, kept or not.
    pub(super) fn count(&self) -> u64 {
        self.arguments.count()
    }

    /// Whether there is an argument `index` and it was kept, or the beginning of it. Whoever goes through arguments stops where
    /// it is not: a client may announce billions.
    pub(super) fn has(&mut self, index: u64) -> bool {
        let kept = self.arguments.argument(index).is_some();
        self.uncertain |= !kept && index < self.count();
        kept && index < self.count()
    }

    /// Whether argument `index` is this word, in any case of its letters.
    pub(super) fn is(&mut self, index: u64, word: &str) -> bool {
        self.is_bytes(index, word.as_bytes())
    }

    pub(super) fn is_bytes(&mut self, index: u64, word: &[u8]) -> bool {
        let Some(kept) = self.arguments.get(index).filter(|_| index < self.count()) else {
            self.has(index);
            return false;
        };
        let common = kept.len().min(word.len());
        if !kept[..common].eq_ignore_ascii_case(&word[..common]) {
            return false;
        }
        if let Some(next) = kept.get(word.len()) {
            return *next == 0;
        }
        let whole = self.arguments.is_whole(index);
        self.uncertain |= !whole;
        whole && kept.len() == word.len()
    }

    /// Whether argument `index` is one of these words.
    pub(super) fn is_any(&mut self, index: u64, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(index, word))
    }

    /// Argument `index` as a number, in the one way that the server reads numbers: no sign but a minus, no zeros before it, no spaces.
    pub(super) fn number(&mut self, index: u64) -> Option<i64> {
        if !self.has(index) || self.length(index) > 20 {
            return None;
        }
        if !self.arguments.is_whole(index) {
            self.uncertain = true;
            return None;
        }
        let bytes = self.arguments.get(index)?;
        match bytes {
            b"0" => Some(0),
            [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => str::from_utf8(bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// Argument `index` as the number of a database.
    pub(super) fn database(&mut self, index: u64) -> Option<u32> {
        u32::try_from(self.number(index)?).ok().filter(|number| i32::try_from(*number).is_ok())
    }

    /// Whether argument `index` has this byte, as far as can be told.
    pub(super) fn contains(&mut self, index: u64, byte: u8) -> bool {
        if !self.has(index) {
            return false;
        }
        let found = self.arguments.get(index).is_some_and(|kept| kept.contains(&byte));
        self.uncertain |= !found && !self.arguments.is_whole(index);
        found
    }

    /// The length of argument `index`, 0 where it was not kept.
    pub(super) fn length(&self, index: u64) -> u64 {
        self.arguments.argument(index).map_or(0, |argument| argument.length)
    }
}
