//! Proofs whose groups are opened: known answers, logs that lied, and claims that are bounded in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulla::environment::apply_key_stream;
use bulla::{ErrorKind, Opened, open_proof};
use bulla_proof::commitment::{CODEC_COLUMNS, Commitment, FrameKind, LogId, MAX_CONTENT_LOG2};
use bulla_proof::entry::{Field, MAX_ROW, MAX_STRING};
use bulla_proof::proof::{DisclosedEntry, DisclosedFrame, DisclosedGroup, DisclosedUnit, Proof, UnitContent};
use bulla_proof::unit::group_unit;
use bulla_proof::{
    Checkpoint, Entry, GroupSecret, Hash, HashId, VerifierKey, block_root, sha256, sign_checkpoint, varint,
};
use bulla_testkit::allocator::most_held_here;
use serde_json::{Value, json};

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/proof/groups.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn encode(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(0, &mut row);
    row
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn each<'a>(vectors: &'a Value, list: &str) -> impl Iterator<Item = (&'a Value, Proof, VerifierKey)> {
    let key: VerifierKey = vectors["vkey"].as_str().unwrap().parse().unwrap();
    let list = vectors[list].as_array().unwrap();
    assert!(!list.is_empty());
    list.iter().map(move |vector| {
        let proof = Proof::parse(vector["file"].as_str().unwrap().as_bytes()).unwrap();
        (vector, proof, key.clone())
    })
}

#[test]
fn groups_open_as_the_vectors_say() {
    let vectors = vectors();
    for (vector, proof, key) in each(&vectors, "proofs") {
        let mut entries = Vec::new();
        let opened = open_proof(&proof.verify(Some(&key)).unwrap(), |disclosed| {
            entries.push(json!([disclosed.number, hex(&encode(&disclosed.entry)), disclosed.withheld]));
            Ok(())
        });
        let withheld = entries.iter().filter(|entry| entry[2] == true).count() as u64;
        assert_eq!(opened.unwrap(), Opened { entries: entries.len() as u64, withheld });
        assert_eq!(json!(entries), vector["opened"], "{}", vector["name"]);
    }
}

#[test]
fn what_a_log_committed_to_and_does_not_open_is_told() {
    let vectors = vectors();
    for (vector, proof, key) in each(&vectors, "unopened") {
        let mut given = 0;
        let opened = open_proof(&proof.verify(Some(&key)).unwrap(), |_| {
            given += 1;
            Ok(())
        });
        let error = opened.expect_err(vector["name"].as_str().unwrap());
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        assert!(error.to_string().starts_with("frame 1"), "{error}");
        assert_eq!(given, 0);
    }
}

/// A block of groups of so many entries each, in turn: each entry with one location, which the ciphertext has once.
fn constant(sizes: &[usize], location: &[u8], content_log2: u8) -> Proof {
    prove(groups(sizes, location), content_log2)
}

fn groups(sizes: &[usize], location: &[u8]) -> Vec<DisclosedGroup> {
    let mut text = vec![0, 1, 0];
    varint::push(location.len() as u64, &mut text);
    text.push(0);
    text.extend_from_slice(location);
    // No subject at all.
    text.push(0);
    let row = encode(&Entry { operation: "x", time: Some(0), ..Entry::default() });
    let group = |(number, &size): (u64, &usize)| {
        let secret = GroupSecret::new([number as u8; 32]);
        let (key, mut ciphertext) = (secret.key(), text.clone());
        apply_key_stream(&key.key, &mut ciphertext);
        let numbers = (0..size as u64).map(|entry| number + entry * sizes.len() as u64);
        DisclosedGroup {
            personal: Field::Location.bit() | Field::Subject.bit(),
            entries: numbers.map(|number| DisclosedEntry { number, row: row.clone() }).collect(),
            subjects: vec![number],
            ciphertext,
            commitment: key.commitment,
            secret: Some(secret),
        }
    };
    (0..).zip(sizes).map(group).collect()
}

