//! What the fuzz targets run: every parser of bytes that somebody else may have written.
//!
//! `fuzz/` drives them with coverage, a plain test with the corpus alone. Each states what must hold, whatever the
//! bytes. Not part of the API.

use crate::erase::holds::Holds;
use crate::erase::told_holds::ToldHolds;
use crate::erase::{ErasureOrder, HoldOrder, ReleaseOrder};
use crate::format::config::WitnessPolicy;
use crate::format::epoch::EpochBody;
use crate::format::event::Event;
use crate::format::files;
use crate::format::options::{Options, SettingPlace};
use crate::format::segment::SegmentName;
use crate::format::sources::{self, passed::AllPassed, table::Table};
use crate::format::{config, frame, json};
use crate::index::{
    self,
    file::Parts,
    part::{HEAD, Head, Part},
};
use crate::read::grant::Grant;
use crate::read::opened_proof::open_proof;
use crate::read::rekor::anchor_of_answer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bulla_crypto::recipients::IdentityFile;
use bulla_crypto::seal_chain::parse_seal_key;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::{Checkpoint, SignedNote, VerifierKey};
use bulla_proof::commitment::{Commitment, LogId};
use bulla_proof::hold_order::HoldNote;
use bulla_proof::order::Order;
use bulla_proof::proof::{Anchor, Checked, Envelope, Receipt};
use bulla_proof::tile;
use bulla_proof::{CoseCheckpoint, Entry, Policy, ProofFile};
use bulla_store::Store;
use bulla_testkit::Memory;
use bulla_testkit::corpus::Target;
use std::collections::BTreeSet;
use std::io::IoSlice;

/// All of them, by name.
pub const TARGETS: [(&str, Target); 16] = [
    ("frame", frame),
    ("commitment", commitment),
    ("row", row),
    ("checkpoint", checkpoint),
    ("tile", tile),
    ("config", config),
    ("small_files", small_files),
    ("proof", proof),
    ("index", index),
    ("grant", grant),
    ("sources", sources),
    ("mirror", mirror),
    ("cose", cose),
    ("anchor", anchor),
    ("policy", policy),
    ("witness_answer", witness_answer),
];

/// A frame's head.
pub fn frame(bytes: &[u8]) {
    if let Ok(head) = frame::parse_head(bytes, 7) {
        let body = usize::try_from(head.commitment.body_length).expect("a body fits memory");
        let encoded = frame::encode_head(&head.commitment.encode(), body, head.group);
        assert_eq!(encoded[..], bytes[..frame::HEAD], "a head has one spelling");
        assert_eq!(head.end(), 7 + (frame::HEAD + frame::SEAL + body) as u64);
    }
}

/// A commitment.
pub fn commitment(bytes: &[u8]) {
    if let Ok(commitment) = Commitment::decode(bytes) {
        assert_eq!(commitment.encode()[..], *bytes, "a commitment has one spelling");
    }
}

/// What a block says of sources, what is kept of it, and what is kept of what was passed: the first byte says which.
pub fn sources(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0, text)) => {
            if let Ok(entries) = sources::decode(text) {
                assert_eq!(sources::encode(entries.iter()), text, "a section has one spelling");
                let mut table = Table::default();
                entries.into_iter().for_each(|entry| table.take(1, entry));
                let states = table.states();
                assert!(
                    states.iter().all(|state| state.ranges.is_sorted_by(|one, next| one.end < next.start))
                );
            }
        }
        Some((2, text)) => {
            if let Ok(passed) = AllPassed::decode(text) {
                assert_eq!(passed.encode(), text, "what was passed has one spelling");
                let states = passed.states(&Table::default());
                assert!(states.iter().all(|state| state.passed.as_ref().is_some_and(|of| !of.0.is_empty())));
            }
        }
        Some((_, text)) => {
            if let Ok(table) = Table::decode(text) {
                let mut again = Vec::new();
                table.encode(&mut again);
                assert_eq!(again, text, "what is kept of sources has one spelling");
            }
        }
        None => {}
    }
}

