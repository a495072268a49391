//! What a log holds, read by the library as anybody reads it, and held against the model.

use super::entries::{Id, NAMES};
use super::host::Host;
use super::model::{Model, Promise, Told};
use super::outcome::{Outcome, checkpoint_of, must, sound};
use crate::crash::world::OpenWrap;
use bulla::event::Event;
use bulla::proof::{ConsistencyProof, Proof};
use bulla::{Finding, FindingKind, Hash, LogId, LoggedEvent, Query, Reader, Severity, VerifierKey, Verify};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::{Checkpoint, Frontier, tile, tree};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of a log a checkpoint covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Covers {
    /// All that there is.
    Everything,
    /// What was signed so far: a writer is at work.
    SoFar,
}

/// Whose log it is.
#[derive(Clone, Debug)]
pub(super) struct Whose {
    pub(super) key: VerifierKey,
    pub(super) id: LogId,
    pub(super) seal_key: String,
    pub(super) has_vault: bool,
}

/// An entry.
pub(super) struct Seen {
    pub(super) frame: u64,
    pub(super) id: Id,
    pub(super) whole: bool,
}

/// See the module.
pub(super) struct Observed {
    /// In the order of their numbers.
    pub(super) entries: Vec<Seen>,
    pub(super) size: u64,
    /// Entries that came without what is personal, since keys are lost.
    lost: u64,
    pub(super) events: Vec<LoggedEvent>,
    published: Vec<(u64, Hash, Vec<u8>)>,
}

/// The checkpoint on the disk, and its note.
pub(super) fn checkpoint(host: &Host) -> Outcome<(Checkpoint, Vec<u8>)> {
    let note = host.read_of_log("checkpoint")?;
    Ok((checkpoint_of(&note)?, note))
}

impl Model {
    /// Takes down the checkpoint that anybody can see.
    pub(super) fn note_checkpoint(&mut self, host: &Host) -> Outcome {
        let notes = host.paths.iter().filter_map(|path| host.machine.read(&format!("{path}/checkpoint")));
        for note in notes {
            let checkpoint = checkpoint_of(&note)?;
            self.published.entry((checkpoint.size, checkpoint.root)).or_insert(note);
        }
        Ok(())
    }

    /// The frames that the checkpoint covers. Every checkpoint that was ever seen is of a prefix of them.
    fn frames(&self, host: &Host, size: u64) -> Outcome<Vec<Commitment>> {
        let mut tree = Frontier::new();
        let mut published = self.published.keys().peekable();
        let mut frames = Vec::new();
        loop {
            while let Some((at, root)) = published.next_if(|(at, _)| *at == tree.size()) {
                must!(tree.root() == *root, "the checkpoint of size {at} is not of this log");
            }
            let (index, left) = (frames.len() as u64 / 256, size - frames.len() as u64);
            if left == 0 {
                return Ok(frames);
            }
            let width = left.min(256) as u16;
            let bundle = host.read_of_log(&tile::entries_path(index, width))?;
            for leaf in tile::parse_bundle(&bundle, width).map_err(|error| error.to_string())? {
                while let Some((at, root)) = published.next_if(|(at, _)| *at == tree.size()) {
                    must!(tree.root() == *root, "the checkpoint of size {at} is not of this log");
                }
                tree.push(tree::leaf_hash(leaf));
                frames.push(Commitment::decode(leaf).map_err(|error| format!("{error:?}"))?);
            }
        }
    }

    /// The first so many leaves of the log's tree; nothing where the checkpoint covers fewer.
    pub(super) fn leaves(&self, host: &Host, count: u64) -> Outcome<Option<Vec<Hash>>> {
        let frames = self.frames(host, checkpoint(host)?.0.size)?;
        let leaves = frames.iter().map(|frame| tree::leaf_hash(&frame.encode())).take(count as usize);
        let leaves = leaves.collect::<Vec<_>>();
        Ok((leaves.len() as u64 == count).then_some(leaves))
    }

    /// How many entries the checkpoint covers.
    pub(super) fn signed_entries(&self, host: &Host) -> Outcome<u64> {
        let frames = self.frames(host, checkpoint(host)?.0.size)?;
        Ok(frames.iter().map(|frame| frame.entries).sum())
    }

    pub(super) fn reader(&self, host: &Host, whose: &Whose) -> Outcome<Reader> {
        let reader = sound("opening to read", Reader::open_store(host.joined()?))?;
        let reader = reader.key(whose.key.clone()).identity(Arc::new(OpenWrap)).threads(1);
        Ok(match host.vault(whose.id)? {
            Some(vault) => reader.group_keys(Arc::new(vault)),
            None => reader,
        })
    }

