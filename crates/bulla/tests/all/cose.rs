//! The tree head that a log signs as COSE, and receipts of it.

use bulla::proof::ProofFile;
use bulla::{Entry, ErrorKind, Init, Log, Options, Query, Reader, VerifierKey, Verify};
use bulla_proof::{Checkpoint, CoseCheckpoint, SignedNote};
use std::fs;
use std::path::PathBuf;

struct World {
    place: tempfile::TempDir,
    key: VerifierKey,
}

impl World {
    fn new() -> World {
        let place = tempfile::tempdir().unwrap();
        let key = Init::default().create(place.path().join("audit")).unwrap().verifier_key;
        World { place, key }
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("audit")
    }

    fn cose(&self) -> PathBuf {
        self.directory().join("checkpoint.cose")
    }

    fn append(&self) {
        let log = Log::open(self.directory(), Options::default()).unwrap();
        let mut producer = log.producer().unwrap();
        producer.append(&Entry::new("read", "user_42/email").subject("user_42")).unwrap();
        drop(producer);
        log.close().unwrap();
    }

    fn checkpoint(&self) -> Checkpoint {
        let note = fs::read(self.directory().join("checkpoint")).unwrap();
        Checkpoint::parse(SignedNote::parse(&note).unwrap().text).unwrap()
    }

    /// Both files are of one tree, and the log signed both.
    fn is_current(&self) {
        let read = CoseCheckpoint::parse(&fs::read(self.cose()).unwrap()).unwrap();
        read.verify(&self.key).unwrap();
        let checkpoint = self.checkpoint();
        assert_eq!((read.size(), read.root()), (checkpoint.size, checkpoint.root));
    }

    fn findings(&self) -> Vec<&'static str> {
        let report = Verify::open(self.directory()).unwrap().key(self.key.clone()).run().unwrap();
        report.findings.iter().map(|finding| finding.kind.name()).collect()
    }

    fn prove(&self) -> bulla::Result<Vec<u8>> {
        let keys = bulla::default_keys(&self.directory());
        let reader = Reader::open_with_keys(self.directory(), keys)?.key(self.key.clone());
        Ok(reader.prove_as_receipt(&Query::new().subject("user_42"))?.file)
    }
}

#[test]
fn each_published_root_is_signed_as_cose() {
    let world = World::new();
    world.is_current();
    for entries in 1..4 {
        world.append();
        world.is_current();
        let file = world.prove().unwrap();
        let file = ProofFile::parse(&file).unwrap();
        let checked = file.verify_entries(Some(&world.key)).unwrap();
        assert_eq!((checked.entry_count(), checked.tree_size()), (entries, world.checkpoint().size));
    }
    assert!(world.findings().is_empty());
}

/// What a crash between both files leaves, an older release, or a copy that was made beside a writer.
#[test]
fn a_head_that_is_missing_or_of_another_tree_is_no_finding_and_is_made_again() {
    let world = World::new();
    world.append();
    let early = [fs::read(world.cose()).unwrap(), fs::read(world.directory().join("checkpoint")).unwrap()];
    world.append();
    let late = fs::read(world.cose()).unwrap();
    for stale in [None, Some(&early[0])] {
        match stale {
            Some(bytes) => fs::write(world.cose(), bytes).unwrap(),
            None => fs::remove_file(world.cose()).unwrap(),
        }
        assert!(world.findings().is_empty());
        let refused = world.prove().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(refused.to_string().contains("checkpoint.cose is not of the newest checkpoint"), "{refused}");
        world.append();
        world.is_current();
        world.prove().unwrap();
    }
    // Ahead of its checkpoint, as a copy may have it.
    let copy = World::new();
    fs::remove_dir_all(copy.directory()).unwrap();
    let copied =
        std::process::Command::new("cp").arg("-a").args([world.directory(), copy.directory()]).status();
    assert!(copied.unwrap().success());
    fs::write(copy.directory().join("checkpoint"), &early[1]).unwrap();
    fs::write(copy.cose(), late).unwrap();
    let report = Verify::open(copy.directory()).unwrap().key(world.key.clone()).run().unwrap();
    assert!(report.ok, "{:?}", report.findings);
}

#[test]
fn a_head_that_is_none_of_this_log_is_a_violation_and_no_receipt_is_made() {
    let world = World::new();
    world.append();
    let sound = fs::read(world.cose()).unwrap();
    let other = World::new();
    other.append();
    let mut altered = sound.clone();
    *altered.last_mut().unwrap() ^= 1;
    for wrong in [altered, sound[..sound.len() - 1].to_vec(), fs::read(other.cose()).unwrap(), vec![]] {
        fs::write(world.cose(), wrong).unwrap();
        assert_eq!(world.findings(), ["cose-mismatch"]);
        assert_eq!(world.prove().unwrap_err().kind(), ErrorKind::Tampered);
    }
    // The next publication takes its place.
    world.append();
    world.is_current();
    assert!(world.findings().is_empty());
    // What is no file is no head either.
    let kept = world.directory().join("kept");
    fs::rename(world.cose(), &kept).unwrap();
    std::os::unix::fs::symlink(&kept, world.cose()).unwrap();
    assert!(world.findings().contains(&"cose-mismatch"), "a link");
    fs::remove_file(world.cose()).unwrap();
    fs::create_dir(world.cose()).unwrap();
    assert!(world.findings().contains(&"cose-mismatch"), "a directory");
}
