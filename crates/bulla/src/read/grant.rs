//! Grants: the secrets of some groups, for somebody who has not got the vault.
//!
//! A grant opens the groups that are in it and nothing else: from a group's secret follows neither a data subject's key nor
//! the secret of another group. It is an age file for its recipients; `docs/format.md`, "Grants", has what is in it.

mod encoding;

use crate::read::reader::Reader;
use crate::read::reading::{Delivery, ReadReport};
use crate::read::select::Matches;
use crate::scan::finding::Finding;
use crate::scan::query::Query;
use crate::scan::unsigned;
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret};
use bulla_crypto::identities::{IdentityFile, is_encrypted};
use bulla_crypto::recipients::Age;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// The longest file of a grant that is made or read, in bytes: a million groups have room.
pub const MAX_GRANT: usize = 128 << 20;

/// The secrets of some groups of one log.
pub struct Grant {
    log: LogId,
    tree_size: u64,
    /// Ascending by frame and subjects, each once.
    groups: Vec<Group>,
    /// The data subjects of those groups, and their numbers.
    subjects: BTreeMap<String, u64>,
}

/// A group that is granted.
struct Group {
    frame: u64,
    /// The numbers of its data subjects, ascending.
    subjects: Vec<u64>,
    secret: GroupSecret,
}

/// A grant of what met a query.
#[derive(Debug)]
#[non_exhaustive]
pub struct Granted {
    /// What is to be given to somebody.
    pub grant: Grant,
    /// It opens so many groups.
    pub groups: u64,
    /// These have so many entries. They are more than met the query where a group has others of the same data subjects.
    pub entries: u64,
    /// Of these entries, the ones that met the query.
    pub asked: u64,
    /// What was read for it, and how many entries met the query, those among them that are in no group that was opened.
    pub read: ReadReport,
    /// What may follow that is not signed yet, and was not looked at.
    pub unsigned: Option<Finding>,
}

impl Reader {
    /// Grants what is personal of the entries that meet `query`: of each group that one of them is in, all of it.
    ///
    /// # Errors
    /// `Refused` where none of them is in a group whose key is there, and `Tampered` where that is so, or cannot be told, since
    /// keys are lost; otherwise as [`Reader::read`].
    pub fn grant(&self, query: &Query) -> Result<Granted> {
        let keys = self.given.group_keys.as_deref();
        let (mut groups, mut entries, mut asked) = (Vec::new(), 0, 0);
        let mut named = BTreeMap::<String, BTreeSet<u64>>::new();
        let reading = self.reading()?;
        let read = reading.read(query, Delivery::Discardable, granted, |found| {
            for Found { group, names, rows, met } in found {
                for name in names {
                    named.entry(name).or_default().extend(&group.subjects);
                }
                entries += rows;
                asked += met;
                groups.push(group);
            }
            Ok(())
        })?;
        let unsigned = unsigned::notice(&reading.manifest)?;
        if groups.is_empty() {
            let log = self.given.store.describe("");
            let nothing =
                format!("nothing to grant: no entry of {log} meets that whose data subjects have keys");
            // Of others than those there is something: they are in no group that opens.
            let subjects = match read.entries {
                0 => reading.subjects_not_found(query, unsigned.is_some())?,
                _ => Vec::new(),
            };
            return Err(read.found_nothing(nothing, &subjects, unsigned.is_some()));
        }
        let names = named.keys().map(String::as_str).collect::<Vec<_>>();
        let numbers = keys.map(|keys| keys.numbers(&names)).transpose()?.unwrap_or_default();
        // A person who came back after an erasure has another number than what was written before.
        let own = |((name, groups), number): ((String, BTreeSet<u64>), Option<u64>)| {
            Some((name, number.filter(|number| groups.contains(number))?))
        };
        let subjects = named.into_iter().zip(numbers).filter_map(own).collect();
        groups.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
        let (log, tree_size, count) = (self.config.id, read.tree_size, groups.len() as u64);
        let grant = Grant { log, tree_size, groups, subjects };
        Ok(Granted { grant, groups: count, entries, asked, read, unsigned })
    }
}

