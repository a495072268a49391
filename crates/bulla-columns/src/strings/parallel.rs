//! What looks up eight words side by side.

#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::vocabulary::Vocabulary;

#[derive(Clone, Copy)]
pub(super) enum Parallel {
    Avx512(Avx512),
    #[cfg(test)]
    Plain,
}

impl Parallel {
    /// `None` where one word after the other is faster.
    pub(super) fn detect() -> Option<Parallel> {
        Avx512::detect().map(Parallel::Avx512)
    }

    /// As `words::number_words`, and the same numbers.
    pub(super) fn number_words(
        self,
        string: &[u8],
        vocabulary: &mut Vocabulary,
        indexes: &mut Vec<u8>,
    ) -> Option<usize> {
        match self {
            Parallel::Avx512(lanes) => lanes.number_words(string, vocabulary, indexes),
            #[cfg(test)]
            Parallel::Plain => super::look_up::number_words(super::lanes::Plain, string, vocabulary, indexes),
        }
    }
}

/// A processor that can: none.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub(super) enum Avx512 {}

#[cfg(not(target_arch = "x86_64"))]
impl Avx512 {
    fn detect() -> Option<Avx512> {
        None
    }

    fn number_words(self, _: &[u8], _: &mut Vocabulary, _: &mut Vec<u8>) -> Option<usize> {
        match self {}
    }
}
