//! The groups of some data subjects, by their numbers: which blocks have them, with how many entries. None of them is opened.

use super::Reading;
use crate::index::{Indexed, Lookup};
use crate::read::given::Progress;
use crate::read::select::open_checked;
use crate::scan::located::{Located, most_memory};
use crate::scan::manifest::Frames;
use crate::scan::open::{Asks, BlockOpener};
use crate::scan::pool::{self, Job};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::Result;

/// A group that names one of those who were asked for, and perhaps others.
pub(crate) struct NumberedGroup {
    /// The numbers of its data subjects, ascending.
    pub(crate) subjects: Vec<u64>,
    /// How many entries it has.
    pub(crate) entries: u64,
}

impl Reading<'_> {
    /// Gives `take`, in the order of frames, what groups each block has that name one of these data subjects. Each block is
    /// checked before that, and none that has any is passed over, but for those that were lost with a path.
    ///
    /// # Errors
    /// `Tampered` where what is read is damaged, `NoKey` without an identity that opens it, `Unavailable` where it cannot be
    /// read; and whatever `take` returns.
    pub(crate) fn groups_of(
        &self,
        numbers: &[u64],
        mut take: impl FnMut(u64, Vec<NumberedGroup>) -> Result<()>,
    ) -> Result<()> {
        let (mut frames, lost) = (Frames::new(&self.manifest)?, self.manifest.lost()?);
        let mut lookup = Lookup::of_numbers(&*self.manifest.snapshot.store, numbers);
        let next = || {
            while let Some(placed) = frames.next()? {
                let Commitment { kind, frame, .. } = placed.commitment;
                if kind != FrameKind::Block || lost.contains(frame) {
                    continue;
                }
                let keys = self.keys(&mut frames)?;
                if lookup.look(&placed.commitment, &keys, frames.bundle()) != Indexed::Without {
                    let (frame, weight) = (placed.commitment.frame, most_memory(&placed.commitment));
                    let item = Located { keys: Some(keys), ..frames.locate(placed)? };
                    return Ok(Some(Job { frame, weight, item }));
                }
            }
            Ok(None)
        };
        let asks = Asks::of(&self.manifest.snapshot.config);
        let work = |opener: &mut BlockOpener, frame: Located| {
            open_checked(opener, &frame, asks)?;
            Ok((frame.commitment.frame, named_in(opener, numbers)))
        };
        let (total, mut entries) = (self.manifest.size(), 0);
        pool::in_order(self.given.threads, next, work, |(frame, groups): (u64, Vec<NumberedGroup>)| {
            entries += groups.iter().map(|group| group.entries).sum::<u64>();
            self.given.tell(Progress { done: frame + 1, total, entries });
            take(frame, groups)
        })?;
        self.given.tell(Progress { done: total, total, entries });
        Ok(())
    }
}

fn named_in(opener: &BlockOpener, numbers: &[u64]) -> Vec<NumberedGroup> {
    let groups = opener.groups();
    let named = |group: &usize| {
        groups.content(*group).subjects.iter().any(|number| numbers.binary_search(number).is_ok())
    };
    let numbered = |group: usize| NumberedGroup {
        subjects: groups.content(group).subjects.to_vec(),
        entries: opener.rows_of(group).len() as u64,
    };
    (0..groups.len()).filter(named).map(numbered).collect()
}
