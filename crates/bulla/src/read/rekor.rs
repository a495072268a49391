//! What a Rekor v2 answers whoever puts a checkpoint into it, as far as that is not known beforehand.

use crate::format::json;
use bulla_proof::hash::Hash;
use bulla_proof::proof::{Anchor, Envelope};
use bulla_store::{Error, Result};
use serde::Deserialize;

/// A `TransparencyLogEntry` in the JSON of Protocol Buffers, which may have any other members.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    log_index: String,
    inclusion_proof: Inclusion,
}

#[derive(Deserialize)]
struct Inclusion {
    #[serde(default)]
    hashes: Vec<String>,
    checkpoint: Head,
}

#[derive(Deserialize)]
struct Head {
    envelope: String,
}

/// The anchor that the body `answer` of a Rekor v2, to the [request](Envelope::request) that has `envelope` recorded, makes of that. Nothing of it
/// holds before [`Anchor::verify`].
///
/// # Errors
/// `Invalid` where the answer is no entry of a log, with what is wrong with it.
pub fn anchor_of_answer(envelope: Envelope, answer: &[u8]) -> Result<Anchor> {
    let entry: Entry = json::object(answer).map_err(|error| Error::invalid(error.to_string()))?;
    let Entry { log_index, inclusion_proof: proof } = entry;
    let index = log_index.parse().map_err(|_| Error::invalid("`logIndex` is no number"))?;
    let nodes = proof.hashes.iter().map(|hash| Hash::from_base64(hash)).collect::<Option<Vec<_>>>();
    let nodes = nodes.ok_or_else(|| Error::invalid("a hash is none"))?;
    Anchor::new(envelope, index, nodes, proof.checkpoint.envelope.as_bytes())
        .map_err(|error| Error::invalid(error.to_string()))
}
