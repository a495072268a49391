//! What a key directory that is being taken up did not know when that began: it is kept there until that is done.

use crate::keys::files;
use crate::keys::seal_state::Attempt;
use bulla_crypto::group::PartId;
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::collections::BTreeSet;

/// The first frame and number that the backup knows nothing of.
pub(crate) struct Unknown {
    pub(crate) frame: u64,
    pub(crate) subject: u64,
    /// Whether a new vault is being made: what there is of a vault may be what came of that.
    pub(crate) new_vault: bool,
    /// Where the log is gone on with although it ends before what the vault has followed, or may: what is given up.
    pub(crate) given_up: Option<GivenUp>,
    /// The parts of the log that were known to be given up when that began: where an event tells of another one, more is known by now.
    pub(crate) parts: BTreeSet<PartId>,
}

/// A part of a log that is being given up: its newest part, which is lost for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// How many frames of that log the keys knew of; 0 where nothing told.
    pub(crate) known: u64,
    /// The root of the tree over these; `None` where nothing told it.
    pub(crate) root: Option<Hash>,
    /// How many frames were left when that began.
    pub(crate) left: u64,
    /// The loss, however often its attempts draw another id for the part: the first of these ids.
    pub(crate) loss: PartId,
    /// The vault with which it is given up is marked with it.
    pub(crate) id: PartId,
}

/// What follows the numbers where a new vault is being made.
const NEW_VAULT: &str = " new-vault";
/// What follows that where the log may end before what the vault has followed: how many frames the keys knew of comes behind it, then how
/// many the log had, then the id of the loss, then that of what is given up, then the root over the frames that the keys knew of, then the ids of the
/// parts that were known to be given up before.
const OLDER_LOG: &str = " older-log ";

/// No vault gives this number, nor one above it.
const END: u64 = 1 << 32;
/// In the place of a root that nothing told.
const NO_ROOT: &str = "-";
/// The most ids of parts: the seal state and the vault know no more.
const MOST_PARTS: usize = 2048;
/// The longest file of them, in bytes.
const MOST: u64 = 257 + 33 * MOST_PARTS as u64;

impl GivenUp {
    /// What the seal states of its attempts say.
    pub(crate) fn attempt(&self) -> Attempt {
        Attempt { loss: self.loss, part: self.id }
    }
}

impl Unknown {
    /// What is written down in `keys`; `None` where nothing is being taken up.
    ///
    /// # Errors
    /// `Unavailable` where the file is damaged or cannot be read.
    pub(crate) fn load(keys: &dyn Store) -> Result<Option<Self>> {
        let Some(bytes) = files::read_if_there(keys, files::RESTORING, MOST)? else { return Ok(None) };
        let numbers = || {
            let text = std::str::from_utf8(&bytes).ok()?.strip_suffix('\n')?;
            let (text, given_up, parts) = match text.split_once(OLDER_LOG) {
                Some((text, words)) => {
                    let mut words = words.split(' ');
                    let (known, left) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                    let (loss, id) = (PartId::parse(words.next()?)?, PartId::parse(words.next()?)?);
                    let root = match words.next()? {
                        NO_ROOT => None,
                        root => Some(Hash::parse(root)?),
                    };
                    let parts = words.map(PartId::parse).collect::<Option<_>>()?;
                    (text, Some(GivenUp { known, root, left, loss, id }), parts)
                }
                None => (text, None, BTreeSet::new()),
            };
            let (text, new_vault) = match text.strip_suffix(NEW_VAULT) {
                Some(text) => (text, true),
                None => (text, false),
            };
            let (frame, subject) = two_numbers(text)?;
            let unknown = Unknown { frame, subject, new_vault, given_up, parts };
            // Each has one spelling.
            (subject < END && unknown.text().as_bytes() == &bytes[..]).then_some(unknown)
        };
        let name = keys.describe(files::RESTORING);
        let damaged =
            || Error::unavailable(format!("{name} is damaged: restore the backup again, without it"));
        numbers().map(Some).ok_or_else(damaged)
    }

