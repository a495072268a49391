//! What several of these tests share: a log in memory whose medium can be stopped, and which tells what it holds.

mod gate;

pub(crate) use gate::Gate;

use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::seal::columns::{Decoder, Rows};
use bulla::store::{Memory, Store};
use bulla::{Init, Log, Options, Result};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::tile::{entries_path, parse_bundle};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A log in memory.
pub(crate) struct Workshop {
    store: Memory,
    keys: Memory,
    pub(crate) gate: Arc<Gate>,
    sealed: Arc<Recorder>,
}

impl Workshop {
    /// An empty log.
    pub(crate) fn new() -> Self {
        let (store, keys) = (Memory::new(), Memory::new());
        Init::default().create_in(&store, &keys, &Environment::default()).unwrap();
        Workshop { store, keys, gate: Arc::default(), sealed: Arc::default() }
    }

    pub(crate) fn open(&self, options: Options) -> Log {
        let store = Arc::new(gate::Gated { store: self.store.clone(), gate: self.gate.clone() });
        let environment = Environment { cipher: self.sealed.clone(), ..Environment::default() };
        Log::open_stores(store, Arc::new(self.keys.clone()), options, environment).unwrap()
    }

    /// The frames that the checkpoint covers.
    pub(crate) fn frames(&self) -> Vec<Commitment> {
        let checkpoint = String::from_utf8(self.read("checkpoint")).unwrap();
        let size = checkpoint.lines().nth(1).unwrap().parse::<u64>().unwrap();
        let mut frames = Vec::new();
        while (frames.len() as u64) < size {
            let (index, left) = (frames.len() as u64 / 256, size - frames.len() as u64);
            let width = left.min(256) as u16;
            let bundle = self.read(&entries_path(index, width));
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

    fn read(&self, path: &str) -> Vec<u8> {
        let file = self.store.open(path).unwrap();
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }
}

/// AES-GCM that remembers the times of the entries that it encrypts, by frame.
#[derive(Default)]
struct Recorder {
    times: Mutex<BTreeMap<u64, Vec<i64>>>,
}

impl Cipher for Recorder {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        // The additional data is the commitment without the digest that ends it.
        let mut commitment = additional.to_vec();
        commitment.resize(Commitment::LENGTH, 0);
        let commitment = Commitment::decode(&commitment).unwrap();
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

/// Tells a test that it runs in a process of its own.
const ALONE: &str = "BULLA_TEST_ALONE";

pub(crate) fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// The command that runs one test of this binary, as the last words of `command`, in a process of its own.
pub(crate) fn alone(mut command: Command, test: &str) -> Command {
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    command
}
