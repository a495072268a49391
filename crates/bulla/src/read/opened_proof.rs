//! What a proof discloses, with its groups opened by the secrets that it holds.
//!
//! `bulla-proof` checks a proof without any cipher; to open a group takes one, and the columns of its plaintext.
//!
//! **Invariant:** a file that anybody may have made takes memory and work in proportion to its length, whatever its
//! groups would decompress to.

use crate::format::groups::{decrypt, merge};
use bulla_columns::{Decoder, Fault, Items, ROW_OVERHEAD, Rows};
use bulla_proof::Entry;
use bulla_proof::entry::MAX_ROW;
use bulla_proof::group::GroupSecret;
use bulla_proof::policy::Policy;
use bulla_proof::proof::{Checked, DisclosedFrame, DisclosedGroup, DisclosedUnit, ProofError, ProofFile};
use bulla_store::{Error, ErrorKind, Result};

/// How many times the length of a file its groups may hold. Any one entry may be as long as entries get.
const TIMES: usize = 256;

/// An entry that a proof discloses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disclosed<'a> {
    /// Its number in the log.
    pub number: u64,
    /// The entry; without its personal fields where they are withheld.
    pub entry: Entry<'a>,
    /// Whether the entry is in a group whose secret the proof does not disclose.
    pub withheld: bool,
}

/// How much a proof disclosed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Entries.
    pub entries: u64,
    /// Of these, without their personal fields.
    pub withheld: u64,
}

/// Gives `each` the entries that a proof discloses, ascending, and opens the groups whose secrets it discloses. A group
/// that does not open ends it: to give out nothing of such a file, go through it once before.
///
/// ```
/// # fn check(file: &[u8], key: &bulla::VerifierKey) -> Result<(), Box<dyn std::error::Error>> {
/// let proof = bulla::proof::Proof::parse(file)?;
/// let opened = bulla::open_proof(&proof.verify(Some(key))?, |disclosed| {
///     println!("{}: {}", disclosed.number, disclosed.entry.operation);
///     Ok(())
/// })?;
/// println!("{} entries, {} of them without personal fields", opened.entries, opened.withheld);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// What `each` fails with. `Tampered` where a group does not decrypt or decode: the log committed to something that it
/// could not read itself. `Refused` where the groups hold far more than the file is long.
pub fn open_proof(
    checked: &Checked<'_>,
    mut each: impl FnMut(&Disclosed<'_>) -> Result<()>,
) -> Result<Opened> {
    let mut opener = Opener::new(checked.file_length());
    let mut opened = Opened::default();
    for frame in checked.disclosed() {
        opener.open(frame)?;
        for disclosed in opener.entries(frame) {
            let disclosed = disclosed?;
            opened.entries += 1;
            opened.withheld += u64::from(disclosed.withheld);
            each(&disclosed)?;
        }
    }
    Ok(opened)
}

/// What a proof of entries shows that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedProof {
    /// Whether the tree is signed as the policy asks for. Without one the proof only agrees with itself.
    pub anchored: bool,
    /// Frames of the tree that it is a proof of.
    pub tree_size: u64,
    /// How much it disclosed.
    pub opened: Opened,
}

/// Checks a file that proves entries, as text or as a receipt, by a policy ([`Policy::of`] makes one of a key), and gives `each` what it
/// discloses, as [`open_proof`] does: of a proof that holds, and all of whose groups open, and of no other.
///
/// # Errors
/// `Invalid` for what is no such file, and for a receipt where the policy asks for more than one has; `Tampered` where it does not hold; else
/// as [`open_proof`].
pub fn check_proof(
    file: &[u8],
    policy: Option<&Policy>,
    each: impl FnMut(&Disclosed<'_>) -> Result<()>,
) -> Result<CheckedProof> {
    let file = ProofFile::parse(file).map_err(|error| Error::invalid(error.to_string()))?;
    let checked = match policy {
        Some(policy) => file.verify_entries_by(policy),
        None => file.verify_entries(None),
    };
    let checked = checked.map_err(|error| match error {
        ProofError::NotOfEntries | ProofError::ReceiptPolicy => Error::invalid(error.to_string()),
        error => Error::tampered(error.to_string()),
    })?;
    open_proof(&checked, |_| Ok(()))?;
    let opened = open_proof(&checked, each)?;
    Ok(CheckedProof { anchored: checked.anchored(), tree_size: checked.tree_size(), opened })
}

/// The most bytes that the groups of a file of so many may hold.
pub(crate) fn most_opened(length: usize) -> usize {
    length.saturating_mul(TIMES).max(MAX_ROW)
}

/// Opens the groups of one frame after the other, reusing its working memory.
struct Opener {
    decoder: Decoder,
    /// Of one group, the personal rows.
    pieces: Rows,
    /// Of one frame, the rows of the groups that were opened.
    rows: Rows,
    /// Of one frame, the entries by their numbers.
    order: Vec<(u64, Source)>,
    /// The most that the groups of a file of this length may hold, and what is left of that.
    limit: usize,
    left: usize,
}

/// Where an entry's row is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// In the proof: the unit, and which of its entries.
    Disclosed(usize, usize),
    /// Among the rows of the groups that were opened.
    Opened(usize),
}

impl Opener {
    fn new(length: usize) -> Self {
        let limit = most_opened(length);
        let (pieces, rows) = (Rows::default(), Rows::default());
        Opener { decoder: Decoder::new(), pieces, rows, order: Vec::new(), limit, left: limit }
    }

