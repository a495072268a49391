//! The end of some lives: a path that the writer had left is lost for good, and the log goes on without it.
//!
//! - Nothing is lost that did not lie there; that it is lost is said, to the frame, and every entry of other frames is given out, once. Of a
//!   frame of which only a copy is left that a failure damaged, verification says so.
//! - The log opens, takes entries, erases and holds, and verification misses those frames and finds nothing else.

use super::entries::Id;
use super::life::{Life, Session};
use super::observed::{Covers, Observed, Seen};
use super::outcome::{Outcome, must, sound};
use super::sources::SOURCE;
use crate::crash::world::OpenWrap;
use bulla::event::Event;
use bulla::{
    Configure, Entry, Error, ErrorKind, Export, Finding, FindingKind, LoggedEvent, Severity, Verify,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Life {
    /// Loses a path of a log of which all was observed, if there is one that the log goes on without.
    pub(super) fn lose_path(&mut self, observed: &Observed) -> Outcome {
        let known = self.known_paths();
        let can_go = |path: &&&str| {
            let fate = known.get(**path).map(String::as_str);
            **path != "audit" && matches!(fate, Some("left" | "spare"))
        };
        let paths = self.beside.paths.iter().filter(can_go).copied().collect::<Vec<_>>();
        if paths.is_empty() {
            return Ok(());
        }
        let path = *self.beside.rng.one(&paths);
        let there = self.frames_on(path, observed.size)?;
        self.say("a path is lost for good", (path, &there));
        self.beside.lost = Some((path, self.id_of_path(path)?));
        self.clear(path);
        let rest = self.beside.paths[1..].iter().filter(|rest| **rest != path);
        let rest = rest.map(|path| format!("/{path}")).collect::<Vec<_>>().join(",");
        let environment = self.host.environment(self.beside.rng.next(), &self.model.recorder);
        let configure = Configure::default().set("backup_paths", &rest);
        let set = configure.and_then(|set| set.apply_in(self.host.log(), self.host.keys(), &environment));
        sound("leaving out a path that is lost", set)?;

        let lost = sound("which frames are lost", bulla::lost_frames_of(self.host.joined()?))?;
        let lost = lost.frames.into_iter().flatten().collect::<BTreeSet<_>>();
        // Of some that were written again there the first copy, on the path before, is whole.
        must!(lost.is_subset(&there), "{path} had {there:?}, and {lost:?} are said to be lost");
        self.say("frames are lost", &lost);
        self.go_on_without(path, [&there, &lost], observed)
    }

    /// Appends, erases and holds in a log that has lost a path, and looks at all that is left.
    fn go_on_without(
        &mut self,
        path: &str,
        [there, lost]: [&BTreeSet<u64>; 2],
        observed: &Observed,
    ) -> Outcome {
        self.sessions += 1;
        let opened = match self.try_to_open() {
            Err(error) if error.kind() == ErrorKind::Tampered => return self.is_of_copy(path, there, &error),
            opened => sound("opening without it", opened)?,
        };
        let mut session = Session::new(opened, self.sessions);
        self.model.opened(self.sessions);
        // Of holds and erasures that frames which are lost told of it may be asked.
        session.troubled = !lost.is_empty();
        if self.plan.sources {
            match session.log.source(SOURCE, format!("session {}", session.number).as_bytes()) {
                Err(error) if error.kind() == ErrorKind::Tampered => {
                    return self.is_of_copy(path, there, &error);
                }
                source => session.source = Some(sound("a source without it", source)?),
            }
        }
        for _ in 0..3 {
            self.append(&mut session)?;
        }
        self.erase(&mut session)?;
        self.hold(&mut session)?;
        self.append(&mut session)?;
        must!(self.flush(&mut session)? && !session.failed, "without {path} the log takes nothing");
        let appended = self.model.appended(self.sessions);
        drop(session.producers);
        sound("closing without it", session.log.close())?;
        // What lay there may be left elsewhere, where it counts for nothing: it is read, and a verification says so.
        if there.is_empty() {
            return self.examine(Covers::Everything, false).map(|_| ());
        }
        let id_of = |seen: &Seen| (seen.id.producer, seen.id.index);
        let left = observed.entries.iter().filter(|seen| !lost.contains(&seen.frame)).collect::<Vec<_>>();
        let expected = left.iter().map(|seen| id_of(seen)).collect::<BTreeSet<_>>();
        let (old, new) = self.salvaged()?.into_iter().partition::<Vec<_>, _>(|id| {
            self.model.producers.get(&id.producer).is_some_and(|promise| promise.session < self.sessions)
        });
        let found = old.iter().map(|id| (id.producer, id.index)).collect::<BTreeSet<_>>();
        must!(found.len() == old.len(), "an entry is given out twice");
        must!(
            found.is_subset(&expected),
            "without {path} these are too many: {:?}",
            found.difference(&expected).collect::<Vec<_>>()
        );
        // Of a frame that was written again to the path which is lost the first copy may be there, and damaged by what failed.
        let damaged = left.iter().filter(|seen| !found.contains(&id_of(seen)));
        let damaged = damaged.map(|seen| seen.frame).collect::<BTreeSet<_>>();
        must!(
            damaged.is_subset(there),
            "without {path}, which alone had {there:?}, these are missing: {:?}",
            expected.difference(&found).collect::<Vec<_>>()
        );
        must!(
            new.len() as u64 == appended,
            "{appended} were appended without {path}, {} are there",
            new.len()
        );
        self.verify_loss(path, [there, lost, &damaged], observed)
    }

    /// That a log is refused for what a failure left of a frame that lay on the path which is lost: its event is needed, and damage is no loss.
    fn is_of_copy(&mut self, path: &str, there: &BTreeSet<u64>, error: &Error) -> Outcome {
        let names = |frame: u64| {
            [':', ' '].iter().any(|end| error.to_string().contains(&format!("frame {frame}{end}")))
        };
        let damaged = there.iter().find(|frame| names(**frame));
        must!(damaged.is_some(), "opening without {path}: {error}");
        self.say("a copy is damaged", damaged);
        Ok(())
    }

    /// The entries that can be read of a log that lacks frames.
    fn salvaged(&self) -> Outcome<Vec<Id>> {
        let export = sound("salvaging", Export::open_store(self.host.joined()?))?;
        let export = export.key(self.whose.key.clone()).identity(Arc::new(OpenWrap)).salvage(true);
        let export = match self.host.vault(self.whose.id)? {
            Some(vault) => export.group_keys(Arc::new(vault)),
            None => export,
        };
        let mut out = Vec::new();
        sound("salvaging", export.run(&mut out))?;
        let text = String::from_utf8(out).map_err(|error| error.to_string())?;
        let id = |line: &str| {
            let line = serde_json::from_str::<serde_json::Value>(line).map_err(|error| error.to_string())?;
            let mut entry = Entry::new("", "");
            entry.duration = line.get("duration").and_then(serde_json::Value::as_u64);
            Id::of(&entry)
        };
        text.lines().map(id).collect()
    }

    /// That verification misses these frames, and finds no other violation but what only they explain: what a crash left elsewhere.
    fn verify_loss(
        &self,
        path: &str,
        [there, lost, damaged]: [&BTreeSet<u64>; 3],
        observed: &Observed,
    ) -> Outcome {
        let verify =
            Verify::open_store(self.host.joined()?).and_then(|verify| verify.seal_key(&self.whose.seal_key));
        let verify = sound("opening to verify", verify)?.key(self.whose.key.clone());
        let verify = verify.identity(Arc::new(OpenWrap)).threads(1).clock(self.host.clock.clone());
        let verify = match self.host.vault(self.whose.id)? {
            Some(vault) => verify.group_keys(Arc::new(vault)),
            None => verify,
        };
        let report = sound("verifying without a path that is lost", verify.run())?;
        let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
        let (missing, others) =
            violations.partition::<Vec<_>, _>(|finding| finding.kind == FindingKind::FramesMissing);
        // Of people whose erasure a frame told of that is lost, and of those whose keys a restore lost before.
        let told = self.model.erasures.iter().filter_map(|erasing| erasing.event.as_ref());
        let may_lack_keys =
            !self.model.losses.is_empty() || told.clone().any(|(frame, _)| lost.contains(frame));
        let is_of_keys = |finding: &Finding| finding.kind == FindingKind::KeyLost && may_lack_keys;
        let explained =
            observed.events.iter().filter(|event| lost.contains(&event.frame)).filter_map(explains);
        let explained = explained.collect::<Vec<_>>();
        // As all of these say themselves.
        let may_be_explained =
            |finding: &Finding| finding.detail.contains("an event that is missing may tell why");
        let is_of_crash = |finding: &Finding| {
            explained.iter().any(|(segment, offset)| {
                finding.segment.as_ref() == Some(segment) && finding.offset >= Some(*offset)
            })
        };
        // Of a frame that has no entries nobody else notices.
        let has_entries = |frame: u64| observed.entries.iter().any(|seen| seen.frame == frame);
        let is_damaged = |frame: u64| {
            damaged.contains(&frame)
                || there.contains(&frame) && !lost.contains(&frame) && !has_entries(frame)
        };
        let is_of_copy = |finding: &Finding| finding.frame.is_some_and(is_damaged);
        let is_explained = |finding: &&Finding| match finding.kind {
            FindingKind::SurplusBytes => {
                may_be_explained(finding) && is_of_crash(finding)
                    || finding.detail.contains(&format!("took their place is missing; {path}, "))
            }
            FindingKind::FrameDamaged => {
                may_be_explained(finding) && (is_of_crash(finding) || is_of_copy(finding))
            }
            FindingKind::BodyDamaged | FindingKind::SealMismatch => {
                may_be_explained(finding) && is_of_copy(finding)
            }
            _ => is_of_keys(finding),
        };
        let unexplained = others.iter().copied().filter(|finding| !is_explained(finding)).collect::<Vec<_>>();
        must!(unexplained.is_empty(), "without {path}: {unexplained:#?}");
        let is_damage = |finding: &&&Finding| {
            matches!(finding.kind, FindingKind::FrameDamaged | FindingKind::BodyDamaged)
        };
        let told = frames_of(others.iter().filter(is_damage));
        must!(damaged.is_subset(&told), "{damaged:?} are damaged, and {told:?} are told");
        let missing = frames_of(missing.iter());
        must!(missing == *lost, "{path} alone had {lost:?}, and {missing:?} are missing");
        Ok(())
    }

    /// The frames that the log has in segments which lie on this path alone.
    fn frames_on(&self, path: &str, size: u64) -> Outcome<BTreeSet<u64>> {
        let mut segments = BTreeMap::<(u64, u64), Vec<&str>>::new();
        for on in self.beside.paths {
            for (name, content) in self.files_below(on) {
                // Besides them there may be a temporary file that a crash left.
                let name = name.strip_prefix("segments/").and_then(|name| name.strip_suffix(".seg"));
                let Some(name) = name.filter(|_| !content.is_empty()) else { continue };
                let (first, generation) = name.split_once('-').unwrap_or((name, "0"));
                let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{name}: {error}"));
                segments.entry((number(first)?, number(generation)?)).or_default().push(on);
            }
        }
        let is_there_alone = |frame: &u64| {
            let segment = segments.range(..=(*frame, u64::MAX)).next_back();
            segment.is_some_and(|(_, paths)| paths == &[path])
        };
        Ok((0..size).filter(is_there_alone).collect())
    }
}

/// The frames that these are about, from the first to the last of each.
fn frames_of<'a>(findings: impl Iterator<Item = &'a &'a Finding>) -> BTreeSet<u64> {
    findings.filter_map(|finding| Some(finding.frame?..=finding.last_frame?)).flatten().collect()
}

/// From where on a segment counts for nothing by an event, if it says so of one.
fn explains(event: &LoggedEvent) -> Option<(String, u64)> {
    match event.event.as_ref().ok()? {
        Event::Recovered { segment, offset, .. } | Event::Abandoned { segment, offset, .. } => {
            Some((segment.clone(), *offset))
        }
        _ => None,
    }
}
