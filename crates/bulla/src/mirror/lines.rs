//! The signature lines of a checkpoint that is mirrored.
//!
//! Invariants:
//! - a line that verifies for a witness of the log's policy is never left out for another, but for a newer one of that witness; one that
//!   names such a witness and does not verify is never kept;
//! - of a name and key id that nobody here knows the line that was there first stays;
//! - the log's own lines come first, those of witnesses next: so no number of others pushes them out of a note, which has room for
//!   `MAX_SIGNATURES`.

use crate::format::config::LogConfig;
use bulla_proof::LogKey;
use bulla_proof::checkpoint::{NoteSignature, SignedNote};

/// What a line is. In the order that lines have in a note.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// One of the log's keys, which the note was held against.
    Log,
    /// A witness of the policy, who signed it at that time.
    Witness(u64),
    /// Somebody whom nobody here knows.
    Other,
}

/// The first of these notes, which are signed by the log, with the lines of all that have its text. What is no note is left out.
pub(super) fn joined(notes: &[&[u8]], config: &LogConfig) -> Vec<u8> {
    let mut parsed = notes.iter().filter_map(|note| SignedNote::parse(note).ok());
    let Some(SignedNote { text, signatures }) = parsed.next() else {
        return notes.first().map_or_else(Vec::new, |note| note.to_vec());
    };
    let others = parsed.filter(|other| other.text == text).flat_map(|other| other.signatures);
    let mut kept: Vec<(Of, NoteSignature<'_>)> = Vec::new();
    for line in signatures.into_iter().chain(others) {
        let Some(of) = judge(text, &line, config) else { continue };
        match kept.iter_mut().find(|(_, other)| (other.name, other.key_id) == (line.name, line.key_id)) {
            None => kept.push((of, line)),
            Some(before) if matches!((before.0, of), (Of::Witness(old), Of::Witness(new)) if old < new) => {
                *before = (of, line);
            }
            Some(_) => {}
        }
    }
    kept.sort_by_key(|(of, _)| match of {
        // Witnesses among themselves stay as they came.
        Of::Witness(_) => Of::Witness(0),
        other => *other,
    });
    let mut note = SignedNote { text, signatures: Vec::new() };
    for (_, line) in kept {
        // What a note has no room for is left out.
        let _ = note.keep(line);
    }
    note.to_string().into_bytes()
}

/// Of whom a line is; nothing where it names a witness of the policy and is not its signature.
fn judge(text: &str, line: &NoteSignature<'_>, config: &LogConfig) -> Option<Of> {
    let own = &config.verifier_key;
    let is_of_ml_dsa = matches!(&config.ml_dsa_key, Some(LogKey::MlDsa44(key)) if key.is_of(line));
    if (line.name, line.key_id) == (own.name(), own.key_id()) || is_of_ml_dsa {
        return Some(Of::Log);
    }
    let witnesses = config.witness_policy.iter().flat_map(|policy| policy.policy().witnesses());
    match witnesses.map(|witness| &witness.key).find(|key| key.is_of(line)) {
        None => Some(Of::Other),
        Some(key) => key.verify_signature(text, line).ok().map(|signed| Of::Witness(signed.timestamp)),
    }
}
