//! A mirror: a copy of a log, without its keys, that follows it, and that verifies at every instant.
//!
//! The mirror reads the source as whoever verifies it does, and believes nothing of it but what the log's key has signed: each frame is
//! compared with its commitment, each commitment is hashed up to the signed root, and that root is of a tree which begins with the
//! mirror's own. So neither damage of the source nor of the way reaches the mirror, and its checkpoint is a pin of the source: it
//! never goes back, and never to another history.
//!
//! Invariants:
//! - what is below the destination's checkpoint is never written to, cut or removed;
//! - order: frames, synced; the directory of segments; tiles and bundles; `bulla.toml.next` where `[log]` changes or is new; `checkpoint`,
//!   by a rename; `bulla.toml`; what lies beside the checkpoint. Whatever comes before the rename counts for nothing yet, and the rename
//!   decides at once for all of it;
//! - never more than `MOST_UNSYNCED` bytes are written between two syncs, and a segment is synced to its end before the
//!   next one is begun. So whoever goes on with what a killed mirror left knows which bytes were durable: those it takes up, as far
//!   as they are what was signed, and no others;
//! - the lock of the destination is held, and looked at before the checkpoint is published.
//!
//! Nothing but what the checkpoint covers is shipped, in the places where the source has it; what counts for nothing there (the end of a
//! segment that a crash left, or a segment that was abandoned) is not. Tiles are made anew from the commitments, copies of epoch frames
//! from the frames. The index is not shipped: without keys it cannot be compared with anything, and who reads a mirror adds it.

mod beside;
mod destination;
mod lines;
mod news;
mod passed;
mod segments;
pub mod wire;

use crate::format::config::{self, LogConfig, arriving};
use crate::format::files;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::snapshot::{Snapshot, unless_gone};
use crate::scan::stored_tree;
use beside::{Offered, Tree};
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, FileSystem, Lock, Result, Store};
use bulla_text::spelling::counted;
use destination::{Known, State};
use news::News;
use segments::Shipment;
use std::path::Path;
use std::sync::Arc;

/// A mirror that is open: see the module.
///
/// ```
/// # let place = tempfile::tempdir().unwrap();
/// # let (audit, copy) = (place.path().join("audit"), place.path().join("copy"));
/// # bulla::Init::default().create(&audit)?;
/// use bulla::mirror::Mirror;
/// let mut mirror = Mirror::open(&audit, &copy, None)?;
/// let shipped = mirror.poll(|_| {})?;
/// assert_eq!(shipped.behind.frames, 0);
/// assert!(bulla::Verify::open(&copy)?.run()?.ok);
/// # Ok::<(), bulla::Error>(())
/// ```
pub struct Mirror {
    source: Arc<dyn Store>,
    store: Arc<dyn Store>,
    lock: Box<dyn Lock>,
    key: Option<VerifierKey>,
    most_unsynced: u64,
    /// Nothing after an error.
    state: Option<State>,
}

/// How far a mirror is behind what its source has signed, when that was looked at last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Behind {
    /// Frames that are to be shipped.
    pub frames: u64,
    /// Entries in them.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// What a mirror holds, verified and durable, and what it still lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shipped {
    /// Frames that its checkpoint covers.
    pub frames: u64,
    /// Entries that it covers.
    pub entries: u64,
    /// The writing host's clock at the newest epoch or event that it covers, in seconds since the Unix epoch. Nothing where it covers
    /// none.
    pub signed_time: Option<i64>,
    /// What the source has signed beyond that.
    pub behind: Behind,
    /// Whether the checkpoint was replaced by this look.
    pub advanced: bool,
}

impl Mirror {
    /// Opens the mirror in `destination`, which is made where it is missing, of the log in `source`. With `key`, source and
    /// destination have to be signed by that; without, the destination's own key counts, or, of a mirror that is made, the source's.
    ///
    /// # Errors
    /// `Locked` where somebody else writes to the destination, `Refused` where it holds something else than a mirror, `Tampered` where
    /// it is damaged, `Unavailable` where it cannot be read or written.
    pub fn open(
        source: impl AsRef<Path>,
        destination: impl AsRef<Path>,
        key: Option<VerifierKey>,
    ) -> Result<Self> {
        let source = Arc::new(FileSystem::new(source.as_ref()));
        Self::open_stores(source, Arc::new(FileSystem::new(destination.as_ref())), key)
    }

    /// The same of any stores: of a [`wire::Remote`] source, for instance.
    ///
    /// # Errors
    /// As [`Mirror::open`].
    pub fn open_stores(
        source: Arc<dyn Store>,
        destination: Arc<dyn Store>,
        key: Option<VerifierKey>,
    ) -> Result<Self> {
        let lock = destination::lock(&*destination)?;
        let state = State::resume(&destination, key.as_ref());
        let state =
            state.map_err(|error| error.after(format!("the destination {}", destination.describe(""))))?;
        let most_unsynced = segments::MOST_UNSYNCED;
        Ok(Mirror { source, store: destination, lock, key, most_unsynced, state: Some(state) })
    }

