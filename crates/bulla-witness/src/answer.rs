//! What a witness answers.

/// The type of an answer that says the size of the last tree that was cosigned.
pub const SIZE_TYPE: &str = "text/x.tlog.size";
const TEXT: &str = "text/plain; charset=utf-8";

/// An answer: a status of HTTP, and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 with cosignatures; 400, 403, 404, 409 and 422 as C2SP tlog-witness has them; 500 where the witness could not keep what it
    /// would have signed, or cannot tell the time.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body: signature lines, or the size of the last tree that was cosigned and a newline, or why there is neither.
    pub body: String,
}

impl Answer {
    pub(crate) fn cosigned(line: String) -> Self {
        Answer { status: 200, content_type: TEXT, body: line }
    }

    /// That the last tree that was cosigned has this size, and not the one that was named.
    pub(crate) fn conflict(size: u64) -> Self {
        Answer { status: 409, content_type: SIZE_TYPE, body: format!("{size}\n") }
    }

    /// Why there is no cosignature, in one line.
    pub(crate) fn refused(status: u16, why: &str) -> Self {
        Answer { status, content_type: TEXT, body: format!("{why}\n") }
    }
}
