//! Writing: stage, seal in parallel, commit in order, checkpoint; and what opening a log recovers.

pub(crate) mod back_off;
pub(crate) mod checkpoint;
pub(crate) mod commit;
pub(crate) mod engine;
pub(crate) mod kept_pin;
pub(crate) mod recover;
pub(crate) mod seal;
pub(crate) mod stage;
pub(crate) mod telemetry;
pub(crate) mod telling;
pub(crate) mod tree_files;