/// The proof of all groups of a block.
fn prove(groups: Vec<DisclosedGroup>, content_log2: u8) -> Proof {
    let unit = |group: &DisclosedGroup| {
        let hashed = group.entries.iter().map(|entry| (entry.number, &entry.row[..]));
        group_unit(HashId::Sha256, &[0; 16], hashed, &group.content(), &mut Vec::new())
    };
    let hashes = groups.iter().map(unit).collect::<Vec<_>>();
    let last = groups.iter().flat_map(|group| &group.entries).map(|entry| entry.number).max().unwrap();
    let commitment = Commitment {
        kind: FrameKind::Block,
        codec: CODEC_COLUMNS,
        hash: HashId::Sha256,
        content_log2,
        sources_length: 0,
        log_id: LogId([9; 16]),
        frame: 1,
        first_entry: 0,
        entries: last + 1,
        earliest: 0,
        latest: 0,
        epoch: 0,
        units: groups.len() as u64,
        root: block_root(HashId::Sha256, &mut hashes.clone(), 0),
        body_length: 1000,
        body_digest: Hash::ZERO,
    };
    let other = sha256(&[b"epoch"]);
    let root = bulla_proof::tree::node_hash(&other, &commitment.leaf());
    let key = VerifierKey::new("x", [1; 32]).unwrap();
    let note = sign_checkpoint(&Checkpoint::new("x", 2, root), &key, |_| [0; 64]);
    let units = (0..).zip(groups).map(|(position, group)| DisclosedUnit {
        position,
        salt: [0; 16],
        content: UnitContent::Group(Box::new(group)),
    });
    let frame = DisclosedFrame::new(commitment, &hashes, units.collect(), vec![]).unwrap();
    Proof::new(note.as_bytes(), vec![other], vec![frame]).unwrap()
}

/// Opens, and tells how many bytes were held and how many times the file's length those are.
fn open(proof: &Proof) -> (bulla::Result<Opened>, usize) {
    let checked = proof.verify(None).unwrap();
    most_held_here(|| {
        open_proof(&checked, |disclosed| {
            assert!(disclosed.entry.location.is_some() && !disclosed.withheld);
            Ok(())
        })
    })
}

#[test]
fn a_block_holds_no_more_than_it_declared() {
    // Of each entry 12 bytes that are shared, 4, and a length and a location.
    let each = 12 + 4 + 1 + 100;
    let fits = 1024 / each;
    assert_eq!(fits, 8);
    for (fitting, more) in [(&[8][..], &[9][..]), (&[4, 4], &[5, 4]), (&[1, 1, 2, 4], &[1, 2, 2, 4])] {
        let opened = open(&constant(fitting, &[b'x'; 100], 10)).0.unwrap();
        assert_eq!(opened, Opened { entries: 8, withheld: 0 });
        let error = open(&constant(more, &[b'x'; 100], 10)).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered);
        assert!(error.to_string().contains("content limit"), "{error}");
    }
}

/// An entry without personal fields takes nothing of what its group holds.
#[test]
fn rows_of_a_file_are_held_against_what_their_block_declared_where_a_group_is_opened() {
    // Each takes 12 bytes, and 4: 64 of them are all that there may be, and one byte is too many.
    for (operation, fits) in [("x", true), ("xy", false)] {
        let mut groups = groups(&[64], b"");
        groups[0].entries[63].row = encode(&Entry { operation, time: Some(0), ..Entry::default() });
        let secret = groups[0].secret.clone().unwrap();
        groups[0].ciphertext = vec![0, 0, 0];
        apply_key_stream(&secret.key().key, &mut groups[0].ciphertext);
        let opened = open_proof(&prove(groups.clone(), 10).verify(None).unwrap(), |_| Ok(()));
        assert_eq!(opened.is_ok(), fits, "{opened:?}");
        // Where none is opened, nobody looks.
        groups[0].secret = None;
        let opened = open_proof(&prove(groups, 10).verify(None).unwrap(), |_| Ok(())).unwrap();
        assert_eq!(opened, Opened { entries: 64, withheld: 64 });
    }
}

