//! The file of a policy that names the witnesses of a log.

use crate::exit::{Exit, Failure};
use std::io::Read;
use std::path::Path;

/// The text of a policy's file, as it goes into `[log]`.
pub(crate) fn read_policy(file: &Path) -> Result<String, Failure> {
    /// No policy that a log has is longer.
    const MOST: u64 = 1 << 20;
    let failed = |what: &dyn std::fmt::Display| {
        Failure::new(Exit::Environment, format!("reading the policy {}: {what}", file.display()))
    };
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| failed(&error))?;
    opened.take(MOST).read_to_string(&mut text).map_err(|error| failed(&error))?;
    Ok(text)
}