    /// Reads all that the checkpoint covers. Each entry is one that was appended, and nothing is missing before it of its producer.
    pub(super) fn observe(&mut self, host: &Host, whose: &Whose) -> Outcome<Observed> {
        self.note_checkpoint(host)?;
        let size = checkpoint(host)?.0.size;
        let frames = self.frames(host, size)?;
        let blocks = frames.iter().filter(|frame| frame.kind == FrameKind::Block);
        let mut frame_of = blocks.flat_map(|frame| (0..frame.entries).map(move |_| frame.frame));
        must!(frames.iter().all(|frame| frame.kind != FrameKind::Gap), "a block was lost");
        let reader = self.reader(host, whose)?;
        let (mut entries, mut counts, mut wrong) = (Vec::new(), BTreeMap::<u64, u64>::new(), None);
        let read = reader.for_each(&Query::new(), |number, entry| {
            let looked_at = Id::of(entry).and_then(|id| {
                must!(number == entries.len() as u64, "entry {number} comes as the {}th", entries.len());
                let next = counts.entry(id.producer).or_default();
                must!(id.index == *next, "entry {number} should be entry {next} of its producer, is {id:?}");
                *next += 1;
                let appended = self.producers.get(&id.producer).map_or(0, |promise| promise.appended);
                must!(id.index < appended, "entry {number} is {id:?}, and {appended} were appended");
                let whole = self.made(id).check(entry)?;
                let frame = frame_of.next().ok_or("there are more entries than frames have")?;
                entries.push(Seen { frame, id, whole });
                Ok(())
            });
            wrong = wrong.take().or(looked_at.err());
            Ok(())
        });
        let read = sound("reading everything", read)?;
        wrong.map_or(Ok(()), Err)?;
        must!(frame_of.next().is_none(), "frames have more entries than there are");
        must!(read.entries == entries.len() as u64 && read.tree_size == size, "it says {read:?}");
        let withheld = entries.iter().filter(|entry| !entry.whole).count() as u64;
        let lost = withheld.saturating_sub(read.withheld.erased);
        must!(
            read.withheld.key_lost == lost && read.withheld.not_given == 0,
            "{withheld} are withheld: {read:?}"
        );
        must!((lost == 0 || !self.losses.is_empty()) && read.undecided == 0, "{read:?}");
        let mut events = Vec::new();
        sound(
            "reading events",
            reader.events(|event| {
                events.push(event);
                Ok(())
            }),
        )?;
        let told = frames.iter().filter(|frame| frame.kind == FrameKind::Event).count();
        must!(told == events.len(), "{told} events are signed, {} are told", events.len());
        let published =
            self.published.iter().map(|((size, root), note)| (*size, *root, note.clone())).collect();
        Ok(Observed { entries, size, lost, events, published })
    }

    /// Holds what a log has against what was promised, and learns from it what became of what ended in an error.
    pub(super) fn compare(&mut self, observed: &Observed, covers: Covers) -> Outcome {
        let last = observed.published.last().map_or(0, |(size, ..)| *size);
        let is_covered = covers == Covers::SoFar || last <= observed.size;
        must!(is_covered, "a checkpoint of size {last} was published, now it is {}", observed.size);
        self.compare_erasures(observed, covers)?;
        self.compare_holds(observed, covers)?;
        self.compare_withheld(observed)?;
        let mut counts = BTreeMap::<u64, u64>::new();
        observed.entries.iter().for_each(|entry| *counts.entry(entry.id.producer).or_default() += 1);
        let mut by_session = BTreeMap::<u64, u64>::new();
        for (producer, promise) in &mut self.producers {
            let found = counts.get(producer).copied().unwrap_or_default();
            *by_session.entry(promise.session).or_default() += found;
            if covers == Covers::SoFar {
                // What is signed is durable in every mode.
                promise.synced = promise.synced.max(found);
                promise.written = promise.written.max(found);
                continue;
            }
            let Promise { written, .. } = *promise;
            must!(
                found >= written,
                "{written} entries of producer {producer} were acknowledged, {found} are there"
            );
            *promise = Promise { appended: found, written: found, synced: found, ..*promise };
        }
        if covers == Covers::Everything {
            for (session, counted) in &self.counted {
                let found = by_session.get(session).copied().unwrap_or_default();
                must!(
                    found >= *counted,
                    "session {session} counted {counted} entries as durable, {found} are there"
                );
            }
        }
        Ok(())
    }

