//! What kind of log a simulation is of, and how much happens to it: drawn from the seed.

use crate::helpers::Rng;
use bulla::{Durability, HashId, Init, Options};
use std::time::Duration;

/// Age recipients, to be named only: keys are wrapped by the simulated environment.
pub(super) const RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
pub(super) const OTHER_RECIPIENT: &str = "age1lggyhqrw2nlhcxprm67z43rta597azn8gknawjehu9d9dl0jq3yqqvfafg";

/// When a log syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Group,
    Interval,
    Os,
}

impl Mode {
    /// Whether what it acknowledges is synced.
    pub(super) fn survives_power_cut(self) -> bool {
        self != Mode::Os
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) vault: bool,
    pub(super) durability: Mode,
    pub(super) sessions: u64,
    /// At most so many steps a session.
    pub(super) steps: u64,
    /// In so many of a hundred sessions something fails.
    pub(super) trouble: u64,
    /// At most so many producers at once, and entries at a time.
    pub(super) producers: u64,
    pub(super) burst: u64,
    /// See [`super::entries::Made::new`].
    pub(super) payload: u64,
    /// Whether some entries are from a source.
    pub(super) sources: bool,
    /// Whether the first session makes nearly as many frames as a tile has leaves.
    pub(super) tiles: bool,
    heartbeat: bool,
    common: bool,
    sha3: bool,
    segment_size: usize,
    block_size: usize,
    compression: i32,
    retries: u32,
}

impl Plan {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Plan {
            vault: rng.below(4) > 0,
            durability: *rng.one(&[Mode::Group, Mode::Interval, Mode::Os]),
            sessions: 1 + rng.below(6),
            steps: *rng.one(&[10, 25, 60]),
            trouble: *rng.one(&[0, 40, 70, 90]),
            producers: 1 + rng.below(3),
            burst: *rng.one(&[1, 4, 12]),
            payload: *rng.one(&[8, 200, 1500]),
            sources: rng.below(3) == 0,
            tiles: rng.below(16) == 0,
            heartbeat: rng.below(3) == 0,
            common: rng.below(2) == 0,
            sha3: rng.below(4) == 0,
            segment_size: *rng.one(&[64 << 10, 64 << 10, 16 << 20]),
            block_size: *rng.one(&[4 << 10, 4 << 10, 64 << 10]),
            compression: *rng.one(&[0, 0, 1]),
            retries: *rng.one(&[0, 1, 2]),
        }
    }

    pub(super) fn init(&self) -> Init {
        let init = Init::default().origin("example.com/audit").recipient(RECIPIENT).erasure(self.vault);
        let init = init.hash(if self.sha3 { HashId::Sha3_256 } else { HashId::default() });
        let init = init.common(self.common.then_some(8));
        if self.heartbeat { init.heartbeat(Duration::from_secs(600)) } else { init }
    }

    /// The options of a session.
    pub(super) fn options(&self) -> Options {
        let durability = match self.durability {
            Mode::Group => Durability::Group,
            Mode::Interval => Durability::Interval(Duration::from_secs(1)),
            Mode::Os => Durability::Os,
        };
        let options = Options::default().memory(64 << 20).writers(1).retries(self.retries);
        let options = options.block_size(self.block_size).segment_size(self.segment_size);
        options.compression(self.compression).durability(durability)
    }
}
