//! What a writer with every key could put into an index, and what becomes of it; bounds.
#![allow(clippy::cast_possible_truncation)]

use super::file::Parts;
use super::gather::{Gatherer, Indexer};
use super::part::{Head, Part};
use super::*;
use crate::format::files::*;
use crate::scan::full::Scan;
use crate::scan::snapshot::Snapshot;
use crate::{Finding, FindingKind, Init, Log, Options, Query, Reader, Severity, Step, Verify};
use bulla_crypto::environment::{AesGcm, Environment, KeyWrap, SystemRandom};
use bulla_crypto::epoch::EpochSecret;
use bulla_crypto::recipients::Identity;
use bulla_proof::Entry;
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_store::Store;
use bulla_testkit::Memory;
use std::sync::Arc;

struct Open;

impl KeyWrap for Open {
    fn wrap(&self, _: &[String], key: &[u8; 32], _: std::time::Duration) -> crate::Result<Vec<u8>> {
        Ok(key.to_vec())
    }
}

impl Identity for Open {
    fn unwrap(&self, wrapped: &[u8]) -> crate::Result<Option<EpochSecret>> {
        Ok(wrapped.try_into().ok().map(|key: [u8; 32]| EpochSecret::from(key)))
    }
}

/// Two epochs of three blocks each in one group of frames: the epochs are frames 0 and 4, the block of frame f is of
/// `user_f`.
fn log() -> Memory {
    let (log, keys) = (Memory::new(), Memory::new());
    let environment = Environment { key_wrap: Arc::new(Open), ..Environment::default() };
    let recipient = "age1wwwqy5ealr6ts9hg0jj3pgglvfz8zv7n70c57vmgwygh0g39s4tqxqgw8j";
    Init::default().erasure(false).recipient(recipient).create_in(&log, &keys, &environment).unwrap();
    for epoch in [0, 4] {
        let options = Options::default().memory(64 << 20).writers(1);
        let (store, keys) = (Arc::new(log.clone()), Arc::new(keys.clone()));
        let opened = Log::open_stepped(store, keys, options, environment.clone()).unwrap();
        for frame in epoch + 1..=epoch + 3 {
            let mut producer = opened.producer().unwrap();
            let subject = format!("user_{frame}");
            producer.append(&Entry::new("read", "x").subject(&subject)).unwrap();
            let _ = producer.flush().unwrap();
            drop(producer);
            while opened.step(Step::Seal).unwrap() {
                opened.step(Step::Commit).unwrap();
            }
        }
        opened.close().unwrap();
    }
    log
}

/// The frames, with the keys of their epochs.
fn frames(store: &Memory) -> Vec<(Commitment, Arc<EpochKeys>)> {
    let snapshot = Snapshot::of(Arc::new(store.clone())).unwrap();
    let mut scan = Scan::new(&snapshot, Some(Arc::new(Open)), None).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = scan.next().unwrap() {
        frames.push((frame.commitment, frame.keys.unwrap()));
    }
    frames
}

/// Writes an index of one part for an epoch, which covers these frames.
fn write(store: &Memory, epoch: u64, covered: &[u64], tokens: impl Fn(u64) -> Vec<u64>) {
    let frames = frames(store);
    let commitments = covered.iter().map(|&frame| (frame, frames[frame as usize].0.encode()));
    let blocks = covered.iter().map(|&frame| (frame, tokens(frame))).collect::<Vec<_>>();
    let part = Part::of(blocks.iter().map(|(bit, tokens)| (*bit, &tokens[..])));
    let keys = &frames[epoch as usize].1;
    let bytes = part.seal(keys, 0, &commitments.collect::<Vec<_>>(), (&SystemRandom, &AesGcm)).unwrap();
    bulla_store::replace(store, &index_path(epoch), &bytes).unwrap();
}

