//! What lies on a path that was lost and is found, and is named again.
//!
//! Frames that nobody had signed may have lain there when it was lost, and the log has gone on since with other frames of these numbers. A
//! segment counts up to where the next one begins, so those would end what the log has, and stand in the way of it; and what follows signed frames in a
//! segment would be bytes that nothing explains. They are set aside on that path, for people.
//!
//! Invariants:
//! - nothing is touched that the path's own checkpoint covers, nor a frame of the tree that no other path has, whole, in bytes that count;
//! - no segment is touched but from a frame on in whose place the tree has another one, on another path, or where it is a copy of frames of the tree that
//!   would end another segment: what may still be taken up stays, and so does a damaged segment;
//! - where a frame differs from one that a writer would go on with from other paths and nobody has signed, either may have been acknowledged, and nothing
//!   tells which was later: the change is refused, as it is where the tree is damaged;
//! - nothing is cut off a segment of which an event explains what is behind its frames: that explains those bytes, and no others;
//! - no frame is removed that does not lie elsewhere on that path, durably. Of the tree there, what may be over frames that are set aside is removed,
//!   but for what the path's own checkpoint covers: whoever has the frames can make it anew;
//! - what is set aside can be cut short anywhere and begun again: what is further behind goes first.

mod rest;

use super::losing::Named;
use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::format::files;
use crate::format::frame::{self, Head};
use crate::format::path::PathId;
use crate::format::segment::{self, AsideName, SegmentName};
use crate::keys::paths::{Fate, KnownPath};
use crate::keys::seal_state::SealState;
use crate::scan::checkpoint::read_note;
use crate::scan::cursor::Cursor;
use crate::scan::located::event_in;
use crate::scan::paths::join_paths;
use crate::scan::stored_tree;
use crate::write::recover::lost::furthest_tree;
use crate::write::recover::{self, is_sound};
use crate::write::tree_files;
use bulla_crypto::environment::Environment;
use bulla_crypto::seal_chain::{Seal, SealChain};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_store::{Error, ErrorKind, Lock, Result, Store};
use rest::Rest;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So many bytes are copied at a time.
const PIECE: usize = 256 << 10;

/// Sets aside what the log has gone on without on each of its paths, its `own_directory` among them, that is named again after it was lost, or that
/// the key directory does not know; and says so.
///
/// # Errors
/// `Locked` where somebody has such a path locked; `Refused` where it has other frames than another path, and nobody has signed either; `Tampered` where
/// what the other paths have is damaged, so that nothing tells what is to be set aside;
/// `NoKey` where the seal state is missing, without which nobody knows what is gone on with; `Unavailable` where a file cannot be read, or does not get
/// another name.
pub(super) fn set_aside_what_is_superseded(
    (own_directory, own): (&Arc<dyn Store>, PathId),
    named: &[Named<'_>],
    (keys, remembered): (&dyn Store, &[KnownPath]),
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    let known = |id: PathId| remembered.iter().find(|known| known.id == id);
    let fate = |id: PathId| known(id).map(|known| known.fate);
    let signed_then = |id: PathId| known(id).and_then(|known| known.signed);
    // The log's own directory is not noted before it was written to.
    let own_is_found = fate(own) == Some(Fate::Lost);
    let is_found = |named: &Named<'_>| named.id.is_some_and(|id| matches!(fate(id), None | Some(Fate::Lost)));
    let own =
        Place { store: own_directory, path: None, is_found: own_is_found, signed_then: signed_then(own) };
    let named = named.iter().map(|named| Place {
        store: &named.store,
        path: Some(named.path),
        is_found: is_found(named),
        signed_then: named.id.and_then(signed_then),
    });
    let Some((found, of_rest)) = tell_apart(iter::once(own).chain(named).collect(), keys, config)? else {
        return Ok(());
    };
    let others = of_rest.iter().map(|place| place.store).collect::<Vec<_>>();
    // The first one is named by its store.
    let also =
        of_rest.iter().skip(1).filter_map(|place| Some(place.path?.to_owned())).collect::<Vec<PathBuf>>();
    let Some(first) = others.first().filter(|_| !found.is_empty()) else { return Ok(()) };
    let load = || {
        let loaded = Rest::load(join_paths((*first).clone(), None, &also, environment)?, config, keys)?;
        let Some(mut rest) = loaded else { return Ok::<_, Error>(None) };
        for path in &found {
            path.each_event(|commitment, event| {
                event.map_or(Ok(()), |event| rest.learn(commitment, &event))
            })?;
        }
        Ok(Some(rest))
    };
    let Some(mut rest) = load()? else { return Ok(()) };
    if undo_opening(&others, &found, &rest, environment)? {
        let Some(again) = load()? else { return Ok(()) };
        rest = again;
    }
    for (index, path) in found.iter().enumerate() {
        path.refuse_twin_of(&found[index + 1..], &rest)?;
    }
    let mut plans = found.iter().map(|path| path.plan(&rest)).collect::<Result<Vec<_>>>()?;
    add_what_nothing_leads_to(&found, &mut plans, &rest)?;
    found.iter().zip(plans).try_for_each(|(path, plan)| path.set_aside(plan, &rest, environment))
}

/// Where a path of the log lies.
struct Place<'a> {
    store: &'a Arc<dyn Store>,
    /// `None` of the log's own directory.
    path: Option<&'a Path>,
    /// Whether it is named again after it was lost, or the key directory does not know it.
    is_found: bool,
    /// How many frames were signed when it was lost, where that is known.
    signed_then: Option<u64>,
}

