//! A writer that has every key, and lies: what a block holds is not what was signed for it.

use crate::workshop::Workshop;
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::store::Store;
use bulla::{Entry, ErrorKind, FindingKind, Log, Options, Result};
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
