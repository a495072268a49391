//! What a key directory that is to be taken up knows of the log, and what the log has: told before anything is changed.

use super::numbers::Numbers;
use super::seal_state::GoneOnWith;
use crate::erase::pending::Pending;
use crate::format::config::LogConfig;
use crate::keys::files;
use crate::keys::restoring::{GivenUp, Unknown};
use crate::keys::seal_state::SealState;
use crate::read::reader::Reader;
use crate::scan::events::each_event;
use crate::scan::given_up::{self, Line};
use crate::scan::lost::LostFrames;
use crate::scan::manifest::{Frames, Manifest, Placed};
use crate::scan::snapshot::Snapshot;
use crate::write::engine::pins::{self, PinAtHand};
use crate::write::engine::{self, Course, Leftover, Vaults, course, followed_more, leftover, require_newest};
use crate::write::recover::{self, Beyond, earlier};
use bulla_crypto::environment::Random;
use bulla_crypto::group::{Followed, GroupKeys, PartId};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_text::spelling::counted;
use bulla_vault::Vault;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a key directory that is to be taken up knows, what the log has, and what follows from that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outlook {
    /// What its seal state speaks of: nothing where that is missing.
    pub known: Extent,
    /// What the log has under its checkpoint. All of it is kept.
    pub log: Extent,
    /// How many frames the keys know of that the log has not, or knew of before an attempt that was cut short: its newest part, which is
    /// lost with all that it told. Where a longer copy is found meanwhile, by its checkpoint, those that
    /// this has are not among them.
    pub lost_frames: u64,
    /// Whether more may be lost than these: nothing tells how many frames there were; or the keys know of a part that was given up before, of which
    /// this copy does not tell, so that it may be of that part, and lack what came in its place.
    pub may_lose_more: bool,
    /// Whether the newest part of the log is given up, or may be, with a vault that may not have followed that part, or another one, or was given
    /// up before, with a newer vault: whoever was erased there may have a key in it, so that nothing is read under its keys from then on. It is
    /// gone on with only where that is said ([`Restore::older_vault`](super::Restore::older_vault)).
    pub vault_behind: bool,
    /// The frames of the log that were lost with a path of it: whom these told of as erased, and which numbers data subjects were given
    /// there, is not known.
    pub lost_with_path: LostFrames,
    /// The data subjects whom the log says it erased, and whose keys the vault has again: they are erased again.
    pub erased: Vec<u64>,
    /// The erasure that was cut short, and is finished.
    pub finishes: Option<CutErasure>,
    /// How many data subjects' keys are lost: entries that were not known have their numbers, and the log does not say that they were
    /// erased. Of these numbers the vault knows nothing, or an earlier attempt went past them; or, where the newest part of the log is lost,
    /// it has destroyed their keys, which only that part told of. Entries beyond the checkpoint may be about more of them.
    pub lost: u64,
    /// How many entries the log has that no checkpoint covers yet, and that are kept where their frames are whole.
    pub unsigned_entries: u64,
    /// Whether the seal state is missing, or speaks of what is given up, and is made anew from the seal key.
    pub makes_seal_state: bool,
    /// Whether there is anything to take up. Otherwise neither the seal state nor the vault is missing or older than the log, and
    /// nothing is changed.
    pub needed: bool,
}

/// An erasure that the vault has begun, and that taking it up finishes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutErasure {
    /// The numbers of the data subjects, ascending.
    pub numbers: Vec<u64>,
    /// Whether their keys are destroyed already. Otherwise it is withdrawn where somebody of them is held by then.
    pub destroyed: bool,
}

/// A log from its beginning up to some frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// Frames.
    pub frames: u64,
    /// The entries in them, as far as the log has them.
    pub entries: u64,
    /// The writing host's clock at the last epoch or event among those of these frames that the log has, in seconds since the Unix
    /// epoch.
    pub time: Option<i64>,
}

/// What was looked at, for whoever goes on from there.
pub(super) struct Looked {
    pub(super) outlook: Outlook,
    /// The numbers of data subjects in the blocks that were not known, under the checkpoint, and in events.
    pub(super) numbers: Numbers,
    /// Data subjects whom the log says that it erased, also where no checkpoint covers that yet.
    pub(super) erased: BTreeSet<u64>,
    /// Whether the log ends before what the vault followed.
    pub(super) is_cut: bool,
}

