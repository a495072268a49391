//! What is said of a log's paths, and of those that are not there.

use crate::output::on_line;
use bulla::store::{MissingPath, PathStanding, PathState};
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

/// A path of a log, for a program.
#[derive(Serialize)]
pub(crate) struct PathJson {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// `in-use`, `kept`, `left` or `lost`.
    state: &'static str,
    /// Why it counts for missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl From<&PathState> for PathJson {
    fn from(path: &PathState) -> Self {
        PathJson {
            path: path.place.clone(),
            id: path.id.clone(),
            state: match path.standing {
                PathStanding::InUse => "in-use",
                PathStanding::Kept => "kept",
                PathStanding::Left => "left",
                PathStanding::Lost => "lost",
            },
            failure: path.missing.clone(),
        }
    }
}

impl PathJson {
    pub(crate) fn to_text(&self) -> String {
        let newer = if self.state == "left" { "" } else { "; it may hold more than is told here" };
        let missing = self.failure.as_ref().map(|why| format!(", and is MISSING: {}{newer}", on_line(why)));
        let id = self.id.as_ref().map_or_else(String::new, |id| format!("  {id}"));
        let state = self.state.replace('-', " ");
        format!("{}{id}  {state}{}", self.path, missing.unwrap_or_default())
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
                "is left out, and is not there or has no frames any more: it counts as LOST for good, with what lay there alone; should it be found, name it again, unless `restore --older-log` has gone on without it: then keep it aside",
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
