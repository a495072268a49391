//! Opening what holds the numbers and keys of a log's data subjects, and refusing what is older than the log.
//!
//! - Until nothing speaks against the vault it is open for reading only: what is refused changes neither the key directory nor a replica,
//!   which may be the last good one.

use crate::format::config::LogConfig;
use crate::keys::restoring::Unknown;
use crate::keys::seal_state::SealState;
use crate::keys::{files, vault};
use crate::scan::given_up::{self, Line};
use crate::scan::manifest::Manifest;
use crate::scan::own_keys::other_history;
use crate::scan::snapshot::Snapshot;
use crate::write::engine::pins::{self, PinAtHand};
use crate::write::recover::earlier;
use crate::write::recover::{self, Edge, Found};
use bulla_crypto::environment::Environment;
use bulla_crypto::group::{GroupKeys, PartId, Subjects};
use bulla_proof::tree::TreeHead;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};
use bulla_text::spelling::counted;
use bulla_vault::{Access, ReplicaLocation, ReplicaState, Vault};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which vaults a log is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vaults {
    /// Only one that is not older than the log.
    Newest,
    /// One from a backup, too: the caller sees to what is missing in it.
    Restored,
    /// One with which a part of the log is given up, too: the caller has seen to what that told, and has had any that is behind say that nothing is
    /// read under it.
    NewerThanLog,
}

impl Vaults {
    /// Those that taking up a key directory goes on with; `gives_up` says whether the newest part of the log is given up.
    pub(crate) fn of_restore(gives_up: bool) -> Self {
        if gives_up { Vaults::NewerThanLog } else { Vaults::Restored }
    }
}

/// The numbers and keys of the data subjects of a log with erasure.
pub(super) struct SubjectKeys {
    pub(super) subjects: Arc<dyn Subjects>,
    /// The log's own vault, where that is what holds them.
    pub(super) vault: Option<Arc<Vault>>,
}

/// Refuses key directories whose restore was cut short: it has to be done again first.
pub(super) fn refuse_unfinished(keys: &dyn Store) -> Result<()> {
    match Unknown::load(keys)? {
        Some(unknown) => Err(unknown.unfinished(keys)),
        None => Ok(()),
    }
}

fn older(keys: &dyn Store) -> Error {
    let message = format!(
        "{} is older than the log: it knows nothing of the data subjects that were new since then; restore the newest \
         backup of it, or, where there is none, take it up with `bulla restore`",
        keys.describe("")
    );
    Error::new(ErrorKind::Refused, message)
}

/// That a key directory, and what gives numbers to data subjects, are no older than a log whose checkpoint covers `signed` frames, and that has
/// so many entries beyond it. `has_vault` says whether the numbers are given by the log's own vault.
///
/// # Errors
/// `Refused` where one of them is; else where that cannot be told.
pub(crate) fn require_newest(
    keys: &dyn Store,
    (subjects, has_vault): (&dyn Subjects, bool),
    state: &SealState,
    (signed, unsigned_entries): (u64, u64),
) -> Result<()> {
    // One that is older would give numbers a second time.
    subjects.require_at_least(state.subjects)?;
    if has_vault && state.chain.next_frame() < signed {
        return Err(older(keys));
    }
    if unsigned_entries > 0 { subjects.require_signed(state.followed) } else { Ok(()) }
}

/// Whether a vault followed more frames than the log has, which goes on behind `frames`: an older copy was put in its place.
///
/// # Errors
/// `Refused` where it followed other frames than the log has.
pub(crate) fn followed_more(
    (keys, vault): (&dyn Store, &Vault),
    (log, edge): (&Arc<dyn Store>, &Edge),
    frames: u64,
) -> Result<bool> {
    let TreeHead { size, root } = vault.follows()?;
    if size > frames {
        return Ok(true);
    }
    let own = match edge.root_at(size) {
        Some(root) => root,
        None => Manifest::load_to_open(Snapshot::of(log.clone())?)?.root_at(size)?,
    };
    match own == root {
        true => Ok(false),
        false => Err(other_history(&keys.describe(files::VAULT))),
    }
}

/// That a log which goes on behind `frames` is an older copy, or lacks a path: the vault is told of frames before the seal state speaks of
/// them, which may then not be written any more.
///
/// # Errors
/// Where the vault cannot be read.
pub(crate) fn older_log((log, frames): (&dyn Store, u64), keys: &dyn Store, vault: &Vault) -> Result<Error> {
    Ok(Error::tampered(format!(
        "{} ends after {}, but the vault in {} has followed {}: an older copy of the log was put in its place, or a path of it is missing \
         that has the rest; bring that, or the newest copy, or, where they are lost for good, go on with this one by \
         `bulla restore --older-log`",
        log.describe(""),
        counted(frames, "frame"),
        keys.describe(""),
        vault.follows()?.size
    )))
}