    /// Syncs after so many bytes at the latest, on either side of a restart: for tests.
    #[doc(hidden)]
    pub fn unsynced_at_most(self, bytes: u64) -> Self {
        Mirror { most_unsynced: bytes, ..self }
    }

    /// What the destination holds now, whatever the source has.
    pub fn shipped(&self) -> Shipped {
        self.state.as_ref().map_or_else(Shipped::default, State::shipped)
    }

    /// Ships what the source has signed since, all of it, and tells `told` after each frame how far behind it still is. Does not wait.
    ///
    /// # Errors
    /// `Tampered` where the source is damaged, older than the destination, of another history or another log: then the destination
    /// stays as it is, under its checkpoint. `Unavailable` where either cannot be read or written, or the destination was moved.
    /// After an error the mirror is to be opened anew (`Closed`).
    pub fn poll(&mut self, mut told: impl FnMut(&Shipped)) -> Result<Shipped> {
        let Some(mut state) = self.state.take() else {
            return Err(Error::new(ErrorKind::Closed, "the mirror has failed: open it anew"));
        };
        let shipped = unless_gone(&*self.source, self.advance(&mut state, &mut told))?;
        self.state = Some(state);
        Ok(shipped)
    }

    fn advance(&self, state: &mut State, told: &mut dyn FnMut(&Shipped)) -> Result<Shipped> {
        let Seen { text, offered, snapshot } = self.look(state.known.as_ref())?;
        let of_source = &snapshot.checkpoint;
        let (before, head) = (state.tree.head(), TreeHead { size: of_source.size, root: of_source.root });
        if before == head && state.known.is_some() {
            self.take_changes(state, (snapshot.config, text), &snapshot.note, &offered)?;
            self.take_beside(state, &offered)?;
            return Ok(state.shipped());
        }
        self.require_extension(before, head)?;
        let news = News::read(&*self.source, state.tree.tiles(), head)?;
        let mut shipped = Shipped { behind: news.behind, ..state.shipped() };
        told(&shipped);
        if state.known.is_none() {
            self.announce(head.size, &text)?;
        }
        let stores = (&self.source, &self.store);
        let mut shipment = Shipment::begin(stores, &snapshot.config, &state.passed, self.most_unsynced)?;
        let mut news = news;
        while let Some(encoded) = news.next(&*self.source)? {
            let sent = shipment.ship(&mut state.passed, &encoded)?;
            state.tree.push(&encoded);
            if state.tree.unwritten() > MOST_UNWRITTEN {
                state.tree.write_full()?;
            }
            shipped.behind.frames -= 1;
            shipped.behind.entries = shipped.behind.entries.saturating_sub(sent.entries);
            shipped.behind.bytes = shipped.behind.bytes.saturating_sub(sent.bytes);
            told(&shipped);
        }
        shipment.finish(&state.passed)?;
        if !state.passed.admits(snapshot.config.digest) {
            let detail = "[log] of bulla.toml is not the one that the last epoch was begun with";
            return Err(damaged(&Finding::new(FindingKind::ConfigMismatch, detail)));
        }
        state.tree.write_all()?;
        let tree = Tree { store: &*self.store, config: &snapshot.config, head };
        self.require_in_place()?;
        let published = state.known.as_ref().map(|known| (&known.note[..], before.size));
        state.beside.keep_witnessed(tree, published, &offered)?;
        let note = lines::joined(&[&snapshot.note], &snapshot.config);
        self.publish(state, (snapshot.config, text), (head, note))?;
        self.take_beside(state, &offered)?;
        Ok(Shipped { advanced: true, ..state.shipped() })
    }

    /// Takes up what lies beside the checkpoint that is published.
    fn take_beside(&self, state: &mut State, offered: &Offered) -> Result<()> {
        let Some(known) = &state.known else { return Ok(()) };
        self.require_in_place()?;
        let tree = Tree { store: &*self.store, config: &known.config, head: state.tree.head() };
        state.beside.take_up(tree, offered)
    }

    /// The source as it is now.
    fn look(&self, known: Option<&Known>) -> Result<Seen> {
        /// How often the configuration may change while it is read.
        const ATTEMPTS: usize = 16;
        for _ in 0..ATTEMPTS {
            let text = config::read(&*self.source).map_err(damaged_config)?;
            let (config, _) = config::parse(&text).map_err(damaged_config)?;
            if let Some(known) = known {
                require_same_log(known, &config)?;
            }
            let digest = config.digest;
            let offered = Offered::read(&*self.source, &config)?;
            let snapshot = Snapshot::trusted(self.source.clone(), config, &self.key.as_ref().into())?;
            if snapshot.config.digest == digest {
                return Ok(Seen { text, offered, snapshot });
            }
        }
        Err(Error::unavailable("the source's configuration changes again and again: try again later"))
    }

