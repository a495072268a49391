//! The pseudonyms of a field, for whoever has the key: what name stands behind one, only a guess tells.

use crate::keys::pseudonym::{FieldPseudonyms, Pseudonym, PseudonymKey};
use crate::scan::manifest::Manifest;
use crate::scan::paths::open_log;
use crate::scan::snapshot::Snapshot;
use bulla_crypto::environment::Environment;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
use std::fmt::{self, Debug};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What a log's rule `pseudonymise` makes of the values of one field.
///
/// The key comes from the vault, so that nobody without the vault can tell who stands behind a pseudonym; of a log without
/// erasure it lies in a file of the key directory. It is the same as long as the log is, whoever was erased: what is made
/// here can be looked for in the whole log, as a filter of a [`crate::Query`] for one.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// use bulla::{Init, Pseudonyms, default_keys};
/// Init::default().field("processor", "pseudonymise").create(&directory)?;
/// let pseudonyms = Pseudonyms::open(&directory, default_keys(&directory), "processor")?;
/// let asked = pseudonyms.of("Example Ltd");
/// println!("bulla export audit --processor {asked}");
/// assert_eq!(["Acme", "Example Ltd"].into_iter().find(|name| pseudonyms.of(name) == asked), Some("Example Ltd"));
/// # Ok(())
/// # }
/// ```
pub struct Pseudonyms(FieldPseudonyms);

impl Pseudonyms {
    /// Those of `field` of the log in `directory`, whose keys are in `keys`. Beside a writer, too.
    ///
    /// # Errors
    /// `Invalid` where there is no such field or its rule is not `pseudonymise`; `NoKey` where the vault, or the key of a
    /// log that has none, is not there or not to be read; `Tampered` where `[log]` is not that of the log's last epoch;
    /// `Unavailable` and `Refused` as [`bulla_vault::Vault::open`].
    pub fn open(directory: impl AsRef<Path>, keys: impl AsRef<Path>, field: &str) -> Result<Self> {
        let log = open_log(directory, Some(keys.as_ref()), &[])?;
        Self::open_stores(log, &FileSystem::new(keys.as_ref()), &Environment::default(), field)
    }

    /// The same in any stores and environment.
    ///
    /// # Errors
    /// As [`Pseudonyms::open`].
    pub fn open_stores(
        log: Arc<dyn Store>,
        keys: &dyn Store,
        environment: &Environment,
        field: &str,
    ) -> Result<Self> {
        let config = Manifest::load_end(Snapshot::of(log)?)?.snapshot.config;
        let field = config.fields.pseudonymised(field)?;
        let key = PseudonymKey::load(&config, keys, environment).map_err(not_at_hand)?;
        Ok(Pseudonyms(key.of_field(field)?))
    }

    /// The pseudonym of a value, as it is appended.
    pub fn of(&self, value: impl AsRef<[u8]>) -> Pseudonym {
        self.0.of(value.as_ref())
    }
}

/// Whoever cannot read the key has not got it; a medium that fails, or a file that is damaged, is another matter.
fn not_at_hand(error: Error) -> Error {
    let absent =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
    match error.kind() == ErrorKind::NoKey || error.io_error().is_some_and(absent) {
        true => Error::new(ErrorKind::NoKey, format!("the key of the pseudonyms is not at hand: {error}")),
        false => error,
    }
}

impl Debug for Pseudonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pseudonyms")
    }
}
