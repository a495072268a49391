//! What a log is, without reading it through.

use crate::format::config::{FieldRules, LogConfig};
use crate::format::segment;
use crate::scan::cosignatures::newest_cosignatures;
use crate::scan::lost::LostFrames;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree::Chunk;
use crate::scan::unsigned::unsigned;
use bulla_proof::LogKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::{Commitment, LogId};
use bulla_proof::cosignature::CosignerKey;
use bulla_proof::hash::Hash;
use bulla_store::{Error, Result};
use bulla_store::{FileSystem, MissingPath, PathState, Paths, Store};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a log is, as its configuration and its checkpoint say. `verify` says whether that is true.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The origin of its checkpoints.
    pub origin: String,
    /// The key that they are signed with.
    pub vkey: VerifierKey,
    /// Its key of ML-DSA-44, where its checkpoints are signed with one too.
    pub vkey_ml_dsa: Option<LogKey>,
    /// The log's id.
    pub id: LogId,
    /// The hash of units and block roots.
    pub hash: String,
    /// Who can read it.
    pub recipients: Vec<String>,
    /// What becomes of the fields of entries before they are logged.
    pub fields: FieldRules,
    /// Whether personal fields are encrypted for each set of data subjects, so that they can be erased.
    pub erasure: bool,
    /// In how many groups of a block what they have in common has to occur, where they share it: see [`crate::Init::common`].
    pub common: Option<u32>,
    /// The key that orders to erase are signed with.
    pub erasure_key: Option<VerifierKey>,
    /// Entry numbers given so far, lost entries included.
    pub entries: u64,
    /// Frames that the checkpoint covers.
    pub tree_size: u64,
    /// The root that it signs.
    pub root: Hash,
    /// Bytes of all files of the log.
    pub bytes: u64,
    /// Bytes of segments that follow what the checkpoint covers, which nobody has signed: what a copy beside a writer, or a crash,
    /// leaves, or whoever holds the storage. Nothing where a writer is at work.
    pub unsigned_bytes: Option<u64>,
    /// Segments.
    pub segments: u64,
    /// The whole seconds that the first covered frame begins, and the last one ends in.
    pub times: Option<(i64, i64)>,
    /// The writing host's clock at the newest epoch or event that the checkpoint covers, in seconds since the Unix epoch:
    /// nothing where it covers none.
    pub signed_time: Option<i64>,
    /// How much time passes at most, as the log promises, until the writer commits an epoch or an event.
    pub heartbeat: Option<Duration>,
    /// The witnesses that the log asks for cosignatures, in the order of its policy.
    pub witnesses: Vec<WitnessInfo>,
    /// Keys of whoever made the log, which begin with `x-`.
    pub extra: BTreeMap<String, String>,
    /// Whether a writer has it open.
    pub locked: bool,
    /// The paths on which it lies and that are not there: without one that the writer has not left, what is said here may be older than
    /// the log.
    pub missing_paths: Vec<MissingPath>,
    /// Of a log on several paths, all of them, and those that are lost; else none.
    pub paths: Vec<PathState>,
    /// The frames that were lost for good with a path, as the key directory notes it.
    pub lost: LostFrames,
    /// The frames that were signed, as the key directory knows, behind those of which this tells: what covers them lay on a path that is lost,
    /// or is missing, and on no other.
    pub out_of_reach: Option<Range<u64>>,
    /// Why it cannot be told which paths the log has, or whether frames are out of reach, or that this is another history of the log than the key
    /// directory's; nothing where none of that is so. Then what is said here may be of a part of the log, or not of the log at all.
    pub untold: Option<String>,
}

/// A witness that a log asks, and what it has cosigned as far as the log's files have it: each cosignature was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WitnessInfo {
    /// What the log's policy calls it.
    pub name: String,
    /// Its key.
    pub key: CosignerKey,
    /// The prefix of its address.
    pub address: String,
    /// How many frames the newest checkpoint covers that it has cosigned, and the time in that cosignature, by its own clock, in seconds
    /// since the Unix epoch. Nothing where the log has none of it.
    pub newest: Option<(u64, u64)>,
}