    fn compare_erasures(&mut self, observed: &Observed, covers: Covers) -> Outcome {
        let mut found = BTreeMap::new();
        for LoggedEvent { frame, event, objection, .. } in &observed.events {
            let event = event.as_ref().map_err(|why| format!("the event in frame {frame}: {why}"))?;
            must!(objection.is_none(), "the event in frame {frame}: {objection:?}");
            if let Event::Erased { numbers, carried_out, order, .. } = event {
                let again = found.insert(order.clone(), (*frame, numbers.clone(), carried_out.clone()));
                must!(again.is_none(), "frame {frame} tells of an order that {again:?} told of");
            }
        }
        for erasing in &mut self.erasures {
            let event = found.remove(&erasing.note);
            match (&event, erasing.told) {
                (Some(_), Told::NotDone) => return Err(format!("nobody was to be erased: {event:?}")),
                (None, Told::Done) if covers == Covers::Everything || erasing.event.is_some() => {
                    return Err(format!("the log does not tell of an erasure any more: {erasing:?}"));
                }
                (None, Told::Unknown(since)) if covers == Covers::Everything && since < self.session => {
                    erasing.told = Told::NotDone;
                }
                _ => {}
            }
            let Some((frame, numbers, carried_out)) = event else { continue };
            let told = erasing.event.get_or_insert((frame, numbers.clone()));
            must!(*told == (frame, numbers.clone()), "{told:?} was told, {frame} {numbers:?} is there");
            erasing.told = Told::Done;
            // Whom it reached. Of the others the vault knew nobody.
            let places = carried_out.iter().map(|place| *place as usize);
            let reached = places.filter_map(|place| erasing.ordered.get(place).copied()).collect::<Vec<_>>();
            must!(reached.len() == carried_out.len(), "frame {frame}: {carried_out:?}");
            erasing.names = reached;
            for number in &numbers {
                let whose = self.numbers.get(number);
                must!(
                    whose.is_none_or(|name| erasing.names.contains(name)),
                    "frame {frame} erases {number}, who is {whose:?}, by an order for {:?}",
                    erasing.names
                );
            }
            self.erased_numbers.extend(numbers);
        }
        must!(found.is_empty(), "nobody ordered these erasures: {found:?}");
        Ok(())
    }

    fn compare_holds(&mut self, observed: &Observed, covers: Covers) -> Outcome {
        let (mut held, mut released) = (BTreeSet::new(), BTreeSet::new());
        for event in observed.events.iter().filter_map(|logged| logged.event.as_ref().ok()) {
            let again = match event {
                Event::Held { order, .. } => !held.insert(order.clone()),
                Event::Released { order, .. } => !released.insert(order.clone()),
                _ => false,
            };
            must!(!again, "a hold or a release is told of twice: {event:?}");
        }
        let session = self.session;
        let settle = |told: &mut Told, found: bool, what: &dyn Fn() -> String| {
            match (found, *told) {
                (true, Told::NotDone) => return Err(format!("{} was not to be", what())),
                (false, Told::Done) => return Err(format!("the log does not tell of {}", what())),
                (false, Told::Unknown(since)) if covers == Covers::SoFar || since == session => {}
                _ => *told = if found { Told::Done } else { Told::NotDone },
            }
            Ok(())
        };
        for hold in &mut self.holds {
            let what = format!("the hold of {} by {}", NAMES[hold.name], hold.by);
            settle(&mut hold.told, held.remove(&hold.note), &|| what.clone())?;
            if let Some((note, told)) = &mut hold.release {
                settle(told, released.remove(note), &|| format!("the release of {what}"))?;
            }
        }
        must!(held.is_empty() && released.is_empty(), "nobody ordered {held:?} {released:?}");
        Ok(())
    }

    /// What is personal of an entry is gone if, and only if, an event that comes after it tells that one of its people was erased.
    fn compare_withheld(&self, observed: &Observed) -> Outcome {
        let erased =
            self.erasures.iter().filter_map(|erasing| Some((erasing.event.as_ref()?.0, &erasing.names)));
        let erased = erased.collect::<Vec<_>>();
        for Seen { frame, id, whole } in &observed.entries {
            let made = self.made(*id);
            let of_entry = |names: &[usize]| names.iter().any(|name| made.subjects().contains(name));
            let by = erased.iter().find(|(event, names)| event > frame && of_entry(names));
            let lost = self.losses.iter().any(|loss| loss.frames > *frame && of_entry(&loss.names));
            must!(
                (by.is_some() || lost) != *whole,
                "{id:?} of {:?} in frame {frame} is {}, erasures are {erased:?}",
                made.subjects(),
                if *whole { "whole" } else { "withheld" }
            );
        }
        Ok(())
    }

