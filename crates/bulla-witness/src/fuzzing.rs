//! What the fuzz target `witness_request` runs: what anybody may post to a witness, up to what it signs.

use crate::{Witness, server};
use bulla_crypto::environment::{SystemClock, SystemRandom};
use bulla_proof::cosignature::{CosignatureAlgorithm, CosignerKey};
use bulla_proof::{SignedNote, VerifierKey};
use bulla_testkit::Memory;
use bulla_testkit::corpus::Target;
use std::sync::Arc;

/// All of them, by name.
pub const TARGETS: [(&str, Target); 1] = [("witness_request", witness_request)];

/// The log of the vectors.
const LOG: &str = "example.com/log+702f3c70+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
/// What divides the requests of a seed.
const BETWEEN: &str = "\n=====\n";
/// More are not asked for in one input.
const MOST: usize = 8;

/// Requests to one witness, one after the other, and each of them as the head of a request over HTTP.
pub fn witness_request(bytes: &[u8]) {
    let requests = split(bytes);
    requests.iter().for_each(|request| server::check_head(request));
    if !requests.iter().any(|request| crate::request::Request::parse(request).is_ok()) {
        return;
    }
    let (witness, own, log) = begun();
    let cosigned = || witness.logs()[0].1;
    for request in requests {
        let before = cosigned();
        let answer = witness.add_checkpoint(request);
        assert!(cosigned() >= before, "a witness never goes back");
        match answer.status {
            200 => {
                let note = crate::request::Request::parse(request).expect("it was answered").note;
                let note = SignedNote::parse(note).expect("it was cosigned");
                assert!(note.verify(&log).is_ok(), "what is cosigned the log has signed");
                let cosigned = format!("{}\n{}", note.text, answer.body);
                let cosigned = SignedNote::parse(cosigned.as_bytes()).expect("the answer is lines of a note");
                assert!(own.verify(&cosigned).is_ok(), "the answer is the witness's signature");
            }
            409 => assert_eq!(answer.body, format!("{}\n", before.unwrap_or(0))),
            status => {
                assert!([400, 403, 404, 422].contains(&status), "{status}: {}", answer.body);
                assert_eq!(cosigned(), before, "what is refused is not kept");
            }
        }
    }
}

/// A witness that has seen nothing yet, its key, and that of the log that it cosigns for.
fn begun() -> (Witness, CosignerKey, VerifierKey) {
    let (state, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
    let own = Witness::begin("w.example", CosignatureAlgorithm::Ed25519, &*state, &*keys, &SystemRandom);
    let log: VerifierKey = LOG.parse().expect("it is one");
    let stores = (state as Arc<dyn bulla_store::Store>, keys as _);
    let tell = Arc::new(|_: &str| {});
    let witness = Witness::open(stores, vec![log.clone().into()], Arc::new(SystemClock), tell);
    (witness.expect("it was begun"), own.expect("memory does not fail"), log)
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut requests, mut rest) = (Vec::new(), bytes);
    while requests.len() + 1 < MOST
        && let Some(end) = rest.windows(BETWEEN.len()).position(|part| part == BETWEEN.as_bytes())
    {
        requests.push(&rest[..end]);
        rest = &rest[end + BETWEEN.len()..];
    }
    requests.push(rest);
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_holds_on_its_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&TARGETS);
    }

    /// Seeds that are refused at once lead a fuzzer to nothing.
    #[test]
    fn requests_of_the_corpus_are_cosigned() {
        for (name, seed) in bulla_testkit::corpus::seeds("witness_request", "growth-") {
            let (witness, ..) = begun();
            let answers = split(&seed).into_iter().map(|request| witness.add_checkpoint(request));
            assert!(answers.into_iter().all(|answer| answer.status == 200), "{name}");
        }
    }
}
