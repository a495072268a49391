//! Taking up a key directory that was restored from a backup, or that lost its seal state.
//!
//! A backup lacks the keys of data subjects that were new since it was made; those are lost. It also lacks erasures since then, which
//! are carried out again from the log's events. And it does not know which numbers the log gave to data subjects since then, which
//! must not be given to anybody else: only the blocks say how far the numbers went, so somebody has to be able to open them.
//!
//! Where it is the log whose newest part is lost, that part gets an id, and the vault is marked with it before anything else is done, and leaves out
//! the numbers whose keys it destroyed by erasures that nothing tells of any more. The log tells the id by an event. So a vault that is put in
//! place later is known by what it is marked with: one that lacks an id of which the log tells is from before that part was given up, or of
//! that part.
//!
//! A seal state that is lost can be made anew by whoever has the seal key, S_0: it is the state that the log began with, and opening
//! goes on from there over every frame. What it knew of frames beyond the checkpoint is lost. Where one is there that speaks of a part of the log
//! that is given up, it is replaced in the same way: before that it says how far that part went, and so which vault has followed it.

mod numbers;
mod outlook;
mod seal_state;

use crate::erase::holds::Holds;
use crate::erase::{HoldDifference, ResumedErasure};
use crate::format::config::{self, LogConfig};
use crate::format::event::Event;
use crate::format::options::Options;
use crate::keys::default_keys;
use crate::keys::files;
use crate::keys::personal;
use crate::keys::restoring::{GivenUp, Unknown};
use crate::keys::seal_state::SealState;
use crate::keys::vault;
use crate::read::reader::Reader;
use crate::scan::checkpoint::read_note;
use crate::scan::given_up;
use crate::scan::manifest::Manifest;
use crate::scan::paths::{self, not_there};
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use crate::write::engine::pins::PinAtHand;
use crate::write::engine::{
    Directories, Engine, Vaults, after_resumed, check_kept_replicas, load_signing_key, mark_given_up, tuning,
};
use crate::write::recover::earlier::not_done;
use crate::write::tree_files;
use bulla_crypto::environment::Environment;
use bulla_crypto::group::PartId;
use bulla_crypto::recipients::Identity;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Paths, Store};
use bulla_text::spelling::counted;
use bulla_vault::{Access, Vault};
pub use outlook::{CutErasure, Extent, Outlook};
use outlook::{Found, Looked, has_people, look};
use seal_state::{GoneOnWith, known_parts};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A key directory to be taken up again.
pub struct Restore {
    directory: PathBuf,
    keys: PathBuf,
    identity: Option<Arc<dyn Identity>>,
    seal_key: Option<Zeroizing<String>>,
    new_vault: bool,
    older_log: bool,
    older_vault: bool,
    environment: Environment,
    tell: Box<dyn Fn(&Outlook)>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// What was found before anything was changed.
    pub outlook: Outlook,
    /// How many data subjects' keys are lost, as [`Outlook::lost`], entries beyond the checkpoint included.
    pub lost: u64,
    /// How the holds of the backup differed from what the log tells; they were brought in line with it.
    pub hold_differences: Vec<HoldDifference>,
    /// The erasure that the backup had begun, and what came of it.
    pub resumed: Option<ResumedErasure>,
}

impl Restore {
    /// The log in `directory`, with its keys in `DIR.keys`, and an identity that opens its blocks.
    pub fn new(directory: impl AsRef<Path>, identity: Arc<dyn Identity>) -> Self {
        Restore { identity: Some(identity), ..Self::without_identity(directory) }
    }

    /// The same without an identity: a log without erasure needs none.
    pub fn without_identity(directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref().to_owned();
        Restore {
            keys: default_keys(&directory),
            directory,
            identity: None,
            seal_key: None,
            new_vault: false,
            older_log: false,
            older_vault: false,
            environment: Environment::default(),
            tell: Box::new(|_| ()),
        }
    }

    /// With its keys in another place.
    pub fn keys(mut self, keys: impl AsRef<Path>) -> Self {
        self.keys = keys.as_ref().to_owned();
        self
    }

    /// With the text of the log's seal key, from which the seal state is made anew where it is missing, or speaks of what is given up
    /// ([`Restore::older_log`]). That of another log is refused in any case.
    pub fn seal_key(mut self, text: Zeroizing<String>) -> Self {
        self.seal_key = Some(text);
        self
    }