#[test]
fn a_file_holds_no_more_than_its_length_is_trusted_with() {
    let longest = vec![b'x'; MAX_STRING];
    // The longest location in 500 entries is 31 MiB, of a file of 100 KiB: 25 MiB are.
    let huge = constant(&[500], &longest, MAX_CONTENT_LOG2);
    let length = huge.render().len();
    let (refused, held) = open(&huge);
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains(&format!("more than {} bytes", 256 * length)), "{error}");
    assert!(held < 12 * length, "{held} bytes for a file of {length}");
    // What is trusted is opened, and held a few times at most.
    let fits = constant(&[350], &longest, MAX_CONTENT_LOG2);
    let length = fits.render().len();
    let (opened, held) = open(&fits);
    assert_eq!(opened.unwrap().entries, 350);
    assert!(held > 350 * MAX_STRING, "nothing was weighed: {held}");
    assert!(held < 4 * 256 * length, "{held} bytes for a file of {length}");
    // All groups count together: 19 MiB and 30 MiB, of files of less than 100 KiB.
    let longer = &longest[..24 << 10];
    assert!(open(&constant(&[700, 100], longer, MAX_CONTENT_LOG2)).0.is_ok());
    let error = open(&constant(&[700, 580], longer, MAX_CONTENT_LOG2)).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    // However short the file, an entry may be as long as entries get.
    let short = constant(&[MAX_ROW / (MAX_STRING + 20)], &longest, MAX_CONTENT_LOG2);
    assert!(open(&short).0.is_ok());
}

#[test]
fn an_error_of_the_receiver_ends_it() {
    let proof = constant(&[5], b"here", 20);
    let mut given = 0;
    let opened = open_proof(&proof.verify(None).unwrap(), |_| {
        given += 1;
        Err(bulla::Error::io("writing", std::io::Error::other("full")))
    });
    assert_eq!((opened.unwrap_err().kind(), given), (ErrorKind::Unavailable, 1));
}

/// The file of a proof in which one secret stands in the place of another.
fn with_secret(file: &str, secret: &GroupSecret, other: &GroupSecret) -> String {
    let mut replaced = 0;
    let mut word = |word: &str| {
        let Some(mut bytes) = STANDARD.decode(word).ok().filter(|bytes| bytes.len() > 32) else {
            return word.to_owned();
        };
        let at = bytes.windows(32).rposition(|window| window == secret.as_bytes());
        let Some(at) = at else { return word.to_owned() };
        bytes[at..at + 32].copy_from_slice(other.as_bytes());
        replaced += 1;
        STANDARD.encode(bytes)
    };
    let line = |line: &str| line.split(' ').map(&mut word).collect::<Vec<_>>().join(" ") + "\n";
    let file = file.lines().map(line).collect::<String>();
    assert_eq!(replaced, 1);
    file
}

/// The ciphertext opens under the secret that is disclosed, as it should; the group commits to another.
#[test]
fn a_secret_that_is_not_committed_to_is_refused_though_what_it_opens_has_sense() {
    let other = GroupSecret::new([77; 32]);
    let mut groups = groups(&[2, 3], b"here");
    let own = groups[1].secret.clone().unwrap();
    // From under its own key to under the other one.
    for secret in [&own, &other] {
        apply_key_stream(&secret.key().key, &mut groups[1].ciphertext);
    }
    let file = prove(groups.clone(), 20).render();
    // It is what would have opened, had the group committed to it.
    groups[1].commitment = other.key().commitment;
    groups[1].secret = Some(other.clone());
    let truth = prove(groups, 20);
    assert_eq!(open_proof(&truth.verify(None).unwrap(), |_| Ok(())).unwrap().entries, 5);

    let proof = Proof::parse(file.as_bytes()).unwrap();
    let error = open_proof(&proof.verify(None).unwrap(), |_| Ok(())).unwrap_err();
    assert!(error.kind() == ErrorKind::Tampered && error.to_string().contains("does not decode"), "{error}");
    let lied = with_secret(&file, &own, &other);
    let refused = Proof::parse(lied.as_bytes()).and_then(|proof| proof.verify(None).map(drop)).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("is not the one that the group commits to"), "{refused}");
    assert!(refused.contains("frame 1"), "{refused}");
}