/// What there is of the log.
pub(super) struct Found {
    manifest: Manifest,
    beyond: Beyond,
    /// The parts of it that were given up, as events tell, with their frames.
    told: Vec<(u64, PartId)>,
    /// The frames that the keys know of, where that is more than there are, and the root over them, where that is known.
    known: Option<(u64, Option<Hash>)>,
    /// Whether the vault followed more than there are.
    is_cut: bool,
    /// How the vault stands to it.
    line: Line,
}

impl Found {
    /// Looks for what there is. What opening would refuse is refused before anything is told.
    ///
    /// # Errors
    /// `Tampered` where the log is not what was written, or the seal state knows of more than it has; `Refused` where the vault is of another
    /// history, or of a part of the log that was given up; else where the log or the vault cannot be read.
    pub(super) fn look(
        (log, keys): (&Arc<dyn Store>, &dyn Store),
        config: &LogConfig,
        vault: Option<&Vault>,
        GoneOnWith { state, replaces, .. }: &GoneOnWith,
    ) -> Result<Self> {
        let manifest = Manifest::load(Snapshot::of(log.clone())?)?;
        let beyond = recover::beyond(&**log, config, state, &manifest.snapshot.checkpoint)?;
        let mut told = given_up::told(&manifest, 0)?;
        told.extend(&beyond.given_up);
        let mut known = replaces.map(|TreeHead { size, root }| (size, Some(root)));
        let (mut is_cut, mut line) = (false, Line::Own);
        if let Some(vault) = vault {
            is_cut = followed_more((keys, vault), (log, &beyond.edge), beyond.next)?;
            let followed = vault.erased_up_to()?;
            let in_frames =
                |from: u64| told.iter().filter(move |(frame, _)| *frame >= from).map(|(_, id)| *id);
            line = Line::of((&keys.describe(files::VAULT), &followed), beyond.next, |from| {
                Ok(in_frames(from).collect())
            })?;
            if is_cut && known.is_none_or(|(frames, _)| frames < followed.frames) {
                known = Some((followed.frames, followed.root));
            }
        }
        Ok(Found { manifest, beyond, told, known, is_cut, line })
    }

    /// Compares with it what is known of the log's earlier trees.
    ///
    /// # Errors
    /// As [`pins::compare`].
    pub(super) fn compare(&self, log: (&dyn Store, &LogConfig), pin: Option<&PinAtHand>) -> Result<()> {
        let Checkpoint { size, root, .. } = self.manifest.snapshot.checkpoint;
        pins::compare(pin, log, TreeHead { size, root }, (&self.beyond.edge, self.beyond.next)).map(drop)
    }

    /// Whether the log ends before what the keys know of.
    pub(super) fn is_shorter(&self) -> bool {
        self.known.is_some()
    }

    /// That nothing of the log is given up without that being said: that it does not end before what the vault followed, or the seal state speaks
    /// of.
    ///
    /// # Errors
    /// `Tampered` where it does.
    pub(super) fn require_newest(
        &self,
        (log, keys): (&dyn Store, &dyn Store),
        vault: Option<&Vault>,
        GoneOnWith { replaces, .. }: &GoneOnWith,
    ) -> Result<()> {
        if let Some(vault) = vault.filter(|_| self.is_cut) {
            return Err(engine::older_log((log, self.beyond.next), keys, vault)?);
        }
        match replaces {
            Some(TreeHead { size, .. }) => Err(Error::tampered(format!(
                "{} ends after {}, but its seal state covers {size}: bring the newest copy, or the path that is missing, or, where they are lost for \
                 good, go on with this one by `bulla restore --older-log`",
                log.describe(""),
                counted(self.beyond.next, "frame")
            ))),
            None => Ok(()),
        }
    }

    /// Whether a part that an attempt gave up is given up: its event is signed. Another one that is lost since then is a part of its own.
    pub(super) fn is_given_up(&self, part: GivenUp) -> bool {
        self.told.iter().any(|(frame, id)| *id == part.id && *frame < self.manifest.size())
    }

    /// Whether the vault is an older copy, which was not there when a part of the log was given up that it has not followed.
    pub(super) fn is_older(&self) -> bool {
        matches!(self.line, Line::Older(_))
    }

    /// Whether the seal state is of an attempt that is not done.
    ///
    /// # Errors
    /// As [`earlier::is_undone`].
    pub(super) fn is_undone(&self, state: &SealState, vault: Option<&Vault>) -> Result<bool> {
        earlier::is_undone((state.attempt, &state.given_up), (&self.manifest, &self.beyond.given_up), vault)
    }