    /// With a new vault in the place of one that is lost for good: the keys of everybody who was logged are lost with it, and
    /// pseudonyms of fields are others from then on. Cut short, it goes on with that however it is done again, unless a vault that has
    /// somebody's keys is put in its place.
    pub fn new_vault(mut self) -> Self {
        self.new_vault = true;
        self
    }

    /// With a log that ends before what the vault has followed, or the seal state speaks of, since no newer copy of it is left: what came after that is lost. The
    /// log goes on with other frames of these numbers: should the rest be found, it is another history, and no part of the log any more. Cut
    /// short, it goes on with that however it is done again.
    pub fn older_log(mut self) -> Self {
        self.older_log = true;
        self
    }

    /// With a vault that may not have followed what is given up ([`Outlook::vault_behind`]), since no newer one is left: nothing is read under its keys
    /// from then on, for good, and no other vault of the log's can take its place later.
    pub fn older_vault(mut self) -> Self {
        self.older_vault = true;
        self
    }

    /// With another environment.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Tells what was found, before anything is changed.
    pub fn when_looked(mut self, tell: impl Fn(&Outlook) + 'static) -> Self {
        self.tell = Box::new(tell);
        self
    }

    /// Looks what taking it up comes to, and changes nothing.
    ///
    /// # Errors
    /// As [`Restore::run`].
    pub fn look(&self) -> Result<Outlook> {
        let keys: Arc<dyn Store> = Arc::new(FileSystem::new(&self.keys));
        let log = Arc::new(FileSystem::new(&self.directory));
        let log = paths::join_to_write(log, Some(&keys), &[], &self.environment)?;
        Ok(self.begin(&(log, keys))?.looked.outlook)
    }

    /// Takes it up: erases whom the log says that it erased, and goes on with numbers that nobody had. Cut short, it can
    /// be done again; until it is done the log does not open. Where there is nothing to take up ([`Outlook::needed`]) it changes nothing.
    ///
    /// # Errors
    /// `NoKey` where the identity does not open a block that the backup knows nothing of, and where the seal state is missing
    /// and no seal key was given; `Refused` where the seal key is another log's, where a new vault is asked for and there is one,
    /// or a replica of one, and, unless [`Restore::older_vault`] says that it may be, where the vault is behind; else as [`crate::Log::open`].
    pub fn run(self) -> Result<Restored> {
        let (log, keys) = (FileSystem::new(&self.directory), FileSystem::new(&self.keys));
        self.run_in(Arc::new(log), Arc::new(keys))
    }