/// How a vault stands to a log whose checkpoint is at hand in `log`: behind that come the parts that `unsigned` events tell of, and it goes on behind
/// `next` frames.
fn line_of(
    (log, keys): (&Arc<dyn Store>, &dyn Store),
    vault: &Vault,
    (signed, next): (u64, u64),
    unsigned: &[(u64, PartId)],
) -> Result<Line> {
    Line::of((&keys.describe(files::VAULT), &vault.erased_up_to()?), next, |from| {
        let mut told = unsigned.to_vec();
        if from < signed {
            told.extend(given_up::told(&Manifest::load_to_open(Snapshot::of(log.clone())?)?, from)?);
        }
        Ok(told.into_iter().map(|(_, id)| id).collect())
    })
}

/// What recovery finds of a log that these may go on with, and how the vault stands to it. Nothing is written.
///
/// # Errors
/// As [`SubjectKeys::load`].
fn find(
    (log, keys): (&Arc<dyn Store>, &dyn Store),
    config: &LogConfig,
    (subject_keys, vaults): (Option<&SubjectKeys>, Vaults),
    pin: Option<&PinAtHand>,
) -> Result<(Found, Line)> {
    let found = recover::find(&**log, keys, config);
    let mut found = found.map_err(|error| recover::earlier::explain(error, log, keys))?;
    let (edge, next) = found.edge();
    found.report.cose_damaged = pins::compare(pin, (&**log, config), found.signed(), (&edge, next))?;
    if let Some(subject_keys) = subject_keys.filter(|_| vaults == Vaults::Newest) {
        let SubjectKeys { subjects, vault } = subject_keys;
        let log = (found.signed_frames(), found.report.entries);
        require_newest(keys, (&**subjects, vault.is_some()), &SealState::load(keys)?, log)?;
    }
    let (attempt, known) = &found.attempt;
    if attempt.is_some() && vaults == Vaults::Newest {
        let manifest = Manifest::load_to_open(Snapshot::of(log.clone())?)?;
        let vault = subject_keys.and_then(|subject_keys| subject_keys.vault.as_deref());
        if earlier::is_undone((*attempt, known), (&manifest, found.given_up()), vault)? {
            return Err(earlier::not_done(keys));
        }
    }
    let mut line = Line::Own;
    if let Some(vault) = subject_keys.and_then(|subject_keys| subject_keys.vault.as_deref()) {
        let (edge, next) = found.edge();
        let is_longer = followed_more((keys, vault), (log, &edge), next)?;
        line = line_of((log, keys), vault, (found.signed_frames(), next), found.given_up())?;
        if is_longer && vaults == Vaults::Newest {
            return Err(older_log((&**log, next), keys, vault)?);
        }
    }
    Ok((found, line))
}

impl SubjectKeys {
    /// Opens what the environment gives, or else the log's vault, to write with its replicas; `None` for a log without erasure. With it
    /// comes what recovery finds of the log, and how the vault stands to it.
    ///
    /// # Errors
    /// As [`recover::find`] and [`vault::open_vault`]; `Refused` where they are older than the log, or of a part of it that was given up, `Tampered`
    /// where the log is older. All but what cannot be written is told before anything is written.
    pub(super) fn load(
        (log, keys): (&Arc<dyn Store>, &Arc<dyn Store>),
        config: &LogConfig,
        environment: &Environment,
        vaults: Vaults,
        (replicas, pin): (&[PathBuf], Option<&PinAtHand>),
    ) -> Result<(Option<Self>, Found, Line)> {
        let stores = (&**log, &**keys);
        let places = locate(replicas, stores, config, environment)?;
        let looked_at = Self::open((config, &**keys), environment, Access::Read, Vec::new())?;
        let (found, line) = match find((log, &**keys), config, (looked_at.as_ref(), vaults), pin) {
            Ok(found) => found,
            Err(error) => {
                // A replica that is newer says what there is to go on with.
                if let Some(SubjectKeys { vault: Some(vault), .. }) = &looked_at {
                    check_kept_replicas(replicas, Some(vault), stores, config, environment)?;
                }
                return Err(error);
            }
        };
        Ok((Self::open((config, &**keys), environment, Access::Write, places)?, found, line))
    }