    /// How many frames are given up with a part, of those that the keys knew of. More signed ones than were left when that began are the attempt's own,
    /// unless neither the log nor the seal state says so: then a longer copy was found.
    fn lost_frames(&self, part: GivenUp, gone_on_with: &GoneOnWith) -> u64 {
        let (signed, next) = (self.manifest.size(), self.beyond.next);
        let are_own = self.parts().contains(&part.id) || gone_on_with.has_written(part, signed);
        let left = if signed > part.left && !are_own { next } else { part.left.min(next) };
        part.known.saturating_sub(left)
    }

    /// Whether more may be lost with a part than that, when the keys knew of the parts `known` before.
    fn may_lose_more(&self, part: GivenUp, known: &BTreeSet<PartId>) -> bool {
        let told = self.parts();
        part.known == 0 || known.iter().any(|id| *id != part.id && !told.contains(id))
    }

    /// Those of the parts that were given up of which nothing told how far they went.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub(super) fn parts_of_unknown_length(&self) -> Result<BTreeSet<PartId>> {
        given_up::of_unknown_length(&self.manifest)
    }

    /// The parts of the log that were given up, as it tells.
    pub(super) fn parts(&self) -> BTreeSet<PartId> {
        self.told.iter().map(|(_, id)| *id).collect()
    }

    /// Whether nothing has to be given up of what an attempt wrote down that came no further than that, and maybe to marking the vault: the log
    /// is whole again, or another attempt has given it up, and the vault, if there is one, has followed all that the keys knew of, or what the log
    /// told when it was given up. A marked one follows all of the log anew. `since` says of a part whether it was given up after the attempt
    /// had begun, `told` that a seal state which is put back speaks of more than was left, where nothing told what was known.
    ///
    /// # Errors
    /// Where the vault or the log cannot be read.
    pub(super) fn is_whole(
        &self,
        vault: Option<&Vault>,
        part: GivenUp,
        since: &dyn Fn(&PartId) -> bool,
        told: bool,
    ) -> Result<bool> {
        if self.parts().contains(&part.id) || self.line != Line::Own || self.is_cut {
            return Ok(false);
        }
        let was_given_up = self.told.iter().any(|(_, id)| since(id));
        let Some(vault) = vault else { return Ok(told || was_given_up || self.has_all(part)?) };
        let followed = vault.erased_up_to()?;
        if followed.given_up.contains(&part.id) {
            // The log was not opened with it yet, where it follows nothing.
            let has_all = told && followed.frames == 0 || self.has_all(part)?;
            return Ok(followed.unfollowed.is_none() && has_all);
        }
        // By its root, what it has followed is the log's.
        let least = if part.known > 0 { part.known } else { part.left.saturating_add(1) };
        Ok(followed.frames >= least || was_given_up)
    }

    /// Whether the log has all that the keys knew of when an attempt began.
    fn has_all(&self, GivenUp { known, root, .. }: GivenUp) -> Result<bool> {
        let Some(root) = root.filter(|_| known <= self.beyond.next) else { return Ok(false) };
        let own = match self.beyond.edge.root_at(known) {
            Some(own) => own,
            None => self.manifest.root_at(known)?,
        };
        Ok(own == root)
    }

    /// The part of the log that is given up; `untold` says that there may be one of which nothing tells. What is known of it stays as it was when an
    /// attempt began that was cut short, as `before` has it, whatever vault is there by now, and however much of the log, unless less is left. So does its id
    /// where the log tells of it, or the vault is marked with it, or it is that attempt that makes the vault: another vault gives up a part of
    /// its own, or one that is put away would be known by the same id. Without a vault a part of which an attempt that is `recorded` knew less, and told
    /// already, keeps its id, too: it is told once.
    ///
    /// # Errors
    /// Where the vault cannot be read, or there is no randomness.
    pub(super) fn given_up(
        &self,
        untold: bool,
        (before, recorded): (Option<GivenUp>, Option<GivenUp>),
        (vault, makes_vault, random): (Option<&Vault>, bool, &dyn Random),
    ) -> Result<Option<GivenUp>> {
        let (known, root, left) = match (before, self.known) {
            // Where nothing tells what was known, it is what was left then that a vault has to have followed.
            (Some(GivenUp { known: 0, root, left, .. }), _) => (0, root, left),
            (Some(GivenUp { known, root, left, .. }), _) => (known, root, left.min(self.beyond.next)),
            (None, Some((known, root))) => (known, root, self.beyond.next),
            (None, None) if untold => (0, None, self.beyond.next),
            (None, None) => return Ok(None),
        };
        let marked = vault.map(Vault::given_up).transpose()?;
        let is_told = |id: PartId| self.parts().contains(&id);
        let is_of_this = |part: &GivenUp| match (&marked, before) {
            (Some(marked), Some(_)) => marked.contains(&part.id) || is_told(part.id),
            (None, Some(_)) => makes_vault || is_told(part.id),
            (Some(_), None) => false,
            (None, None) => !makes_vault && is_told(part.id) && !self.is_given_up(*part),
        };
        let id = match recorded.filter(is_of_this) {
            Some(part) => part.id,
            None => {
                let mut id = [0; 16];
                random.fill(&mut id)?;
                PartId(id)
            }
        };
        let loss = before.map_or(id, |before| before.loss);
        Ok(Some(GivenUp { known, root, left, loss, id }))
    }

    /// Whether it is with this vault that the part is being given up: what there is to say of that was said when it was marked.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub(super) fn is_marked(&self, vault: &Vault, part: GivenUp) -> Result<bool> {
        Ok(self.line == Line::Own && vault.given_up()?.contains(&part.id))
    }

    /// Whether the vault may lack what a part told that is given up. One that is marked says so itself; any other has it that goes with the
    /// log and has followed just what was known: one of an earlier history of the log may have followed as many frames, or more. Where nothing
    /// tells what was known, one that has nobody's keys brings nobody back.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub(super) fn is_behind(&self, vault: &Vault, part: GivenUp) -> Result<bool> {
        let is_unmarked = !self.is_marked(vault, part)?;
        let Followed { frames, root, unfollowed, .. } = vault.erased_up_to()?;
        // No less is known than what is left: that would be nothing that was lost.
        let is_known = part.known > part.left;
        let is_other = frames != part.known || part.root.is_some_and(|known| root != Some(known));
        if self.line != Line::Own || is_unmarked && is_known && is_other {
            return Ok(true);
        }
        let lacks = unfollowed.is_some() || is_unmarked && !is_known;
        Ok(lacks && has_people(vault)?)
    }
}

