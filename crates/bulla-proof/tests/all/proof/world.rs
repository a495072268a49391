//! Small logs, whose every frame and unit the tests know.

use bulla_proof::commitment::{CODEC_COLUMNS, CODEC_PLAIN, Commitment, FrameKind, LogId, whole_second};
use bulla_proof::entry::{Field, RawRow};
use bulla_proof::tree::LogNodes;
use bulla_proof::unit::group_unit;
use bulla_proof::{
    Checkpoint, ConsistencyProof, CoseCheckpoint, DisclosedEntry, DisclosedFrame, DisclosedGroup,
    DisclosedUnit, Entry, EventProof, GroupSecret, Hash, HashId, Proof, Receipt, UnitContent, VerifierKey,
    block_root, consistency, multiproof, row_unit, sha256, sign_checkpoint,
};
use ed25519_dalek::{Signer as _, SigningKey};

pub(crate) const ORIGIN: &str = "example.com/log";

pub(crate) struct Frame {
    pub(crate) commitment: Commitment,
    pub(crate) units: Vec<DisclosedUnit>,
    pub(crate) hashes: Vec<Hash>,
}

pub(crate) struct World {
    pub(crate) frames: Vec<Frame>,
    pub(crate) leaves: Vec<Hash>,
    pub(crate) key: VerifierKey,
    secret: SigningKey,
}

impl World {
    /// A log of an epoch, and then of frames of so many entries: a block each, or an event where there is none.
    pub(crate) fn new(hash: HashId, blocks: &[u64]) -> World {
        World::with_rows(hash, blocks, row)
    }

    pub(crate) fn with_rows(hash: HashId, blocks: &[u64], row: impl Fn(u64) -> Vec<u8>) -> World {
        World::with_groups(hash, blocks, row, |_| None)
    }

    /// The same, with entries in the groups that `group` names, of the block that they are in.
    pub(crate) fn with_groups(
        hash: HashId,
        blocks: &[u64],
        row: impl Fn(u64) -> Vec<u8>,
        group: impl Fn(u64) -> Option<u64>,
    ) -> World {
        let mut frames = Vec::new();
        let mut first = 0;
        for (number, &entries) in [0].iter().chain(blocks).enumerate() {
            let units = units(number as u64, first..first + entries, &row, &group);
            frames.push(frame(hash, number as u64, first, entries, units));
            first += entries;
        }
        let secret = SigningKey::from_bytes(&[7; 32]);
        let key = VerifierKey::new(ORIGIN, secret.verifying_key().to_bytes()).unwrap();
        World { leaves: frames.iter().map(|frame| frame.commitment.leaf()).collect(), frames, key, secret }
    }

    pub(crate) fn checkpoint(&self, size: usize) -> Checkpoint {
        Checkpoint::new(ORIGIN, size as u64, crate::tree::recursive_root(&self.leaves[..size]))
    }

    pub(crate) fn sign(&self, checkpoint: &Checkpoint) -> String {
        sign_checkpoint(checkpoint, &self.key, |text| self.secret.sign(text).to_bytes())
    }

    pub(crate) fn note(&self, size: usize) -> String {
        self.sign(&self.checkpoint(size))
    }

    /// What is disclosed of a frame: the units at `positions`.
    pub(crate) fn disclosed(&self, frame: usize, positions: &[usize]) -> DisclosedFrame {
        let Frame { commitment, units, hashes } = &self.frames[frame];
        let units = positions.iter().map(|&position| units[position].clone()).collect();
        DisclosedFrame::new(commitment.clone(), hashes, units, vec![]).unwrap()
    }

    pub(crate) fn tree_nodes(&self, frames: &[usize]) -> Vec<Hash> {
        let frames: Vec<u64> = frames.iter().map(|&frame| frame as u64).collect();
        multiproof::prove(&self.leaves, &frames, &LogNodes).unwrap()
    }

    /// The proof of some units of some frames in the whole log.
    pub(crate) fn proof(&self, chosen: &[(usize, &[usize])]) -> Proof {
        let frames = chosen.iter().map(|(frame, positions)| self.disclosed(*frame, positions)).collect();
        let numbers: Vec<usize> = chosen.iter().map(|(frame, _)| *frame).collect();
        Proof::new(self.note(self.leaves.len()).as_bytes(), self.tree_nodes(&numbers), frames).unwrap()
    }

    /// The head of the tree over the first `size` frames, signed as COSE.
    pub(crate) fn cose(&self, size: usize) -> CoseCheckpoint {
        CoseCheckpoint::sign(&self.checkpoint(size), &self.key, |bytes| self.secret.sign(bytes).to_bytes())
    }

    /// As [`World::proof`], as a receipt.
    pub(crate) fn receipt(&self, chosen: &[(usize, &[usize])]) -> Receipt {
        let frames = chosen.iter().map(|(frame, at)| self.disclosed(*frame, at)).collect();
        Receipt::new(&self.cose(self.leaves.len()), &self.leaves, frames).unwrap()
    }

    /// Another key under the name of the log's.
    pub(crate) fn other(&self) -> VerifierKey {
        let secret = SigningKey::from_bytes(&[9; 32]);
        VerifierKey::new(self.key.name(), secret.verifying_key().to_bytes()).unwrap()
    }

    /// The proof of the event in a frame.
    pub(crate) fn event(&self, frame: usize) -> EventProof {
        let commitment = self.frames[frame].commitment.clone();
        let note = self.note(self.leaves.len());
        EventProof::new(note.as_bytes(), self.tree_nodes(&[frame]), commitment, body(frame as u64)).unwrap()
    }

