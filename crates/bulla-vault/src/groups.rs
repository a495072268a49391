//! The vault as the place that sealing takes the subjects' keys from, and reading the groups' secrets.

use super::resolve::being_erased;
use super::{Subject, SubjectKey, Vault};
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, Subjects, Whose};
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};

impl Subjects for Vault {
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        Vault::resolve(self, subjects)
    }

    fn next_number(&self) -> Result<u64> {
        Vault::next_number(self)
    }

    fn require_at_least(&self, next: u64) -> Result<()> {
        Vault::require_at_least(self, next)
    }

    fn signs(&self, head: TreeHead) -> Result<()> {
        self.follow(head)
    }

    fn require_signed(&self, frames: u64) -> Result<()> {
        match self.follows()?.size >= frames {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{} is older than the log, and a writer was cut short since then: restore the newest `vault` and \
                     `roots`, or, where there is none, take it up with `bulla restore`",
                    self.shared.database.name()
                ),
            )),
        }
    }
}

impl Vault {
    /// Checks that none of these numbers, whose keys are gone, belongs to an erasure that the log may not have recorded yet. Somebody
    /// who read the log then would take the key for lost, and not for erased.
    fn refuse_unconfirmed(&self, mut gone: impl Iterator<Item = u64>) -> Result<()> {
        let Some(first) = gone.next() else { return Ok(()) };
        let erasing = self.unconfirmed()?.map_or_else(Vec::new, |erasure| erasure.numbers);
        match std::iter::once(first).chain(gone).find(|number| erasing.contains(number)) {
            Some(number) => Err(being_erased(number)),
            None => Ok(()),
        }
    }
}

impl GroupKeys for Vault {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.numbers(&[subject])?.pop().flatten())
    }

    /// A number that nobody has is counted by whoever reads, as [`GroupKeys::missing`] tells of it: only they know the log.
    fn numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        self.look_up(subjects, |_| true)
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let numbers = || groups.iter().copied().flatten().copied();
        let keys = self.keys(numbers())?;
        self.refuse_unconfirmed(
            numbers().zip(&keys).filter(|(_, key)| key.is_none()).map(|(number, _)| number),
        )?;
        let mut keys = keys.iter();
        let secret = |group: &&[u64]| {
            let keys = keys.by_ref().take(group.len()).map(Option::as_ref).collect::<Vec<_>>();
            let keys = keys.into_iter().collect::<Option<Vec<&SubjectKey>>>();
            keys.map(|keys| place.secret(group.iter().copied().zip(keys))).transpose()
        };
        groups.iter().map(secret).collect()
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        self.check_owner()?;
        let meta = self.shared.meta()?;
        Ok(Followed { unfollowed: meta.unfollowed, given_up: meta.given_up, ..Followed::from(meta.follows) })
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        Vault::missing(self, from)
    }

    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        Vault::whose(self, asked).map(Some)
    }
}