/// Looks what taking it up comes to, and changes nothing.
///
/// # Errors
/// `NoKey` where the identity does not open a block that has to be read; `Refused` where the vault would have more ranges of numbers to
/// leave out than it can, or an erasure cannot be finished; else where the log or the vault cannot be read.
pub(super) fn look(
    keys: &dyn Store,
    config: &LogConfig,
    vault: Option<&Vault>,
    gone_on_with: &GoneOnWith,
    (found, vault_behind, is_begun): (Found, bool, bool),
    (reader, unknown): (Option<&Reader>, Option<&Unknown>),
) -> Result<Looked> {
    let given_up = unknown.and_then(|unknown| unknown.given_up);
    let lost_frames = given_up.map_or(0, |part| found.lost_frames(part, gone_on_with));
    let may_lose_more =
        unknown.is_some_and(|unknown| given_up.is_some_and(|part| found.may_lose_more(part, &unknown.parts)));
    let Found { manifest, beyond, is_cut, .. } = found;
    let vaults = Vaults::of_restore(given_up.is_some());
    // What cannot be finished keeps the log from opening, whether or not there is anything else to take up.
    let finishes = match vault {
        Some(vault) => finishes((keys, config), vault, (&manifest, &beyond), vaults)?,
        None => None,
    };
    let mut erased = beyond.erased.iter().copied().collect::<BTreeSet<_>>();
    let (mut again, mut lost, mut numbers) = (Vec::new(), 0, Numbers::default());
    erased.iter().for_each(|number| numbers.add_named(*number));
    each_event(&manifest, 0, |_, event| {
        erased.extend(event.erases());
        event.subjects().iter().for_each(|number| numbers.add_named(*number));
    })?;
    if let Some((reader, unknown)) = reader.zip(unknown) {
        let (mut next, mut left_out) = (0, Vec::new());
        if let Some(vault) = vault {
            left_out = match is_cut {
                true => vault.skipped_with_unexplained(&|number| erased.contains(&number))?,
                false => vault.skipped()?,
            };
            next = vault.next_number()?;
            again = erased_again((&manifest, &beyond), vault, next)?;
        }
        left_out.push(next..u64::MAX);
        numbers.add_blocks(&reader.reading()?, unknown.frame)?;
        let mut told = erased.clone();
        told.extend(finishes.iter().flat_map(|cut| &cut.numbers));
        lost = numbers.lost(&left_out, &told);
    }
    let is_older = |vault: &Vault| match require_newest(
        keys,
        (vault, true),
        &gone_on_with.state,
        (manifest.size(), beyond.entries),
    ) {
        Err(error) if error.kind() == ErrorKind::Refused => Ok(true),
        newest => newest.map(|()| false),
    };
    let needed = gone_on_with.is_made
        || vault_behind
        || given_up.is_some()
        || is_begun
        || !again.is_empty()
        || lost > 0
        || config.erasure && vault.map_or(Ok(true), is_older)?;
    let spoken_of = gone_on_with.known_frames();
    let outlook = Outlook {
        known: Extent { frames: spoken_of, ..extent(&manifest, spoken_of.min(manifest.size()))? },
        log: extent(&manifest, manifest.size())?,
        lost_frames,
        may_lose_more,
        vault_behind,
        lost_with_path: manifest.lost()?.clone(),
        erased: again,
        finishes: finishes.filter(|_| needed),
        lost,
        unsigned_entries: beyond.entries,
        makes_seal_state: gone_on_with.is_made,
        needed,
    };
    Ok(Looked { outlook, numbers, erased, is_cut })
}