/// What the block of a frame can be found by.
fn truth(store: &Memory, frame: u64) -> Vec<u64> {
    let keys = &frames(store)[frame as usize].1;
    let mut tokens = Tokens::new(keys);
    tokens.add(Searched::Operation, b"read");
    tokens.add(Searched::Stream, b"default");
    tokens.add(Searched::Subject, format!("user_{frame}").as_bytes());
    tokens.finish()
}

fn findings(store: &Memory) -> Vec<Finding> {
    let verify = Verify::open_store(Arc::new(store.clone())).unwrap();
    verify.identity(Arc::new(Open)).run().unwrap().findings
}

/// Blocks read for a subject, and entries found.
fn read(store: &Memory, user: u64) -> (u64, u64) {
    let reader = Reader::open_store(Arc::new(store.clone())).unwrap().identity(Arc::new(Open)).threads(1);
    // It must not mend what is looked at.
    let _writer = store.lock("LOCK").unwrap();
    let report = reader.for_each(&Query::new().subject(format!("user_{user}")), |_, _| Ok(())).unwrap();
    (report.blocks_read, report.entries)
}

#[test]
fn an_index_is_what_its_blocks_come_to() {
    let store = log();
    assert_eq!(frames(&store).iter().filter(|(frame, _)| frame.kind == FrameKind::Epoch).count(), 2);
    assert_eq!((findings(&store), read(&store, 2)), (Vec::new(), (1, 1)));
    write(&store, 0, &[1, 2, 3], |frame| truth(&store, frame));
    assert_eq!((findings(&store), read(&store, 2)), (Vec::new(), (1, 1)));
}

#[test]
fn a_token_that_is_kept_back_or_made_up_is_found() {
    let store = log();
    let whole = truth(&store, 2);
    for place in 0..whole.len() {
        let less = |frame| {
            let mut tokens = truth(&store, frame);
            if frame == 2 {
                tokens.remove(place);
            }
            tokens
        };
        write(&store, 0, &[1, 2, 3], less);
        let found = findings(&store);
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(
            (finding.kind, finding.frame, finding.last_frame),
            (FindingKind::IndexMismatch, Some(2), Some(2))
        );
        assert_eq!((finding.severity, finding.kind.name()), (Severity::Violation, "index-mismatch"));
        assert!(finding.detail.contains(&index_path(0)), "{finding}");
    }
    let more =
        |frame| if frame == 3 { (0..9).chain(truth(&store, frame)).collect() } else { truth(&store, frame) };
    write(&store, 0, &[1, 2, 3], more);
    assert_eq!(findings(&store).iter().map(|one| one.frame).collect::<Vec<_>>(), [Some(3)]);
    // Blocks that are said to hold what they do not are read in vain.
    write(&store, 4, &[5, 6, 7], |_| truth(&store, 5));
    assert_eq!(read(&store, 5), (3, 1));
}

#[test]
fn each_part_by_itself_says_what_a_block_holds() {
    let store = log();
    write(&store, 0, &[1, 2, 3], |frame| truth(&store, frame));
    let whole = content(&store, 0);
    let put = |parts: &[&[u8]]| bulla_store::replace(&store, &index_path(0), &parts.concat()).unwrap();
    put(&[&whole, &whole]);
    assert_eq!((findings(&store), read(&store, 2)), (Vec::new(), (1, 1)));
    // Halves that are whole together, or beside the whole: queries lose nothing, and it is found.
    write(&store, 0, &[2], |frame| truth(&store, frame)[1..].to_vec());
    let half = content(&store, 0);
    write(&store, 0, &[2], |frame| truth(&store, frame)[..1].to_vec());
    let other = content(&store, 0);
    for (parts, found) in [(&[&half[..], &other][..], 2), (&[&half, &whole], 1), (&[&whole, &half], 1)] {
        put(parts);
        let findings = findings(&store);
        let is_of = |one: &Finding| (one.kind, one.frame) == (FindingKind::IndexMismatch, Some(2));
        assert!(findings.len() == found && findings.iter().all(is_of), "{findings:#?}");
        assert_eq!(read(&store, 2).1, 1);
    }
}

