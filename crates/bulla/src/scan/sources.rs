//! What the blocks of a log say of sources, from the ends of their bodies: nothing else of a block is read.
//!
//! What can be believed of it, by whoever has the key of sources and whatever the storage says: the frames are those of the signed list,
//! and a section opens under no other commitment than its own (`keys/sources`). So the digest of the body is not needed. A section
//! that does not open ends the scan: to leave it out would have somebody append what the log has already. Those in frames that were
//! lost for good with a path are left out, since the log has nothing of what they say.

use crate::format::epoch::EpochBody;
use crate::format::frame::HEAD;
use crate::format::sources::passed::AllPassed;
use crate::format::sources::table::Table;
use crate::keys::sources::{SourcesKey, SourcesSoFar, open_section};
use crate::scan::located::Located;
use crate::scan::manifest::{Frames, Manifest, Placed};
use bulla_proof::commitment::FrameKind;
use bulla_store::{Error, Result, Store};
use zeroize::Zeroizing;

/// What blocks say of sources, and what that was read with.
pub(crate) struct SourcesRead {
    /// `None` where the log has none, and so nothing to read with it.
    pub(crate) key: Option<SourcesKey>,
    pub(crate) so_far: SourcesSoFar,
    /// How many frames were not read, because what was kept tells of them.
    pub(crate) kept: u64,
    /// What became no entry, and counts beside what blocks say.
    pub(crate) passed: AllPassed,
}

/// What the frames of a manifest say of sources, up to the last one that says something.
///
/// # Errors
/// `NoKey` where blocks say something and the key is missing, `Tampered` where something of that is damaged, or missing without being
/// lost, `Unavailable` where a file cannot be read.
pub(crate) fn read(manifest: &Manifest, keys: &dyn Store) -> Result<SourcesRead> {
    let log = manifest.snapshot.config.id;
    let key = SourcesKey::load(keys, log)?;
    let kept = key.as_ref().map_or(Ok(None), |key| key.load_state(keys, log))?;
    let kept = kept.map_or(Ok(None), |kept| Ok(is_of(manifest, &kept)?.then_some(kept)))?;
    // Where records of sources are lost, what was kept has them as if they were there, and without it nobody would.
    let (mut so_far, labelled) = match kept {
        Some(kept) if manifest.lost()?.of_sources > 0 => (SourcesSoFar::default(), kept.table),
        kept => (kept.unwrap_or_default(), Table::default()),
    };
    let kept = so_far.frames;
    if kept < manifest.size() {
        scan(manifest, &mut so_far, key.as_ref(), keys)?;
    }
    // A label that is lost with a frame is known from there still.
    so_far.table.take_labels(&labelled);
    let mut passed = key.as_ref().map_or(Ok(AllPassed::default()), |key| key.load_passed(keys, log))?;
    passed.retain_counting(&so_far.table);
    Ok(SourcesRead { key, so_far, kept, passed })
}

/// Whether what was kept is of this history: it ends with a block of it that has a section. No other history has the same one, as its
/// section is encrypted under the random bytes of its epoch.
fn is_of(manifest: &Manifest, kept: &SourcesSoFar) -> Result<bool> {
    Ok(kept.frames <= manifest.size() && manifest.last_leaf(kept.frames)? == kept.leaf)
}

/// Takes in what further frames say.
fn scan(
    manifest: &Manifest,
    so_far: &mut SourcesSoFar,
    key: Option<&SourcesKey>,
    keys: &dyn Store,
) -> Result<()> {
    let (from, lost) = (so_far.frames, manifest.lost()?);
    let mut frames = Frames::from(manifest, from)?;
    let mut of_epoch = None::<(u64, Zeroizing<[u8; 32]>)>;
    while let Some(placed) = frames.next()? {
        let commitment = &placed.commitment;
        if commitment.kind != FrameKind::Block || commitment.sources_length == 0 || commitment.frame < from {
            continue;
        }
        if lost.contains(commitment.frame) {
            continue;
        }
        let (frame, epoch) = (commitment.frame, commitment.epoch);
        let key = key.ok_or_else(|| SourcesKey::missing(keys))?;
        let of_epoch = match &mut of_epoch {
            Some((number, key)) if *number == epoch => key,
            other => {
                let random = random_of_epoch(&mut frames)?;
                let key = key.of_epoch(placed.commitment.log_id, epoch, &random)?;
                &mut other.insert((epoch, key)).1
            }
        };
        let located = frames.locate(placed)?;
        for entry in open_section(of_epoch, &located.commitment, section(&located)?)? {
            so_far.table.take(frame, entry);
        }
        (so_far.frames, so_far.leaf) = (frame + 1, located.commitment.leaf());
        if so_far.table.is_overfull() {
            return Err(Error::tampered("blocks name more sources than a log has; run `bulla verify`"));
        }
    }
    Ok(())
}

/// The random bytes of the current epoch.
fn random_of_epoch(frames: &mut Frames<'_>) -> Result<[u8; 32]> {
    let epoch: Placed =
        frames.epoch_at_hand()?.cloned().ok_or_else(|| Error::tampered("there is no epoch"))?;
    Ok(EpochBody::decode(&frames.read(epoch)?)?.random)
}

/// The end of a block's body that says what it holds of sources.
fn section(frame: &Located) -> Result<Vec<u8>> {
    let commitment = &frame.commitment;
    // It is bounded by its 24 bits.
    let mut section = vec![0; commitment.sources_length as usize];
    let offset = frame.offset + HEAD as u64 + commitment.sealed_length();
    let read = frame.file.read_exact_at(&mut section, offset);
    read.map_err(|error| Error::io(format!("reading {}", frame.segment.path()), error))?;
    Ok(section)
}
