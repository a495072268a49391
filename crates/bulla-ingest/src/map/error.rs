use std::fmt;

/// What is wrong with a map, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapError {
    map: String,
    line: usize,
    column: usize,
    what: String,
}

impl MapError {
    /// That something is wrong at this byte of the map.
    pub(super) fn new(map: &str, text: &str, at: usize, what: impl Into<String>) -> Self {
        let (line, column) = place(text, at);
        MapError { map: map.to_owned(), line, column, what: what.into() }
    }

    /// The line of the map, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in the line, in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MapError { map, line, column, what } = self;
        write!(f, "{map}:{line}:{column}: {what}")
    }
}

impl std::error::Error for MapError {}

/// The line and the column, both from 1, of a byte of a text.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let begin = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    // Bytes that go on a character begin none.
    let column = before[begin..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
    (line, column)
}

/// Why a map makes no entry of a record: the field, what is wrong, and the line of the map that gives the field; never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapped(pub(super) String);

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unmapped {}