    /// Takes it up in any stores.
    ///
    /// # Errors
    /// As [`Restore::run`].
    pub fn run_in(self, log: Arc<dyn Store>, keys: Arc<dyn Store>) -> Result<Restored> {
        let log = paths::join_to_write(log, Some(&keys), &[], &self.environment)?;
        let stores = (log.clone(), keys.clone());
        let Begun {
            config,
            directories,
            state,
            unknown,
            kept,
            comes_to_nothing,
            is_refused,
            reader,
            replicas,
            looked,
        } = self.begin(&stores)?;
        let Looked { outlook, mut numbers, mut erased, is_cut } = looked;
        (self.tell)(&outlook);
        if is_refused {
            return Err(behind(&*keys));
        }
        if !outlook.needed {
            return Ok(Restored { outlook, lost: 0, hold_differences: Vec::new(), resumed: None });
        }
        // What was kept about data subjects is as old as the backup, and nothing says what of it holds no more.
        personal::remove(&*keys)?;
        if comes_to_nothing {
            // As long as the seal state tells that there was one.
            remove_tree_of_attempt(&log, &config)?;
            // Before that is written: a seal state of an attempt of which nothing else is there is not gone on with.
            state.save(&*keys)?;
        }
        // In this order: with the seal state alone the log would open.
        let given_up = unknown.as_ref().and_then(|unknown| unknown.given_up);
        let unknown = unknown.map(|unknown| Unknown { given_up: given_up.or(kept), ..unknown });
        if let Some(unknown) = &unknown {
            unknown.save(&*keys)?;
            if unknown.new_vault {
                vault::create_lost_vault(&config, &*keys, &self.environment)?;
                // It could not be opened before, or had nobody.
                let vault = vault::open_vault(&config, &*keys, &self.environment, Access::Read, Vec::new())?;
                require_nobody(&*keys, vault.as_ref())?;
            }
        }
        // Before the seal state is there, and before opening the log has the vault follow it: after either nothing else says that the log was longer.
        if given_up.is_some() {
            let (stores, erased) = ((&*log, &*keys), is_cut.then_some(&erased));
            let marks = (&state.given_up, outlook.vault_behind);
            mark_given_up(&replicas, stores, (&config, &self.environment), marks, erased)?;
        }
        if outlook.makes_seal_state || given_up.is_some() {
            state.save(&*keys)?;
        }
        let attempt = state.attempt;
        let opened = (Vaults::of_restore(given_up.is_some()), attempt);
        let engine = Engine::open_as(stores, &directories, Options::default(), self.environment, opened)?;
        let (hold_differences, resumed) = (engine.hold_differences.clone(), engine.resumed.clone());
        if let Some(ResumedErasure::Finished { numbers }) = &resumed {
            erased.extend(numbers);
        }
        let take_up = || {
            engine.drain()?;
            let mut lost = 0;
            if let Some((reader, unknown)) = reader.zip(unknown.as_ref()) {
                // What followed the checkpoint was adopted.
                let reading = reader.reading()?;
                numbers.add_blocks(&reading, outlook.log.frames)?;
                numbers.add_events(&reading.manifest, outlook.log.frames)?;
                // Numbers may have been given of which no entry came into the log: nobody's key is lost with those. Those of entries that were
                // lost with a path the seal state knows, which does not go on behind such frames unless it speaks of them.
                let left_out = engine.skip_subjects(numbers.end().max(unknown.subject))?;
                lost = numbers.lost(&left_out, &erased);
            }
            // A vault from before this is known by it. An attempt that was cut short may have told it.
            given_up.map_or(Ok(()), |part| tell(&engine, &log, part))?;
            // The event gives the log something to sign. Only with the next checkpoint does the seal state say which numbers were
            // skipped.
            engine.rotate()?;
            engine.drain_and_finish()?;
            if let Some(unknown) = &unknown {
                // One that comes to nothing says nothing of paths that are still lost.
                let given_up = unknown.given_up.filter(|_| attempt.is_some());
                if let Some((part, paths)) = given_up.zip(log.paths()) {
                    let left = part.left.min(outlook.log.frames);
                    // What the attempt had signed itself may have lain on a path that was lost before it was done.
                    let own = outlook.lost_with_path.frames.last().map_or(0, |lost| lost.end);
                    paths.given_up_from(left.max(own))?;
                }
                files::remove(&*keys, files::RESTORING)?;
            }
            Ok(lost)
        };
        let lost = take_up().map_err(|error| after_resumed(resumed.as_ref(), error))?;
        Ok(Restored { outlook, lost, hold_differences, resumed })
    }