/// The paths of which frames may count for nothing, and the others, which tell what does; nothing where there is nothing to tell.
///
/// These are the paths that are found, but for those that have nothing beyond what their own checkpoint covers. Where one of them has the tree of which the
/// seal state speaks, and none of the others does, the log had gone on there: it tells what counts on all others. Where none has it the log
/// cannot be opened, until one is named that has, or what is signed is given up.
fn tell_apart<'a>(
    places: Vec<Place<'a>>,
    keys: &dyn Store,
    config: &LogConfig,
) -> Result<Option<(Vec<FoundPath>, Vec<Place<'a>>)>> {
    let state = recover::read_state(keys, config);
    let has_tree = |path: &FoundPath| state.as_ref().map_or(Ok(false), |state| path.has_tree(state));
    let open = |place: &Place<'_>| FoundPath::open(place, config);
    let (of_found, of_kept) = places.into_iter().partition::<Vec<_>, _>(|place| place.is_found);
    let (mut brings_tree, mut has_more, mut opened) = (false, false, Vec::new());
    for place in of_found {
        // What is none of this log is told elsewhere.
        let Some(path) = open(&place)? else { continue };
        brings_tree |= has_tree(&path)?;
        has_more |= path.has_more_than_it_covers()?;
        opened.push((place, Some(path)));
    }
    if !brings_tree && !has_more {
        return Ok(None);
    }
    let mut lacks_tree = true;
    for place in of_kept {
        let path = open(&place)?;
        lacks_tree &= !path.as_ref().map_or(Ok(false), has_tree)?;
        opened.push((place, path));
    }
    let had_gone_on_there = lacks_tree && brings_tree;
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for (place, path) in opened {
        let counts = |path: &FoundPath| if had_gone_on_there { has_tree(path) } else { Ok(!place.is_found) };
        match path {
            Some(path) if !counts(&path)? && path.has_more_than_it_covers()? => found.push(path),
            _ => rest.push(place),
        }
    }
    // The log's own directory comes first.
    rest.sort_by_key(|place| place.path.is_some());
    Ok(Some((found, rest)))
}

/// What becomes of a segment of a path that is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentFate {
    /// It is a part of the log, may become one, or only people can tell.
    Stays,
    /// Other paths have all of it, or an earlier segment there has what they lack, in a segment that it would end, or in one of the same first frame.
    IsCopy,
    /// The log has gone on without it, from its first frame or from a later one on, and other paths have what of it is in the log.
    IsSuperseded,
}

/// What of a path that is found the log has gone on without.
struct Plan {
    /// Segments whose first frames stay, and from where on the others do not: that which has the last frame that the path's own checkpoint covers, and those
    /// behind it of which no other path has the first frames.
    cut: Vec<(SegmentName, u64)>,
    /// Segments behind that one, whole.
    aside: Vec<SegmentName>,
}

/// A path that is found.
struct FoundPath {
    path: Arc<dyn Store>,
    signed_then: Option<u64>,
    checkpoint: Option<Checkpoint>,
    /// The frames that its own checkpoint covers.
    covered: u64,
    /// The segment that has the last of them.
    last: Option<SegmentName>,
    /// The segments behind that one.
    behind: Vec<SegmentName>,
}

