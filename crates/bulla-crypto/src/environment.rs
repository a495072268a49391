//! What the engine takes from outside: time, randomness, the cipher, the wrapping of keys.
//!
//! Each is a trait, and has one real implementation. Who uses the engine, and every test of it, may give another one: a seed,
//! a recorder, a simulated clock.

pub use crate::cipher::{AesGcm, Cipher, apply_key_stream};
pub use crate::clock::{Clock, Interrupt, SystemClock};
pub use crate::random::{Random, SystemRandom};
pub use crate::recipients::KeyWrap;

use crate::group::Subjects;
use crate::recipients;
use bulla_store::Store;
use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

/// All of it together. [`Environment::default`] is the real one.
#[derive(Clone)]
pub struct Environment {
    /// What time it is, and waiting.
    pub clock: Arc<dyn Clock>,
    /// Where keys, salts' keys and ids come from.
    pub random: Arc<dyn Random>,
    /// What encrypts the bodies of blocks and their groups.
    pub cipher: Arc<dyn Cipher>,
    /// What wraps an epoch's key to the recipients of the log.
    pub key_wrap: Arc<dyn KeyWrap>,
    /// Where data subjects have their numbers and keys, in place of the vault in the key directory.
    pub subjects: Option<Arc<dyn Subjects>>,
    /// Who is told what failed and is about to be tried again: once for each such thing, before the first wait, also while a log
    /// is being opened.
    pub trying_again: Option<Tell>,
    /// Who is told that a path of a log failed, and which one took over, or why one did not.
    pub path_replaced: Option<Tell>,
    /// Where pins of logs lie, by their paths without the first `/`, in place of the file system.
    pub pins: Option<Arc<dyn Store>>,
    /// What opens the backup paths of logs, in place of the file system.
    pub backup_paths: Option<OpenPath>,
}

/// Opens the directory at a path, which need not exist.
pub type OpenPath = Arc<dyn Fn(&Path) -> Arc<dyn Store> + Send + Sync>;

/// Is told something, in words.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl Default for Environment {
    fn default() -> Self {
        Environment {
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            cipher: Arc::new(AesGcm),
            key_wrap: Arc::new(recipients::Age::default()),
            subjects: None,
            trying_again: None,
            path_replaced: None,
            pins: None,
            backup_paths: None,
        }
    }
}

impl Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}
