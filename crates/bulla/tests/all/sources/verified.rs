//! Whoever verifies with the key of sources is told of what no follower goes on from.

use super::*;
use bulla_proof::hash::sha256;
use std::collections::BTreeSet;

/// AES-GCM that seals another text in the place of the section of the source `id(1)`, with its label.
struct Spoiling(fn(&mut Vec<u8>));

impl Cipher for Spoiling {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        if frame > 0 && text.get(1..17) == Some(&id(1).0) {
            (self.0)(text);
        }
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// A log with a block of a source, sealed by this cipher.
fn sealed_by(cipher: impl Cipher + 'static) -> Faults {
    let machine = made(false);
    let environment = Environment { cipher: Arc::new(cipher), ..Environment::default() };
    let log = open_in(&machine, options(), environment).unwrap();
    let source = log.source(id(1), b"label").unwrap();
    append(&mut log.producer().unwrap(), &source, 1, 0, 10).unwrap();
    log.close().unwrap();
    machine
}

fn found(machine: &Faults, with_key: bool) -> BTreeSet<FindingKind> {
    let mut verify = Verify::open_store(Arc::new(machine.store("audit"))).unwrap();
    if with_key {
        verify = verify.sources_key(&machine.store("audit.keys")).unwrap();
    }
    verify.run().unwrap().findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_section_that_is_none_is_found() {
    let sound = sealed_by(Spoiling(|_| ()));
    assert_eq!(found(&sound, true), BTreeSet::new());
    assert_eq!(held(&read(&sound).unwrap())[&id(1)], [(0, 10, check(1, 10))]);
    let changes: [fn(&mut Vec<u8>); 5] = [
        |text| text[0] = 0,
        |text| text[0] = 2,
        // Its range is empty; it has ended, and has a label; what follows it is no padding.
        |text| text[25] = 0,
        |text| text[23] = 0,
        |text| *text.last_mut().unwrap() = 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let machine = sealed_by(Spoiling(change));
        assert_eq!(found(&machine, true), BTreeSet::from([FindingKind::SourcesDamaged]), "{number}");
        assert_eq!(found(&machine, false), BTreeSet::new(), "{number}: for the others it is bytes");
        let refused = read(&without_state(&machine)).unwrap_err();
        assert!(refused.to_string().contains("is malformed"), "{number}: {refused}");
    }
}

#[test]
fn a_key_that_opens_no_section_is_found() {
    let machine = sealed_by(AesGcm);
    let text = String::from_utf8(machine.read("audit.keys/sources.key").unwrap()).unwrap();
    let words = text.trim().split(' ').collect::<Vec<_>>();
    let other = format!("{} {} {}=", words[0], words[1], "A".repeat(43));
    let check = sha256(&[other.as_bytes()]).to_string()[..8].to_owned();
    machine.overwrite("audit.keys/sources.key", format!("{other} {check}\n").as_bytes());
    assert_eq!(found(&machine, true), BTreeSet::from([FindingKind::SourcesDamaged]));
    assert_eq!(found(&machine, false), BTreeSet::new());
    let refused = read(&machine).unwrap_err();
    assert!(refused.to_string().contains("run `bulla verify`"), "{refused}");

    let foreign = sealed_by(AesGcm).read("audit.keys/sources.key").unwrap();
    machine.overwrite("audit.keys/sources.key", &foreign);
    assert_eq!(found(&machine, true), BTreeSet::from([FindingKind::KeyMismatch]));
    machine.remove_file("audit.keys/sources.key");
    let verify = Verify::open_store(Arc::new(machine.store("audit"))).unwrap();
    assert!(!verify.sources_key(&machine.store("audit.keys")).unwrap().checks_sources());
}