/// Looks at the log in `directory`.
///
/// # Errors
/// `Unavailable` where there is no log or a file cannot be read, `Tampered` where its configuration is not one or not that
/// of its last epoch, or its checkpoint not its own.
pub fn info(directory: impl AsRef<Path>) -> Result<Info> {
    info_of(Arc::new(FileSystem::new(directory.as_ref())))
}

/// Looks at the log in any store.
///
/// # Errors
/// As [`info`].
pub fn info_of(store: Arc<dyn Store>) -> Result<Info> {
    let manifest = Manifest::load_end(Snapshot::part_of(store)?)?;
    let (unsigned, lost) = (unsigned(&manifest)?, manifest.lost()?.clone());
    let Snapshot { store, config, checkpoint, live, .. } = manifest.snapshot;
    let (store, size) = (&*store, checkpoint.size);
    let witnesses = witnesses(store, &config)?;
    let commitment = |frame: u64| -> Result<Option<Commitment>> {
        let entry = Chunk::load(store, frame, size)?.entry(frame);
        Ok(entry.and_then(|entry| Commitment::decode(&entry).ok()))
    };
    let (first, last) = match size {
        0 => (None, None),
        _ => (commitment(0)?, commitment(size - 1)?),
    };
    let named = store.paths().map_or(Ok(()), Paths::require_named);
    let (out_of_reach, untold) =
        match named.and_then(|()| store.paths().map_or(Ok(None), Paths::out_of_reach)) {
            Ok(out_of_reach) => (out_of_reach, store.paths().and_then(Paths::another_history)),
            Err(error) => (None, Some(error.to_string())),
        };
    Ok(Info {
        origin: config.origin,
        vkey: config.verifier_key,
        vkey_ml_dsa: config.ml_dsa_key,
        id: config.id,
        hash: config.hash.name().to_owned(),
        recipients: config.recipients,
        fields: config.fields,
        erasure: config.erasure,
        common: config.common,
        erasure_key: config.erasure_key,
        entries: last.as_ref().map_or(0, |last| last.first_entry + last.entries),
        tree_size: size,
        root: checkpoint.root,
        bytes: bytes_below(store, "")?,
        unsigned_bytes: unsigned.map(|(_, bytes)| bytes),
        segments: segment::list(store)?.0.len() as u64,
        signed_time: manifest.latest.map(|latest| latest.time),
        heartbeat: config.heartbeat,
        witnesses,
        extra: config.extra,
        times: first.zip(last).map(|(first, last)| (first.earliest, last.latest)),
        locked: live,
        missing_paths: store.paths().map_or_else(Vec::new, Paths::missing),
        paths: store.paths().map_or_else(Vec::new, Paths::states),
        lost,
        out_of_reach,
        untold,
    })
}

/// The frames of a log that were lost for good with one of its paths; none where its key directory notes no path as lost, or one that it
/// names is missing: they may lie there.
///
/// # Errors
/// As [`info`].
pub fn lost_frames_of(store: Arc<dyn Store>) -> Result<LostFrames> {
    Manifest::lost_of(Snapshot::part_of(store)?)
}

fn witnesses(store: &dyn Store, config: &LogConfig) -> Result<Vec<WitnessInfo>> {
    let asked = config.witness_policy.iter().flat_map(|policy| policy.asked());
    let infos = asked.zip(newest_cosignatures(store, config)?).map(|(witness, newest)| WitnessInfo {
        name: witness.name.clone(),
        key: witness.key.clone(),
        address: witness.address.to_string(),
        newest,
    });
    Ok(infos.collect())
}

/// Bytes of all files in a directory and below; what goes away meanwhile does not count.
fn bytes_below(store: &dyn Store, directory: &str) -> Result<u64> {
    let items = match store.list(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        items => items.map_err(|error| Error::io(format!("listing {}", store.describe(directory)), error))?,
    };
    let mut bytes = 0;
    for item in items {
        let path = if directory.is_empty() { item.name } else { format!("{directory}/{}", item.name) };
        bytes += match item.directory {
            true => bytes_below(store, &path)?,
            false => store.open(&path).and_then(|file| file.length()).unwrap_or(0),
        };
    }
    Ok(bytes)
}
