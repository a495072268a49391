//! A writer that has every key, and lies: what a block holds is not what was signed for it.

use crate::damage::hostile::{SECOND, signed_as};
use crate::damage::world::Mask;
use crate::workshop::Workshop;
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::store::Store;
use bulla::{Entry, ErrorKind, Export, FindingKind, Log, Options, Query, Reader, Result, Verify};
use bulla_proof::commitment::{CODEC_PLAIN, Commitment, FrameKind};
use bulla_proof::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Entries of a block.
pub(crate) const ENTRIES: u64 = 3;

/// The block that lies, of those before and behind it.
pub(crate) const LIE: usize = 2;
pub(crate) const BLOCKS: usize = 4;

/// Encrypts the rows of the block before it in place of a block's own, once their root is in the commitment. The
/// digest of the body, the tree and the signature come after that and hold.
#[derive(Default)]
struct Liar(Mutex<Vec<Vec<u8>>>);

impl Cipher for Liar {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        let mut truths = self.0.lock().unwrap();
        truths.push(text.clone());
        if truths.len() - 1 == LIE {
            let other = &truths[LIE - 1];
            assert!(other.len() == text.len() && other != text, "the commitment tells the length");
            text.clone_from(other);
        }
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

pub(crate) fn lied_to() -> Workshop {
    let workshop = Workshop::new();
    let environment = Environment { cipher: Arc::new(Liar::default()), ..Environment::default() };
    let (store, keys) = workshop.watched(workshop.gate.clone());
    // A flush is a block: nothing else hands over what is staged.
    let options = Options::default().compression(0).linger(Duration::from_secs(3600));
    let log = Log::open_stores(store, keys, options, environment).unwrap();
    let mut producer = log.producer().unwrap();
    for number in 0..BLOCKS as u64 * ENTRIES {
        let location = format!("entry {:02}", number);
        producer.append(&Entry::new("read", &location).time(number as i64)).unwrap();
        if (number + 1).is_multiple_of(ENTRIES) {
            producer.flush().unwrap().durable().unwrap();
        }
    }
    drop(producer);
    log.close().unwrap();
    workshop
}

#[test]
fn a_block_that_is_not_what_was_signed_is_found_and_never_exported() {
    let workshop = lied_to();
    let lie = LIE as u64 * ENTRIES;

    // Who cannot decrypt cannot know.
    let public = workshop.verify().run().unwrap();
    assert!(public.ok && public.anchored && public.findings.is_empty(), "{:#?}", public.findings);
    assert_eq!(public.entries, BLOCKS as u64 * ENTRIES);

    let report = workshop.verify().identity(workshop.identity()).run().unwrap();
    let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
    let frames = workshop.frames();
    let at = frames.iter().position(|frame| (frame.first_entry, frame.entries) == (lie, ENTRIES)).unwrap();
    let before: u64 = frames[..at].iter().map(|frame| 24 + 152 + frame.body_length + 32).sum();
    assert!(!report.ok && finding.kind == FindingKind::UnitsMismatch, "{finding}");
    assert_eq!(
        finding.segment.as_ref(),
        workshop.store.list("segments").unwrap().first().map(|one| &one.name)
    );
    assert_eq!((finding.offset, finding.frame), (Some(before), Some(frames[at].frame)));
    assert_eq!(finding.entries, Some((lie, lie + ENTRIES - 1)));

    let mut out = Vec::new();
    let refused = workshop.export().run(&mut out).unwrap_err();
    assert_eq!((refused.kind(), out.len()), (ErrorKind::Tampered, 0), "{refused}");
    assert!(refused.to_string().contains(&finding.to_string()), "{refused}");

    let exported = workshop.export().salvage(true).run(&mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let told = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["entry"].as_u64().unwrap(), line["location"].as_str().unwrap().to_owned())
    });
    let truths = (0..lie).chain(lie + ENTRIES..BLOCKS as u64 * ENTRIES);
    let truths = truths.map(|number| (number, format!("entry {number:02}"))).collect::<Vec<_>>();
    assert_eq!(told.collect::<Vec<_>>(), truths);
    assert_eq!((exported.entries, exported.left_out), (truths.len() as u64, ENTRIES));
    assert_eq!(exported.findings, report.findings);
}