    /// Takes the locks and looks. Nothing is written.
    fn begin(&self, (log, keys): &(Arc<dyn Store>, Arc<dyn Store>)) -> Result<Begun> {
        let (config, settings) = config::load_of_log(&**log)?;
        // A log whose settings are refused is not being restored.
        let tuning = tuning((&**log, &**keys), settings, Options::default())?;
        let directories = Directories::lock_of_any_history(&**log, &**keys)?;
        load_signing_key(&**keys, &config)?;
        let before = Unknown::load(&**keys)?;
        let recorded = before.as_ref().and_then(|before| before.given_up);
        let said = (self.seal_key.as_ref().map(|text| text.as_str()), self.older_log);
        let gone_on_with = GoneOnWith::choose((log, &**keys), &config, said, recorded)?;
        let has_lost_path = gone_on_with.is_made && log.paths().is_some_and(Paths::has_lost_one);
        if has_lost_path && !self.older_log && recorded.is_none() {
            return Err(lost_path(&**log, &**keys));
        }
        let reader = match (config.erasure, &self.identity) {
            (false, _) => None,
            (true, Some(identity)) => Some(Reader::open_store(log.clone())?.identity(identity.clone())),
            (true, None) => {
                let message = "the blocks say which numbers were given: name an identity that opens them";
                return Err(Error::new(ErrorKind::NoKey, message));
            }
        };
        let vault = vault::open_vault(&config, &**keys, &self.environment, Access::Read, Vec::new());
        let new_vault = self.makes_vault((&config, &**keys), before.as_ref(), &vault)?;
        // An attempt to make one that was cut short may have left one that opens.
        let vault = if new_vault { vault.unwrap_or_default() } else { vault? };
        gone_on_with.require_newest(&**keys, vault.as_ref(), before.as_ref())?;
        let (replicas, stores) = (&tuning.vault_replicas, (&**log, &**keys));
        check_kept_replicas(replicas, vault.as_ref(), stores, &config, &self.environment)?;
        let pin = PinAtHand::look(None, (&**log, &**keys), &config, &self.environment)?;
        let found = Found::look((log, &**keys), &config, vault.as_ref(), &gone_on_with)?;
        // Until that is done the log does not open: nothing else can have been lost of which nothing tells.
        let told = recorded.filter(|part| found.is_given_up(*part));
        // What an attempt came to an end with is no part that is being given up, even where its record is still there, or there again. Nor is one of
        // which the seal state tells more: that came after it, or was not there when it began.
        let is_all = |before: &&Unknown| gone_on_with.adds_nothing_to(before) && told.is_none();
        let given_up_before = before.as_ref().filter(is_all).and_then(|before| before.given_up);
        if !self.older_log && given_up_before.is_none() {
            found.require_newest((&**log, &**keys), vault.as_ref(), &gone_on_with)?;
            if has_lost_path && told.is_none() {
                return Err(lost_path(&**log, &**keys));
            }
        }
        found.compare((&**log, &config), pin.as_ref())?;
        // What is recorded may be another loss than that of the attempt which the seal state is of: then nothing else is there of that.
        let is_of_recorded = recorded.is_some_and(|part| gone_on_with.is_of(part));
        let is_undone = !is_of_recorded && found.is_undone(&gone_on_with.state, vault.as_ref())?;
        if is_undone && !self.older_log && given_up_before.is_none() {
            return Err(not_done(&**keys));
        }
        let is_untold = (has_lost_path || is_undone) && !found.is_shorter() && told.is_none();
        let in_place = vault.as_ref().filter(|_| !new_vault);
        let is_whole = match (&before, given_up_before) {
            (Some(before), Some(part))
                if !is_untold && !is_undone && (in_place.is_some() || !config.erasure) =>
            {
                let speaks_of_more = !gone_on_with.is_made && gone_on_with.known_frames() > part.left;
                let has_all_paths = !log.paths().is_some_and(Paths::has_lost_one);
                let is_told = part.known == 0 && speaks_of_more && has_all_paths;
                let unknown = found.parts_of_unknown_length()?;
                let since = |id: &PartId| gone_on_with.was_given_up_since(before, &unknown, id);
                // A vault that knows less than was known then is from before that.
                let knows =
                    in_place.map_or(Ok(true), |vault| Ok(before.parts.is_subset(&vault.given_up()?)))?;
                knows && found.is_whole(in_place, part, &since, is_told)?
            }
            _ => false,
        };
        let (whole, given_up_before) = match is_whole {
            true => (given_up_before, None),
            false => (None, given_up_before),
        };
        let kept = match whole {
            Some(part) if in_place.map_or(Ok(true), |vault| found.is_marked(vault, part))? => {
                Some(gone_on_with.known_of(part))
            }
            _ => told,
        };
        // An attempt that makes the vault anew has made the one that is marked with its id, or makes it now.
        let makes_vault = before.as_ref().is_some_and(|before| before.new_vault);
        let vault_and_random = (vault.as_ref(), makes_vault, &*self.environment.random);
        let given_up = found.given_up(is_untold, (given_up_before, recorded), vault_and_random)?;
        let known = match &before {
            Some(before) if given_up_before.or(whole).or(kept).is_some() => before.parts.clone(),
            _ => {
                let mut known = vault.as_ref().map_or(Ok(BTreeSet::new()), known_parts)?;
                known.extend(&gone_on_with.state.given_up);
                known.extend(&found.parts());
                known
            }
        };
        let mut parts = found.parts();
        parts.extend(&known);
        // Of an attempt that comes to nothing no vault but one that is marked with it knows.
        parts.extend(gone_on_with.state.given_up.iter().filter(|_| whole.is_none()));
        parts.extend(given_up.map(|part| part.id));
        let (mut vault_behind, mut is_marked) = (false, false);
        match (given_up, in_place) {
            (Some(part), Some(vault)) => {
                vault.require_room(&parts)?;
                is_marked = found.is_marked(vault, part)?;
                vault_behind =
                    gone_on_with.is_newer_than(vault, before.as_ref())? || found.is_behind(vault, part)?;
            }
            (None, Some(vault)) if found.is_older() => {
                vault_behind = before.is_some() || has_people(vault)?;
            }
            _ => {}
        }
        let unknown = match config.erasure || given_up.is_some() || before.is_some() {
            true => Some(first_unknown(
                before.as_ref(),
                &gone_on_with.state,
                vault.as_ref(),
                &**keys,
                (new_vault, given_up, known),
            )?),
            false => None,
        };
        let reads = (reader.as_ref(), unknown.as_ref());
        let found = (found, vault_behind, before.is_some());
        let mut looked = look(&**keys, &config, vault.as_ref(), &gone_on_with, found, reads)?;
        if let Some(vault) = in_place.filter(|_| given_up.is_some() && !is_marked)
            && vault.next_number()? < looked.numbers.behind_blocks()
        {
            // It has given fewer numbers than the log has: it is older, whoever it has.
            looked.outlook.vault_behind = true;
        }
        let is_refused = looked.outlook.vault_behind && !self.older_vault && !is_marked;
        let replicas = tuning.vault_replicas;
        let mut state = gone_on_with.state;
        let comes_to_nothing = whole.is_some() && given_up.is_none() && state.attempt.is_some();
        state.given_up = parts;
        state.attempt = given_up.or(told).map(|part| part.attempt());
        Ok(Begun {
            config,
            directories,
            state,
            unknown,
            kept,
            comes_to_nothing,
            is_refused,
            reader,
            replicas,
            looked,
        })
    }

