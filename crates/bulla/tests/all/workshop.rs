//! What several of these tests share: a log in memory whose medium can be stopped, and which tells what it holds.

mod gate;
mod watched;

pub(crate) use gate::Gate;
pub(crate) use watched::{Operation, Watch, Watched};

use crate::register::ByName;
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::keys::group::Subjects;
use bulla::keys::recipients::IdentityFile;
use bulla::store::Store;
use bulla::{Export, Init, Log, Options, Result, VerifierKey, Verify};
use bulla_columns::{Decoder, Rows};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::tile::{entries_path, parse_bundle};
use bulla_testkit::Memory;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A log in memory.
pub(crate) struct Workshop {
    pub(crate) store: Memory,
    keys: Memory,
    verifier_key: VerifierKey,
    pub(crate) gate: Arc<Gate>,
    sealed: Arc<Recorder>,
    /// Of a log with erasure.
    subjects: Option<Arc<dyn Subjects>>,
}

impl Workshop {
    /// An empty log.
    pub(crate) fn new() -> Self {
        Self::with_rules(&[])
    }

    /// An empty log with rules for fields.
    pub(crate) fn with_rules(rules: &[(&str, &str)]) -> Self {
        Self::make(rules, None)
    }

    /// An empty log with erasure.
    pub(crate) fn with_erasure() -> Self {
        Self::make(&[], Some(Arc::new(ByName)))
    }

    fn make(rules: &[(&str, &str)], subjects: Option<Arc<dyn Subjects>>) -> Self {
        let (store, keys) = (Memory::new(), Memory::new());
        let init = Init::default().erasure(subjects.is_some());
        let init = rules.iter().fold(init, |init, (field, rule)| init.field(*field, *rule));
        let environment = Environment { subjects: subjects.clone(), ..Environment::default() };
        let verifier_key = init.create_in(&store, &keys, &environment).unwrap().verifier_key;
        Workshop { store, keys, verifier_key, gate: Arc::default(), sealed: Arc::default(), subjects }
    }

    pub(crate) fn open(&self, options: Options) -> Log {
        let (store, _) = self.watched(self.gate.clone());
        let (cipher, subjects) = (self.sealed.clone(), self.subjects.clone());
        let environment = Environment { cipher, subjects, ..Environment::default() };
        Log::open_stores(store, Arc::new(self.keys.clone()), options, environment).unwrap()
    }

    /// The log's store and its keys', watched.
    pub(crate) fn watched(&self, watch: Arc<dyn Watch>) -> (Arc<dyn Store>, Arc<dyn Store>) {
        let keys = Watched { store: Arc::new(self.keys.clone()), watch: watch.clone() };
        (Arc::new(Watched { store: Arc::new(self.store.clone()), watch }), Arc::new(keys))
    }

    /// A verification with every key that there is, but the identity.
    pub(crate) fn verify(&self) -> Verify {
        let verify = Verify::open_store(Arc::new(self.store.clone())).unwrap();
        let seal_key = String::from_utf8(read(&self.keys, "seal.key")).unwrap();
        verify.key(self.verifier_key.clone()).seal_key(&seal_key).unwrap()
    }

    /// An export with the identity.
    pub(crate) fn export(&self) -> Export {
        let export = Export::open_store(Arc::new(self.store.clone())).unwrap();
        export.key(self.verifier_key.clone()).identity(self.identity())
    }

    pub(crate) fn identity(&self) -> Arc<IdentityFile> {
        let text = String::from_utf8(read(&self.keys, "identity.age")).unwrap();
        Arc::new(IdentityFile::parse(&text).unwrap())
    }

    /// The frames that the checkpoint covers.
    pub(crate) fn frames(&self) -> Vec<Commitment> {
        let checkpoint = String::from_utf8(read(&self.store, "checkpoint")).unwrap();
        let size = checkpoint.lines().nth(1).unwrap().parse::<u64>().unwrap();
        let mut frames = Vec::new();
        while (frames.len() as u64) < size {
            let (index, left) = (frames.len() as u64 / 256, size - frames.len() as u64);
            let width = left.min(256) as u16;
            let bundle = read(&self.store, &entries_path(index, width));
            let bundle = parse_bundle(&bundle, width).unwrap();
            frames.extend(bundle.into_iter().map(|bytes| Commitment::decode(bytes).unwrap()));
        }
        frames
    }

    /// The times of the entries that the checkpoint covers, by their numbers, which are dense.
    pub(crate) fn entries(&self) -> Vec<i64> {
        let sealed = self.sealed.times.lock().unwrap();
        let mut times = Vec::new();
        for frame in self.frames() {
            assert_eq!(frame.first_entry, times.len() as u64, "frame {}", frame.frame);
            assert_ne!(frame.kind, FrameKind::Gap);
            if frame.kind == FrameKind::Block {
                times.extend(&sealed[&frame.frame]);
            }
            assert_eq!(frame.first_entry + frame.entries, times.len() as u64, "frame {}", frame.frame);
        }
        times
    }
}

fn read(store: &Memory, path: &str) -> Vec<u8> {
    let file = store.open(path).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// AES-GCM that remembers the times of the entries that it encrypts, by frame.
#[derive(Default)]
struct Recorder {
    times: Mutex<BTreeMap<u64, Vec<i64>>>,
}

impl Cipher for Recorder {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        if additional.is_empty() {
            // A group of a block that is still to come.
            return AesGcm.seal(key, frame, additional, text);
        }
        // The additional data is the commitment without the digest that ends it.
        let mut commitment = additional.to_vec();
        commitment.resize(Commitment::LENGTH, 0);
        let Ok(commitment) = Commitment::decode(&commitment) else {
            let known = [&b"BulI"[..], b"bullaSR1"].iter().any(|magic| additional.starts_with(magic));
            assert!(known, "what is no block is a part of the index, or what is kept of sources");
            return AesGcm.seal(key, frame, additional, text);
        };
        if commitment.sources_length > 0 && self.times.lock().unwrap().contains_key(&frame) {
            // What the block says of sources, behind its body.
            return AesGcm.seal(key, frame, additional, text);
        }
        let mut rows = Rows::default();
        let limit = 1 << commitment.content_log2;
        Decoder::new().decode(text, commitment.entries as usize, limit, &mut rows).unwrap();
        let times = (0..rows.len()).map(|index| rows.entry(index).unwrap().time.unwrap()).collect();
        self.times.lock().unwrap().insert(frame, times);
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}
