//! A log that lies on several paths, put together as one store.
//!
//! What lies on a path has the names that it would have in the log's directory, and all that lies on any of them is the log: new files go
//! to the path in use, a file is read from the path that has it, and a directory lists what any path has in it. Names of segments are
//! given as if all lay together, so that no two are alike; full tiles and bundles are the same wherever they lie; of `checkpoint` and
//! `bulla.toml` that one counts which lies where the log has come furthest. So nobody else knows of paths but who writes, by
//! [`bulla_store::Paths`].
//!
//! Invariants:
//! - a place that is named twice is one path; two places are two, and that both say they are the same one is a violation;
//! - no path is opened that neither the key directory nor whoever reads has named, and none that does not say of itself that it is
//!   one of this log;
//! - a writer takes a path only with its lock, where it is in its place, and where nothing that lies there contradicts the log;
//! - until a writer has found where the log ends nothing is passed over that a path does not give back: frames that are there and were not
//!   seen would have their numbers given once more;
//! - what the key directory notes of paths that were left is so: see [`crate::keys::paths`].

mod cosigned;
mod histories;
mod looking;
mod places;
mod refusing;
mod sealed;
mod spreading;
mod store;
mod taking;
mod twins;

use crate::format::config::signed::OwnKeys;
use crate::format::config::{self, LogConfig};
use crate::format::path::{self, NoPath, PathId};
use crate::format::segment;
use crate::keys::paths::{self as known, Fate, KnownPath};
use crate::keys::seal_state::SealState;
use crate::keys::settings;
use bulla_crypto::environment::{Environment, Tell};
use bulla_proof::LogKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::LogId;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, FileSystem, Lock, PathStanding, PathState, Paths, Result, Store, Switch};
pub(crate) use histories::{Histories, another_history, compare, head_of, refuse_to_write};
pub(crate) use looking::unlisted;
pub(crate) use places::Place;
pub(crate) use refusing::signed_elsewhere;
pub(crate) use sealed::{LOOKS, PAUSE};
use spreading::Lacking;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use twins::Judged;

/// See the module.
pub(crate) struct LogPaths {
    log: LogId,
    /// The keys that sign its checkpoints; none where no path had a configuration that could be read when it was opened.
    own_keys: Option<(VerifierKey, Option<LogKey>)>,
    keys: Option<Arc<dyn Store>>,
    tell: Option<Tell>,
    /// Why the settings that name the paths cannot be read, where nobody has named any by hand.
    unread_settings: Option<String>,
    /// The log's own directory, as it was opened.
    first: Arc<dyn Store>,
    state: Arc<RwLock<State>>,
    /// Held by whoever has another path take over, or notes in the key directory what became of one.
    switching: Mutex<()>,
    /// What is read of segments that several paths have.
    judged: Mutex<Judged>,
}

/// Names and contents of files.
type Files = Vec<(String, Vec<u8>)>;

struct State {
    /// The log's own directory, and behind it the others, in the order in which they are tried.
    paths: Vec<OnePath>,
    /// Which of them takes what is written.
    current: usize,
    turn: u64,
    /// Whether the log is locked for a writer.
    writing: bool,
    /// Whether that writer has found where the log ends: until then every path has to give back what it has.
    recovered: bool,
    /// What the key directory remembers.
    known: Vec<KnownPath>,
    /// Those of them that may hold frames, and that nobody names.
    unnamed: Vec<KnownPath>,
    /// Whether that is of a time before the newest checkpoint: what was left then may be in use since.
    outdated: bool,
    switches: Vec<Switch>,
    /// The path that took what is written last, and the switch to the one that does now, as long as nothing was committed there.
    pending: Option<(usize, Switch)>,
    /// Whether no path takes what is written.
    waiting: bool,
    /// The newest checkpoint that was published, and the newest configuration: what they are read from may be gone.
    published: Option<Vec<u8>>,
    config: Vec<u8>,
    /// The files that the newest checkpoint needs beside full tiles which the other paths have.
    edge: Files,
    /// The same of the tree of so many frames that is signed next, of which the seal state may speak.
    next: Option<(u64, Files)>,
    /// What witnesses have cosigned, of a log that is written: `checkpoint.witnessed` and their own files, by their names.
    cosigned: BTreeMap<String, Vec<u8>>,
}