    /// Who has which number in the vault: nobody who was erased, and nobody else's.
    pub(super) fn check_vault(&mut self, host: &Host, whose: &Whose) -> Outcome {
        let Some(vault) = host.vault(whose.id)? else { return Ok(()) };
        let unconfirmed = sound("asking the vault", vault.unconfirmed())?;
        must!(unconfirmed.is_none(), "the vault is in the middle of an erasure: {unconfirmed:?}");
        let mut numbers = BTreeSet::new();
        for (name, found) in sound("asking the vault", vault.find_all(&NAMES))?.into_iter().enumerate() {
            let Some(subject) = found else { continue };
            let number = subject.number;
            must!(
                !self.erased_numbers.contains(&number),
                "{} has number {number}, which was erased",
                NAMES[name]
            );
            must!(numbers.insert(number), "two people have number {number}");
            let whose = *self.numbers.entry(number).or_insert(name);
            must!(whose == name, "number {number} was {}'s, and is {}'s", NAMES[whose], NAMES[name]);
        }
        Ok(())
    }

    /// What verification with all keys says of a log that nobody has open, or that somebody writes.
    pub(super) fn verify(&self, host: &Host, whose: &Whose, observed: &Observed, covers: Covers) -> Outcome {
        let verify = Verify::open_store(host.joined()?).and_then(|verify| verify.seal_key(&whose.seal_key));
        let verify = sound("opening to verify", verify)?.key(whose.key.clone());
        let verify = verify.identity(Arc::new(OpenWrap)).threads(1).clock(host.clock.clone());
        let verify = match host.vault(whose.id)? {
            Some(vault) => verify.group_keys(Arc::new(vault)),
            None => verify,
        };
        let report = sound("verifying", verify.run())?;
        let is_loss = |finding: &&Finding| finding.kind == FindingKind::KeyLost && !self.losses.is_empty();
        let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
        let other = violations.clone().find(|finding| !is_loss(finding));
        must!(other.is_none() && report.anchored, "verify: {:#?}", report.findings);
        must!(report.ok == (violations.count() == 0), "verify: {:#?}", report.findings);
        must!(
            covers == Covers::SoFar || report.pending == 0,
            "verify: {} frames are pending",
            report.pending
        );
        // The index is synced when it is done with.
        let allowed = [FindingKind::Abandoned, FindingKind::UnknownFile, FindingKind::IndexDamaged];
        let strange =
            report.findings.iter().find(|finding| !allowed.contains(&finding.kind) && !is_loss(finding));
        must!(covers == Covers::SoFar || strange.is_none(), "verify: {strange:?}");
        must!(report.entries == observed.entries.len() as u64, "verify counts {} entries", report.entries);
        must!(report.tree_size == observed.size, "verify counts {} frames", report.tree_size);
        let withheld = observed.entries.iter().filter(|entry| !entry.whole).count() as u64;
        must!(
            report.erased.is_none_or(|erased| erased + observed.lost == withheld),
            "verify counts {:?} as erased",
            report.erased
        );
        let can_tell = report.erased.is_some() || covers == Covers::SoFar || !self.losses.is_empty();
        must!(can_tell, "verify cannot tell who is erased");
        Ok(())
    }

    /// What verification may say of a log before it is opened again, with what the host has at hand: no violation, whatever a crash left.
    pub(super) fn verify_unopened(&self, host: &Host, whose: &Whose) -> Outcome {
        let state = host.read("audit.keys/seal.state")?;
        let verify = Verify::open_store(host.joined()?)
            .and_then(|verify| verify.seal_key(&whose.seal_key)?.seal_state(&state));
        let verify = sound("opening to verify", verify)?.key(whose.key.clone()).threads(1);
        let report = sound("verifying before opening", verify.clock(host.clock.clone()).run())?;
        let violation = report.findings.iter().find(|finding| finding.severity == Severity::Violation);
        must!(
            violation.is_none() && report.anchored,
            "before opening: {violation:?}\n{:#?}",
            report.findings
        );
        // Otherwise whoever takes the host could rewrite what was signed last.
        let next = u64::from_le_bytes(state[56..64].try_into().map_err(|_| "the seal state is short")?);
        must!(next >= report.tree_size, "the checkpoint covers {}, the seal state {next}", report.tree_size);
        Ok(())
    }