    pub(crate) fn growth(&self, old: usize, new: usize) -> ConsistencyProof {
        let nodes = consistency::prove_consistency(&self.leaves[..new], old as u64).unwrap();
        ConsistencyProof::new(self.note(old).as_bytes(), self.note(new).as_bytes(), nodes).unwrap()
    }
}

/// A line that somebody else's key has signed, as a witness would.
pub(crate) const WITNESS: &str = "\u{2014} witness.example AAAAAAEC\n";

pub(crate) fn row(entry: u64) -> Vec<u8> {
    let location = format!("user_{entry}/email");
    encode(&Entry::new("read", &location).time(1_700_000_000_000_000_000 + entry.cast_signed()))
}

/// Two in three entries are in one of two groups.
pub(crate) fn mixed(entry: u64) -> Option<u64> {
    (!entry.is_multiple_of(3)).then_some(entry / 2 % 2)
}

pub(crate) fn encode(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(0, &mut row);
    row
}

/// The personal fields of all groups.
pub(crate) const PERSONAL: u16 = Field::Location.bit() | Field::Subject.bit();

/// The entry of a unit that is a row.
pub(crate) fn entry(unit: &DisclosedUnit) -> &DisclosedEntry {
    assert!(unit.group().is_none());
    &unit.entries()[0]
}

pub(crate) fn entry_mut(unit: &mut DisclosedUnit) -> &mut DisclosedEntry {
    let UnitContent::Row(entry) = &mut unit.content else { panic!("a group") };
    entry
}

pub(crate) fn group_mut(unit: &mut DisclosedUnit) -> &mut DisclosedGroup {
    let UnitContent::Group(group) = &mut unit.content else { panic!("a row") };
    group
}

fn units(
    frame: u64,
    numbers: std::ops::Range<u64>,
    row: impl Fn(u64) -> Vec<u8>,
    group: impl Fn(u64) -> Option<u64>,
) -> Vec<DisclosedUnit> {
    let mut units = Vec::<DisclosedUnit>::new();
    let mut names = Vec::new();
    for number in numbers {
        let name = group(number);
        let mut entry = DisclosedEntry { number, row: row(number) };
        let content = match name {
            None => UnitContent::Row(entry),
            Some(name) => {
                let mut shared = Vec::new();
                RawRow::parse(&entry.row).unwrap().write(!PERSONAL, &mut shared);
                entry.row = shared;
                if let Some(at) = names.iter().position(|known| *known == Some(name)) {
                    group_mut(&mut units[at]).entries.push(entry);
                    continue;
                }
                UnitContent::Group(Box::new(some_group(frame, name, entry)))
            }
        };
        let position = units.len() as u64;
        let digest = sha256(&[b"salt", &frame.to_le_bytes(), &position.to_le_bytes()]);
        units.push(DisclosedUnit { position, salt: digest.0[..16].try_into().unwrap(), content });
        names.push(name);
    }
    units
}

/// A group whose ciphertext is none: nothing here could decrypt it.
fn some_group(frame: u64, name: u64, first: DisclosedEntry) -> DisclosedGroup {
    let secret = GroupSecret::new(sha256(&[b"secret", &frame.to_le_bytes(), &name.to_le_bytes()]).0);
    DisclosedGroup {
        personal: PERSONAL,
        entries: vec![first],
        subjects: vec![name, name + 300],
        ciphertext: vec![name.to_le_bytes()[0]; 40],
        commitment: secret.key().commitment,
        secret: Some(secret),
    }
}

/// The unit in a block of which that is the first entry.
pub(crate) fn hash_of(hash: HashId, first: u64, unit: &DisclosedUnit) -> Hash {
    match &unit.content {
        UnitContent::Row(entry) => row_unit(hash, &unit.salt, entry.number - first, &entry.row),
        UnitContent::Group(group) => {
            let entries = group.entries.iter().map(|entry| (entry.number - first, &entry.row[..]));
            group_unit(hash, &unit.salt, entries, &group.content(), &mut Vec::new())
        }
    }
}

/// What is the body of a frame, where that matters.
pub(crate) fn body(frame: u64) -> Vec<u8> {
    format!("{{\"event\":\"exported\",\"entries\":{frame},\"filters\":[],\"format\":\"jsonl\"}}").into_bytes()
}

fn frame(hash: HashId, number: u64, first: u64, entries: u64, units: Vec<DisclosedUnit>) -> Frame {
    let hashes: Vec<Hash> = units.iter().map(|unit| hash_of(hash, first, unit)).collect();
    let block = entries > 0;
    let times = units.iter().flat_map(DisclosedUnit::entries);
    let times = times.map(|entry| whole_second(RawRow::parse(&entry.row).unwrap().time)).collect::<Vec<_>>();
    let commitment = Commitment {
        kind: match (number, block) {
            (0, _) => FrameKind::Epoch,
            (_, true) => FrameKind::Block,
            (_, false) => FrameKind::Event,
        },
        codec: if block { CODEC_COLUMNS } else { CODEC_PLAIN },
        hash,
        content_log2: if block { 24 } else { 0 },
        sources_length: 0,
        log_id: LogId([9; 16]),
        frame: number,
        first_entry: first,
        entries,
        earliest: times.iter().copied().min().unwrap_or(1_700_000_000),
        latest: times.iter().copied().max().unwrap_or(1_700_000_000),
        epoch: 0,
        units: units.len() as u64,
        root: if block { block_root(hash, &mut hashes.clone(), 0) } else { Hash::ZERO },
        body_length: 1000,
        body_digest: sha256(&[&body(number)]),
    };
    Frame { commitment, units, hashes }
}