/// A canonical row.
pub fn row(bytes: &[u8]) {
    if let Ok(entry) = Entry::decode(bytes) {
        let mut again = vec![0; entry.measure().expect("a decoded entry is within its limits")];
        entry.encode(0, &mut again);
        assert_eq!(again, bytes, "a row has one spelling");
    }
}

/// A signed note, a checkpoint, a verifier key.
pub fn checkpoint(bytes: &[u8]) {
    if let Ok(note) = SignedNote::parse(bytes)
        && let Ok(checkpoint) = Checkpoint::parse(note.text)
    {
        assert_eq!(checkpoint.body(), note.text, "a checkpoint has one spelling");
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(key) = text.parse::<VerifierKey>()
    {
        assert_eq!(key.to_string(), text, "a key has one spelling");
    }
}

/// Tiles, bundles and their paths. The first two bytes choose the width.
pub fn tile(bytes: &[u8]) {
    let Some((width, content)) = bytes.split_first_chunk::<2>() else { return };
    let width = u16::from_le_bytes(*width) % (tile::FULL_WIDTH + 2);
    if let Ok(hashes) = tile::parse_tile(content, width) {
        assert_eq!(tile::encode_tile(&hashes), content);
    }
    if let Ok(entries) = tile::parse_bundle(content, width) {
        let mut again = Vec::new();
        entries.iter().for_each(|entry| tile::push_bundle_entry(&mut again, entry));
        assert_eq!(again, content);
    }
    if let Ok(path) = std::str::from_utf8(content) {
        let _ = tile::parse_path(path);
    }
}

/// `bulla.toml`.
pub fn config(bytes: &[u8]) {
    if let Ok((config, options)) = config::parse(bytes) {
        assert!(!config.recipients.is_empty());
        let mut again = config::FieldRules::default();
        for (field, rule) in config.fields.iter() {
            again.set(field, &rule.to_string()).expect("a rule has one spelling");
        }
        assert_eq!(again, config.fields);
        let _ = crate::format::options::Tuning::try_from(options);
    }
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    if let Ok(options) = config::parse_settings(text) {
        let all = options.clone().with_host(Options::default()).misplaced(SettingPlace::Log);
        assert!(all.is_empty(), "what is kept elsewhere does not count");
        let _ = crate::format::options::Tuning::try_from(options);
    }
}

/// Small files: holds, events, epoch bodies, orders to erase, keys, names of segments.
pub fn small_files(bytes: &[u8]) {
    if let Ok(event) = Event::decode(bytes) {
        assert_eq!(Event::decode(&event.encode()).ok(), Some(event));
    }
    if let Ok(mut holds) = json::objects::<Holds>(bytes) {
        let _ = holds.follow(&ToldHolds::default(), |frame| Ok(frame.to_string()));
        assert!(holds.into_list().iter().all(|hold| hold.frame.is_none()), "the log tells of none of them");
    }
    if let Ok(epoch) = EpochBody::decode(bytes) {
        assert_eq!(epoch.encode(), bytes, "an epoch body has one spelling");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(name) = SegmentName::parse(text) {
        assert_eq!(name.to_string(), text, "a segment has one name");
    }
    if let Ok(order) = Order::parse(text) {
        assert!(!order.subjects.is_empty(), "an order names somebody");
    }
    if let Ok(order) = ErasureOrder::parse(text) {
        assert!(ErasureOrder::parse(&order.render()).is_ok_and(|again| again == order));
    }
    if let Ok(order) = HoldNote::parse(text) {
        assert!(order.check_hold(order.log).is_ok() != order.check_release(order.log).is_ok());
    }
    if let Ok(order) = HoldOrder::parse(text) {
        assert!(HoldOrder::parse(&order.render()).is_ok_and(|again| again == order));
    }
    if let Ok(order) = ReleaseOrder::parse(text) {
        assert!(ReleaseOrder::parse(&order.render()).is_ok_and(|again| again == order));
    }
    let _ = parse_seal_key(text, LogId([7; 16]));
    let _ = SigningKey::parse(text);
    let _ = IdentityFile::parse(text);
}

/// A proof file of either kind; and, so that base64 does not stand in a mutation's way, what one discloses.
pub fn proof(bytes: &[u8]) {
    proof_file(bytes);
    let index = bytes.get(25..33).and_then(|index| index.try_into().ok()).map_or(0, u64::from_le_bytes);
    let root = "A".repeat(43);
    let note = format!("x\n{}\n{root}=\n\n\u{2014} x AAAAAAE=\n", u64::MAX);
    let extra = BASE64.encode(bytes);
    proof_file(format!("c2sp.org/tlog-proof@v1\nextra {extra}\nindex {index}\n\n{note}").as_bytes());
}

/// A file of the index; and, after eight bytes that say which blocks it covers, the plaintext of a part.
pub fn index(bytes: &[u8]) {
    /// More are not encoded again.
    const FEW: usize = 1 << 12;
    let store = Memory::new();
    store.create_directory(files::INDEX).expect("memory does not fail");
    let file = store.create(&files::index_path(7)).expect("memory does not fail");
    file.write_at(&mut [IoSlice::new(bytes)], 0).expect("memory does not fail");
    let parts = Parts::load(&store, 7).expect("memory does not fail");
    let mut end = 0;
    for (head, offset) in &parts.heads {
        assert_eq!(*offset, end, "parts lie one after the other");
        end += (HEAD + parts.read(head, *offset).expect("a part lies within its file").len()) as u64;
    }
    assert_eq!(parts.damage.map_or(bytes.len() as u64, |damage| damage.offset), end);
    if let Some(head) = bytes.first_chunk::<HEAD>()
        && let Some(parsed) = Head::parse(head)
    {
        assert_eq!(parsed.encode(), *head, "a head has one spelling");
    }
    let Some((covered, plaintext)) = bytes.split_first_chunk::<8>() else { return };
    let covered = u64::from_le_bytes(*covered);
    let Ok(part) = Part::decode(plaintext, covered) else { return };
    assert!(part.tokens.len() <= index::MAX_TOKENS && part.tokens.is_sorted());
    for &token in part.tokens.iter().take(FEW) {
        let blocks = part.having(token);
        assert!(blocks != 0 && blocks & !covered == 0, "a part speaks of blocks that it covers");
    }
    if part.tokens.len() <= FEW {
        assert_eq!(Part::decode(&part.encode(), covered).as_ref(), Ok(&part), "what was encoded decodes");
    }
}

/// What the file of a grant holds.
pub fn grant(bytes: &[u8]) {
    if let Some(grant) = Grant::decode(bytes) {
        assert_eq!(grant.encode()[..], *bytes, "a grant has one spelling");
    }
}

/// What goes over the line of a mirror, and the configuration that one has for a checkpoint that is still to arrive.
pub fn mirror(bytes: &[u8]) {
    crate::mirror::wire::check_message(bytes);
    config::arriving::check(bytes);
}

/// Key and origin of the log of the vectors.
const LOG: &str = "example.com/log+702f3c70+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
/// The Rekor of the vectors.
const REKOR: &str = "rekor.example+df32245a+Af0XJDhaoMdbZPt4zWAvodmR/ev3axPFjtcC6sg16fYY";
/// What divides the parts of a seed that has two.
const BETWEEN: &[u8] = b"\n=====\n";

/// A tree head in COSE, and a receipt.
pub fn cose(bytes: &[u8]) {
    let key: VerifierKey = LOG.parse().expect("it is one");
    if let Ok(head) = CoseCheckpoint::parse(bytes) {
        assert_eq!(head.render(), bytes, "a tree head has one spelling");
        assert!(head.verify(&key).is_err() || head.origin() == key.name());
    }
    if let Ok(receipt) = Receipt::parse(bytes) {
        assert!(Receipt::is_one(bytes) && receipt.render() == bytes, "a receipt has one spelling");
        if let Ok(checked) = receipt.verify(Some(&key)) {
            assert!(receipt.verify(None).is_ok() && checked.origin() == key.name());
            disclosed(&checked);
        }
    }
}

/// An anchor; and what a Rekor answers.
pub fn anchor(bytes: &[u8]) {
    let keys: [VerifierKey; 2] = [LOG, REKOR].map(|key| key.parse().expect("it is one"));
    if let Ok(anchor) = Anchor::parse(bytes) {
        assert_eq!(anchor.render().as_bytes(), bytes, "an anchor has one spelling");
        if let Ok(held) = anchor.verify(&keys[0], &keys[1]) {
            assert!(held.index < held.rekor.size && held.checkpoint.origin == keys[0].name());
        }
    }
    let note = format!("{}\n0\n{}=\n\n\u{2014} x AAAAAAE=\n", keys[0].name(), "A".repeat(43));
    let envelope = Envelope::sign(note.as_bytes(), |_| [7; 64]).expect("it is a checkpoint");
    if let Ok(anchor) = anchor_of_answer(envelope, bytes) {
        let file = anchor.render();
        assert_eq!(Anchor::parse(file.as_bytes()), Ok(anchor), "what was kept is read again");
    }
}

/// A policy, and behind a line of `=` a checkpoint that it judges.
pub fn policy(bytes: &[u8]) {
    let end = bytes.windows(BETWEEN.len()).position(|part| part == BETWEEN);
    let (text, note) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + BETWEEN.len()..]));
    let Ok(policy) = Policy::parse(text) else {
        let of_log = std::str::from_utf8(text).map(WitnessPolicy::parse);
        assert!(!of_log.is_ok_and(|it| it.is_ok()), "a log takes nothing that is no policy");
        return;
    };
    let names = policy.witnesses().iter().map(|witness| &witness.name).collect::<BTreeSet<_>>();
    assert_eq!(names.len(), policy.witnesses().len(), "no witness has another's name");
    if let Ok(asked) = WitnessPolicy::parse(std::str::from_utf8(text).unwrap_or_default()) {
        assert!(asked.asked().iter().all(|asked| names.contains(&asked.name)));
    }
    let Ok(note) = SignedNote::parse(note) else { return };
    if let Ok(judgement) = policy.judge(&note) {
        assert_eq!(
            (judgement.witnesses.len(), judgement.is_met()),
            (names.len(), judgement.missing().is_empty())
        );
    }
    if let Ok(key) = policy.log_of(&note) {
        assert!(policy.logs().iter().any(|log| log.key == *key));
    }
}