    /// Takes up what has changed while the tree is the same: settings, or `[log]` where an event has allowed that, and signatures of
    /// others on the checkpoint, of which none that holds is given up again.
    fn take_changes(
        &self,
        state: &mut State,
        (config, text): (LogConfig, Vec<u8>),
        note: &[u8],
        offered: &Offered,
    ) -> Result<()> {
        let head = state.tree.head();
        let Some(known) = &mut state.known else { return Ok(()) };
        let admitted = state.passed.admits(config.digest);
        // Which lines count no policy says that the log has not allowed.
        let counts = if admitted { &config } else { &known.config };
        let joined = lines::joined(&[&known.note, note], counts);
        if joined != known.note {
            self.require_in_place()?;
            let tree = Tree { store: &*self.store, config: counts, head };
            state.beside.keep_witnessed(tree, Some((&known.note, head.size)), offered)?;
            self.write(files::CHECKPOINT, &joined)?;
            known.note = joined;
        }
        if known.text != text && admitted {
            self.require_in_place()?;
            self.write(config::FILE, &text)?;
            (known.config, known.text) = (config, text);
        }
        Ok(())
    }

    /// That the source's tree is larger than the destination's, or says what else it is.
    fn require_extension(&self, before: TreeHead, head: TreeHead) -> Result<()> {
        if head.size > before.size || before.size == 0 {
            return Ok(());
        }
        let held = counted(before.size, "frame");
        let own = stored_tree::root_at(&*self.store, before, head.size)?;
        let detail = match own == Some(head.root) {
            true => format!(
                "the source has {}, and the destination has {held}: an older copy of the log was put in its place",
                head.size
            ),
            false => other_history(head.size.min(before.size)),
        };
        Err(damaged(&Finding::new(FindingKind::PinMismatch, detail)))
    }

    /// Has the configuration count from the checkpoint of `size` frames on.
    fn announce(&self, size: u64, text: &[u8]) -> Result<()> {
        let written = arriving::announce(&*self.store, size, text);
        written.map_err(|error| self.failed(arriving::NEXT, error))
    }

    /// Publishes a checkpoint of whose tree everything is durable.
    fn publish(
        &self,
        state: &mut State,
        (config, text): (LogConfig, Vec<u8>),
        (head, note): (TreeHead, Vec<u8>),
    ) -> Result<()> {
        self.require_in_place()?;
        let is_new = state.known.is_none();
        let changes = state.known.as_ref().is_none_or(|known| known.text != text);
        if changes && !is_new {
            self.announce(head.size, &text)?;
        }
        self.write(files::CHECKPOINT, &note)?;
        if changes {
            self.write(config::FILE, &text)?;
            arriving::take_up(&*self.store)?;
        }
        state.known = Some(Known { config, text, note });
        state.tree.published();
        Ok(())
    }

    fn write(&self, path: &str, content: &[u8]) -> Result<()> {
        bulla_store::replace(&*self.store, path, content).map_err(|error| self.failed(path, error))
    }

    fn failed(&self, path: &str, error: std::io::Error) -> Error {
        Error::io(format!("writing {}", self.store.describe(path)), error)
    }

    /// That the destination is where it was when its lock was taken.
    fn require_in_place(&self) -> Result<()> {
        let name = self.store.describe("");
        match self.lock.is_in_place() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::unavailable(format!(
                "{name} was replaced or moved while it was written: nothing more is written to it"
            ))),
            Err(error) => Err(Error::io(format!("looking whether {name} is where it was"), error)),
        }
    }
}

/// A source as it was looked at.
struct Seen {
    /// The bytes of its configuration.
    text: Vec<u8>,
    offered: Offered,
    /// The checkpoint with which the configuration is of one time.
    snapshot: Snapshot,
}

/// The most tiles and bundles that are kept in memory until they are written: a few megabytes.
const MOST_UNWRITTEN: usize = 64;

/// That the source is not what was signed: told as verification tells of it.
fn damaged(finding: &Finding) -> Error {
    Error::tampered(format!("the source: {finding}; nothing of it was taken up"))
}

fn damaged_config(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Invalid => damaged(&Finding::new(FindingKind::ConfigDamaged, error.to_string())),
        _ => error,
    }
}

/// What is said of a source whose first frames are not those that the destination has.
fn other_history(size: u64) -> String {
    format!(
        "the first {} are not those that the destination has: the source was rewritten since, or has a second history that is \
         signed with the same key",
        counted(size, "frame")
    )
}

fn require_same_log(known: &Known, config: &LogConfig) -> Result<()> {
    let own = &known.config;
    let same = own.id == config.id
        && own.origin == config.origin
        && own.verifier_key.is_same_key(&config.verifier_key);
    match same {
        true => Ok(()),
        false => {
            let detail = format!(
                "the destination is a mirror of `{}` ({}), and the source is `{}` ({})",
                own.origin, own.id, config.origin, config.id
            );
            Err(damaged(&Finding::new(FindingKind::PinMismatch, detail)))
        }
    }
}
