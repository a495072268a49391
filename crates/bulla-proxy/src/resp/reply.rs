//! [`Replies`]: the replies in what a server sends.

use super::{Limits, Progress, Violation};

/// The types of RESP2 and RESP3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `+`
    Simple,
    /// `-` and `!`
    Error,
    /// `:`
    Integer,
    /// `$` and `=`
    Bulk,
    /// `_`, and `$-1` and `*-1` of RESP2
    Null,
    /// `,`
    Double,
    /// `#`
    Boolean,
    /// `(`
    BigNumber,
    /// `*`
    Array,
    /// `~`
    Set,
    /// `%`: its children are keys and values in turn.
    Map,
    /// `>`: no reply to anything.
    Push,
}

/// One value of a reply, in the order in which they come: an aggregate before its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its type.
    pub kind: Kind,
    /// How deep it lies: 0 for the reply itself.
    pub depth: u16,
    /// The bytes of its text, or of an aggregate its children.
    pub length: u64,
    pub(super) start: usize,
    pub(super) kept: usize,
}

/// What is kept of a reply.
#[derive(Clone, Default)]
pub struct Reply {
    pub(super) bytes: Vec<u8>,
    pub(super) nodes: Vec<Node>,
    pub(super) count: u64,
    pub(super) wire: u64,
}

/// Cuts what a server sends into replies and pushes.
pub struct Replies {
    limits: Limits,
    reply: Reply,
}

impl Replies {
    /// Keeps no more than `limits` of a reply.
    pub fn new(limits: Limits) -> Self {
        Replies { limits, reply: Reply::default() }
    }

    /// Goes on with the reply at hand. Attributes (`|`) belong to the reply that they come before, and nothing of them is kept.
    ///
    /// # Errors
    /// What comes is no reply. The same for all bytes after that.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Progress, Violation> {
        let _ = (bytes, self.limits);
        Err(Violation { what: "nothing is read yet" })
    }

    /// The reply at hand, as far as it has come; the whole of it after it was complete, until the next one begins.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }
}

impl Reply {
    /// The type of the reply: `None` before its first byte has come.
    pub fn kind(&self) -> Option<Kind> {
        self.nodes.first().map(|node| node.kind)
    }

    /// Its values, as far as they were kept: the reply itself first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What is kept of the text of a node.
    pub fn text(&self, node: &Node) -> &[u8] {
        &self.bytes[node.start..][..node.kept]
    }

    /// How many values it has, those counted that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many bytes it took on the wire.
    pub fn wire(&self) -> u64 {
        self.wire
    }
}

/// What is in it may be somebody's data.
impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reply({} values of {} bytes)", self.count, self.wire)
    }
}
