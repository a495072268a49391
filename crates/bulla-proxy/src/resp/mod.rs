//! The Redis serialization protocol, versions 2 and 3, read beside a stream that is relayed as it is.
//!
//! Both parsers take whatever bytes have come, say how many of them belong to the command or reply at hand, and keep of it
//! what the caller wants of it: memory is bounded by [`Limits`], whatever a client or server sends. Neither ever changes a byte.
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>

mod arguments;
mod inline;
mod number;
mod replies;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use arguments::{Argument, Arguments, Digest};
pub use replies::{DEEPEST, Part, Replies};
pub use reply::{Kind, Node, Reply};
pub use request::{Requests, SHORT, write_command};

/// How much is kept of what is parsed. What goes beyond it is still parsed, counted and relayed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all arguments of one command, or of all texts of one reply.
    pub bytes: usize,
    /// Arguments of one command, or nodes of one reply: of a reply, the first node is kept always.
    pub items: usize,
    /// Bytes of one text of a reply.
    pub text: usize,
}

/// How far the command or reply at hand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many of the bytes that were given belong to it.
    pub consumed: usize,
    /// Whether it ended with them. What comes after begins the next one.
    pub complete: bool,
}

/// Bytes that are no command or no reply. The parser cannot go on: nobody knows where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was expected in the place of what came, or what is wrong with it, in the words of a server where it has any that clients may
    /// look for; without repeating what came: it may be a secret.
    pub what: &'static str,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for Violation {}
