//! The key of a log's digests: of what is too long for an entry, a keyed hash stands there, which whoever knows the whole finds again.
//!
//! Without the key nobody can test guesses. It is made once, so that digests of one thing are the same as long as the log lives.

use crate::keys::files;
use crate::keys::own_key::OwnKey;
use bulla_crypto::environment::Random;
use bulla_proof::commitment::LogId;
use bulla_store::{Result, Store};
use zeroize::Zeroizing;

const KEY: OwnKey = OwnKey { file: files::DIGEST, what: "digest key", header: "bulla-digest-key-v1" };

/// The key of the log whose key directory is `keys`; made where there is none.
///
/// # Errors
/// `Unavailable` where it cannot be read or written, or is damaged, `Refused` where it is another log's.
pub(crate) fn load_or_make(keys: &dyn Store, log: LogId, random: &dyn Random) -> Result<Zeroizing<[u8; 32]>> {
    match KEY.load(keys, log)? {
        Some(key) => {
            files::settle(keys)?;
            Ok(key)
        }
        None => KEY.make(keys, log, random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_crypto::environment::SystemRandom;
    use bulla_store::{ErrorKind, FileSystem};
    use bulla_testkit::fault::{Fault, Faults};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_stays_where_the_attempt_that_made_it_failed() {
        let log = LogId([1; 16]);
        for operation in 0.. {
            let machine = Faults::new();
            let keys = machine.store("");
            machine.fail_at(operation, Fault::SyncFails);
            if load_or_make(&keys, log, &SystemRandom).is_ok() {
                assert!(machine.read(files::DIGEST).is_some_and(|_| operation > 2), "{operation}");
                break;
            }
            let second = load_or_make(&keys, log, &SystemRandom).unwrap();
            for seed in 0..8 {
                let keys = machine.crash(seed).store("");
                assert_eq!(*load_or_make(&keys, log, &SystemRandom).unwrap(), *second, "{operation}, {seed}");
            }
        }
    }

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