/// What a witness answers: cosignatures, or a size.
pub fn witness_answer(bytes: &[u8]) {
    crate::witness::check_answer(bytes);
}

fn proof_file(bytes: &[u8]) {
    match ProofFile::parse(bytes) {
        Ok(ProofFile::Entries(proof)) => {
            assert_eq!(proof.render().as_bytes(), bytes, "a proof has one spelling");
            if let Ok(checked) = proof.verify(None) {
                disclosed(&checked);
            }
        }
        Ok(ProofFile::Consistency(proof)) => {
            assert_eq!(proof.render().as_bytes(), bytes, "a proof has one spelling");
            if let Ok(held) = proof.verify(None) {
                assert!(held.old.size <= held.new.size);
            }
        }
        Ok(ProofFile::Event(proof)) => {
            assert_eq!(proof.render().as_bytes(), bytes, "a proof has one spelling");
            if let Ok(held) = proof.verify(None) {
                let _ = Event::decode(held.event());
            }
        }
        Ok(ProofFile::Receipt(receipt)) => {
            assert_eq!(receipt.render(), bytes, "a receipt has one spelling");
            if let Ok(checked) = receipt.verify(None) {
                disclosed(&checked);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What a proof that verified discloses.
fn disclosed(checked: &Checked<'_>) {
    let rows = checked.entries().count();
    let grouped = checked.groups().map(|group| group.shared_entries().len()).sum::<usize>();
    assert_eq!(rows + grouped, checked.entry_count());
    assert_eq!(rows + checked.groups().count(), checked.units());
    let mut last = None;
    let opened = open_proof(checked, |entry| {
        assert!(last < Some(entry.number), "entries ascend");
        last = Some(entry.number);
        Ok(())
    });
    if let Ok(opened) = opened {
        assert_eq!(opened.entries, checked.entry_count() as u64);
        let closed = checked.groups().filter(|group| !group.has_secret());
        assert_eq!(opened.withheld, closed.map(|group| group.shared_entries().len() as u64).sum::<u64>());
    }
}

#[cfg(test)]
mod tests;
