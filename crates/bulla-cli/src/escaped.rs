//! Words of others, escaped: in what is shown, names and messages may be an attacker's.

use bulla::text::is_obeyed;
use std::borrow::Cow;

/// Text without characters that a terminal obeys but line ends: names and messages may be an attacker's. What is one line is made so by
/// [`on_line`] before.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let foreign = |c: char| is_obeyed(c) && c != '\n';
    if !text.contains(foreign) {
        return text.into();
    }
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match foreign(c) {
            true => printable.extend(c.escape_default()),
            false => printable.push(c),
        }
    }
    printable.into()
}

/// A name as part of a line: an end of line in it would begin one that nobody wrote.
pub(crate) fn on_line(name: &str) -> String {
    name.replace('\n', "\\n")
}
