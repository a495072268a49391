//! What is beside a log in some lives: more paths, a mirror, witnesses. All that happens to these is drawn from a generator of its own, so
//! that a seed without them is the life that it was before there were any.

use super::host::HostClock;
use super::life::{Life, Session};
use super::mirror::Mirrored;
use super::outcome::Outcome;
use super::paths::Detached;
use super::witnesses::Cosigner;
use crate::helpers::Rng;
use std::sync::Arc;
use std::time::Duration;

/// What a seed stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lives {
    /// A log alone, in one directory.
    Alone,
    /// With what is beside it, in some.
    Beside,
}

/// See the module.
pub(super) struct Beside {
    pub(super) rng: Rng,
    pub(super) paths: &'static [&'static str],
    /// The paths that fail now.
    pub(super) failing: Vec<&'static str>,
    /// A path that was taken away.
    pub(super) detached: Option<Detached>,
    /// A path that is lost for good, and its id.
    pub(super) lost: Option<(&'static str, String)>,
    /// What was told of paths before this session.
    pub(super) told: usize,
    pub(super) mirror: Option<Mirrored>,
    pub(super) witnesses: Vec<Cosigner>,
}

impl Beside {
    pub(super) fn draw(seed: u64, lives: Lives) -> Outcome<Self> {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d);
        rng.next();
        let drawn = [rng.below(3) == 0, rng.below(5) == 0, rng.below(5) == 0];
        let [has_paths, has_mirror, has_witnesses] = drawn.map(|drawn| drawn && lives == Lives::Beside);
        let more = *rng.one::<&[&str]>(&[&["audit", "backup"], &["audit", "backup", "other"]]);
        let mirror = has_mirror.then(Mirrored::new);
        let count = if has_witnesses { 1 + rng.below(2) } else { 0 };
        // Its clock is set by nobody.
        let clock = Arc::new(HostClock::new());
        let witnesses = (0..count).map(|index| Cosigner::begin(index, &mut rng, &clock));
        let witnesses = witnesses.collect::<Outcome<_>>()?;
        let paths = if has_paths { more } else { &["audit"] };
        Ok(Beside { rng, paths, failing: Vec::new(), detached: None, lost: None, told: 0, mirror, witnesses })
    }
}

impl Life {
    /// What happens beside the log before each of its steps.
    pub(super) fn step_beside(&mut self, session: &mut Session) -> Outcome {
        let beside = &mut self.beside;
        let (paths, mirror) = (beside.paths.len() > 1, beside.mirror.is_some());
        if paths && beside.rng.below(8) == 0 {
            self.step_paths(session)?;
        }
        if mirror && self.beside.rng.below(2) == 0 && !self.host.stopped() {
            self.step_mirror()?;
        }
        if !self.beside.witnesses.is_empty() && self.beside.rng.below(2) == 0 {
            self.step_witnesses(session)?;
        }
        Ok(())
    }

    /// Time passes on the steady clocks, by which it is told when a witness is asked again.
    pub(super) fn time_passes(&mut self) {
        let seconds = *self.beside.rng.one(&[1, 12, 700]);
        self.host.clock.pass(Duration::from_secs(seconds));
        self.say("time passes", seconds);
    }
}