#[test]
fn what_was_counted_is_given_out_whatever_the_index_says_by_then() {
    let store = log();
    let hidden = store.clone();
    let reader = Reader::open_store(Arc::new(store.clone())).unwrap().identity(Arc::new(Open)).threads(1);
    // Nothing is held back, so that everything is read twice; between the passes the index is put in another's place.
    let reader = reader.hold_back(0).progress(move |progress| {
        if progress.done == progress.total {
            write(&hidden, 0, &[1, 2, 3], |_| Vec::new());
        }
    });
    let mut given = Vec::new();
    let query = Query::new().operation("read").subject("user_2");
    let report = reader.for_each(&query, |number, _| {
        given.push(number);
        Ok(())
    });
    assert_eq!((report.unwrap().entries, given.len()), (1, 1));
}

#[test]
fn nobody_believes_what_is_not_compared() {
    // A part of the first epoch that keeps back everything, and covers a frame of the second one too.
    let store = log();
    write(&store, 0, &[1, 2, 3, 5], |_| Vec::new());
    assert_eq!(findings(&store), []);
    for user in [1, 2, 3, 5] {
        assert_eq!(read(&store, user).1, 1, "user {user}");
    }
    // Or the epoch's own frame, which is compared.
    let store = log();
    write(&store, 0, &[0, 1, 2, 3], |_| Vec::new());
    assert_eq!(findings(&store).iter().map(|one| one.kind).collect::<Vec<_>>(), [FindingKind::IndexMismatch]);
}

#[test]
fn a_part_of_frames_that_the_log_does_not_have_is_nothing() {
    let store = log();
    let sound = content(&store, 0);
    let frames = frames(&store);
    let mut other = frames[2].0.clone();
    other.body_digest = bulla_proof::Hash([7; 32]);
    for (frame, commitment) in [(2, other.encode()), (40, frames[2].0.encode())] {
        let part = Part::of([(frame, &[1, 2, 3][..])].into_iter());
        let bytes = part.seal(&frames[0].1, 0, &[(frame, commitment)], (&SystemRandom, &AesGcm)).unwrap();
        bulla_store::replace(&store, &index_path(0), &[&bytes[..], &sound].concat()).unwrap();
        assert_eq!((findings(&store), read(&store, 2)), (Vec::new(), (1, 1)));
        bulla_store::replace(&store, &index_path(0), &bytes).unwrap();
        assert_eq!((findings(&store), read(&store, 2)), (Vec::new(), (3, 1)));
    }
}

fn content(store: &Memory, epoch: u64) -> Vec<u8> {
    let file = store.open(&index_path(epoch)).unwrap();
    let mut content = vec![0; usize::try_from(file.length().unwrap()).unwrap()];
    file.read_exact_at(&mut content, 0).unwrap();
    content
}

#[test]
fn damage_is_a_notice_with_its_place() {
    let store = log();
    let sound = content(&store, 4);
    let mut flipped = sound.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (bad, offset) in [
        (flipped, 0),
        (sound[..sound.len() - 1].to_vec(), 0),
        ([&sound[..], b"x"].concat(), sound.len()),
        ([&sound[..], &sound[..150]].concat(), sound.len()),
    ] {
        bulla_store::replace(&store, &index_path(4), &bad).unwrap();
        let found = findings(&store);
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((finding.kind.name(), finding.severity), ("index-damaged", Severity::Notice));
        assert_eq!(finding.segment.as_deref(), Some(&index_path(4)[..]));
        assert_eq!(finding.offset, Some(offset as u64));
    }
}

#[test]
fn what_a_writer_is_writing_is_no_damage() {
    let store = log();
    let sound = content(&store, 4);
    let _writer = store.lock("LOCK").unwrap();
    for length in [1, 99, 100, sound.len() - 1] {
        bulla_store::replace(&store, &index_path(4), &[&sound[..], &sound[..length]].concat()).unwrap();
        assert_eq!(findings(&store), [], "{length} bytes");
    }
    bulla_store::replace(&store, &index_path(4), &[&sound[..], &[1; 200]].concat()).unwrap();
    assert_eq!(findings(&store).len(), 1);
}

