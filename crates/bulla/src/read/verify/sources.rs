//! What blocks say of sources, as a verification with the key of that tells it.

use crate::format::sources::SourceEntry;
use crate::format::sources::table::Table;
use crate::keys::sources::{SourcesKey, read_section};
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::located::{Located, Unreadable, Verified};
use bulla_store::Result;

/// What a block says of sources, or why it is nothing that a block may say.
pub(super) type Said = std::result::Result<Vec<SourceEntry>, Unreadable>;

/// Reads the section of a block whose body has its digest; nothing where it has none, or its epoch's frame is damaged.
pub(super) fn read(key: &SourcesKey, frame: &Located, verified: &Verified<'_>) -> Result<Option<Said>> {
    let (section, Some(random)) = (verified.sources_section(), &frame.epoch_random) else { return Ok(None) };
    if section.is_empty() {
        return Ok(None);
    }
    let commitment = &frame.commitment;
    let key = key.of_epoch(commitment.log_id, commitment.epoch, random)?;
    let read = read_section(&key, commitment, section.to_vec());
    Ok(Some(read.map_err(|why| damaged(format!("what it says of sources {why}")))))
}

/// What the blocks say up to one of them, in their order.
#[derive(Default)]
pub(super) struct Sum {
    table: Table,
    is_told: bool,
}

impl Sum {
    /// Takes in what the next block says, and tells what is wrong with it.
    pub(super) fn take(&mut self, frame: &Located, said: Said) -> Option<Finding> {
        let entries = match said {
            Ok(entries) => entries,
            Err(unreadable) => return Some(unreadable.finding(frame)),
        };
        entries.into_iter().for_each(|entry| self.table.take(frame.commitment.frame, entry));
        if !self.table.is_overfull() || std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        Some(damaged("up to it blocks name more sources than a log has".to_owned()).finding(frame))
    }
}

fn damaged(detail: String) -> Unreadable {
    Unreadable { kind: FindingKind::SourcesDamaged, detail }
}
