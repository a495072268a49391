//! What is asked of the log itself, and not of its entries.

use super::{Files, Snapshot, open_checked};
use crate::format::event::Event;
use crate::scan::events;
use crate::scan::manifest::Frames;
use crate::scan::open::BlockOpener;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::Result;

impl Snapshot<'_> {
    /// Gives `each` the events in the frames from `from` on, with their frames. One that is no event of this version is
    /// passed over.
    ///
    /// # Errors
    /// `Tampered` where an event is damaged, `Unavailable` where it cannot be read.
    pub(crate) fn each_event(&self, from: u64, mut each: impl FnMut(u64, Event)) -> Result<()> {
        events::each_event(&self.manifest, &self.store, &self.reader.config, from, |commitment, body| {
            if let Ok(event) = Event::decode(&body) {
                each(commitment.frame, event);
            }
            Ok(())
        })
    }

    /// The commitment and the body of the event in this frame, if there is one.
    ///
    /// # Errors
    /// As [`Snapshot::each_event`].
    pub(crate) fn event(&self, frame: u64) -> Result<Option<(Commitment, Vec<u8>)>> {
        let mut found = None;
        events::each_event(&self.manifest, &self.store, &self.reader.config, frame, |commitment, body| {
            if commitment.frame == frame {
                found = Some((commitment, body));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// A number above those of all data subjects in the blocks from frame `from` on.
    ///
    /// # Errors
    /// `NoKey` where the identity does not open one of them; else as reading them.
    pub(crate) fn next_subject(&self, from: u64) -> Result<u64> {
        let mut frames = Frames::new(&self.manifest, &self.store, &self.reader.config)?;
        let (mut files, mut opener) = (Files::default(), BlockOpener::default());
        let mut next = 0;
        while let Some(placed) = frames.next()? {
            if placed.commitment.kind != FrameKind::Block || placed.commitment.frame < from {
                continue;
            }
            let keys = self.keys(&frames, &mut files)?;
            let located = self.locate(&mut files, placed, Some(keys))?;
            open_checked(&mut opener, &located)?;
            let groups = opener.groups();
            let last = (0..groups.len()).filter_map(|group| groups.content(group).subjects.last());
            next = last.map(|number| number + 1).fold(next, u64::max);
        }
        Ok(next)
    }
}
