//! What is done to a log while nobody writes it: making one, configuring it, restoring its keys.

pub(crate) mod configure;
pub(crate) mod init;
pub(crate) mod restore;
