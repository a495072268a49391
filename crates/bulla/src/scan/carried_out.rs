//! Whether the log tells of an order already.

use crate::format::event::Event;
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use bulla_proof::note::SignedNote;
use bulla_proof::order::Order;
use bulla_store::Result;

/// What the event of an order says that was carried out.
pub(crate) struct CarriedOut {
    pub(crate) frame: u64,
    pub(crate) numbers: Vec<u64>,
    /// The places in the order's list of the names that were theirs.
    pub(crate) places: Vec<u32>,
}

impl CarriedOut {
    /// Finds the event of an order that was carried out. Orders are compared by what they say: somebody may have put other
    /// signatures beneath the same order, that of an erasure key of before, say.
    ///
    /// # Errors
    /// As [`each_event`].
    pub(crate) fn find(manifest: &Manifest, ordered: &Order) -> Result<Option<Self>> {
        let mut found = None;
        each_event(manifest, 0, |commitment, event| {
            if let Event::Erased { numbers, carried_out, order: note, .. } = event
                && let Ok(note) = SignedNote::parse(note.as_bytes())
                && Order::parse(note.text).is_ok_and(|order| order == *ordered)
            {
                found = Some(CarriedOut { frame: commitment.frame, numbers, places: carried_out });
            }
        })?;
        Ok(found)
    }
}
