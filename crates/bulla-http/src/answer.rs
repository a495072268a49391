//! What a service answers.

/// The longest header of an answer, in bytes.
pub const MOST_HEADERS: usize = 16 << 10;

/// What a service answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code: any but 300 to 399.
    pub status: u16,
    /// The value of `Content-Type`, where there is one that is text.
    pub content_type: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}
