//! The pin of a log that is being written: each checkpoint advances it before it is published itself.

use crate::format::config::signed::OwnKeys;
use crate::format::files;
use crate::scan::pin::{Advanced, Pin};
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Result, Store};
use bulla_text::spelling::counted;
use std::path::PathBuf;

/// How a log is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pinned {
    /// Where the pin lies.
    pub path: PathBuf,
    /// How many frames it covered when the log was opened.
    pub frames: u64,
    /// Whether it was made then.
    pub made: bool,
}

/// The pin of a log that is being written.
pub(crate) struct KeptPin {
    pin: Pin,
    /// What it was when it was read or written last: of this log's tree.
    known: TreeHead,
    state: Pinned,
}

impl KeptPin {
    /// A pin that is known to be of this log's tree.
    pub(crate) fn new(pin: Pin, known: TreeHead, made: bool) -> Self {
        let state = Pinned { path: pin.path().to_owned(), frames: known.size, made };
        KeptPin { pin, known, state }
    }

    /// What it was when the log was opened.
    pub(crate) fn state(&self) -> &Pinned {
        &self.state
    }

    /// Advances it to a checkpoint that is about to be published.
    ///
    /// # Errors
    /// `Tampered` where somebody has advanced it further than this log ever was, or with another history; else as
    /// [`Pin::advance`].
    pub(crate) fn advance(&mut self, log: (&dyn Store, OwnKeys<'_>), to: TreeHead, note: &str) -> Result<()> {
        match self.pin.advance(log, (to, note.as_bytes()), Some(self.known))? {
            Advanced::To(head) => {
                self.known = head;
                Ok(())
            }
            Advanced::IsAhead(head) => Err(Error::tampered(format!(
                "{} has {}, but the pin {} covers {}, which somebody else has signed with the log's key",
                log.0.describe(files::CHECKPOINT),
                counted(to.size, "frame"),
                self.pin.path().display(),
                head.size
            ))),
        }
    }
}
