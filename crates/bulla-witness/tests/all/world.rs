//! Logs that sign trees, and a witness of them, in memory.

use bulla_crypto::environment::{Clock, Interrupt, SystemRandom};
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::consistency::prove_consistency;
use bulla_proof::hash::Hash;
use bulla_proof::tree;
use bulla_proof::{CosignatureAlgorithm, CosignerKey, LogKey, SignedNote};
use bulla_store::{Result, Store};
use bulla_witness::request::Request;
use bulla_witness::{Answer, Witness};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const ORIGIN: &str = "example.com/log";

/// A log: its key, and the leaves of its tree.
pub(crate) struct Log {
    pub(crate) key: SigningKey,
    pub(crate) leaves: Vec<Hash>,
}

impl Log {
    /// A log of some history with so many leaves. Those of another history differ from its first leaf on.
    pub(crate) fn new(origin: &str, history: u8, leaves: u64) -> Self {
        let leaf = |number: u64| tree::leaf_hash(&[&[history], &number.to_le_bytes()[..]].concat());
        Log { key: SigningKey::from_seed(origin, &[3; 32]).unwrap(), leaves: (0..leaves).map(leaf).collect() }
    }

    pub(crate) fn vkey(&self) -> LogKey {
        self.key.verifier().clone().into()
    }

    pub(crate) fn root(&self, size: usize) -> Hash {
        self.leaves[..size]
            .iter()
            .fold(tree::Frontier::default(), |mut frontier, leaf| {
                frontier.push(*leaf);
                frontier
            })
            .root()
    }

    /// The checkpoint of its first leaves.
    pub(crate) fn note(&self, size: usize) -> String {
        self.signed(size as u64, self.root(size))
    }

    /// A checkpoint of any tree, with the log's signature.
    pub(crate) fn signed(&self, size: u64, root: Hash) -> String {
        let checkpoint = Checkpoint::new(self.key.verifier().name(), size, root);
        sign_checkpoint(&checkpoint, self.key.verifier(), |text| self.key.sign(text))
    }

    /// The request to cosign its first `size` leaves, for a witness that cosigned `old` last.
    pub(crate) fn request(&self, old: usize, size: usize) -> Vec<u8> {
        let proof = prove_consistency(&self.leaves[..size], old as u64).unwrap();
        Request { old_size: old as u64, proof, note: self.note(size).as_bytes() }.render().into_bytes()
    }
}

/// A clock that stands.
#[derive(Default)]
pub(crate) struct Standing(pub(crate) AtomicI64);

impl Standing {
    pub(crate) fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for Standing {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst) * 1_000_000_000
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}

    fn steady(&self) -> u64 {
        self.now().unsigned_abs()
    }
}

/// What a witness lies in, and what it told.
pub(crate) struct World {
    pub(crate) state: Arc<dyn Store>,
    pub(crate) keys: Arc<dyn Store>,
    pub(crate) clock: Arc<Standing>,
    pub(crate) told: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn of(state: Arc<dyn Store>, keys: Arc<dyn Store>) -> Self {
        let clock = Arc::new(Standing::default());
        clock.set(1_700_000_000);
        World { state, keys, clock, told: Arc::default() }
    }

    /// A witness that was begun.
    pub(crate) fn begun(algorithm: CosignatureAlgorithm) -> (Self, CosignerKey) {
        let store = || Arc::new(bulla_testkit::Memory::new());
        let world = World::of(store(), store());
        let key = world.begin(algorithm).unwrap();
        (world, key)
    }

    pub(crate) fn begin(&self, algorithm: CosignatureAlgorithm) -> Result<CosignerKey> {
        Witness::begin("w.example/1", algorithm, &*self.state, &*self.keys, &SystemRandom)
    }

    pub(crate) fn open(&self, logs: &[&Log]) -> Result<Witness> {
        let told = self.told.clone();
        let tell = Arc::new(move |what: &str| told.lock().unwrap().push(what.to_owned()));
        let stores = (self.state.clone(), self.keys.clone());
        Witness::open(stores, logs.iter().map(|log| log.vkey()).collect(), self.clock.clone(), tell)
    }
}

/// That an answer is a cosignature by this key, of that checkpoint; its time.
pub(crate) fn cosigned(answer: &Answer, key: &CosignerKey, note: &str) -> u64 {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let all = format!("{note}{}", answer.body);
    let all = SignedNote::parse(all.as_bytes()).unwrap();
    key.verify(&all).unwrap().timestamp
}
