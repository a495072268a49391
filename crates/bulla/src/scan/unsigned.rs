//! What follows the checkpoint, as whoever does not verify the whole log tells of it: how many bytes nobody has signed.

use crate::format::segment;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::manifest::Manifest;
use bulla_store::{Error, Result};
use bulla_text::spelling::{agreeing, counted};
use std::io;

/// What follows the frames of a manifest: nothing, or a notice of the kind `unsigned-tail`, and how many bytes that are.
pub(crate) type Unsigned = (Option<Finding>, u64);

/// The bytes that follow; `None` where a writer is at work, or was since the checkpoint was read: they are its own affair. To be
/// asked once everything was read.
///
/// # Errors
/// `Unavailable` where a file cannot be read.
pub(crate) fn unsigned(manifest: &Manifest) -> Result<Option<Unsigned>> {
    let snapshot = &manifest.snapshot;
    let store = &*snapshot.store;
    let (mut at, mut bytes) = (None, 0);
    let end = manifest.latest.as_ref().map(|latest| latest.end);
    for name in segment::list(store)?.0 {
        let from = match end {
            Some((segment, _)) if name < segment => continue,
            Some((segment, offset)) if name == segment => offset,
            _ => 0,
        };
        let length = match store.open(&name.path()).and_then(|file| file.length()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            length => length
                .map_err(|error| Error::io(format!("opening {}", store.describe(&name.path())), error))?,
        };
        if length > from {
            at.get_or_insert((name, from));
            bytes += length - from;
        }
    }
    let finding = at.map(|(name, offset)| {
        let size = manifest.size();
        Finding::new(FindingKind::UnsignedTail, detail(size, bytes)).at(name, offset).frame(size)
    });
    Ok(snapshot.is_quiet()?.then_some((finding, bytes)))
}

/// What is told of what follows the frames of a manifest, which is not looked at: a notice of the kind `unsigned-tail`, where there
/// may be anything. To be asked once everything was read.
///
/// # Errors
/// As [`unsigned`].
pub(crate) fn notice(manifest: &Manifest) -> Result<Option<Finding>> {
    Ok(unsigned(manifest)?.map_or_else(|| Some(of_a_writer(manifest.size())), |(notice, _)| notice))
}

/// The notice where a writer is at work after so many frames: whatever is in the files, it may have more in its memory.
pub(crate) fn of_a_writer(size: u64) -> Finding {
    let detail = format!("a writer is at work, or was meanwhile: {}", not_looked_at(size));
    Finding::new(FindingKind::UnsignedTail, detail).frame(size)
}

/// What is said of what may follow a tree of so many frames to whoever is told that there is nothing in it.
pub(crate) fn not_looked_at(size: u64) -> String {
    match size.checked_sub(1) {
        Some(last) => format!("what is not signed yet, after frame {last}, is not looked at"),
        None => "nothing was signed yet, and what is not signed is not looked at".to_owned(),
    }
}

/// What is said of so many frames, the first ones, that are others than were signed.
pub(crate) fn not_those(frames: u64) -> String {
    format!("{} {}", counted(frames, "frame"), agreeing(frames, "is not the one", "are not those"))
}

/// What is said of so many bytes that follow a tree of so many frames.
pub(crate) fn detail(size: u64, bytes: u64) -> String {
    let verified = match size.checked_sub(1) {
        Some(last) => format!("verified up to frame {last}"),
        None => "no frame is signed yet".to_owned(),
    };
    let them = agreeing(bytes, "it", "them");
    format!(
        "{verified}; {} after it {} not signed yet: whoever holds the storage may have written or shortened \
         {them}. Nothing gives out entries in {them} but `bulla tail`, as pending; opening the log signs what its writer left \
         there",
        counted(bytes, "byte"),
        agreeing(bytes, "is", "are"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_them_is_in_the_singular() {
        let [one, two] = [1, 2].map(|bytes| detail(3, bytes));
        assert!(one.contains("frame 2; 1 byte after it is not signed yet"), "{one}");
        assert!(one.contains("shortened it. Nothing gives out entries in it but"), "{one}");
        assert!(two.contains("frame 2; 2 bytes after it are not signed yet"), "{two}");
        assert!(two.contains("shortened them. Nothing gives out entries in them but"), "{two}");
        assert_eq!([1, 2].map(not_those), ["1 frame is not the one", "2 frames are not those"]);
    }
}