/// The erasure that was cut short and will be finished. What finishing it would refuse is refused here, before anything is written.
fn finishes(
    files: (&dyn Store, &LogConfig),
    vault: &Vault,
    (manifest, beyond): (&Manifest, &Beyond),
    vaults: Vaults,
) -> Result<Option<CutErasure>> {
    let written = Pending::load(files.0)?;
    let Some(begun) = vault.unconfirmed()? else {
        let leftover = leftover(files.1, vault, written, (manifest, &beyond.erased), vaults)?;
        return Ok(match leftover {
            Leftover::IsToTell(numbers, _) => Some(CutErasure { numbers, destroyed: true }),
            Leftover::IsTold | Leftover::Is(_) => None,
        });
    };
    match course(files, vault, (&begun, written), (manifest, &beyond.erased))? {
        Course::IsWithdrawn(_) => Ok(None),
        Course::IsTold | Course::GoesOn(_) => {
            Ok(Some(CutErasure { numbers: begun.numbers, destroyed: begun.erased }))
        }
    }
}

/// Whom the log erased since the vault followed it last, and whose keys the vault has; it gave the numbers below `before`.
fn erased_again((manifest, beyond): (&Manifest, &Beyond), vault: &Vault, before: u64) -> Result<Vec<u64>> {
    let mut told = beyond.erased.iter().copied().collect::<BTreeSet<_>>();
    let follows = vault.follows()?.size;
    // What it followed of more than there is, is not known to be of this log.
    let from = if follows > beyond.next { 0 } else { follows };
    let from = vault.unfollowed()?.map_or(from, |unfollowed| unfollowed.min(from));
    each_event(manifest, from, |_, event| told.extend(event.erases()))?;
    let mut again = Vec::new();
    for number in told.range(..before) {
        if has_key(vault, *number)? {
            again.push(*number);
        }
    }
    Ok(again)
}

/// Whether the vault has anybody's key: one that has none brings nobody back.
pub(super) fn has_people(vault: &Vault) -> Result<bool> {
    Ok(vault.check(&|_| true, &|_| ())?.people > 0)
}

/// Whether the vault has the key of a data subject, or is about to destroy it.
fn has_key(vault: &Vault, number: u64) -> Result<bool> {
    match vault.key(number) {
        Err(error) if error.kind() == ErrorKind::Erased => Ok(true),
        key => Ok(key?.is_some()),
    }
}

/// The log up to its first `frames` frames, all of which the list has.
fn extent(manifest: &Manifest, frames: u64) -> Result<Extent> {
    let Some(last) = frames.checked_sub(1) else { return Ok(Extent::default()) };
    let (mut list, mut time) = (Frames::from(manifest, last)?, None);
    while let Some(Placed { commitment, .. }) = list.next()? {
        // A block has the times of its entries, which may come from elsewhere.
        if commitment.kind == FrameKind::Event {
            time = Some(commitment.latest);
        }
        if commitment.frame == last {
            let begun = list.epoch().map(|epoch| epoch.commitment.latest);
            let entries = commitment.first_entry + commitment.entries;
            return Ok(Extent { frames, entries, time: time.max(begun) });
        }
    }
    Err(Error::tampered(format!("frame {last} is not in the list; run `bulla verify`")))
}
