//! What every reading is given, and the methods by which a caller gives it.

use crate::format::epoch::EpochBody;
use crate::scan::trust::Trust;
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::group::GroupKeys;
use bulla_crypto::recipients::Identity;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::Commitment;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::sync::Arc;

/// How far a verification or an export has come.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of segments done; of a query, frames.
    pub done: u64,
    /// Bytes of segments in all; of a query, frames.
    pub total: u64,
    /// Entries done.
    pub entries: u64,
}

/// Told of progress, from one thread.
type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// A log, and what it is read with.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) trust: Trust,
    pub(crate) erasure_keys: Vec<VerifierKey>,
    pub(crate) identity: Option<Arc<dyn Identity>>,
    pub(crate) group_keys: Option<Arc<dyn GroupKeys>>,
    pub(crate) threads: usize,
    pub(crate) progress: OnProgress,
}

impl Given {
    /// A log, and nothing to read it with.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let progress = Arc::new(|_| {});
        Given {
            store,
            trust: Trust::default(),
            erasure_keys: Vec::new(),
            identity: None,
            group_keys: None,
            threads,
            progress,
        }
    }

    /// The same without what opens blocks: for whoever reads public data alone.
    pub(crate) fn in_public(self) -> Self {
        Given { identity: None, group_keys: None, ..self }
    }

    /// The same without what opens groups.
    pub(crate) fn without_group_keys(self) -> Self {
        Given { group_keys: None, ..self }
    }

    /// Whom to read as.
    ///
    /// # Errors
    /// `NoKey` where nobody was named.
    pub(crate) fn identity_at_hand(&self) -> Result<&dyn Identity> {
        let without = || Error::new(ErrorKind::NoKey, "reading entries needs an identity that opens the log");
        self.identity.as_deref().ok_or_else(without)
    }

    /// The keys of an epoch, which a block is needed of.
    ///
    /// # Errors
    /// `NoKey` where nobody was named, or somebody who is not among those whom it was begun for.
    pub(crate) fn unlock(&self, commitment: &Commitment, body: &EpochBody) -> Result<EpochKeys> {
        body.unlock(commitment, self.identity_at_hand()?)?.ok_or_else(|| {
            let Commitment { frame, first_entry, .. } = commitment;
            let message = format!(
                "the identity does not open epoch {frame} of {}, which begins with entry {first_entry}: it is not a \
                 recipient of it; read with one that is, or ask for entries of other epochs",
                self.store.describe("")
            );
            Error::new(ErrorKind::NoKey, message)
        })
    }

    pub(crate) fn tell(&self, progress: Progress) {
        (self.progress)(progress);
    }
}

/// The methods of a reading that has `given`.
macro_rules! given {
    ($reading:ident, $( #[doc = $group_keys:literal] )+) => {
        impl $reading {
            /// Requires the log to be this key's, of Ed25519 or of ML-DSA-44. Without one, the key that the log itself names is
            /// believed.
            pub fn key(mut self, key: impl Into<bulla_proof::LogKey>) -> Self {
                self.given.trust.key = Some(key.into());
                self
            }

            /// Requires the log to be one that this policy names, and to be witnessed as it asks for. A policy that names no log
            /// says only who has to have seen it: whose the log is then has to be said by `key`.
            pub fn policy(mut self, policy: bulla_proof::Policy) -> Self {
                self.given.trust.policy = Some(std::sync::Arc::new(policy));
                self
            }

            /// Trusts this erasure key, which is known from elsewhere, and each that a trusted one has handed over to, by its order;
            /// may be called for several. Then the log's key has to be a trusted one, every order that was carried out has to be
            /// signed with one, and this one has to be a key that the log has or had. Without any, the log's own word is taken for
            /// which keys count, and only each change has to be ordered with the key before it.
            pub fn erasure_key(mut self, key: bulla_proof::checkpoint::VerifierKey) -> Self {
                self.given.erasure_keys.push(key);
                self
            }

            /// Opens blocks with this identity.
            pub fn identity(
                mut self,
                identity: std::sync::Arc<dyn bulla_crypto::recipients::Identity>,
            ) -> Self {
                self.given.identity = Some(identity);
                self
            }

            $( #[doc = $group_keys] )+
            pub fn group_keys(mut self, keys: std::sync::Arc<dyn bulla_crypto::group::GroupKeys>) -> Self {
                self.given.group_keys = Some(keys);
                self
            }

            /// How many threads to use (default: the processors there are).
            pub fn threads(mut self, threads: usize) -> Self {
                self.given.threads = threads.max(1);
                self
            }

            /// Calls `progress` now and then, from one thread.
            pub fn progress(
                mut self,
                progress: impl Fn(crate::read::given::Progress) + Send + Sync + 'static,
            ) -> Self {
                self.given.progress = std::sync::Arc::new(progress);
                self
            }
        }
    };
}
pub(crate) use given;
