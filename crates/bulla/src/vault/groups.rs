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

    fn secret(&self, place: Place<'_>, subjects: &[u64]) -> Result<Option<GroupSecret>> {
        let keys =
            subjects.iter().map(|&number| self.key(number)).collect::<Result<Option<Vec<SubjectKey>>>>()?;
        keys.map(|keys| place.secret(subjects.iter().copied().zip(&keys))).transpose()
    }
}
