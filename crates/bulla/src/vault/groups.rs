//! The vault as where sealing gets its keys, and reading its secrets.

use super::{Subject, SubjectKey, Vault};
use crate::error::Result;
use crate::keys::group::{GroupKeys, GroupSecret, Place, Subjects};

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
}

impl GroupKeys for Vault {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.find(subject)?.map(|subject| subject.number))
    }

    fn secrets(&self, place: Place<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let keys = self.keys(groups.iter().copied().flatten().copied())?;
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

    fn erased_up_to(&self) -> Result<u64> {
        self.follows()
    }
}
