//! What is said of a log's paths, and of those that are not there.

use bulla::store::MissingPath;
use bulla::{PathChange, PathOutcome};
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

/// What became of a path of the log.
#[derive(Serialize)]
pub(crate) struct ChangedPath {
    path: String,
    id: String,
    /// `made`, `found`, `lost` or `let-go`.
    outcome: &'static str,
    #[serde(skip)]
    told: &'static str,
}

impl From<&PathChange> for ChangedPath {
    fn from(PathChange { place, id, outcome, .. }: &PathChange) -> Self {
        let (outcome, told) = match outcome {
            PathOutcome::Made => ("made", "is a path of the log from now on"),
            PathOutcome::Found => ("found", "is there, and a path of the log again, with what lies there"),
            PathOutcome::Lost => (
                "lost",
                "is not there and left out: it counts as LOST for good, with what lies there alone; name it again, should it be found",
            ),
            PathOutcome::LetGo => ("let-go", "holds no frames, and is no path of the log any more"),
            _ => ("other", "is treated otherwise from now on"),
        };
        ChangedPath { path: place.clone(), id: id.clone(), outcome, told }
    }
}

impl ChangedPath {
    pub(crate) fn to_text(&self) -> String {
        let ChangedPath { path, id, told, .. } = self;
        format!("{path} (path {id}) {told}\n")
    }
}