    /// Whether a new vault is made: where that is asked for, and where an earlier attempt to make one was cut short and nothing has come
    /// of it yet that has anybody's key.
    fn makes_vault(
        &self,
        (config, keys): (&LogConfig, &dyn Store),
        before: Option<&Unknown>,
        vault: &Result<Option<Vault>>,
    ) -> Result<bool> {
        if self.new_vault && !config.erasure {
            return Err(Error::invalid("a log without erasure has no vault: none is made"));
        }
        if !before.is_some_and(|before| before.new_vault) {
            return if self.new_vault { refuse_vault(keys).map(|()| true) } else { Ok(false) };
        }
        // What such an attempt made is empty, or cannot be opened.
        match require_nobody(keys, vault.as_ref().ok().and_then(Option::as_ref)) {
            Err(error) if error.kind() == ErrorKind::Refused && !self.new_vault => Ok(false),
            has_nobody => has_nobody.map(|()| true),
        }
    }
}

/// That a vault, if there is one, has nobody's key: a new one takes its place.
///
/// # Errors
/// `Refused` where it has; else where it cannot be read.
fn require_nobody(keys: &dyn Store, vault: Option<&Vault>) -> Result<()> {
    match vault.map_or(Ok(0), |vault| Ok(vault.check(&|_| true, &|_| ())?.people))? {
        0 => Ok(()),
        people => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{} has the keys of {}: a new vault would lose them; take this one up, without a new one",
                keys.describe(files::VAULT),
                counted(people, "data subject")
            ),
        )),
    }
}

/// Why the seal state is not made anew of a log that has lost a path: without it nothing says how far the log had come there.
fn lost_path(log: &dyn Store, keys: &dyn Store) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "{} is missing, which says how far the log had come, and {}: bring that file as this host wrote it last, or the path. Where \
             neither is left, `bulla restore --older-log` goes on with what is there, and what came after that is lost: see \
             docs/operating.md, \"The path in use is lost\"",
            keys.describe(files::SEAL_STATE),
            not_there(log)
        ),
    )
}

/// Why a vault is not gone on with that may not have followed what is given up.
fn behind(keys: &dyn Store) -> Error {
    let message = format!(
        "{} may not have followed what is given up now, or was given up before, and whoever was erased in that may have a key in it: nothing would be read under its keys, for \
         good, and no newer vault could be brought later. Bring the newest one; where this is the newest that is left, say `--older-vault`. Where \
         an attempt was begun with an older one, docs/operating.md, \"Several paths\", says how to begin with this",
        keys.describe(files::VAULT)
    );
    Error::new(ErrorKind::Refused, message)
}