    /// Opens the groups of a frame whose secrets are disclosed.
    fn open(&mut self, frame: &DisclosedFrame) -> Result<()> {
        self.rows.clear();
        self.order.clear();
        let has_secret = frame.units().iter().any(|unit| with_secret(unit).is_some());
        // Where nothing is opened, nobody looks how long the rows of the file are together.
        let mut declared = match has_secret {
            true => declared(frame)
                .ok_or_else(|| in_frame(frame, "its entries take more than it has declared for them"))?,
            false => 0,
        };
        if has_secret {
            let items = frame.items().iter().map(|item| (item.position, &item.bytes[..]));
            let items = Items::some(frame.item_count(), items);
            self.decoder
                .set_items(items.map_err(|error| in_frame(frame, &format!("its common items: {error}")))?);
        }
        for (index, unit) in frame.units().iter().enumerate() {
            if let Some((group, secret)) = with_secret(unit) {
                let opened = self.open_group(group, secret, &mut declared);
                opened.map_err(|unopened| unopened.error(frame, group, self.limit))?;
                continue;
            }
            let entries = unit.entries().iter().enumerate();
            self.order.extend(entries.map(|(at, entry)| (entry.number, Source::Disclosed(index, at))));
        }
        let disclosed = frame.items().iter().map(|item| item.position);
        if has_secret && !disclosed.eq(self.decoder.used_items().map(|item| item as u64)) {
            return Err(in_frame(
                frame,
                "it discloses a common item that no group refers to whose secret it discloses",
            ));
        }
        // The entries of a group lie among those of other units.
        self.order.sort_unstable();
        Ok(())
    }

    /// Opens a group, whose block has `declared` as many bytes of rows to come.
    fn open_group(
        &mut self,
        group: &DisclosedGroup,
        secret: &GroupSecret,
        declared: &mut usize,
    ) -> Result<(), Unopened> {
        let text = decrypt(secret, &group.content()).map_err(|detail| Unopened::Wrong(detail.to_owned()))?;
        let least = self.left.min(*declared);
        let mut left = least;
        let (entries, personal) = (group.entries.len(), group.personal);
        self.decoder.decode_group(&text, entries, personal, &mut left, &mut self.pieces).map_err(
            |error| match error.fault {
                Fault::TooLarge if self.left < *declared => Unopened::TooLarge,
                _ => Unopened::Wrong(format!("it does not decode: {error}")),
            },
        )?;
        self.left -= least - left;
        *declared -= least - left;
        for (entry, piece) in group.entries.iter().zip(self.pieces.iter()) {
            self.order.push((entry.number, Source::Opened(self.rows.len())));
            let merged = self.rows.push(|out| merge(&entry.row, piece, out));
            merged.map_err(|error| Unopened::Wrong(format!("entry {}: {error}", entry.number)))?;
        }
        Ok(())
    }

    /// The entries of the frame whose groups were opened last.
    fn entries<'a>(&'a self, frame: &'a DisclosedFrame) -> impl Iterator<Item = Result<Disclosed<'a>>> {
        self.order.iter().map(move |&(number, source)| {
            let (row, withheld) = match source {
                Source::Opened(row) => (&self.rows[row], false),
                Source::Disclosed(unit, entry) => {
                    let unit = &frame.units()[unit];
                    (&unit.entries()[entry].row[..], unit.group().is_some())
                }
            };
            let entry = Entry::decode(row);
            let entry = entry.map_err(|error| Error::tampered(format!("entry {number}: {error}")))?;
            Ok(Disclosed { number, entry, withheld })
        })
    }
}

fn in_frame(frame: &DisclosedFrame, problem: &str) -> Error {
    Error::tampered(format!("frame {}: {problem}", frame.commitment().frame))
}

/// A unit's group, and the secret that opens it.
fn with_secret(unit: &DisclosedUnit) -> Option<(&DisclosedGroup, &GroupSecret)> {
    let group = unit.group()?;
    Some((group, group.secret.as_ref()?))
}

/// What the personal fields of a frame's entries can take, by the commitment; `None` where the rows in the file take more already.
fn declared(frame: &DisclosedFrame) -> Option<usize> {
    let rows = frame.units().iter().flat_map(DisclosedUnit::entries);
    let shared = rows.map(|entry| entry.row.len() + ROW_OVERHEAD).sum();
    (1_usize << frame.commitment().content_log2).checked_sub(shared)
}

/// Why a group is not opened.
enum Unopened {
    /// It is not what a writer makes.
    Wrong(String),
    /// It holds more than a file of that length may.
    TooLarge,
}

impl Unopened {
    fn error(self, frame: &DisclosedFrame, group: &DisclosedGroup, limit: usize) -> Error {
        let frame = frame.commitment().frame;
        let first = group.entries.first().map_or(0, |entry| entry.number);
        match self {
            Unopened::Wrong(detail) => {
                Error::tampered(format!("frame {frame}, the group of entry {first}: {detail}"))
            }
            Unopened::TooLarge => Error::new(
                ErrorKind::Refused,
                format!(
                    "frame {frame}, the group of entry {first}: what the file discloses takes more than {limit} bytes, \
                     which is more than a file of its length is trusted with"
                ),
            ),
        }
    }
}
