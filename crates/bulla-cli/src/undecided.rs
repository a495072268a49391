//! What is said of entries that may be asked for and that nobody can open.

use crate::exit::Exit;

/// What is said of keys that nobody was told to destroy.
pub(crate) const LOST: &str = "keys are lost that the log does not say were erased; everything else is as it was logged. Restore \
                               the vault from a backup";

/// Says that of so many entries nobody can tell whether they are among those that were asked for, and what a command comes to
/// that gave out all others.
pub(crate) fn tell(count: u64) -> Exit {
    let what = match count {
        0 => return Exit::Done,
        1 => "1 entry may match and cannot be opened".to_owned(),
        count => format!("{count} entries may match and cannot be opened"),
    };
    note!("{what}: {LOST}");
    Exit::Violation
}