impl State {
    /// Whether the writer has left a path, so that it holds nothing newer than the others.
    fn is_left(&self, path: &OnePath) -> bool {
        self.known.iter().any(|known| Some(known.id) == path.id && self.was_left(known))
    }

    /// The same of one as the key directory remembers it.
    fn was_left(&self, known: &KnownPath) -> bool {
        !self.outdated && known.fate == Fate::Left
    }
}

/// A path of the log.
struct OnePath {
    store: Arc<dyn Store>,
    /// As far as it is known.
    id: Option<PathId>,
    /// Why it counts for missing; it may be there all the same, where it could not be looked at.
    absent: Option<NoPath>,
    /// Why it cannot be the path that it says it is.
    mismatch: Option<String>,
    /// Whether it has segments and no checkpoint.
    bare: bool,
    /// Its checkpoint, verbatim, as it was read or written last, and what that says.
    note: Option<Vec<u8>>,
    head: Option<TreeHead>,
    /// Whether that is of another history than the key directory's seal state, which goes with what is on another path: nothing is read of it then.
    is_other: bool,
    /// The checkpoint that was found to be of the log's history.
    compared: Option<Vec<u8>>,
    /// Of a log that is written.
    lock: Option<Arc<dyn Lock>>,
    /// Where it was found last.
    place: Option<String>,
    /// Whether it takes, or took, what is written.
    used: bool,
    /// How many frames the log had with the last one that was written here; at least so many, where that is not known.
    frames: u64,
    /// Whether it failed since it took what is written: what it does not give back is looked for elsewhere.
    failed: bool,
    /// What was told of it last.
    told: Option<String>,
    /// When it is tried again to give it full tiles, of which it lacks some.
    lacking: Option<Lacking>,
}

impl OnePath {
    fn new(store: Arc<dyn Store>) -> Self {
        OnePath {
            store,
            id: None,
            absent: None,
            mismatch: None,
            bare: false,
            note: None,
            head: None,
            is_other: false,
            compared: None,
            lock: None,
            place: None,
            used: false,
            frames: u64::MAX,
            failed: false,
            told: None,
            lacking: None,
        }
    }

    /// Whether what lies on it is the log's.
    fn is_read(&self) -> bool {
        self.absent.is_none() && !self.is_other
    }
}

/// The log's store for whoever reads it, put together of its own directory and the paths that the key directory and `also` name; that of
/// its directory alone where there are no others, the key directory's settings can be read, and it neither remembers any nor has a seal state.
///
/// # Errors
/// `Unavailable` where the key directory's list of paths is damaged or cannot be read, and where one of `also` is not there, or is no path
/// of this log.
pub fn join_paths(
    log: Arc<dyn Store>,
    keys: Option<&Arc<dyn Store>>,
    also: &[PathBuf],
    environment: &Environment,
) -> Result<Arc<dyn Store>> {
    join(log, keys, also, (environment, true))
}

/// The same for whoever writes it or changes its keys, who compares it with the seal state anyway: of a log without other paths always its
/// directory alone.
///
/// # Errors
/// As [`join_paths`].
pub(crate) fn join_to_write(
    log: Arc<dyn Store>,
    keys: Option<&Arc<dyn Store>>,
    also: &[PathBuf],
    environment: &Environment,
) -> Result<Arc<dyn Store>> {
    join(log, keys, also, (environment, false))
}

