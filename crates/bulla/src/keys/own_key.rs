//! A key that a log makes for itself when it first needs one: a file of one line in the key directory.

use crate::keys::files;
use bulla_crypto::environment::Random;
use bulla_crypto::secret_line;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result, Store};
use zeroize::Zeroizing;

/// Which key it is.
pub(crate) struct OwnKey {
    pub(crate) file: &'static str,
    /// What messages call it.
    pub(crate) what: &'static str,
    /// The first word of its line.
    pub(crate) header: &'static str,
}

impl OwnKey {
    /// The key of `log`; `None` where it was not made yet, or is missing.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read or is damaged, `Refused` where it is another log's.
    pub(crate) fn load(&self, keys: &dyn Store, log: LogId) -> Result<Option<Zeroizing<[u8; 32]>>> {
        let Some(text) = files::read_if_there(keys, self.file, 4096)? else { return Ok(None) };
        let text = Zeroizing::new(text);
        let parsed = match std::str::from_utf8(&text) {
            Ok(text) => secret_line::parse(self.what, self.header, text, log),
            Err(_) => Err(Error::invalid("it is not text")),
        };
        parsed.map(Some).map_err(|error| match error.kind() {
            ErrorKind::Invalid => files::damaged(keys, self.file, error),
            kind => Error::new(kind, format!("{}: {error}", keys.describe(self.file))),
        })
    }

    /// Makes the key of `log`, which has none.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be written, or where there is one.
    pub(crate) fn make(
        &self,
        keys: &dyn Store,
        log: LogId,
        random: &dyn Random,
    ) -> Result<Zeroizing<[u8; 32]>> {
        let mut key = Zeroizing::new([0; 32]);
        random.fill(&mut *key)?;
        let line = secret_line::render(self.header, log, &key);
        bulla_store::write_new(keys, self.file, line.as_bytes())
            .map_err(|error| Error::io(format!("writing {}", keys.describe(self.file)), error))?;
        Ok(key)
    }
}
