//! What of a block meets a query: the block is opened, all checks done, before anything of it is looked at.

use crate::fields::filter::TextField;
use crate::index::Named;
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::keyless::{Keyless, numbers_of};
use crate::scan::located::{Located, Unreadable, verified};
use crate::scan::open::{Asks, BlockOpener, Opening};
use crate::scan::query::Query;
use crate::scan::redaction::{RedactedEntries, Redaction};
use bulla_crypto::group::GroupKeys;
use bulla_proof::Entry;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::{Hash, sha256};
use bulla_store::{Error, ErrorKind, Result};

/// What a row that is held back counts besides its bytes: it is small beside what holds it.
const ROW: u64 = 64;

/// The entries of one block that meet a query, one at least, in the order of their numbers.
pub struct Matches<'a> {
    pub(crate) opener: &'a BlockOpener,
    pub(crate) commitment: &'a Commitment,
    /// Which rows of the block they are.
    pub(crate) rows: &'a [u32],
}

impl<'a> Matches<'a> {
    /// The entries, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Entry<'a>)> + '_ {
        // They were decoded once before, to see whether they match.
        self.rows().filter_map(|(number, row)| Some((number, Entry::decode(row).ok()?)))
    }

    /// The entries as they outlive the block.
    pub fn to_kept(&self) -> Vec<Kept> {
        let kept =
            |(number, row): (u64, &[u8])| Kept { number, row: row.to_vec(), withheld: self.withheld(number) };
        self.rows().map(kept).collect()
    }

    /// Their canonical rows, with their numbers.
    fn rows(&self) -> impl Iterator<Item = (u64, &'a [u8])> + '_ {
        let (rows, first) = (self.opener.rows(), self.commitment.first_entry);
        self.rows.iter().map(move |&row| (first + u64::from(row), &rows[row as usize]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Why the personal fields of the entry with this number are missing, if they are.
    pub fn withheld(&self, number: u64) -> Option<Redaction> {
        let row = usize::try_from(number.checked_sub(self.commitment.first_entry)?).ok()?;
        self.opener.withheld(row)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// An entry that was read, and is kept.
pub struct Kept {
    /// Its number in the log.
    pub number: u64,
    /// Why its personal fields are missing, if they are.
    pub withheld: Option<Redaction>,
    row: Vec<u8>,
}

impl Kept {
    /// The entry.
    ///
    /// # Errors
    /// `Tampered` where it is none, which reading it would have found.
    pub fn entry(&self) -> Result<Entry<'_>> {
        Entry::decode(&self.row).map_err(|error| Error::tampered(format!("entry {}: {error}", self.number)))
    }
}

/// What was found in a block.
pub(crate) struct Selection<P> {
    /// What met the query, if anything did.
    pub(crate) selected: Option<Selected<P>>,
    /// Entries of which nobody can tell whether they meet it: see [`ReadReport::undecided`].
    ///
    /// [`ReadReport::undecided`]: crate::ReadReport::undecided
    pub(crate) undecided: u64,
}

/// What of a block met a query.
pub(crate) struct Selected<P> {
    /// How many entries, one at least.
    pub(crate) entries: u64,
    /// How many of them without their personal fields.
    pub(crate) withheld: RedactedEntries,
    /// Bytes of their rows, and of what holds them.
    pub(crate) bytes: u64,
    /// Which rows they are, and which of them come without their personal fields: to know them again.
    pub(crate) mark: Mark,
    /// What was made of them.
    pub(crate) piece: P,
}

/// Which rows of a block met a query, hashed. Nobody gains by finding another set of the same hash: it is cut short.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark([u8; 16]);

impl Mark {
    fn of(hash: Hash) -> Self {
        Mark(std::array::from_fn(|index| hash.0[index]))
    }
}

/// A query, and what opens the groups that it concerns.
pub(crate) struct Asked<'a> {
    pub(crate) query: &'a Query,
    keys: Option<&'a dyn GroupKeys>,
    erasures: &'a Erasures<'a>,
    pub(crate) keyless: &'a Keyless,
    /// Who the data subjects are that it asks for.
    pub(crate) named: &'a Named,
    /// What blocks may have.
    asks: Asks,
}

/// Who the data subject is that a query asks for, and who may be as well. Whoever becomes known after this has a number that is
/// among the latter: they are looked up first.
///
/// # Errors
/// As [`Keyless::to_look_for`] and [`numbers_of`].
pub(crate) fn asked_for(
    query: &Query,
    keys: Option<&dyn GroupKeys>,
    erased: impl Fn() -> Result<Erased>,
) -> Result<(Keyless, Named)> {
    let keyless = Keyless::to_look_for(query, keys, &erased)?;
    let named = match (query.fields.values(TextField::Subject), keys) {
        (Some(subjects), Some(keys)) => {
            // What is no text is nobody's name.
            let names = subjects.into_iter().filter_map(|subject| std::str::from_utf8(subject).ok());
            let numbers = numbers_of(&names.collect::<Vec<_>>(), keys, erased)?;
            Named::Numbers(numbers.into_iter().flatten().collect())
        }
        _ => Named::Unknown,
    };
    Ok((keyless, named))
}

impl<'a> Asked<'a> {
    pub(crate) fn new(
        query: &'a Query,
        keys: Option<&'a dyn GroupKeys>,
        erasures: &'a Erasures<'a>,
        keyless: &'a Keyless,
        named: &'a Named,
        asks: Asks,
    ) -> Self {
        Asked { query, keys, erasures, keyless, named, asks }
    }

    /// Opens those groups of a block, which was opened, that can have what is asked for.
    fn open_groups(&self, opener: &mut BlockOpener, frame: &Located) -> Result<Result<(), Unreadable>> {
        let Some(epoch) = frame.keys.as_ref().filter(|_| !opener.groups().is_empty()) else {
            return Ok(Ok(()));
        };
        let Some(keys) = self.keys else {
            let message = format!(
                "the personal fields in frame {} are encrypted for each data subject: reading them needs the keys \
                 of data subjects",
                frame.commitment.frame
            );
            return Err(Error::new(ErrorKind::NoKey, message));
        };
        let groups = opener.groups();
        let asked = |subjects: &[u64]| self.may_concern(subjects);
        if !(0..groups.len()).any(|group| asked(groups.content(group).subjects)) {
            return Ok(Ok(()));
        }
        let opening = Opening { keys, erasures: self.erasures, asked: &asked, names: None };
        opener.open_groups(&frame.commitment, epoch, &opening)
    }

    /// Whether the group of the data subjects with these numbers can have what is asked for.
    fn may_concern(&self, subjects: &[u64]) -> bool {
        let named = match self.named {
            Named::Numbers(numbers) => numbers.iter().any(|number| subjects.binary_search(number).is_ok()),
            Named::Unknown => true,
        };
        named || self.keyless.are_among(subjects)
    }
}

/// Memory that a thread uses again from block to block.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) opener: BlockOpener,
    rows: Vec<u32>,
    marks: Vec<u8>,
}

impl Memory {
    /// Opens a block, all checks done, and renders what of it meets `query`.
    pub(crate) fn select<P>(
        &mut self,
        frame: &Located,
        asked: &Asked<'_>,
        render: &impl Fn(&Matches<'_>) -> P,
    ) -> Result<Selection<P>> {
        self.try_select(frame, asked, render)?.map_err(|unreadable| unreadable.error(frame))
    }

    /// The same, and apart from other errors what is wrong with a group: a verification without the keys of groups has not found that.
    pub(crate) fn try_select<P>(
        &mut self,
        frame: &Located,
        asked: &Asked<'_>,
        render: &impl Fn(&Matches<'_>) -> P,
    ) -> Result<Result<Selection<P>, Unreadable>> {
        open_checked(&mut self.opener, frame, asked.asks)?;
        if let Err(unreadable) = asked.open_groups(&mut self.opener, frame)? {
            return Ok(Err(unreadable));
        }
        self.rows.clear();
        let first_entry = frame.commitment.first_entry;
        self.marks.clear();
        // Of an entry whose group was not opened these are not known.
        let unknown = self.opener.groups().personal();
        let personal = asked.query.fields.ask_for(unknown);
        let (mut bytes, mut withheld, mut undecided) = (0, RedactedEntries::default(), 0);
        for ((number, row), index) in (first_entry..).zip(self.opener.rows().iter()).zip(0..) {
            let entry =
                Entry::decode(row).map_err(|error| Error::tampered(format!("entry {number}: {error}")))?;
            let why = self.opener.withheld(index as usize);
            if why.is_some() && personal {
                let lost = matches!(why, Some(Redaction::KeyLost | Redaction::CannotTell));
                undecided += u64::from(lost && asked.query.may_match(number, &entry, unknown));
            } else if asked.query.matches(number, &entry) {
                self.rows.push(index);
                self.marks.extend_from_slice(&index.to_le_bytes());
                self.marks.push(why.map_or(0, |why| 1 + why as u8));
                withheld.count(why);
                bytes += row.len() as u64 + ROW;
            }
        }
        let matches = Matches { opener: &self.opener, commitment: &frame.commitment, rows: &self.rows };
        let selected = (!matches.is_empty()).then(|| {
            let (entries, mark) = (matches.len() as u64, Mark::of(sha256(&[&self.marks])));
            Selected { entries, withheld, bytes, mark, piece: render(&matches) }
        });
        Ok(Ok(Selection { selected, undecided }))
    }
}

/// Opens a block, all checks done. What it may have `[log]` says, which was compared before.
pub(crate) fn open_checked(opener: &mut BlockOpener, frame: &Located, asks: Asks) -> Result<()> {
    let verified = verified(frame)?;
    let Some(keys) = &frame.keys else { return Err(Error::new(ErrorKind::NoKey, "no key opens the block")) };
    let opened = opener.open(verified, keys).and_then(|()| opener.check_units(&frame.commitment, keys));
    let opened = opened.and_then(|()| opener.check_asked(asks));
    opened.map_err(|unreadable| unreadable.error(frame))
}
