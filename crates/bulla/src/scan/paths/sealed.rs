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
/// The same while a writer has the log: it may be at work on a slow medium.
const LOOKS_BESIDE_A_WRITER: usize = 40;
/// The longest wait between two looks whether a writer that was started anew publishes what the one before had signed.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

impl LogPaths {
    /// Looks again, with waits between, until something is so, or a writer would have seen to it. Somebody's lock alone is no writer: who has the
    /// storage can take it.
    ///
    /// # Errors
    /// Where that cannot be told.
    pub(super) fn waits_until(&self, is_so: impl Fn(&Self) -> Result<bool>) -> Result<bool> {
        let clock = Environment::default().clock;
        let mut wait = Duration::from_millis(1);
        for look in 1.. {
            // A writer that is gone by then has published all that its seal state speaks of, unless it was stopped.
            let live = is_live(self)?;
            if is_so(self)? {
                return Ok(true);
            }
            if look >= if live { LOOKS_BESIDE_A_WRITER } else { LOOKS } {
                break;
            }
            clock.wait(wait, &Interrupt::default());
            wait = (2 * wait).min(PAUSE);
            self.look();
        }
        Ok(false)
    }

    /// That the newest checkpoint covers as many frames as the seal state.
    ///
    /// # Errors
    /// `Unavailable` where it does not.
    pub(super) fn require_published(&self, sealed: u64) -> Result<()> {
        let signed = || self.published_frames().unwrap_or(0);
        if self.waits_until(|_| Ok(signed() >= sealed))? {
            return Ok(());
        }
        let place = self.in_use().describe("");
        let why = match is_live(self)? {
            true => "the writer that has the log does not publish what it has signed, or an older checkpoint was put in the place of that one. \
                     Nothing is told of a part as if it were the log: try again once that writer is well, or has ended"
                .to_owned(),
            false => format!(
                "a writer was stopped before it published what it had signed, or an older checkpoint was put in the place of that one. Nothing is \
                 told of a part as if it were the log: open it once, as by `bulla append {place} </dev/null`, which publishes what is there"
            ),
        };
        Err(Error::unavailable(format!(
            "the newest checkpoint of {place} covers {}, and the log's seal state {sealed}, which are all there: {why}; `bulla export --salvage` \
             gives out what the checkpoint covers",
            counted(signed(), "frame")
        )))
    }

    /// As [`Paths::unpublished`].
    pub(super) fn signed_and_unpublished(&self, covered: u64) -> Result<Option<u64>> {
        let sealed = self.signed_frames();
        let is_covered = |paths: &Self| Ok(paths.published_frames().unwrap_or(0) >= sealed);
        let is_unpublished = sealed > covered && !self.waits_until(is_covered)?;
        Ok(is_unpublished.then_some(sealed))
    }

    /// As [`Paths::sealed`].
    pub(super) fn signed_frames(&self) -> u64 {
        self.seal_state().map_or(0, |sealed| sealed.chain.next_frame())
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