fn join(
    log: Arc<dyn Store>,
    keys: Option<&Arc<dyn Store>>,
    also: &[PathBuf],
    (environment, reads): (&Environment, bool),
) -> Result<Arc<dyn Store>> {
    if log.paths().is_some() {
        return Ok(log);
    }
    let named = keys.map_or_else(|| Ok(Vec::new()), |keys| settings::backup_paths(&**keys));
    // Whoever names paths by hand does in the place of the settings.
    let unread_settings = named.as_ref().err().filter(|_| also.is_empty()).map(ToString::to_string);
    let named = named.unwrap_or_default();
    let known = keys.map_or_else(|| Ok(Vec::new()), |keys| known::load(&**keys))?;
    let names_none = named.is_empty() && also.is_empty() && unread_settings.is_none();
    // Whoever reads compares each checkpoint that they take with it, and not the one that happens to be there by now.
    let sealed = keys.filter(|_| reads).and_then(|keys| SealState::load(&**keys).ok());
    let is_alone = names_none && !knows_others(&*log, &known);
    if is_alone && sealed.is_none() {
        return Ok(log);
    }
    let mut stores = vec![log.clone()];
    add_places(&mut stores, &named, environment);
    let mut of_keys = stores.len();
    add_places(&mut stores, also, environment);
    let read = stores.iter().find_map(|store| configuration(&**store));
    if read.is_none() && !is_alone {
        require_segments(&log, &stores)?;
    }
    let told = read.as_ref().map(|(config, _)| config.id).or(sealed.map(|sealed| sealed.log));
    // Whoever asked for the log is told what is wrong with it.
    let Some(id) = told else { return Ok(log) };
    let doubled = doubled(&stores, &named, (&known, id), environment);
    let doubles = doubled.len();
    stores.splice(of_keys..of_keys, doubled);
    of_keys += doubles;
    let (config, text) = read.unzip();
    let state = State {
        paths: stores.into_iter().map(OnePath::new).collect(),
        current: 0,
        turn: 0,
        writing: false,
        recovered: false,
        known,
        unnamed: Vec::new(),
        outdated: false,
        switches: Vec::new(),
        pending: None,
        waiting: false,
        published: None,
        config: text.unwrap_or_default(),
        edge: Vec::new(),
        next: None,
        cosigned: BTreeMap::new(),
    };
    let paths = LogPaths {
        log: id,
        own_keys: config.map(|config| (config.verifier_key, config.ml_dsa_key)),
        keys: keys.cloned(),
        tell: environment.path_replaced.clone(),
        unread_settings,
        first: log,
        state: Arc::new(RwLock::new(state)),
        switching: Mutex::new(()),
        judged: Mutex::default(),
    };
    paths.look();
    paths.require(of_keys)?;
    if reads {
        paths.leave_empty_places(of_keys);
    }
    Ok(Arc::new(paths))
}

/// That a log of which no path has a configuration that can be read is there all the same.
///
/// # Errors
/// `Unavailable` where it is not, or nobody can tell.
fn require_segments(log: &Arc<dyn Store>, stores: &[Arc<dyn Store>]) -> Result<()> {
    // What cannot be read may be there all the same.
    for store in stores {
        if let Err(error) = store.open(config::FILE)
            && let NoPath::Unclear(why) = NoPath::of(&error)
        {
            let place = store.describe("");
            return Err(Error::unavailable(format!(
                "{place}, a path of the log, cannot be looked at: {why}"
            )));
        }
    }
    match segment::list(&**log) {
        Ok((segments, _)) if segments.is_empty() => Err(Error::unavailable(format!(
            "{}, a path of the log, is missing: is its disk mounted? No other path has its {} either",
            log.describe(""),
            config::FILE
        ))),
        _ => Ok(()),
    }
}

/// Whether the key directory remembers a path besides the log's own directory.
fn knows_others(log: &dyn Store, known: &[KnownPath]) -> bool {
    let of = configuration(log).map(|(config, _)| config.id);
    let own = of.and_then(|of| Some(path::read(log, of).ok()?.unwrap_or(PathId::first_of(of))));
    known.iter().any(|known| Some(known.id) != own)
}

/// Adds the directories at these places, each of them once, by whatever names.
fn add_places(stores: &mut Vec<Arc<dyn Store>>, places: &[PathBuf], environment: &Environment) {
    for place in places {
        let store = open_path(place, environment);
        if !stores.iter().any(|other| is_same_place(&**other, &*store)) {
            stores.push(store);
        }
    }
}

