//! [`Watch`].

use crate::write::engine::Engine;
use crate::write::telemetry::Telemetry;
use bulla_store::Error;
use bulla_vault::ReplicaState;
use std::fmt::{self, Debug};
use std::sync::Weak;

/// Sees from any thread how a log is doing: by [`Log::watch`](super::Log::watch). It keeps nothing of the log open.
#[derive(Clone)]
pub struct Watch {
    pub(super) engine: Weak<Engine>,
}

impl Watch {
    /// As [`Log::telemetry`](super::Log::telemetry); `None` where the log is gone.
    pub fn telemetry(&self) -> Option<Telemetry> {
        Some(self.engine.upgrade()?.telemetry())
    }

    /// Why the log takes nothing more until it is opened again, where it has failed; `None` of one that goes on, or is gone.
    pub fn failure(&self) -> Option<Error> {
        self.engine.upgrade()?.progress.failure()
    }

    /// As [`Log::vault_replicas`](super::Log::vault_replicas); none where the log is gone.
    pub fn vault_replicas(&self) -> Vec<ReplicaState> {
        self.engine.upgrade().map_or(Vec::new(), |engine| engine.replicas())
    }
}

impl Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
