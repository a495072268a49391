//! The file in which an order is kept that the command makes: without it, who was erased cannot be shown, nor erased again after a
//! backup was put back. It has their names in clear.

use crate::exit::{Exit, Failure};
use crate::log_paths::{LogPaths, error_in, read_order};
use crate::new_file;
use bulla::store::inside;
use bulla::{ErasureOrder, Info};
use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// The order in the file, if it is there: one for the same log and the same names. Who signed it is looked at when it is carried out.
///
/// # Errors
/// `Refused` where something else is there, or the file would lie where names must not.
pub(super) fn find(
    path: &Path,
    place: &LogPaths,
    info: &Info,
    (subjects, reason): (&[String], Option<&str>),
) -> Result<Option<ErasureOrder>, Failure> {
    let refused = |why: &str| Failure::new(Exit::Refused, format!("{}: {why}", path.display()));
    refuse_beside_the_log(path, place)?;
    let no_order = || refused("it is there already, and is no order to erase: name another file");
    match fs::metadata(path) {
        // A link that leads nowhere is not replaced, either.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(no_order()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(no_order()),
        Err(error) => return Err(Failure::io(path.display(), &error)),
    }
    let text = read_order(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => no_order(),
        _ => Failure::io(path.display(), &error),
    })?;
    let order = ErasureOrder::parse(&text).map_err(|_| no_order())?;
    let ordered_for = order.reason(info.id).map_err(|error| error_in(path, error))?;
    if reason.is_some() && ordered_for.as_deref() != reason {
        return Err(refused(
            "the order in it is for another reason: name another file, or leave out --reason",
        ));
    }
    let asked = subjects.iter().map(String::as_str).collect::<BTreeSet<_>>();
    match order.subjects().collect::<BTreeSet<_>>() == asked {
        true => Ok(Some(order)),
        false => {
            Err(refused("the order in it is for others than those who are named here: name another file"))
        }
    }
}

/// Makes the file.
pub(super) fn keep(path: &Path, order: &ErasureOrder) -> Result<(), Failure> {
    let made = new_file::make(path, order.render().as_bytes());
    made.map_err(|error| Failure::io(format!("keeping the order in {}", path.display()), &error))
}

/// Whoever keeps the log, or gets a copy of it, its keys or a replica, is not to find names there.
fn refuse_beside_the_log(path: &Path, place: &LogPaths) -> Result<(), Failure> {
    let replicas = place.vault_replicas()?.unwrap_or_default();
    let refused = [(place.directory(), "is where the log lies"), (place.keys(), "is where its keys lie")];
    let replicas = replicas.into_iter().map(|replica| (replica, "is a replica of the vault"));
    let paths = place.backup_paths().into_iter().map(|path| (path, "is a path of the log"));
    match refused.into_iter().chain(replicas).chain(paths).find(|(directory, _)| inside(path, directory)) {
        None => Ok(()),
        Some((directory, why)) => {
            let (path, directory) = (path.display(), directory.display());
            let message = format!(
                "{path} is inside {directory}, which {why}: the order has names in clear, keep it elsewhere"
            );
            Err(Failure::new(Exit::Refused, message))
        }
    }
}
