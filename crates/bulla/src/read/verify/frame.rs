//! What a verification finds in a frame: its body, what a block says of sources, its entries.

use super::sources;
use crate::index;
use crate::keys::sources::SourcesKey;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::located::{Located, Unreadable, Verified};
use crate::scan::open::{Asks, BlockOpener, Opening};
use crate::scan::redaction::Redaction;
use crate::scan::unread_events::UnreadEvents;
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_store::Result;

/// How far frames are looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// To the digests of their bodies.
    Digests,
    /// To the entries of blocks.
    Bodies,
    /// To what the index has to say of those.
    Tokens,
}

/// What a frame is found to be.
pub(super) struct Outcome {
    pub(super) checked: Result<Checked, Unreadable>,
    /// What a block says of sources, where the key of that is at hand.
    pub(super) sources: Option<sources::Said>,
    /// What a block that was opened has and its log does not ask for.
    pub(super) unasked: Option<Unreadable>,
}

impl From<Result<Checked, Unreadable>> for Outcome {
    fn from(checked: Result<Checked, Unreadable>) -> Self {
        Outcome { checked, sources: None, unasked: None }
    }
}

/// A frame that is what its commitment says.
#[derive(Default)]
pub(super) struct Checked {
    /// Of a block, with [`Wants::Tokens`], what its tokens come to.
    pub(super) tokens: Option<Hash>,
    /// Entries whose personal fields are erased.
    pub(super) erased: u64,
    pub(super) lost: Option<Lost>,
}

/// Entries whose keys are lost: the first, and how many there are up to the last, others among them.
pub(super) struct Lost {
    first: u64,
    span: u64,
}

impl Lost {
    /// How to tell of it; `unread` are the frames that may tell of an erasure and cannot be read.
    pub(super) fn finding(&self, frame: &Located, unread: Option<UnreadEvents>) -> Finding {
        let detail = match unread {
            None => "the keys of some of these entries' data subjects are lost: the vault has not got them, and no event of the \
                     log tells of their erasure"
                .to_owned(),
            Some(unread) => format!(
                "the vault has not got the keys of some of these entries' data subjects; whether they were erased cannot be told: \
                 {unread}. Restore what is damaged or missing, not the vault"
            ),
        };
        let finding = Finding::new(FindingKind::KeyLost, detail).at(frame.segment, frame.offset);
        finding.frame(frame.commitment.frame).entries(self.first, self.span)
    }
}

/// What frames are checked with.
pub(super) struct With<'a> {
    pub(super) wants: Wants,
    pub(super) asks: Asks,
    pub(super) personal: Option<&'a Opening<'a>>,
    pub(super) sources: Option<&'a SourcesKey>,
}

/// Checks a frame as far as `with` says.
///
/// # Errors
/// `Unavailable` where it cannot be read, or keys cannot be looked up.
pub(super) fn check_frame(opener: &mut BlockOpener, frame: &Located, with: &With<'_>) -> Result<Outcome> {
    let verified = match frame.verify()? {
        Ok(verified) => verified,
        Err(unreadable) => return Ok(Err(unreadable).into()),
    };
    let said = with.sources.map(|key| sources::read(key, frame, &verified)).transpose()?.flatten();
    Ok(Outcome { sources: said, ..check_body(opener, frame, verified, with)? })
}

fn check_body(
    opener: &mut BlockOpener,
    frame: &Located,
    verified: Verified<'_>,
    &With { wants, asks, personal, .. }: &With<'_>,
) -> Result<Outcome> {
    if wants == Wants::Digests || frame.commitment.kind != FrameKind::Block {
        return Ok(Ok(Checked::default()).into());
    }
    let Some(keys) = &frame.keys else {
        let detail = match frame.foreign {
            true => "the identity does not open its epoch",
            false => "there is no key for it: its epoch's frame is damaged",
        };
        return Ok(Err(Unreadable { kind: FindingKind::NotOpened, detail: detail.to_owned() }).into());
    };
    let mut opened = opener.open(verified, keys).and_then(|()| opener.check_units(&frame.commitment, keys));
    let unasked = opened.as_ref().ok().and_then(|()| opener.check_asked(asks).err());
    if let Some(personal) = personal.filter(|_| opened.is_ok() && !opener.groups().is_empty()) {
        opened = opener.open_groups(&frame.commitment, keys, personal)?;
    }
    let checked = |()| {
        let tokens = (wants == Wants::Tokens).then(|| {
            index::digest(index::tokens(keys, opener.shared_rows().iter(), opener.groups()).into_iter())
        });
        let (erased, lost) = count_withheld(opener, frame.commitment.first_entry);
        Checked { tokens, erased, lost }
    };
    Ok(Outcome { checked: opened.map(checked), sources: None, unasked })
}

/// The entries of the block opened last whose personal fields are erased, and those whose keys are lost.
fn count_withheld(opener: &BlockOpener, first_entry: u64) -> (u64, Option<Lost>) {
    let (mut erased, mut lost) = (0, None::<Lost>);
    for (number, row) in (first_entry..).zip(0..opener.shared_rows().len()) {
        match opener.withheld(row) {
            Some(Redaction::Erased) => erased += 1,
            Some(Redaction::KeyLost | Redaction::CannotTell) => {
                let lost = lost.get_or_insert(Lost { first: number, span: 0 });
                lost.span = number - lost.first + 1;
            }
            Some(Redaction::NotGiven) | None => {}
        }
    }
    (erased, lost)
}