/// A group of a block, its subjects' names, how many entries it has, and how many of them met the query.
struct Found {
    group: Group,
    names: Vec<String>,
    rows: u64,
    met: u64,
}

/// The groups of a block that entries are in that met the query, as far as they were opened.
fn granted(matches: &Matches<'_>) -> Vec<Found> {
    let (opener, groups) = (matches.opener, matches.opener.groups());
    let mut met = BTreeMap::new();
    for group in matches.rows.iter().filter_map(|&row| groups.of_row(row as usize)) {
        *met.entry(group).or_insert(0) += 1;
    }
    let found = |(group, met): (usize, u64)| {
        let (secret, rows) = (opener.secret(group)?.clone(), opener.rows_of(group));
        // All entries of a group have the same data subjects.
        let entry = opener.rows().entry(*rows.first()? as usize).ok()?;
        let names = entry.subjects.iter().flatten().map(|name| (*name).to_owned()).collect();
        let subjects = groups.content(group).subjects.to_vec();
        let group = Group { frame: matches.commitment.frame, subjects, secret };
        Some(Found { group, names, rows: rows.len() as u64, met })
    };
    met.into_iter().filter_map(found).collect()
}

impl Group {
    fn place(&self) -> (u64, &[u64]) {
        (self.frame, &self.subjects)
    }
}

impl Grant {
    /// The grant as an age file for `recipients`, which may be plugins' (each takes up to `limit`).
    ///
    /// # Errors
    /// `Invalid` where a recipient is none, `Refused` where the grant has more than a file of [`MAX_GRANT`] bytes holds,
    /// `Unavailable` where a plugin fails.
    pub fn seal(&self, recipients: &[String], age: &Age, limit: Duration) -> Result<Vec<u8>> {
        let file = age.encrypt(recipients, &self.encode(), limit)?;
        match file.len() <= MAX_GRANT {
            true => Ok(file),
            false => Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the grant takes {} bytes, and may take {MAX_GRANT}: grant less at a time",
                    file.len()
                ),
            )),
        }
    }

    /// Opens the file of a grant for `log`.
    ///
    /// # Errors
    /// `NoKey` where it is for others than `identity`, `Refused` where it is for another log, `Tampered` where it is
    /// damaged, `Invalid` where it is too long or another file.
    pub fn open(file: &[u8], identity: &IdentityFile, log: LogId) -> Result<Self> {
        if file.len() > MAX_GRANT {
            return Err(Error::invalid(format!("it has over {MAX_GRANT} bytes: no grant has")));
        }
        if !is_encrypted(file) {
            return Err(Error::invalid(
                "it is no grant, as `bulla grant` writes them: it does not begin as an age file",
            ));
        }
        let content = identity.decrypt(file)?.ok_or_else(|| {
            Error::new(ErrorKind::NoKey, "the grant is for others: the identity is not one of its recipients")
        })?;
        if !content.starts_with(encoding::MAGIC) {
            return Err(Error::invalid("it is an age file of something else, and no grant"));
        }
        let grant =
            Grant::decode(&content).ok_or_else(|| Error::tampered("it is no grant of this version"))?;
        match grant.log == log {
            true => Ok(grant),
            false => {
                Err(Error::new(ErrorKind::Refused, format!("the grant is for another log, {}", grant.log)))
            }
        }
    }

    /// The number of frames of the log that was looked at for it.
    pub fn tree_size(&self) -> u64 {
        self.tree_size
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { log, tree_size, groups, subjects } = self;
        let mut shown = f.debug_struct("Grant");
        shown.field("log", log).field("tree_size", tree_size).field("groups", &groups.len());
        shown.field("subjects", &subjects.len()).finish()
    }
}

impl GroupKeys for Grant {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.subjects.get(subject).copied())
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let secret = |subjects: &&[u64]| {
            let wanted = (place.frame, *subjects);
            let found = self.groups.binary_search_by(|group| group.place().cmp(&wanted)).ok()?;
            Some(self.groups[found].secret.clone()).filter(|_| place.log == self.log)
        };
        Ok(groups.iter().map(secret).collect())
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed { frames: self.tree_size, ..Followed::NOTHING })
    }
}