impl FoundPath {
    /// Looks at it; nothing where it is no path of this log, which is told elsewhere.
    fn open(place: &Place<'_>, config: &LogConfig) -> Result<Option<Self>> {
        let (path, signed_then) = (place.store.clone(), place.signed_then);
        let checkpoint = read_note(&*path)?.map(|note| config.own_keys().open(&note));
        let Ok(checkpoint) = checkpoint.transpose() else { return Ok(None) };
        let covered = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
        let (before, behind) =
            segment::list(&*path)?.0.into_iter().partition::<Vec<_>, _>(|name| name.first < covered);
        Ok(Some(FoundPath { path, signed_then, checkpoint, covered, last: before.last().copied(), behind }))
    }

    /// Whether it has a tree of all frames of which the seal state speaks.
    fn has_tree(&self, state: &SealState) -> Result<bool> {
        let furthest = |checkpoint: &Checkpoint| furthest_tree(&*self.path, checkpoint.clone(), state);
        let furthest = self.checkpoint.as_ref().map(furthest).transpose()?;
        Ok(furthest.is_some_and(|checkpoint| checkpoint.size >= state.chain.next_frame()))
    }

    /// Whether anything lies there behind the frames that its own checkpoint covers.
    fn has_more_than_it_covers(&self) -> Result<bool> {
        let Some(name) = self.last.filter(|_| self.behind.is_empty()) else {
            return Ok(!self.behind.is_empty());
        };
        let (mut cursor, mut frame) = (Cursor::open(&*self.path, name)?, name.first);
        while frame < self.covered
            && let Some(Ok(head)) = cursor.peek()?
        {
            frame += u64::from(!cursor.is_copy(&head));
            cursor.pass(&head);
        }
        Ok(cursor.offset < cursor.length)
    }

    /// Whether an event there tells, or may tell, where a segment ends.
    fn explains(&self, segment: &str) -> Result<bool> {
        let mut explains = false;
        self.each_event(|_, event| {
            explains |= event.map_or(true, |event| event.explains().is_some_and(|(name, _)| name == segment));
            Ok(())
        })?;
        Ok(explains)
    }

    /// Shows `each` the events there.
    fn each_event(&self, mut each: impl FnMut(&Commitment, Result<Event>) -> Result<()>) -> Result<()> {
        for name in segment::list(&*self.path)?.0 {
            let mut cursor = Cursor::open(&*self.path, name)?;
            while let Some(Ok(head)) = cursor.peek()? {
                if head.commitment.kind == FrameKind::Event {
                    let event = event_in(&cursor.locate(head.commitment.clone(), head.offset));
                    each(&head.commitment, event)?;
                }
                cursor.pass(&head);
            }
        }
        Ok(())
    }

    /// Whether it has, whole, the frame that another path's segment should begin with.
    fn has(&self, segment: SegmentName) -> Result<bool> {
        for name in self.last.iter().chain(&self.behind).filter(|name| name.first <= segment.first) {
            let mut cursor = Cursor::open(&*self.path, *name)?;
            while let Some(Ok(head)) = cursor.peek()? {
                if head.commitment.frame == segment.first
                    && !cursor.is_copy(&head)
                    && is_sound(&cursor, &head)?
                {
                    return Ok(true);
                }
                cursor.pass(&head);
            }
        }
        Ok(false)
    }

