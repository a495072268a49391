//! A workload as runs name it.

use bulla_workload::Workload;
use serde::{Deserialize, Serialize};

/// A workload, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Load(pub(crate) Workload);

impl From<Load> for String {
    fn from(load: Load) -> String {
        load.0.name().to_owned()
    }
}

impl TryFrom<String> for Load {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = Workload::ALL.into_iter().find(|workload| workload.name() == name);
        found.map(Load).ok_or_else(|| format!("there is no workload `{name}`"))
    }
}
