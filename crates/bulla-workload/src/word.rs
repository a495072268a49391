//! A short text that is quick to write: a copy of constant length, then a cut, takes less than a copy of its length.

/// The longest word, in bytes.
pub(crate) const LONGEST: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    text: [u8; LONGEST],
    length: u8,
}

impl Word {
    /// # Panics
    /// When the text is longer than [`LONGEST`].
    pub(crate) const fn new(text: &[u8]) -> Self {
        let mut word = Word { text: [0; LONGEST], length: 0 };
        while (word.length as usize) < text.len() {
            word.text[word.length as usize] = text[word.length as usize];
            word.length += 1;
        }
        word
    }

    pub(crate) const fn followed_by(mut self, byte: u8) -> Self {
        self.text[self.length as usize] = byte;
        self.length += 1;
        self
    }

    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text);
        out.truncate(out.len() - LONGEST + usize::from(self.length));
    }
}