#[test]
fn a_block_that_was_signed_with_other_times_than_its_entries_have_is_found_and_never_given_out() {
    let signed = |times| signed_as(|_, commitment| (commitment.earliest, commitment.latest) = times);
    for times in [(SECOND, SECOND), (0, 0), (SECOND - 1, SECOND), (SECOND, SECOND + 1)] {
        let (made, true_ones) = (signed(times), times == (SECOND, SECOND));
        let store = || Arc::new(made.image.clone());
        let verify = || Verify::open_store(store()).unwrap().key(made.key.clone());
        // Who cannot decrypt cannot know.
        let public = verify().run().unwrap();
        assert!(public.ok && public.anchored, "{:#?}", public.findings);
        let report = verify().identity(Arc::new(Mask)).run().unwrap();
        let told = report.findings.iter().map(|finding| (finding.kind, finding.entries)).collect::<Vec<_>>();
        let expected = if true_ones { vec![] } else { vec![(FindingKind::UnitsMismatch, Some((0, 0)))] };
        assert_eq!(told, expected, "{times:?}: {:#?}", report.findings);

        let reader = || Reader::open_store(store()).unwrap().identity(Arc::new(Mask));
        let query = Query::new();
        let given = |result: Result<u64>| result.map_err(|error| error.kind());
        let export = Export::open_store(store()).unwrap().identity(Arc::new(Mask));
        let exported = given(export.run(&mut Vec::new()).map(|exported| exported.entries));
        let mut read = 0;
        let answered = reader().for_each(&query, |_, _| {
            read += 1;
            Ok(())
        });
        let read = given(answered.map(|_| read));
        let proven = given(reader().prove(&query).map(|proven| proven.entries));
        let mut followed = 0;
        let following = reader();
        let polled = following.follow(&query).unwrap().poll(|_| {
            followed += 1;
            Ok(())
        });
        let followed = given(polled.map(|_| followed));
        for (how, given) in [("export", exported), ("query", read), ("prove", proven), ("follow", followed)] {
            assert_eq!(given, if true_ones { Ok(1) } else { Err(ErrorKind::Tampered) }, "{how}: {times:?}");
        }
        // Once the block was opened, its times rule it out no more: it may have what was asked for.
        let then = Query::new().from(SECOND * 1_000_000_000).to((SECOND + 1) * 1_000_000_000);
        let export = Export::open_store(store()).unwrap().identity(Arc::new(Mask));
        let salvaged = export.query(then).salvage(true).run(&mut Vec::new()).unwrap();
        assert_eq!(
            (salvaged.entries, salvaged.left_out),
            if true_ones { (1, 0) } else { (0, 1) },
            "{times:?}"
        );
    }
}

/// The frame of the block that [`signed_as`] replaces becomes an event's, of ciphertext.
#[test]
fn an_event_that_is_none_is_listed_as_such_where_the_log_signed_it() {
    for longer in [false, true] {
        let made = signed_as(|text, commitment| {
            text.resize(if longer { 1 << 20 } else { 20 }, b' ');
            let before = commitment.clone();
            *commitment = Commitment {
                kind: FrameKind::Event,
                codec: CODEC_PLAIN,
                content_log2: 0,
                entries: 0,
                units: 0,
                root: Hash::ZERO,
                ..before
            };
        });
        let store = Arc::new(made.image);
        let report = Verify::open_store(store.clone()).unwrap().key(made.key.clone()).run().unwrap();
        let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert!(kinds.contains(&FindingKind::EventInvalid), "{:?}", report.findings);
        let mut told = Vec::new();
        let listed = Reader::open_store(store).unwrap().key(made.key).events(|logged| {
            told.push((logged.is_violation(), logged.event.unwrap_err()));
            Ok(())
        });
        listed.unwrap();
        let (violation, why) = &told[0];
        assert!(*violation && told.len() == 1 && why.contains("longer than any event") == longer, "{told:?}");
    }
}

/// A frame below the checkpoint whose commitment is none is signed, and its bytes are: nothing behind it is told to be unsigned.
#[test]
fn a_commitment_that_is_none_is_told_once_where_it_is_the_last_that_is_signed() {
    let made = signed_as(|_, commitment| commitment.entries = 0);
    let report = Verify::open_store(Arc::new(made.image)).unwrap().key(made.key).run().unwrap();
    let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds, [FindingKind::FrameDamaged], "{:?}", report.findings);
}