/// The places of the key directory that are another one's directory by now, as by a link, while the path that it remembers there is nowhere:
/// that one is missing, and what it has with it.
fn doubled(
    stores: &[Arc<dyn Store>],
    named: &[PathBuf],
    (known, log): (&[KnownPath], LogId),
    environment: &Environment,
) -> Vec<Arc<dyn Store>> {
    let is_there = |id: PathId| stores.iter().any(|store| path::read(&**store, log) == Ok(Some(id)));
    let places = stores.iter().map(|store| Place::of(&**store)).collect::<Vec<_>>();
    let is_doubled = |store: &Arc<dyn Store>| {
        // By name: without links it is the other one's place.
        let name = Place::of(&**store).name;
        // One that lay there behind a link before is remembered by the place that the link led to.
        let is_nowhere = |known: &KnownPath| {
            known.id != PathId::first_of(log) && !places.iter().any(|place| place.is(&known.place))
        };
        let is_expected =
            |known: &KnownPath| known.fate != Fate::Lost && (known.place == name || is_nowhere(known));
        places.iter().all(|other| other.name != name)
            && stores.iter().any(|other| is_same_place(&**other, &**store))
            && known.iter().any(|known| is_expected(known) && !is_there(known.id))
    };
    named.iter().map(|place| open_path(place, environment)).filter(is_doubled).collect()
}

/// Whether two stores are one directory: what lies in it does not tell, since that can be copied.
pub(crate) fn is_same_place(one: &dyn Store, other: &dyn Store) -> bool {
    let same =
        one.directory().zip(other.directory()).and_then(|(one, other)| one.is_same_directory(other).ok());
    same.unwrap_or_else(|| one.describe("") == other.describe(""))
}

/// The log in `directory` with the paths that its key directory names, if that is there, and those of `also`: for whoever reads it.
///
/// # Errors
/// `Unavailable` where one of `also` is not there, or is no path of this log, or the key directory's files cannot be read.
pub fn open_log(
    directory: impl AsRef<Path>,
    keys: Option<&Path>,
    also: &[PathBuf],
) -> Result<Arc<dyn Store>> {
    let log: Arc<dyn Store> = Arc::new(FileSystem::new(directory.as_ref()));
    let keys = keys.map(|keys| Arc::new(FileSystem::new(keys)) as Arc<dyn Store>);
    // A directory that is not there, or not this user's to read, names nothing.
    let keys = keys.filter(|keys| keys.list("").is_ok());
    join_paths(log, keys.as_ref(), also, &Environment::default())
}

pub(crate) fn open_path(place: &Path, environment: &Environment) -> Arc<dyn Store> {
    match &environment.backup_paths {
        Some(open) => open(place),
        None => Arc::new(FileSystem::new(place)),
    }
}

/// The paths of a log that are missing or lost, for whoever says that frames are missing: they may lie there. Empty where there are none.
pub(crate) fn not_there(store: &dyn Store) -> String {
    let told = |(index, PathState { place, standing, missing, .. }): (usize, PathState)| match (
        standing, missing,
    ) {
        (PathStanding::Lost, _) => Some(format!("{place}, a path of the log, is lost")),
        // It is named by no setting.
        (PathStanding::Left, Some(why)) if index == 0 => Some(format!(
            "{place}, a path of the log that was left, is missing: {why}. Mount it; where it is lost for good, go on under the name of \
                 another path (`bulla config PATH --keys KEYS set backup_paths PATHS` with the others, `unset backup_paths` where there is \
                 none), and what lay there alone is passed over"
        )),
        (PathStanding::Left, Some(why)) => Some(format!(
            "{place}, a path of the log that was left, is missing: {why}. Mount it; where it is lost for good, leave it out of \
                 `backup_paths` (`bulla config DIR set backup_paths PATHS`), and what lay there alone is passed over"
        )),
        (_, Some(why)) => Some(format!("{place}, a path of the log, is missing: {why}")),
        (_, None) => None,
    };
    let states = store.paths().map_or_else(Vec::new, Paths::states);
    states.into_iter().enumerate().filter_map(told).collect::<Vec<_>>().join("; ")
}

/// The same for whoever copies all of the log, with what there is to do.
pub(crate) fn not_there_to_copy(store: &dyn Store) -> String {
    let told = |(index, PathState { place, standing, missing, .. }): (usize, PathState)| {
        let left = if standing == PathStanding::Left { " that was left" } else { "" };
        match (standing, missing) {
            (PathStanding::Lost, _) => Some(format!(
                "{place}, a path of the log, is lost: what it had alone only copies from before have"
            )),
            (_, Some(why)) => {
                let name_it = looking::name_it(index == 0);
                Some(format!("{place}, a path of the log{left}, is missing: {why}. Mount it, or {name_it}"))
            }
            (_, None) => None,
        }
    };
    let states = store.paths().map_or_else(Vec::new, Paths::states);
    states.into_iter().enumerate().filter_map(told).collect::<Vec<_>>().join("; ")
}

