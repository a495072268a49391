//! One witness is asked for one checkpoint.

use crate::format::config::AskedWitness;
use crate::scan::stored_proof::prove_consistency;
use crate::witness::job::{Asked, Job, Refusal};
use bulla_crypto::environment::Clock;
use bulla_http::{Address, Answer};
use bulla_proof::add_checkpoint::{self, Request};
use bulla_proof::checkpoint::parse_size;
use bulla_proof::cosignature::CosignerKey;
use bulla_proof::note::NoteSignature;
use bulla_store::Store;

/// How often a witness is asked again within one go, where it says that it has another tree than it was believed to have.
const ATTEMPTS: usize = 3;
/// By how many seconds the time in a cosignature may differ from the log's clock.
const CLOCKS: u64 = 300;

/// Posts a body to a witness and says what it answered, or why there is no answer.
pub(crate) type Post<'a> = dyn Fn(&Address, &[u8]) -> Result<Answer, String> + 'a;

/// Asks a witness to cosign the checkpoint of `job`. Waits for the network, as long as `post` does each time, three times at most.
pub(crate) fn ask(
    post: &Post<'_>,
    store: &dyn Store,
    clock: &dyn Clock,
    (witness, known): (&AskedWitness, Option<u64>),
    job: &Job,
) -> Asked {
    let mut known = known;
    let outcome = converse(post, store, clock, (witness, &mut known), job);
    Asked { known, outcome }
}

fn converse(
    post: &Post<'_>,
    store: &dyn Store,
    clock: &dyn Clock,
    (witness, known): (&AskedWitness, &mut Option<u64>),
    job: &Job,
) -> Result<(String, u64), Refusal> {
    let address = witness.address.below(add_checkpoint::PATH);
    let size = job.head.size;
    let mut old = known.unwrap_or(0).min(size);
    for _ in 0..ATTEMPTS {
        let proof =
            prove_consistency(store, old, size).map_err(|error| Refusal::passing(error.to_string()))?;
        let body = Request { old_size: old, proof, note: job.note.as_bytes() }.render();
        let answer = post(&address, body.as_bytes()).map_err(Refusal::passing)?;
        match answer.status {
            200 => {
                let now = u64::try_from(clock.now().div_euclid(1_000_000_000)).unwrap_or(0);
                let cosigned = cosignature(&answer, &witness.key, &job.text, now)?;
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

/// The cosignature in an answer, verified: of lines of other keys there may be any. `now` is in seconds since 1970.
fn cosignature(answer: &Answer, key: &CosignerKey, text: &str, now: u64) -> Result<(String, u64), Refusal> {
    let wrong =
        |what: &dyn std::fmt::Display| Refusal::passing(format!("what it answers is no cosignature: {what}"));
    let lines = std::str::from_utf8(&answer.body).map_err(|_| wrong(&"it is not UTF-8"))?;
    let lines = NoteSignature::parse_lines(lines).map_err(|error| wrong(&error))?;
    let mut of_key = lines.iter().filter(|line| key.is_of(line));
    let line = of_key.next().ok_or_else(|| wrong(&"it is of another key than [log] names"))?;
    if of_key.next().is_some() {
        return Err(wrong(&"there are several of its key"));
    }
    let time = key.verify_signature(text, line).map_err(|error| wrong(&error))?.timestamp;
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
    parse_size(std::str::from_utf8(&answer.body).ok()?.strip_suffix('\n')?)
}

/// What an answer says, as far as it can be shown.
fn said(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let shown = |c: char| match c {
        // A quotation mark in it ends nothing.
        '\'' | '"' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    let line = text.lines().next().unwrap_or_default().chars().take(200).map(shown).collect::<String>();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// For fuzzing: that of an answer nothing is believed but a cosignature of the witness, of the checkpoint and of now; or one size.
#[cfg(any(test, fuzzing))]
pub(crate) fn check_answer(bytes: &[u8]) {
    const KEY: &str = "witness.example+e6557821+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK";
    const TEXT: &str = "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n";
    const NOW: u64 = 1_700_000_000;
    let key: CosignerKey = KEY.parse().expect("it is one");
    let answer = Answer { status: 200, content_type: None, body: bytes.to_vec() };
    if let Ok((line, time)) = cosignature(&answer, &key, TEXT, NOW) {
        let note = format!("{TEXT}\n{line}");
        let note = bulla_proof::SignedNote::parse(note.as_bytes()).expect("it is a line of a note");
        assert!(key.verify(&note).is_ok_and(|of| of.timestamp == time) && time.abs_diff(NOW) <= CLOCKS);
    }
    if let Some(size) = size_of(&answer) {
        assert_eq!(format!("{size}\n").as_bytes(), bytes, "a size has one spelling");
    }
    assert!(said(&answer).chars().all(|shown| !shown.is_control()), "what is shown stays in its line");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_says_is_shown_in_one_line_with_its_quotation_marks() {
        let answer = |body: &str| Answer { status: 500, content_type: None, body: body.as_bytes().to_vec() };
        let text = "the witness's clock is \"behind\"";
        assert_eq!(said(&answer(&format!("{text}\nmore"))), format!(": {text}"));
        assert_eq!(said(&answer("a\u{1b}[2Jb\u{202e}")), ": a\\u{1b}[2Jb\\u{202e}");
        assert_eq!(said(&answer("")), "");
    }
}
