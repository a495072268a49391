//! What is said of a log's paths that are not there.

use bulla::store::MissingPath;
use serde::Serialize;

/// A path that is not there, for a program.
#[derive(Serialize)]
pub(crate) struct MissingPathJson {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Whether it holds nothing newer than the others.
    left: bool,
    /// Why it counts for missing.
    failure: String,
}

impl From<&MissingPath> for MissingPathJson {
    fn from(missing: &MissingPath) -> Self {
        MissingPathJson {
            path: missing.place.clone(),
            id: missing.id.clone(),
            left: missing.left,
            failure: missing.reason.clone(),
        }
    }
}

impl MissingPathJson {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn to_text(&self) -> String {
        let newer = if self.left { "" } else { "  it may hold more than is told here" };
        format!("{}  {}{newer}", self.path, self.failure)
    }
}
