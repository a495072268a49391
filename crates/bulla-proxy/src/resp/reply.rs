//! [`Reply`]: what is kept of a reply.

/// The types of RESP2 and RESP3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `+`
    Simple,
    /// `-` and `!`
    Error,
    /// `:`
    Integer,
    /// `$` and `=`, the latter without its format: `txt:`
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
    /// `>`: no reply to anything, but for what answers `SUBSCRIBE` and the like. One that begins inside a reply is no value of it.
    Push,
}

/// One value of a reply, in the order in which they come: an aggregate before its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its type.
    pub kind: Kind,
    /// How deep it lies: 0 for the reply itself.
    pub depth: u16,
    /// The bytes of its text, or of an aggregate its children (a pair of a map is two). Where its beginning does not say how many
    /// there are, it is how many have come.
    pub length: u64,
    pub(super) start: usize,
    pub(super) kept: usize,
}

impl Node {
    /// Whether it consists of other values.
    pub fn is_aggregate(&self) -> bool {
        matches!(self.kind, Kind::Array | Kind::Set | Kind::Map | Kind::Push)
    }

    /// Whether all of its text is kept. What has children has no text.
    pub fn is_whole(&self) -> bool {
        self.is_aggregate() || self.kept as u64 == self.length
    }
}

/// What is kept of a reply.
#[derive(Clone, Default)]
pub struct Reply {
    pub(super) bytes: Vec<u8>,
    pub(super) nodes: Vec<Node>,
    pub(super) count: u64,
    pub(super) wire: u64,
}

impl Reply {
    /// The type of the reply: `None` before that has come.
    pub fn kind(&self) -> Option<Kind> {
        self.nodes.first().map(|node| node.kind)
    }

    /// Its values, as far as they were kept: the reply itself first. Those that were not kept come after those that were. Of one that is told
    /// in parts ([`super::Replies::limit`]) it is the reply itself, and the part at hand.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The values right inside the one at `index` of [`Reply::nodes`], as far as they were kept: each with its own index.
    pub fn children(&self, index: usize) -> impl Iterator<Item = (usize, &Node)> {
        let depth = self.nodes.get(index).map_or(0, |node| node.depth);
        let below = self.nodes.iter().enumerate().skip(index.saturating_add(1));
        below.take_while(move |(_, node)| node.depth > depth).filter(move |(_, node)| node.depth == depth + 1)
    }

    /// What is kept of the text of a node.
    pub fn text(&self, node: &Node) -> &[u8] {
        &self.bytes[node.start..][..node.kept]
    }

    /// What an integer is; `None` of anything else, of one that is not whole here, and beyond 64 bits.
    pub fn integer(&self, node: &Node) -> Option<i64> {
        let number = node.kind == Kind::Integer && node.is_whole();
        str::from_utf8(self.text(node)).ok().filter(|_| number)?.parse().ok()
    }

    /// The code of an error: the first word of its text where that looks like one (`WRONGTYPE`), else `ERR`. `None` of what is no error.
    pub fn error_code(&self, node: &Node) -> Option<&str> {
        if node.kind != Kind::Error {
            return None;
        }
        let text = self.text(node);
        let end = text.iter().position(|&byte| byte == b' ').or(node.is_whole().then_some(text.len()));
        let word = end.and_then(|end| str::from_utf8(&text[..end]).ok());
        let is_code = |word: &&str| {
            let all = |byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
            !word.is_empty() && word.bytes().all(all)
        };
        Some(word.filter(is_code).unwrap_or("ERR"))
    }

    /// Behind which of [`Reply::nodes`] no more lie inside the one at `index`.
    pub fn end_of(&self, index: usize) -> usize {
        let behind = index.saturating_add(1).min(self.nodes.len());
        let depth = self.nodes.get(index).map_or(0, |node| node.depth);
        behind + self.nodes[behind..].iter().take_while(|node| node.depth > depth).count()
    }

    /// How many values it has, those counted that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether all values are kept with all of their texts.
    pub fn is_whole(&self) -> bool {
        self.count == self.nodes.len() as u64 && self.nodes.iter().all(Node::is_whole)
    }

    /// How many bytes it took on the wire; of one that is told in parts, the part at hand.
    pub fn wire(&self) -> u64 {
        self.wire
    }

    /// Forgets the part at hand of a reply that is told in parts.
    pub(super) fn clear_part(&mut self) {
        self.bytes.clear();
        self.nodes.truncate(1);
        (self.count, self.wire) = (1, 0);
    }

    /// Forgets the reply. What its buffers have grown to stays.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.nodes.clear();
        (self.count, self.wire) = (0, 0);
    }
}

/// What is in it may be somebody's data.
impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reply({} values of {} bytes)", self.count, self.wire)
    }
}