    /// The frames from one on in these segments, with their seals.
    fn frames_in<'a>(
        &self,
        segments: impl Iterator<Item = &'a SegmentName>,
        from: u64,
    ) -> Result<Vec<(Head, Seal)>> {
        let mut frames = Vec::new();
        for name in segments {
            let mut cursor = Cursor::open(&*self.path, *name)?;
            while let Some(Ok(head)) = cursor.peek()? {
                cursor.pass(&head);
                if head.commitment.frame >= from && !cursor.is_copy(&head) {
                    let seal = cursor.seal(head.end())?;
                    frames.push((head, seal));
                }
            }
        }
        Ok(frames)
    }

    /// The frames there that the tree has not got.
    fn unsigned(&self, rest: &Rest) -> Result<BTreeMap<u64, Commitment>> {
        let frames = self.frames_in(self.last.iter().chain(&self.behind), rest.manifest.size())?;
        Ok(frames.into_iter().map(|(head, _)| (head.commitment.frame, head.commitment)).collect())
    }

    /// That no other path which is found has another frame of a number that nobody has signed.
    fn refuse_twin_of(&self, others: &[FoundPath], rest: &Rest) -> Result<()> {
        let own = self.unsigned(rest)?;
        for other in others {
            let differs =
                |(frame, commitment): &(u64, Commitment)| own.get(frame).is_some_and(|own| own != commitment);
            if let Some((frame, _)) = other.unsigned(rest)?.into_iter().find(differs) {
                return Err(self.twin(&other.path.describe(""), frame));
            }
        }
        Ok(())
    }

    /// Why it is not named again while `other` has another frame of the same number.
    fn twin(&self, other: &str, frame: u64) -> Error {
        let name = self.path.describe("");
        Self::undecided(&format!("{name} and {other} have different frames of the number {frame}"))
    }

    /// The same where what lies there from a frame on follows others than `other` has.
    fn other_behind(&self, other: &str, frame: u64) -> Error {
        let name = self.path.describe("");
        Self::undecided(&format!(
            "what {name} has from frame {frame} on follows other frames than {other} has"
        ))
    }

    fn undecided(what: &str) -> Error {
        let message = format!(
            "{what}, which nobody has signed: what the log was written to last counts. Open the log once with that alone, as by `bulla append` with \
             nothing to append, and name the other one then: what lies there is set aside"
        );
        Error::new(ErrorKind::Refused, message)
    }

    /// Looks what the log has gone on without.
    fn plan(&self, rest: &Rest) -> Result<Plan> {
        let ends = |name: SegmentName| {
            let end = rest.surely(|| self.end(name, rest), Option::is_some)?;
            Ok::<_, Error>(end.map(|offset| (name, offset)))
        };
        let mut cut = Vec::from_iter(self.last.map(ends).transpose()?.flatten());
        let counts_to = self.last.map_or(Ok(0), |name| rest.counts_to(name))?;
        let (mut aside, mut comes_to_nothing) = (Vec::new(), !cut.is_empty());
        for name in &self.behind {
            let fate = || self.fate(*name, (rest, counts_to), comes_to_nothing);
            match rest.surely(fate, |fate| *fate != SegmentFate::Stays)? {
                SegmentFate::Stays => cut.extend(ends(*name)?),
                SegmentFate::IsCopy => aside.push(*name),
                SegmentFate::IsSuperseded => {
                    aside.push(*name);
                    comes_to_nothing = true;
                }
            }
            // Whatever is written after a frame that came to nothing comes to nothing.
            comes_to_nothing |= !cut.is_empty();
        }
        Ok(Plan { cut, aside })
    }

    /// The frames from one on that stay there, with their seals.
    fn staying(&self, Plan { cut, aside }: &Plan, from: u64) -> Result<Vec<(Head, Seal)>> {
        let goes = |name: &SegmentName| aside.contains(name) || cut.iter().any(|(cut, _)| cut == name);
        self.frames_in(self.last.iter().chain(&self.behind).filter(|name| !goes(name)), from)
    }

    /// Whether the segment that has the last frame which the path's own checkpoint covers has a frame of the tree, whole.
    fn last_has(&self, commitment: &Commitment) -> Result<bool> {
        let Some(name) = self.last else { return Ok(false) };
        let mut cursor = Cursor::open(&*self.path, name)?;
        while let Some(Ok(head)) = cursor.peek()? {
            if head.commitment == *commitment && !cursor.is_copy(&head) {
                return is_sound(&cursor, &head);
            }
            cursor.pass(&head);
        }
        Ok(false)
    }

    /// Sets it aside.
    fn set_aside(&self, Plan { cut, aside }: Plan, rest: &Rest, environment: &Environment) -> Result<()> {
        if cut.is_empty() && aside.is_empty() {
            return Ok(());
        }
        let path = &*self.path;
        let _lock = lock(path)?;
        let tell = |from: &str, to: &str| {
            let told = format!(
                "{from} is {} now, and counts for nothing: the log has gone on with other frames of these numbers since the path was lost, or has \
                 these on another path",
                path.describe(to)
            );
            environment.path_replaced.iter().for_each(|tell| tell(&told));
        };
        let failed = |name: SegmentName| {
            let what = format!("setting {} aside", path.describe(&name.path()));
            move |error| Error::io(what, error)
        };
        let others = &*rest.manifest.snapshot.store;
        tree_files::remove_of_another_tree(path, self.covered, |tile, own| {
            Ok(stored_tree::read(others, tile)?.as_deref() == Some(own))
        })?;
        for name in aside.into_iter().rev() {
            let aside = move_aside(path, name).map_err(failed(name))?;
            tell(&path.describe(&name.path()), &aside);
        }
        for (name, offset) in cut.into_iter().rev() {
            let aside = cut_off(path, name, offset).map_err(failed(name))?;
            tell(&format!("{} from byte {offset} on", path.describe(&name.path())), &aside);
        }
        Ok(())
    }

    /// Where that segment is cut off. An event of the tree that tells where it ends explains what is behind as it is.
    fn end(&self, name: SegmentName, rest: &Rest) -> Result<Option<u64>> {
        match rest.explains(&name.to_string()) {
            Ok(true) => Ok(None),
            Ok(false) => self.superseded_end(name, rest),
            // One that is damaged may tell it.
            Err(damaged) if damaged.kind() == ErrorKind::Tampered => match self.superseded_end(name, rest)? {
                Some(_) => Err(damaged),
                None => Ok(None),
            },
            Err(error) => Err(error),
        }
    }

    /// Where in a segment the first frame beyond those that the path's own checkpoint covers stands in whose place the log has another, on another path.
    fn superseded_end(&self, name: SegmentName, rest: &Rest) -> Result<Option<u64>> {
        let mut cursor = Cursor::open(&*self.path, name)?;
        for frame in name.first..rest.size() {
            if let Some(Ok(head)) = cursor.peek()?
                && cursor.is_copy(&head)
            {
                cursor.pass(&head);
            }
            match cursor.peek()? {
                Some(Ok(head)) if head.commitment == rest.commitment(frame)? => cursor.pass(&head),
                Some(Ok(_)) if frame >= rest.manifest.size() => return Err(self.twin(&rest.name(), frame)),
                Some(_) => {
                    let is_other = (self.covered..rest.manifest.size()).contains(&frame);
                    return Ok((is_other && !rest.needs(frame, &cursor)?).then_some(cursor.offset));
                }
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// What becomes of a segment behind the frames that the path's own checkpoint covers. `counts_to`: up to which frame the segment counts that has the last
    /// of those, by the events of `rest`. `is_behind_one`: whether the log has gone on without one that was written before.
    fn fate(
        &self,
        name: SegmentName,
        (rest, counts_to): (&Rest, u64),
        is_behind_one: bool,
    ) -> Result<SegmentFate> {
        let superseded =
            |is_superseded| if is_superseded { SegmentFate::IsSuperseded } else { SegmentFate::Stays };
        let mut cursor = Cursor::open(&*self.path, name)?;
        let mut frame = name.first;
        loop {
            let of_log = (frame < rest.size()).then(|| rest.commitment(frame)).transpose()?;
            match (cursor.peek()?, of_log) {
                (Some(Ok(head)), _) if cursor.is_copy(&head) => cursor.pass(&head),
                (Some(Ok(head)), Some(commitment)) if head.commitment == commitment => {
                    let is_elsewhere =
                        rest.has_sound(frame)? || frame < counts_to && self.last_has(&commitment)?;
                    if !is_elsewhere {
                        return Ok(SegmentFate::Stays);
                    }
                    cursor.pass(&head);
                    frame += 1;
                }
                // What lies elsewhere unsigned may not be durable there.
                (None, _) if frame > name.first => {
                    let is_in_place = frame > rest.manifest.size() || rest.has_segment(name)?;
                    return Ok(if is_in_place { SegmentFate::Stays } else { SegmentFate::IsCopy });
                }
                (Some(Ok(_)), Some(_)) if is_behind_one => return Ok(SegmentFate::IsSuperseded),
                (Some(Ok(_)), Some(_)) if frame >= rest.manifest.size() => {
                    return Err(self.twin(&rest.name(), frame));
                }
                // What the tree has no frames for yet may still be taken up, unless frames before it came to nothing.
                (_, of_log) if of_log.is_none() || frame >= rest.manifest.size() => {
                    return Ok(superseded(is_behind_one && frame == name.first));
                }
                // It has another one, was cut short, is damaged, or has nothing.
                _ => return Ok(superseded(!rest.needs(frame, &cursor)?)),
            }
        }
    }
}

/// Adds to the plans the segments to which nothing leads, on paths without which the log has signed frames since they were lost: these took the place of
/// what led there, and opening refuses a hole where something was signed since.
///
/// # Errors
/// `Refused` where nothing was, and what lies there follows other frames than the log has by now.
fn add_what_nothing_leads_to(found: &[FoundPath], plans: &mut [Plan], rest: &Rest) -> Result<()> {
    let Some(mut chain) = rest.chain.clone() else { return Ok(()) };
    let mut staying = BTreeMap::<u64, Vec<(Head, Seal)>>::new();
    for (path, plan) in found.iter().zip(&*plans) {
        for (head, seal) in path.staying(plan, rest.size())? {
            staying.entry(head.commitment.frame).or_default().push((head, seal));
        }
    }
    let mut next = rest.size();
    let follows = |chain: &SealChain, (head, seal): &(Head, Seal)| {
        let mut chain = chain.clone();
        (chain.seal(head.group, &head.encoded) == *seal).then_some(chain)
    };
    while let Some(behind) =
        staying.get(&next).and_then(|heads| heads.iter().find_map(|one| follows(&chain, one)))
    {
        (chain, next) = (behind, next + 1);
    }
    let leads_nowhere =
        |name: &SegmentName| name.first > next || name.first == next && staying.contains_key(&next);
    // A write that tore has left zeros in the place of its seal.
    let follows_another = |(head, seal): &(Head, Seal)| {
        let right = chain.clone().seal(head.group, &head.encoded);
        let is_torn = seal.iter().zip(right).all(|(stored, right)| *stored == right || *stored == 0);
        head.commitment.frame == next && !is_torn
    };
    for (path, plan) in found.iter().zip(plans) {
        if path.signed_then.is_some_and(|signed| signed < rest.signed()) {
            let stays = path.behind.iter().filter(|name| !plan.aside.contains(name));
            let aside = stays.filter(|name| leads_nowhere(name)).copied().collect::<Vec<_>>();
            plan.aside.extend(aside);
            plan.aside.sort_unstable();
        } else if path.staying(plan, next)?.iter().any(follows_another) {
            return Err(path.other_behind(&rest.name(), next));
        }
    }
    Ok(())
}

/// Undoes on the other paths what an opening of the log has begun that was cut short before it wrote a frame: segments that it set aside, since nothing led
/// to them without a path which is found now, are put back; and the last one, where its first frame is torn, is set aside where a path that
/// is found has that frame. What an event tells of, on whichever path, stays, and so does what an opening did whose frames were signed since. Says whether
/// there was any.
fn undo_opening(
    others: &[&Arc<dyn Store>],
    found: &[FoundPath],
    rest: &Rest,
    environment: &Environment,
) -> Result<bool> {
    let next = rest.size().max(rest.state.chain.next_frame());
    let mut has_undone = false;
    let is_told = |name: &str| Ok(rest.may_explain(name)? || any(found, |found| found.explains(name))?);
    let last = segment::list(&*rest.manifest.snapshot.store)?.0.last().copied();
    for path in others.iter().map(|path| &***path) {
        let failed = |what: &str| {
            let what = path.describe(what);
            move |error| Error::io(format!("giving {what} another name"), error)
        };
        let is_begun = |aside: &AsideName| aside.next >= next;
        for aside in segment::list_aside(path)?.into_iter().filter(is_begun) {
            if !is_told(&aside.to_string())? {
                let _lock = lock(path)?;
                let all = others.iter().copied().chain(found.iter().map(|found| &found.path));
                let renamed = path.rename(&aside.path(), &free_of_all(all, aside.segment)?.path());
                let renamed = renamed.and_then(|()| path.sync_directory(segment::DIRECTORY));
                renamed.map_err(failed(&aside.path()))?;
                has_undone = true;
            }
        }
        if let Some(name) = last.filter(|name| name.first == next)
            && segment::list(path)?.0.contains(&name)
            && is_torn(path, name, rest.log())?
            && any(found, |found| found.has(name))?
            && !is_told(&name.to_string())?
        {
            let _lock = lock(path)?;
            let aside = move_aside(path, name).map_err(failed(&name.path()))?;
            let (from, aside) = (path.describe(&name.path()), path.describe(&aside));
            let told = format!(
                "{from} is {aside} now, and counts for nothing: its first write was torn, and a path that is found has that frame"
            );
            environment.path_replaced.iter().for_each(|tell| tell(&told));
            has_undone = true;
        }
    }
    Ok(has_undone)
}

/// Whether a segment of which no frame counts may have been left by a crash that tore its first write: it has no frame of a later one, each of which waits
/// until the one before is durable.
fn is_torn(path: &dyn Store, name: SegmentName, log: LogId) -> Result<bool> {
    let mut cursor = Cursor::open(path, name)?;
    if let Some(Ok(head)) = cursor.peek()?
        && cursor.is_copy(&head)
    {
        cursor.pass(&head);
    }
    let may_be_torn = match cursor.peek()? {
        Some(Err(_)) => {
            let rest = usize::try_from(cursor.length - cursor.offset).unwrap_or(usize::MAX);
            let mut bytes = vec![0; rest.min(frame::HEAD)];
            cursor.file.read_exact_at(&mut bytes, cursor.offset).map_err(|error| cursor.failed(error))?;
            frame::may_be_torn(&bytes, log)
        }
        // Its body or its seal is, or all that is there is the copy.
        Some(Ok(_)) | None => true,
    };
    let is_later = |head: &Head| head.group > name.first;
    Ok(may_be_torn && cursor.find(cursor.offset, is_later)?.is_none())
}

/// Whether something holds of one of the paths that are found.
fn any(found: &[FoundPath], of: impl Fn(&FoundPath) -> Result<bool>) -> Result<bool> {
    found.iter().try_fold(false, |holds, found| Ok(holds || of(found)?))
}

/// This name of a segment, or another of its first frame, of a generation after all that these paths have, where one of them has it.
fn free_of_all<'a>(
    paths: impl Iterator<Item = &'a Arc<dyn Store>>,
    segment: SegmentName,
) -> Result<SegmentName> {
    let (mut is_free, mut after) = (true, 0);
    for path in paths {
        for name in segment::list(&**path)?.0.into_iter().filter(|name| name.first == segment.first) {
            is_free &= name != segment;
            let next = name.generation.checked_add(1);
            let taken =
                || Error::unavailable(format!("{} leaves no other name", path.describe(&name.path())));
            after = after.max(next.ok_or_else(taken)?);
        }
    }
    Ok(if is_free { segment } else { SegmentName { generation: after, ..segment } })
}

/// The lock on a path, against who has it open.
fn lock(path: &dyn Store) -> Result<Box<dyn Lock>> {
    path.lock(files::LOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::new(
            ErrorKind::Locked,
            format!("{} is locked: another process has that path open", path.describe(files::LOCK)),
        ),
        _ => Error::io(format!("locking {}", path.describe(files::LOCK)), error),
    })
}

