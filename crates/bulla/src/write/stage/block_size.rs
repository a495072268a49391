//! How many bytes of rows make a full block: more where its personal groups are small or its dictionaries large, as many
//! as memory allows.
//!
//! A personal group costs a commitment and a few key derivations however few entries it has, and in a larger block the
//! same person's entries meet more often. A dictionary costs its texts however often they occur. The size follows from
//! the blocks that were sealed and from nothing else, so that a seed reproduces it.
//!
//! Small groups make it grow at once to the size at which they could be large enough: a block so many times as large has at
//! most so many times as many entries in a group, so that no size in between would do. That holds of a block that was
//! taken early, too.
//!
//! Each threshold for shrinking stands three times as far off as the one for growing. Halving a block at most halves its
//! entries per group, and at most doubles the share of its dictionaries: the half-sized block therefore cannot cross the
//! threshold for growing, and the size comes to rest instead of swinging between two values.

/// With fewer entries per group than this, blocks grow.
const FEW_PER_GROUP: u64 = 8;
/// With at least so many entries per group, blocks may shrink.
const MANY_PER_GROUP: u64 = 3 * FEW_PER_GROUP;

/// With dictionaries of more than one part in so many of the body, blocks grow.
const LARGE_DICTIONARIES: usize = 20;
/// With dictionaries of at most one part in so many of the body, blocks may shrink.
const SMALL_DICTIONARIES: usize = 3 * LARGE_DICTIONARIES;

/// Besides its body a block costs some 600 bytes: its frame and its share of the tree. With a smaller body than this,
/// blocks grow.
const SMALL_BODY: usize = 64 << 10;

/// What a block was sealed to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockOutcome {
    /// Personal groups.
    pub(crate) groups: u64,
    /// Bytes of its body, and those of dictionaries in it.
    pub(crate) body: usize,
    pub(crate) dictionaries: usize,
}

/// The bytes at which a block is full.
#[derive(Debug)]
pub(crate) struct BlockSizeController {
    least: usize,
    most: usize,
    now: usize,
}

impl BlockSizeController {
    /// A controller of blocks of `least` bytes that may grow up to `most`.
    pub(crate) fn new(least: usize, most: usize) -> Self {
        BlockSizeController { least, most: most.max(least), now: least }
    }

    /// The bytes at which a block is full now.
    pub(crate) fn bytes(&self) -> usize {
        self.now
    }

    /// Learns from a block that was sealed. Of one that was taken early only its groups count, by the size that they
    /// would need at least: that it has large dictionaries, or a small body, says nothing about a full one.
    pub(crate) fn learn(&mut self, bytes: usize, entries: u64, sealed: BlockOutcome) {
        let BlockOutcome { groups, body, dictionaries } = sealed;
        let parts = |of: usize| dictionaries.saturating_mul(of);
        let small = bytes >= self.now && (parts(LARGE_DICTIONARIES) > body || body < SMALL_BODY);
        let doubled = if small { self.now.saturating_mul(2) } else { 0 };
        // How many times as large a block would have to be.
        let times = groups.saturating_mul(FEW_PER_GROUP).div_ceil(entries.max(1));
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        let needed = if times > 1 { bytes.saturating_mul(times) } else { 0 };
        if doubled.max(needed) > self.now {
            self.now = doubled.max(needed).min(self.most);
        } else if entries >= groups.saturating_mul(MANY_PER_GROUP)
            && parts(SMALL_DICTIONARIES) <= body
            && body >= 3 * SMALL_BODY
        {
            self.now = (self.now / 2).max(self.least);
        }
    }
}
