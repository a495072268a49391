//! What the key directory's seal state says of a log whose newest checkpoint covers less: see [`SealState`].

use super::LogPaths;
use crate::format::segment;
use crate::keys::seal_state::SealState;
use crate::scan::checkpoint::is_live;
use crate::scan::cursor::Cursor;
use crate::scan::stored_tree::Chunk;
use bulla_crypto::environment::{Environment, Interrupt};
use bulla_store::{Error, Result, Store};
use bulla_text::spelling::counted;
use std::time::Duration;

/// How often it is looked whether a writer signs what is not found.
pub(crate) const LOOKS: usize = 16;
/// The wait between two looks whether a writer that was started anew publishes what the one before had signed.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

impl LogPaths {
    /// That the newest checkpoint covers what the seal state does, where no writer is at work that is about to publish one.
    ///
    /// # Errors
    /// `Unavailable` where it does not.
    pub(super) fn require_published(&self) -> Result<()> {
        let clock = Environment::default().clock;
        for look in 0..LOOKS {
            if look > 0 {
                clock.wait(PAUSE, &Interrupt::default());
                self.look();
            }
            // A writer that is gone by then has published all that its seal state speaks of, unless it was stopped.
            let live = is_live(self)?;
            let Some(sealed) = self.seal_state() else { return Ok(()) };
            if live || sealed.chain.next_frame() <= self.published_frames().unwrap_or(0) {
                return Ok(());
            }
        }
        let sealed = self.seal_state().map_or(0, |sealed| sealed.chain.next_frame());
        let signed = counted(self.published_frames().unwrap_or(0), "frame");
        let place = self.in_use().describe("");
        Err(Error::unavailable(format!(
            "the newest checkpoint of {place} covers {signed}, and the log's seal state {sealed}, which are all there: a writer was stopped \
             before it published what it had signed, or an older checkpoint was put in the place of that one. Nothing is told of a part as \
             if it were the log: open it once, as by `bulla append {place} </dev/null`, which publishes what is there; \
             `bulla export --salvage` gives out what the checkpoint covers"
        )))
    }

    /// How many frames the log's vault has followed, at least: one that has followed less is older.
    pub(super) fn vault_follows(&self) -> u64 {
        self.seal_state().map_or(0, |sealed| sealed.followed)
    }

    fn seal_state(&self) -> Option<SealState> {
        let sealed = SealState::load(&**self.keys.as_ref()?).ok()?;
        (sealed.log == self.log).then_some(sealed)
    }
}

/// Whether the segments have the frames from `first` on of a tree of `size` frames, which is there.
pub(super) fn has_frames(store: &dyn Store, first: u64, size: u64) -> bool {
    let Ok((segments, _)) = segment::list(store) else { return false };
    let begins = segments.iter().rposition(|name| name.first <= first).unwrap_or(0);
    let (mut frame, mut chunk) = (first, None::<Chunk>);
    for &name in &segments[begins..] {
        let Ok(mut cursor) = Cursor::open(store, name) else { continue };
        while let Ok(Some(Ok(head))) = cursor.peek()
            && frame < size
        {
            let of_frame = chunk.take().filter(|chunk| chunk.covers(frame));
            let Ok(of_frame) = of_frame.map_or_else(|| Chunk::load(store, frame, size), Ok) else {
                return false;
            };
            // What a segment has beyond where another path took over is not the log's.
            if of_frame.agreed(frame) == Some(head.encoded) {
                frame += 1;
            }
            chunk = Some(of_frame);
            cursor.pass(&head);
        }
    }
    frame == size
}
