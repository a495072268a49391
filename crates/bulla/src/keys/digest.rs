//! The key of a log's digests: of what is too long for an entry, a keyed hash stands there, which whoever knows the whole finds again.
//!
//! Without the key nobody can test guesses. It is made once, so that digests of one thing are the same as long as the log lives.

use crate::keys::files;
use bulla_crypto::environment::Random;
use bulla_crypto::secret_line;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result, Store};
use zeroize::Zeroizing;

const HEADER: &str = "bulla-digest-key-v1";

/// The key of the log whose key directory is `keys`; made where there is none.
///
/// # Errors
/// `Unavailable` where it cannot be read or written, or is damaged, `Refused` where it is another log's.
pub(crate) fn load_or_make(keys: &dyn Store, log: LogId, random: &dyn Random) -> Result<Zeroizing<[u8; 32]>> {
    if let Some(text) = files::read_if_there(keys, files::DIGEST, 4096)? {
        return parse(keys, Zeroizing::new(text), log);
    }
    let mut key = Zeroizing::new([0; 32]);
    random.fill(&mut *key)?;
    let line = secret_line::render(HEADER, log, &key);
    bulla_store::write_new(keys, files::DIGEST, line.as_bytes())
        .map_err(|error| Error::io(format!("writing {}", keys.describe(files::DIGEST)), error))?;
    Ok(key)
}

fn parse(keys: &dyn Store, text: Zeroizing<Vec<u8>>, log: LogId) -> Result<Zeroizing<[u8; 32]>> {
    let parsed = match std::str::from_utf8(&text) {
        Ok(text) => secret_line::parse("digest key", HEADER, text, log),
        Err(_) => Err(Error::invalid("it is not text")),
    };
    parsed.map_err(|error| match error.kind() {
        ErrorKind::Invalid => files::damaged(keys, files::DIGEST, error),
        kind => Error::new(kind, format!("{}: {error}", keys.describe(files::DIGEST))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_crypto::environment::SystemRandom;
    use bulla_store::FileSystem;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_made_once_for_its_owner_alone_and_no_other_is_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let keys = FileSystem::new(folder.path());
        let (log, other) = (LogId([1; 16]), LogId([2; 16]));
        let made = load_or_make(&keys, log, &SystemRandom).unwrap();
        assert_eq!(load_or_make(&keys, log, &SystemRandom).unwrap(), made);
        let file = folder.path().join(files::DIGEST);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(load_or_make(&keys, other, &SystemRandom).unwrap_err().kind(), ErrorKind::Refused);
        std::fs::write(&file, "bulla-digest-key-v1").unwrap();
        let damaged = load_or_make(&keys, log, &SystemRandom).unwrap_err();
        assert!(damaged.to_string().contains("restore it from a backup"), "{damaged}");
    }
}
