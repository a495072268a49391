//! What lies on the disk: frames and the segments that they lie in, what a frame of each kind says, the sources that blocks
//! have entries from, and `bulla.toml`.

pub mod config;
pub(crate) mod epoch;
pub mod event;
pub(crate) mod files;
pub(crate) mod frame;
pub(crate) mod groups;
pub(crate) mod json;
pub(crate) mod options;
pub(crate) mod path;
pub(crate) mod sealed;
pub mod segment;
pub(crate) mod sources;
pub(crate) mod toml_value;