    /// Queries and proofs of what was just observed, of entry `number` and of somebody.
    pub(super) fn ask(
        &self,
        host: &Host,
        whose: &Whose,
        observed: &Observed,
        (number, name): (u64, usize),
    ) -> Outcome {
        if !self.losses.is_empty() {
            // Of some entries nobody can tell any more.
            return Ok(());
        }
        let reader = self.reader(host, whose)?;
        let asked = |query: &Query| {
            let mut found = Vec::new();
            let read = reader.for_each(query, |number, _| {
                found.push(number);
                Ok(())
            });
            sound("a query", read).map(|read| (found, read.undecided))
        };
        let expected = |meets: &dyn Fn(&Seen) -> bool| {
            let found = (0..).zip(&observed.entries).filter(|(_, seen)| meets(seen));
            (found.map(|(number, _)| number).collect::<Vec<u64>>(), 0)
        };
        let of_somebody =
            |seen: &Seen| (seen.whole || !whose.has_vault) && self.made(seen.id).subjects().contains(&name);
        let found = asked(&Query::new().subject(NAMES[name]))?;
        must!(found == expected(&of_somebody), "a query for {} gives {found:?}", NAMES[name]);
        let in_stream = |seen: &Seen| seen.whole && self.made(seen.id).entry().stream == Some("a");
        let found = asked(&Query::new().stream("a"))?;
        must!(found == expected(&in_stream), "a query for stream a gives {found:?}");
        let Some(seen) = observed.entries.get(number as usize) else { return Ok(()) };
        let location = format!("p{} {}", seen.id.producer, seen.id.index);
        let found = asked(&Query::new().location(location.clone()))?;
        must!(
            found.0 == if seen.whole { vec![number] } else { vec![] },
            "a query for {location} gives {found:?}"
        );
        let proven = sound("a proof", reader.prove(&Query::new().entries(number..=number)))?;
        let proof = Proof::parse(&proven.file).map_err(|error| format!("a proof: {error}"))?;
        let checked = proof.verify(Some(&whose.key)).map_err(|error| format!("a proof: {error}"))?;
        let mut disclosed = Vec::new();
        let opened = bulla::open_proof(&checked, |entry| {
            let seen = &observed.entries[entry.number as usize];
            let as_made = self.made(seen.id).check(&entry.entry);
            disclosed
                .push((entry.number, as_made.map(|whole| whole == seen.whole && whole != entry.withheld)));
            Ok(())
        });
        let opened = sound("opening a proof", opened)?;
        let wrong = disclosed.iter().find(|(_, as_made)| *as_made != Ok(true));
        must!(wrong.is_none(), "a proof of entry {number} discloses {wrong:?}");
        must!(
            disclosed.iter().any(|(disclosed, _)| *disclosed == number),
            "a proof of {number} has {disclosed:?}"
        );
        must!(
            opened.entries == proven.entries && opened.withheld == proven.withheld,
            "{opened:?} {proven:?}"
        );
        Ok(())
    }

    /// An erasure has a certificate.
    pub(super) fn certify(&self, host: &Host, whose: &Whose, which: u64) -> Outcome {
        let told = self.erasures.iter().filter_map(|erasing| erasing.event.as_ref()).collect::<Vec<_>>();
        let Some((frame, numbers)) = told.get(which as usize % told.len().max(1)) else { return Ok(()) };
        let proof = sound("a certificate", self.reader(host, whose)?.prove_event(*frame))?;
        let checked = proof.verify(Some(&whose.key)).map_err(|error| format!("a certificate: {error}"))?;
        let event = Event::decode(checked.event()).map_err(|error| format!("a certificate: {error}"))?;
        let is_of_it = matches!(&event, Event::Erased { numbers: certified, .. } if certified == numbers);
        must!(is_of_it, "the certificate of frame {frame}, which erased {numbers:?}, is of {event:?}");
        Ok(())
    }

    /// The log, which only grew, is proven to go on from a checkpoint that was published once.
    pub(super) fn prove_growth(
        &self,
        host: &Host,
        whose: &Whose,
        observed: &Observed,
        which: u64,
    ) -> Outcome {
        // One of more frames was seen before a power cut, and the log was not signed again since it was opened.
        let is_old = |(size, ..): &&(u64, Hash, Vec<u8>)| (1..=observed.size).contains(size);
        let old = observed.published.iter().filter(is_old).collect::<Vec<_>>();
        let Some((size, _, note)) = old.get(which as usize % old.len().max(1)) else { return Ok(()) };
        let proof = sound("a proof of growth", self.reader(host, whose)?.prove_consistency(note))?;
        let proof =
            ConsistencyProof::parse(proof.as_bytes()).map_err(|error| format!("from {size}: {error}"))?;
        proof.verify(Some(&whose.key)).map_err(|error| format!("growth from {size}: {error}"))?;
        Ok(())
    }
}