fn keys(number: u64) -> Arc<EpochKeys> {
    Arc::new(EpochKeys::derive(&EpochSecret::from([1; 32]), [2; 32], LogId([3; 16]), number).unwrap())
}

fn gathered(keys: &Arc<EpochKeys>, frame: u64, tokens: Vec<u64>) -> Gathered {
    Gathered { commitment: [0; Commitment::LENGTH], frame, keys: keys.clone(), tokens }
}

#[test]
fn what_a_crash_left_of_epochs_that_it_took_is_removed() {
    let store = log();
    let files = || store.list(INDEX).unwrap().into_iter().map(|item| item.name).collect::<Vec<_>>();
    let names =
        |epochs: &[u64]| epochs.iter().map(|&epoch| index_path(epoch)[6..].to_owned()).collect::<Vec<_>>();
    for epoch in [8, 9, 100] {
        bulla_store::replace(&store, &index_path(epoch), &content(&store, 0)).unwrap();
    }
    assert_eq!(files(), names(&[0, 4, 8, 9, 100]));
    drop(Indexer::new(Arc::new(store.clone()), 8));
    assert_eq!(files(), names(&[0, 4]));
}

#[test]
fn a_writer_that_is_late_with_an_epoch_harms_no_file() {
    let store = Arc::new(Memory::new());
    let (indexer, environment) = (Indexer::new(store.clone(), 0), Environment::default());
    let (first, second) = (keys(0), keys(100));
    let parts = |epoch| Parts::load(&*store, epoch).unwrap().heads.len();
    (1..99).for_each(|frame| indexer.add(gathered(&first, frame, vec![frame]), &environment));
    (101..300).for_each(|frame| indexer.add(gathered(&second, frame, vec![frame]), &environment));
    let before = (parts(0), parts(100));
    assert!(before.0 == 2 && before.1 > 1, "{before:?}");
    indexer.add(gathered(&first, 99, vec![99]), &environment);
    indexer.add(gathered(&second, 300, vec![300]), &environment);
    assert_eq!((parts(0), parts(100)), before);
    indexer.finish(&environment);
    assert_eq!(parts(0), 2);
    assert!(parts(100) > before.1);
}

#[test]
fn few_tokens_are_held_however_many_blocks_have() {
    let keys = keys(0);
    let mut gatherer = Gatherer::default();
    let (mut held, mut given) = (0, 0);
    for frame in 0..200 {
        let tokens = MAX_TOKENS / 5 + 1;
        held += tokens;
        for ready in gatherer.add(gathered(&keys, frame, vec![0; tokens])) {
            held -= ready.tokens();
            given += ready.frames();
        }
        assert!(held <= 2 * MAX_TOKENS, "frame {frame}: {held}");
    }
    given += gatherer.finish().iter().map(super::gather::Ready::frames).sum::<usize>();
    assert_eq!(given, 200, "every frame comes out once");
    assert!(gatherer.add(gathered(&keys, 1000, vec![0; MAX_TOKENS + 1])).is_empty());
    assert_eq!(gatherer.finish().len(), 0, "one with too many is not indexed");
}

#[test]
fn tokens_of_a_block_are_bounded_and_each_there_once() {
    let keys = keys(0);
    let mut tokens = Tokens::new(&keys);
    for value in 0..5 * MAX_TOKENS as u64 / 2 {
        tokens.add(Searched::Subject, &value.to_le_bytes());
    }
    let tokens = tokens.finish();
    assert!(tokens.len() > MAX_TOKENS && tokens.len() <= 2 * MAX_TOKENS, "{}", tokens.len());
    let mut few = Tokens::new(&keys);
    for value in 0..MAX_TOKENS as u64 + 5000 {
        few.add(Searched::Subject, &(value % 1000).to_le_bytes());
    }
    let room = few.tokens.capacity();
    assert_eq!(few.finish().len(), 1000, "what comes again does not count");
    assert!((2000..=4096).contains(&room), "sorted again and again, or held again and again: {room}");
}

