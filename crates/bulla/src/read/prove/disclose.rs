//! What a proof discloses of a block.

use crate::scan::open::BlockOpener;
use bulla_proof::commitment::Commitment;
use bulla_proof::proof::{
    DisclosedEntry, DisclosedFrame, DisclosedGroup, DisclosedItem, DisclosedUnit, UnitContent,
};
use bulla_store::{Error, Result};

/// Of the block that was opened last and whose units were checked, the units that `rows`, ascending, are in. A row that
/// is in a group discloses all of the group; with its secret where the group was opened, and the common items that it refers to.
///
/// A unit's position is its rank among all units, which stand in the order of their first rows.
pub(super) fn disclose(
    opener: &BlockOpener,
    commitment: &Commitment,
    rows: &[u32],
) -> Result<DisclosedFrame> {
    let groups = opener.groups();
    let mut wanted = vec![false; groups.len()];
    rows.iter().filter_map(|&row| groups.of_row(row as usize)).for_each(|group| wanted[group] = true);
    let wanted_groups = (0..wanted.len()).filter(|&group| wanted[group]).collect::<Vec<_>>();
    let used = opener.items_of(&wanted_groups)?;
    let groups = opener.groups();
    let mut alone = rows.iter().copied().filter(|&row| groups.of_row(row as usize).is_none()).peekable();

    let (hashes, salts) = opener.leaves(commitment);
    let mut units = Vec::new();
    let (mut position, mut met) = (0, 0);
    for (row, index) in (0_u32..).zip(0..opener.shared_rows().len()) {
        let content = match groups.of_row(index) {
            // Groups are numbered in the order of their first rows.
            Some(group) if group < met => continue,
            Some(group) => {
                met += 1;
                wanted[group].then(|| UnitContent::Group(Box::new(disclose_group(opener, commitment, group))))
            }
            None => alone.next_if_eq(&row).map(|row| UnitContent::Row(entry(opener, commitment, row))),
        };
        if let Some(content) = content {
            units.push(DisclosedUnit { position: position as u64, salt: salts[position], content });
        }
        position += 1;
    }
    let items = used.into_iter().map(|item| DisclosedItem {
        position: item as u64,
        salt: salts[position + item],
        bytes: opener.items().bytes(item).unwrap_or_default().to_vec(),
    });
    let frame = DisclosedFrame::new(commitment.clone(), &hashes, units, items.collect());
    frame.map_err(|error| Error::tampered(format!("frame {}: {error}", commitment.frame)))
}

/// The numbers of the entries that `frame` discloses beside `rows`, which ascend: those in groups of theirs.
pub(super) fn others(frame: &DisclosedFrame, rows: &[u32]) -> Vec<u64> {
    let first = frame.commitment().first_entry;
    let asked = |number: u64| u32::try_from(number - first).is_ok_and(|row| rows.binary_search(&row).is_ok());
    let disclosed = frame.units().iter().flat_map(DisclosedUnit::entries).map(|entry| entry.number);
    let mut others = disclosed.filter(|number| !asked(*number)).collect::<Vec<_>>();
    others.sort_unstable();
    others
}

/// How many bytes the personal fields take in the rows of the groups that `frame` opens, of the block that was opened last.
pub(super) fn opened_length(opener: &BlockOpener, frame: &DisclosedFrame) -> usize {
    let first = frame.commitment().first_entry;
    let opened = |unit: &&DisclosedUnit| unit.group().is_some_and(|group| group.secret.is_some());
    let entries = frame.units().iter().filter(opened).flat_map(DisclosedUnit::entries);
    let row = |number: u64| usize::try_from(number - first).unwrap_or(usize::MAX);
    entries.map(|entry| opener.rows()[row(entry.number)].len() - entry.row.len()).sum()
}

fn disclose_group(opener: &BlockOpener, commitment: &Commitment, group: usize) -> DisclosedGroup {
    let content = opener.groups().content(group);
    DisclosedGroup {
        personal: content.personal,
        entries: opener.rows_of(group).iter().map(|&row| entry(opener, commitment, row)).collect(),
        subjects: content.subjects.to_vec(),
        ciphertext: content.ciphertext.to_vec(),
        commitment: *content.commitment,
        secret: opener.secret(group).cloned(),
    }
}

/// A row as its unit hashes it.
fn entry(opener: &BlockOpener, commitment: &Commitment, row: u32) -> DisclosedEntry {
    DisclosedEntry {
        number: commitment.first_entry + u64::from(row),
        row: opener.shared_rows()[row as usize].to_vec(),
    }
}

#[cfg(test)]
mod tests;