/// Removes from each path what an attempt that comes to nothing has left of its tree there, where no checkpoint covers it. Where nothing tells what the
/// signed tree has, what is full stays: it may be all that is left of that.
fn remove_tree_of_attempt(log: &Arc<dyn Store>, config: &LogConfig) -> Result<()> {
    let Snapshot { checkpoint, .. } = Snapshot::of(log.clone())?;
    let signed = TreeHead { size: checkpoint.size, root: checkpoint.root };
    let nodes = stored_tree::nodes_of(&**log, signed)?;
    let paths = log.paths().map_or_else(|| vec![log.clone()], Paths::present);
    for path in &paths {
        let checkpoint = read_note(&**path)?.and_then(|note| config.own_keys().open(&note).ok());
        let covered = checkpoint.map_or(0, |checkpoint| checkpoint.size);
        tree_files::remove_of_another_tree(&**path, covered, |tile, full| {
            Ok(nodes.as_ref().is_none_or(|nodes| stored_tree::is_under(nodes, tile, full)))
        })?;
    }
    Ok(())
}

/// Has the log tell that this part of it is given up, unless it does already.
fn tell(engine: &Engine, log: &Arc<dyn Store>, GivenUp { known, id, .. }: GivenUp) -> Result<()> {
    let told = given_up::told(&Manifest::load(Snapshot::of(log.clone())?)?, 0)?;
    match told.iter().any(|(_, told)| *told == id) {
        true => Ok(()),
        false => engine.record(Event::Truncated { known, id: id.to_string() }).map(drop),
    }
}

/// What is known once the locks are held, and before anything is changed.
struct Begun {
    config: LogConfig,
    directories: Arc<Directories>,
    /// Of the parts of the log that were given up it has those of which the log tells, and the one that is given up now.
    state: SealState,
    /// Of a log with erasure, and of one that is gone on with although it may have been longer, or was.
    unknown: Option<Unknown>,
    /// What stays written of an attempt, although nothing is given up now, until all that goes with its end is in place: it came no further than
    /// telling what it gave up, or marked the vault, and the log is whole again.
    kept: Option<GivenUp>,
    /// Whether the seal state is of an attempt that gives nothing up.
    comes_to_nothing: bool,
    /// Whether the vault is behind, and nobody has said that it may be.
    is_refused: bool,
    /// Of a log with erasure.
    reader: Option<Reader>,
    /// Where the vault's replicas are.
    replicas: Vec<PathBuf>,
    looked: Looked,
}

/// Opening the log replaces the seal state, which says what the backup does not know; so that is written down first. Where an earlier
/// attempt was cut short, another backup may have been put in place since then. Then the earlier frame and the greater number of the two count, so
/// that neither backup is taken to know what it does not. A vault that has given fewer numbers than the state knows of knows nothing
/// of the blocks that it does not follow.
///
/// # Errors
/// Where the vault or the holds cannot be read.
fn first_unknown(
    before: Option<&Unknown>,
    state: &SealState,
    vault: Option<&Vault>,
    keys: &dyn Store,
    (new_vault, given_up, parts): (bool, Option<GivenUp>, BTreeSet<PartId>),
) -> Result<Unknown> {
    let mut frame = if new_vault || given_up.is_some() { 0 } else { state.chain.next_frame() };
    if let Some(vault) = vault
        && vault.next_number()? < state.subjects
    {
        frame = frame.min(vault.follows()?.size);
    }
    // Who is held has a number that may have been given in what is lost.
    let subject = state.subjects.max(Holds::load(keys)?.next_number());
    let mut unknown = Unknown { frame, subject, new_vault, given_up, parts };
    if let Some(before) = before {
        unknown.frame = unknown.frame.min(before.frame);
        unknown.subject = unknown.subject.max(before.subject);
    }
    Ok(unknown)
}

/// Refuses to make a vault where there is anything of one: it may be of a vault that is only somewhere else.
fn refuse_vault(keys: &dyn Store) -> Result<()> {
    for name in [files::VAULT, files::ROOTS] {
        let has_something = match keys.list(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            items => !items
                .map_err(|error| Error::io(format!("listing {}", keys.describe(name)), error))?
                .is_empty(),
        };
        if has_something {
            let name = keys.describe(name);
            let message = format!(
                "{name} is there, and a new vault is made only where nothing of one is left: go on with it, without a new one, where it \
                 can be used, as one can that a restore has made before; move it away where it cannot"
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
    }
    Ok(())
}