/// Moves a segment into `set-aside/`, under a name that is free there.
fn move_aside(path: &dyn Store, name: SegmentName) -> io::Result<String> {
    let aside = free_name(path, &name.to_string())?;
    path.rename(&name.path(), &aside)?;
    path.sync_directory(files::SET_ASIDE)?;
    path.sync_directory(segment::DIRECTORY)?;
    Ok(aside)
}

/// Moves what a segment has from `offset` on into `set-aside/`. It has that name there once it is whole.
fn cut_off(path: &dyn Store, name: SegmentName, offset: u64) -> io::Result<String> {
    let aside = free_name(path, &format!("{name}.from-{offset}"))?;
    let part = format!("{aside}.tmp");
    match path.remove(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (segment, copy) = (path.open_write(&name.path())?, path.create(&part)?);
    let length = segment.length()?;
    let (mut piece, mut copied) = (vec![0; PIECE], 0);
    while offset + copied < length {
        let count = segment.read_at(&mut piece, offset + copied)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_at(&mut [IoSlice::new(&piece[..count])], copied)?;
        copied += count as u64;
    }
    copy.sync()?;
    path.rename(&part, &aside)?;
    path.sync_directory(files::SET_ASIDE)?;
    segment.set_length(offset)?;
    segment.sync()?;
    Ok(aside)
}

/// A name in `set-aside/`, which is made where it is not there: this one, or with a number behind it where that is taken.
fn free_name(path: &dyn Store, name: &str) -> io::Result<String> {
    path.create_directory(files::SET_ASIDE)?;
    path.sync_directory("")?;
    let mut aside = format!("{}/{name}", files::SET_ASIDE);
    let mut number = 1;
    loop {
        match path.open(&aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(aside),
            Err(error) => return Err(error),
            Ok(_) => aside = format!("{}/{name}.{number}", files::SET_ASIDE),
        }
        number += 1;
    }
}