    fn open(
        (config, keys): (&LogConfig, &dyn Store),
        environment: &Environment,
        access: Access,
        replicas: Vec<ReplicaLocation>,
    ) -> Result<Option<Self>> {
        if !config.erasure {
            return Ok(None);
        }
        let vault = vault::open_vault(config, keys, environment, access, replicas)?.map(Arc::new);
        let of_vault = vault.clone().map(|vault| vault as Arc<dyn Subjects>);
        let subjects = of_vault.or_else(|| environment.subjects.clone());
        Ok(subjects.map(|subjects| SubjectKeys { subjects, vault }))
    }

    /// The vault's replicas.
    pub(super) fn replicas(&self) -> Vec<ReplicaState> {
        self.vault.as_ref().map_or_else(Vec::new, |vault| vault.replicas())
    }
}

/// Checks where replicas of the vault are to be, as opening the log to write does before it makes anything there.
///
/// # Errors
/// `Invalid` where the log has no vault; `Refused` where one lies in the log's directory or among its keys, or is named twice; `Unavailable`
/// where one is no directory, or on a file system that can hold no vault.
pub(crate) fn check_replicas(
    replicas: &[PathBuf],
    (log, keys): (&dyn Store, &dyn Store),
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    let replicas = locate(replicas, (log, keys), config, environment)?;
    if replicas.is_empty() { Ok(()) } else { vault::check_replicas(keys, &replicas) }
}

/// The same, and checks what is in them, as opening the log to write does beside this vault, or beside a new one where there is none.
/// Nothing is written.
///
/// # Errors
/// As [`check_replicas`]; `Refused` where one is newer than the vault, or another log's, or would be lost with a new vault;
/// `Unavailable` where one is damaged.
pub(crate) fn check_kept_replicas(
    replicas: &[PathBuf],
    vault: Option<&Vault>,
    (log, keys): (&dyn Store, &dyn Store),
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    let replicas = locate(replicas, (log, keys), config, environment)?;
    if replicas.is_empty() { Ok(()) } else { vault::check_kept_replicas(keys, vault, &replicas) }
}

/// Marks the vault, and every copy of it, as that with which a part of the log is given up: `parts` has its id, and those of which the log tells.
/// Where it `is_behind`, nothing is read under its keys from then on. With `erased`, whom the log tells of as erased, it leaves out the numbers whose
/// erasure only frames told of that are lost. It is opened to write with its replicas, as opening the log does.
///
/// # Errors
/// As [`check_kept_replicas`] and [`Vault::mark_given_up`].
pub(crate) fn mark_given_up(
    replicas: &[PathBuf],
    (log, keys): (&dyn Store, &dyn Store),
    (config, environment): (&LogConfig, &Environment),
    (parts, is_behind): (&BTreeSet<PartId>, bool),
    erased: Option<&BTreeSet<u64>>,
) -> Result<()> {
    let places = locate(replicas, (log, keys), config, environment)?;
    let Some(vault) = vault::open_vault(config, keys, environment, Access::Write, places)? else {
        return Ok(());
    };
    match erased {
        Some(erased) => vault.mark_given_up(parts, is_behind, Some(&|number| erased.contains(&number))),
        None => vault.mark_given_up(parts, is_behind, None),
    }
}

/// Where replicas are: neither in the log's directory, since whoever keeps the log must not get the keys with it, nor beside the vault,
/// where they would be lost with it.
fn locate(
    replicas: &[PathBuf],
    (log, keys): (&dyn Store, &dyn Store),
    config: &LogConfig,
    environment: &Environment,
) -> Result<Vec<ReplicaLocation>> {
    if !replicas.is_empty() && !vault::has_vault(config, environment) {
        return Err(Error::invalid("`vault_replicas` is set, and the log has no vault: unset it"));
    }
    let outside = |path: &PathBuf| {
        refuse_inside(log, path, "the log's directory, which holds no keys")?;
        refuse_inside(keys, path, "the key directory, with which it would be lost")?;
        Ok(ReplicaLocation::new(path))
    };
    replicas.iter().map(outside).collect()
}

#[expect(clippy::disallowed_methods, reason = "only paths without links tell whether one lies in the other")]
fn refuse_inside(store: &dyn Store, path: &Path, what: &str) -> Result<()> {
    let inside = |held: &Path| Some(path.canonicalize().ok()?.starts_with(held.canonicalize().ok()?));
    match store.directory().and_then(|directory| inside(&directory.held_path().ok()?)) {
        Some(true) => Err(Error::new(
            ErrorKind::Refused,
            format!("{}, a replica of the vault, lies in {what}: name another one", path.display()),
        )),
        _ => Ok(()),
    }
}
