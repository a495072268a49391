//! The places that the settings of the key directory name beside the log: none of them may lie in another, since what takes one would take
//! both, and what is written to one would be taken for a part of the other.

use crate::format::options::Tuning;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::path::{Path, PathBuf};

/// What the log's directory is called.
const LOG: &str = "the log's directory";

/// A place, by its path without links, as far as it is there.
struct Place {
    /// The setting that names it, or what it is.
    name: &'static str,
    path: PathBuf,
    /// Whether it is a path on which the log goes on, or one for what it drops.
    apart: bool,
}

/// Refuses a backup path or an error path that lies in the log's directory, the key directory, another such path, a replica of the vault
/// or the directory of the pin's file, and those that lie in one of them.
///
/// # Errors
/// `Refused`, naming both.
pub(crate) fn check(tuning: &Tuning, log: &dyn Store, keys: &dyn Store) -> Result<()> {
    let mut places = Vec::new();
    for (name, store) in [(LOG, log), ("the key directory", keys)] {
        if let Some(path) = store.directory().and_then(|directory| directory.held_path().ok()) {
            places.push(Place { name, path: without_links(&path), apart: false });
        }
    }
    let mut add = |name, path: &Path, apart| places.push(Place { name, path: without_links(path), apart });
    tuning.vault_replicas.iter().for_each(|path| add("vault_replicas", path, false));
    tuning.pin.iter().for_each(|path| add("pin", path, false));
    tuning.backup_paths.iter().for_each(|path| add("backup_paths", path, true));
    tuning.error_path.iter().for_each(|path| add("error_path", path, true));
    for (index, one) in places.iter().enumerate() {
        for other in &places[index + 1..] {
            if !one.apart && !other.apart {
                continue;
            }
            let (inner, outer) = match (one.path.starts_with(&other.path), other.path.starts_with(&one.path))
            {
                (false, false) => continue,
                (true, _) => (one, other),
                (false, true) => (other, one),
            };
            if (one.name, other.name, one.path == other.path) == (LOG, "backup_paths", true) {
                return Err(gone_on_with(&one.path, keys));
            }
            let say = |place: &Place| match place.name.contains(' ') {
                true => format!("{} {}", place.name, place.path.display()),
                false => format!("{}, which `{}` names,", place.path.display(), place.name),
            };
            let message = format!(
                "{} lies in {} and they would be lost, or filled, together: give each a directory of its own",
                say(inner),
                say(outer)
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
    }
    Ok(())
}

/// That a backup path is named as the log's own directory, as it is to be where that one is lost, and is a backup path yet.
fn gone_on_with(path: &Path, keys: &dyn Store) -> Error {
    // Without the slash that it may end with.
    let (path, keys) = (path.components().collect::<PathBuf>(), keys.describe(""));
    let path = path.display();
    let message = format!(
        "{path} is a backup path of the log (`backup_paths`), and no directory of its own: name that one. Where it is lost for good, the \
         log goes on under this name once it is no backup path any more: `bulla config {path} --keys {keys} set backup_paths PATHS`, with \
         the others that are left, or `bulla config {path} --keys {keys} unset backup_paths`, where none is"
    );
    Error::new(ErrorKind::Refused, message)
}

/// The path without links: of what is not there yet, that of the directory in which it will be made.
#[expect(clippy::disallowed_methods, reason = "only paths without links tell whether one lies in the other")]
fn without_links(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let resolved = there.and_then(|(above, found)| Some(found.join(path.strip_prefix(above).ok()?)));
    resolved.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::options::Options;
    use bulla_store::FileSystem;

    fn refused(settings: &str, place: &Path) -> Option<String> {
        let settings = settings.replace("HERE", place.to_str().unwrap());
        let tuning = Tuning::try_from(toml::from_str::<Options>(&settings).unwrap()).unwrap();
        let (log, keys) = (FileSystem::new(place.join("audit")), FileSystem::new(place.join("audit.keys")));
        log.list("").unwrap();
        keys.list("").unwrap();
        let error = check(&tuning, &log, &keys).err()?;
        assert_eq!(error.kind(), ErrorKind::Refused);
        Some(error.to_string())
    }

    #[test]
    fn no_place_lies_in_another_and_both_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        for name in ["audit", "audit.keys", "second"] {
            std::fs::create_dir(place.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(place.join("second"), place.join("link")).unwrap();
        for apart in [
            "pin = \"HERE/pins/audit.pin\"\nbackup_paths = [\"HERE/second\", \"HERE/third\"]\nerror_path = \"HERE/errors\"",
            // A name that begins like another is another.
            "backup_paths = [\"HERE/audit2\"]\nerror_path = \"HERE/audit2.errors\"",
            "",
        ] {
            assert_eq!(refused(apart, place), None, "{apart}");
        }
        for (together, named) in [
            ("pin = \"HERE/second/audit.pin\"\nbackup_paths = [\"HERE/second\"]", "pin"),
            ("pin = \"HERE/link/audit.pin\"\nbackup_paths = [\"HERE/second\"]", "pin"),
            ("vault_replicas = [\"HERE/second/r\"]\nbackup_paths = [\"HERE/second\"]", "vault_replicas"),
            ("vault_replicas = [\"HERE/r\"]\nbackup_paths = [\"HERE/r/second\"]", "vault_replicas"),
            ("backup_paths = [\"HERE/second\", \"HERE/link/third\"]", "backup_paths"),
            ("backup_paths = [\"HERE/audit\"]", "audit.keys unset backup_paths"),
            ("backup_paths = [\"HERE/audit/second\"]", "the log's directory"),
            ("backup_paths = [\"HERE/audit.keys/second\"]", "the key directory"),
            ("backup_paths = [\"HERE\"]", "the key directory"),
            ("error_path = \"HERE/audit/errors\"", "the log's directory"),
            ("error_path = \"HERE/audit.keys\"", "the key directory"),
            ("error_path = \"HERE/second/errors\"\nbackup_paths = [\"HERE/second\"]", "backup_paths"),
            ("error_path = \"HERE/link\"\nbackup_paths = [\"HERE/second/deep\"]", "backup_paths"),
            ("error_path = \"HERE/errors\"\nvault_replicas = [\"HERE/errors/r\"]", "vault_replicas"),
            ("error_path = \"HERE/errors\"\npin = \"HERE/errors/audit.pin\"", "pin"),
        ] {
            let told = refused(together, place).unwrap_or_else(|| panic!("{together}"));
            let other = if together.contains("error_path") { "error_path" } else { "backup_paths" };
            assert!(told.contains(other), "{told}");
            assert!(
                told.contains(named) || named == "the key directory" && told.contains("the log's directory"),
                "{told}"
            );
        }
    }
}
