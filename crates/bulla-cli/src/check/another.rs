//! What else of a log somebody may be given, and take for a proof.

use crate::exit::Failure;
use bulla::proof::ANCHOR_HEADER;
use bulla_proof::{Checkpoint, CoseCheckpoint};
use std::path::Path;

/// What something is, and what to do with it.
pub(super) type Another = (&'static str, &'static str);

/// Of a directory.
pub(super) fn directory(path: &Path) -> Option<Another> {
    let is_log = || path.join("bulla.toml").is_file();
    path.is_dir().then(|| match is_log() {
        true => ("a log, or a copy of one", "`bulla verify DIR --key VKEY` checks it"),
        false => ("a directory", "name the file of a proof"),
    })
}

/// Of a file that begins with these bytes.
pub(super) fn file(bytes: &[u8]) -> Option<Another> {
    if bytes.split(|byte| *byte == b'\n').next() == Some(ANCHOR_HEADER.as_bytes()) {
        return Some((
            "an anchor, which says that a transparency log has a checkpoint",
            "`bulla anchor DIR --check FILE --rekor-key VKEY` checks it, with the log or a copy of it",
        ));
    }
    // Signatures follow an empty line, and may be longer than what is looked at.
    let text = String::from_utf8_lossy(bytes);
    let is_note =
        || text.split_once("\n\n").is_some_and(|(text, _)| Checkpoint::parse(&format!("{text}\n")).is_ok());
    if is_note() {
        return Some((
            "a checkpoint, the tree head that a log signs",
            "`bulla verify DIR --key VKEY` checks the log that it is in, or a copy, and `bulla prove DIR --consistency FILE` whether a \
             log goes on from it",
        ));
    }
    let is_cose = CoseCheckpoint::parse(bytes).is_ok();
    is_cose.then_some((
        "a checkpoint in COSE, the tree head that a log signs",
        "`bulla verify DIR --key VKEY` checks the log that it is in, or a copy",
    ))
}

/// That it is no proof.
pub(super) fn refused(name: &str, (what, then): Another) -> Failure {
    Failure::usage(format!("{name} is no proof or certificate, but {what}: {then}"))
}
