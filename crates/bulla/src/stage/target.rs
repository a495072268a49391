//! How many bytes of rows make a full block: more where its personal groups are small, as many as memory allows.
//!
//! A group costs a tag, a commitment and a few derivations of keys, however few entries it has; and in a larger block
//! the same person's entries meet more often. The target follows from the blocks that were sealed alone.

/// With fewer entries a group than this, blocks grow.
const FEW: u64 = 8;
/// With so many they shrink. Half a block may have half of them, which must not be few again.
const MANY: u64 = 3 * FEW;

/// The bytes at which a block is full.
#[derive(Debug)]
pub(crate) struct Target {
    least: usize,
    most: usize,
    now: usize,
}

impl Target {
    /// `least`, and up to `most`.
    pub(crate) fn new(least: usize, most: usize) -> Self {
        Target { least, most: most.max(least), now: least }
    }

    /// What it is now.
    pub(crate) fn bytes(&self) -> usize {
        self.now
    }

    /// Learns of a block that was sealed. One that was taken before it was full says nothing of small groups.
    pub(crate) fn learn(&mut self, bytes: usize, entries: u64, groups: u64) {
        if bytes >= self.now && entries < groups.saturating_mul(FEW) {
            self.now = self.now.saturating_mul(2).min(self.most);
        } else if entries >= groups.saturating_mul(MANY) {
            self.now = (self.now / 2).max(self.least);
        }
    }
}