#[test]
fn a_part_has_one_spelling_and_comes_back() {
    let part = Part::of([(3, &[1, 5, 1 << 39][..]), (63, &[0, 5][..]), (4, &[][..])].into_iter());
    let covered = 1 << 3 | 1 << 4 | 1 << 63;
    let bytes = part.encode();
    assert_eq!(Part::decode(&bytes, covered).unwrap(), part);
    assert_eq!(part.having(5), 1 << 3 | 1 << 63);
    assert_eq!((part.having(0), part.having(2)), (1 << 63, 0));
    assert_eq!(part.tokens_of(3).collect::<Vec<_>>(), [1, 5, 1 << 39]);
    assert_eq!(part.tokens_of(4).count(), 0);
    assert!(
        Part::decode(&bytes, covered & !(1 << 63)).is_err(),
        "it speaks of a block that it does not cover"
    );
    assert!(Part::decode(&[&bytes[..], &[0]].concat(), covered).is_err());
    let keys = keys(9);
    let commitments = [(3, [1; 152]), (4, [2; 152]), (63, [3; 152])];
    let sealed = part.seal(&keys, 7, &commitments, (&SystemRandom, &AesGcm)).unwrap();
    let (head, text) = sealed.split_first_chunk().unwrap();
    let head = Head::parse(head).unwrap();
    assert_eq!((head.epoch, head.group, head.covered), (9, 7, covered));
    assert_eq!(head.encode()[..], sealed[..100]);
    assert_eq!(Part::open(&head, text.to_vec(), &keys, &AesGcm).unwrap(), part);
    assert!(Part::open(&head, text.to_vec(), &super::tests::keys(8), &AesGcm).is_err());
    for at in 0..100 {
        let mut other = sealed[..100].to_vec();
        other[at] ^= 1;
        let head = Head::parse(other.first_chunk().unwrap());
        let opened = head.filter(|head| head.length as usize == text.len());
        assert!(
            opened.is_none_or(|head| Part::open(&head, text.to_vec(), &keys, &AesGcm).is_err()),
            "byte {at}"
        );
    }
}

#[test]
fn values_of_different_fields_and_epochs_have_different_tokens() {
    let fields = [Searched::Operation, Searched::Processor, Searched::Stream, Searched::Subject];
    let mut tokens = Vec::new();
    for keys in [keys(0), keys(1)] {
        tokens.extend(fields.map(|field| token(&keys, field, b"user_1")));
    }
    assert!(tokens.iter().all(|&token| token < 1 << 40));
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 8);
}

#[test]
fn a_file_has_one_name() {
    assert_eq!(parse_index_name("00000000000000000012.idx"), Some(12));
    for name in [
        "12.idx",
        "00000000000000000012.idx.tmp",
        "000000000000000000012.idx",
        "+0000000000000000012.idx",
        "",
    ] {
        assert_eq!(parse_index_name(name), None, "{name}");
    }
}

#[test]
fn the_corpus_has_parts_that_are_parts() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/index");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    for (name, tokens) in [("none", 0), ("one", 1), ("constant", 1024), ("packed", 3), ("most", MAX_TOKENS)] {
        let content = read(&format!("plaintext-{name}"));
        let (covered, plaintext) = content.split_first_chunk().unwrap();
        let part = Part::decode(plaintext, u64::from_le_bytes(*covered))
            .unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(part.tokens.len(), tokens, "{name}");
    }
    let store = Memory::new();
    store.create_directory(INDEX).unwrap();
    for (name, parts) in [("file", 2), ("torn", 1)] {
        bulla_store::replace(&store, &index_path(7), &read(name)).unwrap();
        let found = Parts::load(&store, 7).unwrap();
        assert_eq!((found.heads.len(), found.damage.is_some_and(|damage| damage.torn)), (parts, parts == 1));
    }
}
