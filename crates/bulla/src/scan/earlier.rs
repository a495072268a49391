//! An earlier head of the log's tree that something remembers, and what is said of a log that does not go on from it: a pin, or the
//! newest checkpoint that the log's witnesses have cosigned.

use crate::scan::stored_tree;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Result, Store};
use bulla_text::spelling::counted;

/// See the module.
pub(crate) struct Earlier {
    /// What remembers it, as it is named: `the pin /mnt/pins/audit.pin`.
    pub(crate) name: String,
    pub(crate) head: TreeHead,
}

impl Earlier {
    /// That the tree `of` of the log, as its files have it, begins with this one, which is no larger.
    ///
    /// # Errors
    /// `Tampered` where it does not, or where its files do not have it; `Unavailable` where one cannot be read.
    pub(crate) fn require_beginning(&self, log: &dyn Store, of: TreeHead) -> Result<()> {
        match stored_tree::root_at(log, of, self.head.size)? {
            Some(root) if root == self.head.root => Ok(()),
            Some(_) => Err(Error::tampered(format!("{}: {}", log.describe(""), self.is_other()))),
            None => Err(Error::tampered(format!(
                "{} does not have the root that the checkpoint signs, so that nothing can be compared with {}; run `bulla verify`",
                log.describe("tile"),
                self.name
            ))),
        }
    }

    /// What is said of a log that does not begin with its frames.
    pub(crate) fn is_other(&self) -> String {
        format!(
            "the first {} are not those that {} is of: the log was rewritten since, or has a second history that is signed with the \
             same key",
            counted(self.head.size, "frame"),
            self.name
        )
    }

    /// What is said of a log that ends before it does.
    pub(crate) fn is_ahead(&self) -> String {
        format!(
            "{} covers {}: some are missing or damaged, or an older copy of the log was put in its place",
            self.name,
            counted(self.head.size, "frame")
        )
    }
}