    /// Writes it down.
    ///
    /// # Errors
    /// `Refused` where more parts were given up than it has room for; `Unavailable` where that cannot be written.
    pub(crate) fn save(&self, keys: &dyn Store) -> Result<()> {
        if self.parts.len() > MOST_PARTS {
            let message = format!(
                "more than {MOST_PARTS} parts of the log were given up: a new log has to go on for it"
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let written = bulla_store::replace(keys, files::RESTORING, self.text().as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::RESTORING)), error))
    }

    /// That taking `keys` up has to be done again first.
    pub(crate) fn unfinished(&self, keys: &dyn Store) -> Error {
        let message = format!(
            "a restore of {} was begun and not finished: do it again, with `bulla restore{}{}",
            keys.describe(""),
            if self.new_vault { " --new-vault" } else { "" },
            if self.given_up.is_some() {
                " --older-log`, and `--seal-key` if it was begun with that"
            } else {
                "`"
            }
        );
        Error::new(ErrorKind::Refused, message)
    }

    fn text(&self) -> String {
        let new_vault = if self.new_vault { NEW_VAULT } else { "" };
        let given_up = self.given_up.map(|GivenUp { known, root, left, loss, id }| {
            let root = root.map_or_else(|| NO_ROOT.to_owned(), |root| root.to_string());
            let parts = self.parts.iter().map(|part| format!(" {part}")).collect::<String>();
            format!("{OLDER_LOG}{known} {left} {loss} {id} {root}{parts}")
        });
        format!("{} {}{new_vault}{}\n", self.frame, self.subject, given_up.unwrap_or_default())
    }
}

fn two_numbers(text: &str) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(' ')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_testkit::Memory;

    #[test]
    fn it_has_one_spelling_and_bounds() {
        let keys = Memory::new();
        let (loss, id) = (PartId([0xfa; 16]), PartId([0xaf; 16]));
        let part = GivenUp { known: u64::MAX, root: None, left: u64::MAX, loss, id };
        let parts = [None, Some(part), Some(GivenUp { root: Some(Hash([0x5a; 32])), ..part })];
        for (new_vault, given_up) in parts.into_iter().flat_map(|part| [(false, part), (true, part)]) {
            for count in [0, 1, 2, MOST_PARTS] {
                let ids = (0..count).map(|id| PartId((id as u128).to_be_bytes()));
                let parts = ids.filter(|_| given_up.is_some()).collect();
                let unknown = Unknown { frame: u64::MAX, subject: END - 1, new_vault, given_up, parts };
                unknown.save(&keys).unwrap();
                let read = Unknown::load(&keys).unwrap().unwrap();
                assert_eq!((read.text(), read.parts), (unknown.text(), unknown.parts));
            }
        }
        for text in [
            "2 1",
            "2 1\n\n",
            "02 1\n",
            "2 01\n",
            "+2 1\n",
            "2  1\n",
            " 2 1\n",
            "2 1 \n",
            "2\n",
            "",
            "2 1 older-log\n",
            "2 1 older-log 10\n",
            "2 1 older-log 10 4\n",
            "2 1 older-log 10 04 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f -\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e -\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090A0B0C0D0E0F -\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - 1\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - new-vault\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f -\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f 00\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - \n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - 000102030405060708090a0b0c0d0e\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - 000102030405060708090a0b0c0d0e0f 000102030405060708090a0b0c0d0e0f\n",
            "2 1 older-log 10 4 f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0 000102030405060708090a0b0c0d0e0f - 100102030405060708090a0b0c0d0e0f 000102030405060708090a0b0c0d0e0f\n",
            "2 1 older-log 10 4 000102030405060708090a0b0c0d0e0f -\n",
            "2 1 new-vault new-vault\n",
            "2 4294967296\n",
            "18446744073709551616 1\n",
            "2 1\r\n",
            "2 1 else\n",
        ] {
            bulla_store::replace(&keys, files::RESTORING, text.as_bytes()).unwrap();
            let error = Unknown::load(&keys).map(drop).unwrap_err();
            assert!(error.to_string().contains("restoring is damaged"), "{text:?}: {error}");
        }
    }
}
