//! One witness is asked for one checkpoint.

use crate::format::config::AskedWitness;
use crate::scan::stored_proof::prove_consistency;
use crate::witness::job::{Asked, Job, Refusal};
use bulla_crypto::environment::Clock;
use bulla_http::{Answer, Client};
use bulla_proof::hash::Hash;
use bulla_proof::note::NoteSignature;
use bulla_store::Store;
use std::fmt::Write;

/// How often a witness is asked again within one go, where it says that it has another tree than it was believed to have.
const ATTEMPTS: usize = 3;
/// By how many seconds the time in a cosignature may differ from the log's clock.
const CLOCKS: u64 = 300;

/// Asks a witness to cosign the checkpoint of `job`. Waits for the network, as long as `client` does each time, three times at most.
pub(crate) fn ask(
    client: &Client,
    store: &dyn Store,
    clock: &dyn Clock,
    (witness, known): (&AskedWitness, Option<u64>),
    job: &Job,
) -> Asked {
    let mut known = known;
    let outcome = converse(client, store, clock, (witness, &mut known), job);
    Asked { known, outcome }
}

fn converse(
    client: &Client,
    store: &dyn Store,
    clock: &dyn Clock,
    (witness, known): (&AskedWitness, &mut Option<u64>),
    job: &Job,
) -> Result<(String, u64), Refusal> {
    let address = witness.address.below("add-checkpoint");
    let size = job.head.size;
    let mut old = known.unwrap_or(0).min(size);
    for _ in 0..ATTEMPTS {
        let proof =
            prove_consistency(store, old, size).map_err(|error| Refusal::passing(error.to_string()))?;
        let body = request(old, &proof, &job.note);
        let answer = client.post(&address, "text/plain; charset=utf-8", body.as_bytes());
        let answer = answer.map_err(|error| Refusal::passing(error.to_string()))?;
        match answer.status {
            200 => {
                let cosigned = cosignature(&answer, witness, job, clock)?;
                *known = Some(size);
                return Ok(cosigned);
            }
            409 => {
                let has = size_of(&answer).ok_or_else(|| {
                    Refusal::passing("it answers 409, and not with the size of the tree that it has cosigned")
                })?;
                *known = Some(has);
                if has > size {
                    return Err(match has > (job.newest)() {
                        true => Refusal::other_tree(format!(
                            "it has cosigned {has} frames of this log, which has {}: the log was put back to an earlier time, or \
                             somebody else signs with its key",
                            (job.newest)()
                        )),
                        false => Refusal::passing("it has cosigned a later checkpoint by now"),
                    });
                }
                if has == old {
                    // So version 1.0.0 of tlog-witness has it; since 1.1.0 it is 422.
                    return Err(Refusal::other_tree(another_of_that_size(has)));
                }
                old = has;
            }
            422 if old == size => return Err(Refusal::other_tree(another_of_that_size(size))),
            422 => {
                return Err(Refusal::other_tree(format!(
                    "nothing shows it that the log's {size} frames begin with the {old} that it has cosigned: the log's key has signed two \
                     histories; or the tree's files here are damaged, and then `bulla verify` names the one that is"
                )));
            }
            404 => {
                return Err(Refusal::passing(
                    "it does not know this log (404): its operator has to add the log's key",
                ));
            }
            403 => {
                return Err(Refusal::passing(
                    "it knows this log by another key (403): its operator has to add the log's key",
                ));
            }
            status => return Err(Refusal::passing(format!("it answers {status}{}", said(&answer)))),
        }
    }
    Err(Refusal::passing("it says each time that it has cosigned another tree"))
}

fn another_of_that_size(size: u64) -> String {
    format!("it has cosigned another tree of {size} frames: the log's key has signed two histories")
}

/// The body of C2SP tlog-witness's `add-checkpoint`.
fn request(old: u64, proof: &[Hash], note: &str) -> String {
    let mut body = format!("old {old}\n");
    for hash in proof {
        // Writing to a `String` cannot fail.
        let _ = writeln!(body, "{}", hash.to_base64());
    }
    body + "\n" + note
}

/// The cosignature in an answer, verified: of lines of other keys there may be any.
fn cosignature(
    answer: &Answer,
    witness: &AskedWitness,
    job: &Job,
    clock: &dyn Clock,
) -> Result<(String, u64), Refusal> {
    let wrong =
        |what: &dyn std::fmt::Display| Refusal::passing(format!("what it answers is no cosignature: {what}"));
    let lines = std::str::from_utf8(&answer.body).map_err(|_| wrong(&"it is not UTF-8"))?;
    let lines = NoteSignature::parse_lines(lines).map_err(|error| wrong(&error))?;
    let mut of_key = lines.iter().filter(|line| witness.key.is_of(line));
    let line = of_key.next().ok_or_else(|| wrong(&"it is of another key than [log] names"))?;
    if of_key.next().is_some() {
        return Err(wrong(&"there are several of its key"));
    }
    let time = witness.key.verify_signature(&job.text, line).map_err(|error| wrong(&error))?.timestamp;
    let now = u64::try_from(clock.now().div_euclid(1_000_000_000)).unwrap_or(0);
    if now.abs_diff(time) > CLOCKS {
        return Err(wrong(&format_args!(
            "its time differs from this host's clock by {} s: it is an old one, or one of the two clocks is wrong",
            now.abs_diff(time)
        )));
    }
    Ok((line.to_string(), time))
}

/// The size in an answer of 409.
fn size_of(answer: &Answer) -> Option<u64> {
    let text = std::str::from_utf8(&answer.body).ok()?.strip_suffix('\n')?;
    let shortest = text == "0" || !text.starts_with('0');
    (shortest && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// What an answer says, as far as it can be shown.
fn said(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let line: String =
        text.lines().next().unwrap_or_default().chars().take(200).flat_map(char::escape_debug).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}
