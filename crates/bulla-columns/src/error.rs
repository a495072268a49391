//! Why a plaintext is refused: in which column, and what is wrong there.

use bulla_proof::varint::VarintError;
use std::fmt;

/// A plaintext that is not an encoded block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The column that the fault is in, by its field's name; `group` or `block` when it is in none.
    pub column: &'static str,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The layout version is not 1.
    Version,
    /// The number of entries is not the one that the frame's commitment declares.
    Entries,
    /// The bytes end before what was begun is complete.
    Truncated,
    /// An integer is not in its shortest form.
    NotMinimal,
    /// A form, presence or codec tag, or a bit width, that does not exist, or is not allowed where it stands.
    Form,
    /// A bit that must be zero is set.
    Unused,
    /// A length, count, index or value is outside its limits.
    Range,
    /// The rows would exceed the frame's content limit.
    TooLarge,
    /// Compressed bytes do not decompress to exactly what they must.
    Codec,
    /// Text is not UTF-8.
    NotText,
    /// Groups are not in the order of their first entries, or one has no entry, or its subjects are not in order.
    Groups,
    /// Common items are not in order, or one that is referred to is not there.
    Items,
    /// The length is not the padded length of what is in it, or the padding is not zero.
    Padding,
}

impl Fault {
    pub(super) fn within(self, column: &'static str) -> DecodeError {
        DecodeError { column, fault: self }
    }
}

impl From<VarintError> for Fault {
    fn from(error: VarintError) -> Self {
        match error {
            VarintError::Truncated => Self::Truncated,
            VarintError::NotMinimal => Self::NotMinimal,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the layout version is unknown",
            Self::Entries => "the number of entries is not the declared one",
            Self::Truncated => "the bytes end too early",
            Self::NotMinimal => "an integer is not in its shortest form",
            Self::Form => "a tag or bit width is unknown or not allowed there",
            Self::Unused => "a bit that must be zero is set",
            Self::Range => "a length, count, index or value is out of range",
            Self::TooLarge => "the rows exceed the declared content limit",
            Self::Codec => "compressed bytes do not decompress to what they must",
            Self::NotText => "text is not UTF-8",
            Self::Groups => "the groups, or a group's subjects, are not in order",
            Self::Items => "the common items are not in order, or one that is referred to is not there",
            Self::Padding => "the padding is wrong",
        })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column `{}`: {}", self.column, self.fault)
    }
}

impl std::error::Error for DecodeError {}
