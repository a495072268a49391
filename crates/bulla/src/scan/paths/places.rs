//! Where paths lie, by whatever names they are given.
//!
//! Invariants:
//! - one directory is not taken for two because of how its name is spelled: relative, through links, or with `..` in it;
//! - a place that the key directory remembers is not led elsewhere by a link that somebody put there since.

use bulla_store::Store;

/// Where a path lies.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// From the root of the file system on, for a directory of one.
    pub(super) name: String,
    /// The same without links; of a place that is not there, as far as that is.
    resolved: String,
}

impl Place {
    pub(crate) fn of(store: &dyn Store) -> Self {
        let Some(directory) = store.directory() else {
            return Place { name: store.describe(""), resolved: store.describe("") };
        };
        let name = directory.place().display().to_string();
        let resolved = bulla_store::resolve(directory.place());
        let resolved = resolved.map_or_else(|_| name.clone(), |resolved| resolved.display().to_string());
        Place { name, resolved }
    }

    /// Whether it is the place that the key directory remembers so.
    pub(crate) fn is(&self, remembered: &str) -> bool {
        self.name == remembered || self.resolved == remembered
    }

    /// What the key directory is to remember of it.
    pub(super) fn to_remember(&self) -> String {
        self.resolved.clone()
    }
}
