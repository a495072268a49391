//! How many bytes of rows make a full block: more where its personal groups are small or its dictionaries large, as many
//! as memory allows.
//!
//! A group costs a tag, a commitment and a few derivations of keys, however few entries it has; and in a larger block
//! the same person's entries meet more often. A dictionary costs its texts, however often they occur. The target follows
//! from the blocks that were sealed alone.

/// With fewer entries a group than this, blocks grow.
const FEW: u64 = 8;
/// With so many they shrink. Half a block may have half of them, which must not be few again.
const MANY: u64 = 3 * FEW;

/// With dictionaries of more than this part of a body, blocks grow.
const LARGE: usize = 20;
/// With less than this they shrink. Half a block may have twice the part, which must not be large again.
const SMALL: usize = 3 * LARGE;

/// A block costs some 600 bytes besides its body: with a body of less than this, blocks grow.
const ENOUGH: usize = 64 << 10;

/// What came of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    /// Personal groups.
    pub(crate) groups: u64,
    /// Bytes of its body, and those of dictionaries in it.
    pub(crate) body: usize,
    pub(crate) dictionaries: usize,
}

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

    /// Learns of a block that was sealed. One that was taken before it was full says nothing of small groups and large
    /// dictionaries.
    pub(crate) fn learn(&mut self, bytes: usize, entries: u64, made: Made) {
        let Made { groups, body, dictionaries } = made;
        let part = |of: usize| dictionaries.saturating_mul(of);
        let small = part(LARGE) > body || body < ENOUGH;
        if bytes >= self.now && (small || entries < groups.saturating_mul(FEW)) {
            self.now = self.now.saturating_mul(2).min(self.most);
        } else if entries >= groups.saturating_mul(MANY) && part(SMALL) <= body && body >= 3 * ENOUGH {
            self.now = (self.now / 2).max(self.least);
        }
    }
}
