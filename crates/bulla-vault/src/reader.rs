//! A vault for whoever reads a log.

use std::path::Path;

use super::{Access, Settings, Vault};
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, Whose};
use bulla_proof::commitment::LogId;
use bulla_store::Result;

/// A vault that is open for reading, beside a process that writes. It gives the keys of those data subjects who were not erased,
/// and changes nothing.
#[derive(Debug)]
pub struct VaultReader(Vault);

impl VaultReader {
    /// Opens the vault in the key directory `keys`.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn open(keys: &Path, log: LogId, settings: &Settings) -> Result<Self> {
        Vault::open(keys, log, Access::Read, settings).map(VaultReader)
    }

    /// Whether there is anything of a vault in the key directory `keys`.
    pub fn is_in(keys: &Path) -> bool {
        Vault::is_in(keys)
    }
}

impl GroupKeys for VaultReader {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.0.number(subject)
    }

    fn numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        self.0.numbers(subjects)
    }

    fn secrets(&self, block: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        self.0.secrets(block, groups)
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn erased_up_to(&self) -> Result<Followed> {
        self.0.erased_up_to()
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        self.0.missing(from)
    }

    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        GroupKeys::whose(&self.0, asked)
    }
}
