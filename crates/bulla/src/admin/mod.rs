//! A log that nobody is writing: made, configured, restored.

pub(crate) mod configure;
pub(crate) mod init;
pub(crate) mod restore;
