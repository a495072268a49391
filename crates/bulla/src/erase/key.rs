//! With which key orders have to be signed.

use crate::format::config::LogConfig;
use bulla_proof::checkpoint::VerifierKey;

/// The frame of what a log does not tell of yet: the key that counts now is that for it.
pub(crate) const NOT_TOLD: u64 = u64::MAX;

/// The key that the order in the event of this frame has to be signed with; none in a log without erasure.
pub(crate) fn erasure_key(config: &LogConfig, _frame: u64) -> Option<&VerifierKey> {
    config.erasure_key.as_ref()
}