/// The same with where it is said what there is to do; nothing where there is nothing to say.
pub(crate) fn with_way_out(not_there: &str) -> String {
    if not_there.is_empty() {
        return String::new();
    }
    format!("{not_there}: docs/operating.md, \"The path in use is lost\", says what there is to do")
}

fn configuration(store: &dyn Store) -> Option<(LogConfig, Vec<u8>)> {
    let text = config::read(store).ok()?;
    let (config, _) = config::parse(&text).ok()?;
    Some((config, text))
}

impl LogPaths {
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a checkpoint says that the log's key signed.
    fn head(&self, note: &[u8]) -> Option<TreeHead> {
        let (key, ml_dsa_key) = self.own_keys.as_ref()?;
        let checkpoint = OwnKeys::new(key, ml_dsa_key.as_ref()).open(note).ok()?;
        Some(TreeHead { size: checkpoint.size, root: checkpoint.root })
    }

    /// Says something of a path, once.
    fn tell(&self, index: usize, what: String) {
        let mut state = self.change();
        let path = &mut state.paths[index];
        if path.told.as_ref() == Some(&what) {
            return;
        }
        path.told = Some(what.clone());
        drop(state);
        if let Some(tell) = &self.tell {
            tell(&what);
        }
    }

    /// The stores in the order in which a file is looked for that one has: from the one on which the log has come furthest to the others,
    /// also between a switch and the next checkpoint. The configuration is that of the path in use. Each with whether it failed.
    fn readable_for(&self, path: &str) -> Vec<(Arc<dyn Store>, bool)> {
        let state = self.state();
        if path == config::arriving::NEXT {
            // What a mirror left belongs to the checkpoint beside it, and to no other path's.
            let OnePath { store, absent, failed, .. } = &state.paths[state.current];
            return absent.is_none().then(|| (store.clone(), *failed)).into_iter().collect();
        }
        let furthest = state.paths.iter().filter_map(|path| path.head).map(|head| head.size).max();
        if path == config::FILE || state.paths[state.current].head.map(|head| head.size) == furthest {
            drop(state);
            return self.readable();
        }
        let paths = order(&state.paths, &state.known).map(|index| &state.paths[index]);
        paths.filter(|path| path.is_read()).map(|path| (path.store.clone(), path.failed)).collect()
    }

    /// The stores, the one in use first, each with whether it failed.
    fn readable(&self) -> Vec<(Arc<dyn Store>, bool)> {
        let state = self.state();
        let others = order(&state.paths, &state.known).filter(|&index| index != state.current);
        let paths = std::iter::once(state.current).chain(others).map(|index| &state.paths[index]);
        paths.filter(|path| path.is_read()).map(|path| (path.store.clone(), path.failed)).collect()
    }

    /// The store that takes what is written.
    fn in_use(&self) -> Arc<dyn Store> {
        let state = self.state();
        state.paths[state.current].store.clone()
    }
}

/// The paths from the one on which the log has come furthest to the others; those that hold another history come behind these, and those that are not
/// there last. Anybody can copy a checkpoint: of those that have the same, those that the key directory has as kept come first, in its order.
fn order(paths: &[OnePath], known: &[KnownPath]) -> impl Iterator<Item = usize> + use<> {
    let rank = |index: usize| {
        let place = known.iter().position(|known| Some(known.id) == paths[index].id);
        match place {
            Some(place) if known[place].fate == Fate::Kept => (0, place),
            // Until it has been written to, the log's own directory is not noted.
            None if index == 0 => (0, 0),
            None => (1, 0),
            Some(place) => (2, place),
        }
    };
    let mut order = (0..paths.len()).collect::<Vec<_>>();
    order.sort_by_key(|&index| {
        let path = &paths[index];
        (path.absent.is_some(), path.is_other, Reverse(path.head.map(|head| head.size)), rank(index))
    });
    order.into_iter()
}

impl fmt::Debug for LogPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let places = state.paths.iter().map(|path| path.store.describe("")).collect::<Vec<_>>();
        f.debug_struct("LogPaths").field("places", &places).field("turn", &state.turn).finish_non_exhaustive()
    }
}
