//! Paths that fail, fill up, are gone and come back.
//!
//! - As long as one path takes the log nothing fails, and what was acknowledged is there whichever path it lies on.
//! - Each time that another path took over is told of by one event, or by none where the process died before that was durable.
//! - A path that is gone is missed, by name, unless the writer had left it; with it back, as it was, all is there again.

use super::life::{Life, Session};
use super::observed::{Covers, Observed};
use super::outcome::{Outcome, must, sound};
use super::plan::Mode;
use bulla::event::Event;
use bulla::store::Store;
use bulla::{Error, ErrorKind, FindingKind, Log, Severity, Verify};
use bulla_proof::tile::{FULL_WIDTH, TileId};
use bulla_testkit::fault::Fault;
use std::collections::BTreeMap;

/// A path of which nothing but an empty directory is there.
pub(super) struct Detached {
    pub(super) path: &'static str,
    /// What lay there.
    files: BTreeMap<String, Vec<u8>>,
}

/// That a path took over from another one, by their places.
type Pair = (String, String);

/// How often one path took over from another one.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// So often at least, and so often at most, an event tells of it.
    counts: BTreeMap<Pair, (u64, u64)>,
    /// Those of the session that has the log open, in order.
    current: Vec<Pair>,
}

impl Life {
    /// A path fails, or all are as they were.
    pub(super) fn step_paths(&mut self, session: &mut Session) -> Outcome {
        if self.beside.rng.below(3) == 0 {
            if !self.beside.failing.is_empty() && !self.host.stopped() {
                self.host.heal();
                self.beside.failing.clear();
                self.say("the paths work again", ());
            }
            return Ok(());
        }
        self.fail_path(&mut session.troubled);
        Ok(())
    }

    /// Half of the times the path that is written to fails, in one way or another, until they are healed. Where no other is left something
    /// may fail.
    fn fail_path(&mut self, troubled: &mut bool) {
        let any = *self.beside.rng.one(self.beside.paths);
        let path = if self.beside.rng.below(2) == 0 { self.host.furthest() } else { any };
        let fault = *self.beside.rng.one(&Fault::ALL);
        // Else it is all of the path.
        let part = *self.beside.rng.one(&["", "", "", "/segments", "/tile", "/checkpoint.tmp"]);
        self.host.machine.fail_below(&format!("{path}{part}"), fault);
        if !self.beside.failing.contains(&path) {
            self.beside.failing.push(path);
        }
        // Mode `os` keeps nothing that it could write elsewhere.
        let syncs = matches!(fault, Fault::SyncFails | Fault::SyncPersistsButFails);
        let gone = self.beside.detached.iter().map(|detached| detached.path);
        let gone = gone.filter(|path| !self.beside.failing.contains(path)).count();
        let all_fail = self.beside.failing.len() + gone == self.beside.paths.len();
        *troubled |= all_fail || syncs && self.plan.durability == Mode::Os;
        self.say("a path fails", (path, part, fault));
    }

    /// Something may be the matter with a path before the log is opened.
    pub(super) fn before_opening(&mut self, troubled: &mut bool) {
        self.beside.failing.clear();
        if self.beside.paths.len() > 1 && self.beside.rng.below(5) == 0 {
            self.fail_path(troubled);
        }
    }

    /// Of a log that was opened, or was not: where a path is missing that was not left, it is asked for, by name, and nothing has changed.
    /// True where it was put back, so that the log can be opened.
    pub(super) fn misses_path(&mut self, opened: &bulla::Result<Log>, was_left: bool) -> Outcome<bool> {
        let Some(detached) = &self.beside.detached else { return Ok(false) };
        let path = detached.path;
        match opened {
            Ok(_) => {
                must!(was_left, "{path} is missing, which was not left, and the log opens");
                Ok(false)
            }
            Err(_) if self.host.stopped() || was_left => Ok(false),
            Err(error) => {
                let is_named =
                    error.to_string().contains(&format!("{path} is a path of the log, and is missing"));
                // As long as the log lies on its first path alone, no other one says which log it is.
                let is_first =
                    error.to_string().contains("audit, a path of the log, is missing") && path == "audit";
                let is_alone = !self.beside.paths[1..]
                    .iter()
                    .any(|path| self.host.machine.read(&format!("{path}/bulla.toml")).is_some());
                must!(is_named || is_first && is_alone, "without {path}: {:?}: {error}", error.kind());
                self.attach();
                Ok(true)
            }
        }
    }

    /// Whether the key directory says that the writer has left the path that is missing.
    pub(super) fn has_left_detached(&self) -> bool {
        let Some(Detached { path, .. }) = &self.beside.detached else { return false };
        self.known_paths().get(*path).is_some_and(|fate| fate == "left")
    }

    /// What became of each path, by the key directory: the fate that it notes, by the place.
    pub(super) fn known_paths(&self) -> BTreeMap<String, String> {
        let known = self.host.machine.read("audit.keys/paths").unwrap_or_default();
        let known = String::from_utf8_lossy(&known).into_owned();
        let fate = |line: &str| {
            let mut words = line.splitn(3, ' ').skip(1);
            let (fate, place) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some((place, fate))
        };
        known.lines().filter_map(fate).collect()
    }

    /// Takes a path away, or puts it back.
    pub(super) fn between_sessions_of_paths(&mut self) -> Outcome {
        self.beside.failing.clear();
        self.host.machine.heal();
        if self.beside.detached.is_some() {
            if self.beside.rng.below(2) == 0 {
                self.attach();
            }
            return Ok(());
        }
        match self.beside.rng.below(6) {
            // After a crash it may hold the only copy of what was acknowledged and is not signed.
            0 | 1 if self.in_order => {
                let path = *self.beside.rng.one(self.beside.paths);
                let files = self.files_below(path);
                self.clear(path);
                self.say("a path is gone", path);
                self.beside.detached = Some(Detached { path, files });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts the path back that was gone, as it was.
    pub(super) fn attach(&mut self) {
        let Some(Detached { path, files }) = self.beside.detached.take() else { return };
        let store = self.host.machine.store(path);
        ["segments", "index"].into_iter().for_each(|directory| drop(store.create_directory(directory)));
        for (name, content) in &files {
            self.host.machine.overwrite(&format!("{path}/{name}"), content);
        }
        self.say("a path is back", path);
    }

    pub(super) fn files_below(&self, path: &str) -> BTreeMap<String, Vec<u8>> {
        let machine = &self.host.machine;
        let below = |file: String| Some((file.strip_prefix(path)?.strip_prefix('/')?.to_owned(), file));
        let below = machine.files().into_iter().filter_map(below);
        below.map(|(name, file)| (name, machine.read(&file).unwrap_or_default())).collect()
    }

    /// Takes all that lies on a path away; what it was mounted at stays.
    pub(super) fn clear(&self, path: &str) {
        for name in self.files_below(path).into_keys() {
            self.host.machine.remove_file(&format!("{path}/{name}"));
        }
        let store = self.host.machine.store(path);
        ["segments", "index"].into_iter().for_each(|directory| drop(store.remove_directory(directory)));
        // Whoever took the disk away does not put it back by cutting the power.
        let _ = store.sync_directory("");
    }

    /// What verification says of a log that lacks a path: which frames are missing, and no other violation.
    pub(super) fn verify_without_path(&mut self) -> Outcome {
        let Some(Detached { path, .. }) = &self.beside.detached else { return Ok(()) };
        let report = Verify::open_store(self.host.joined()?).and_then(|verify| {
            verify.key(self.whose.key.clone()).threads(1).clock(self.host.clock.clone()).run()
        });
        let report = sound("verifying without a path", report)?;
        let missing = report.findings.iter().find(|finding| finding.kind == FindingKind::PathMissing);
        let missing = missing.ok_or_else(|| format!("{path} is missing, and {:#?}", report.findings))?;
        must!(missing.detail.contains(path), "{path} is missing, and {missing}");
        let mut violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
        let other = violations.find(|finding| match finding.kind {
            FindingKind::FramesMissing => false,
            // Of frames that were written again there the first copy is on the path before.
            // So may be the event by which what a crash left on another one does not count, also as a damaged copy.
            FindingKind::SurplusBytes
            | FindingKind::FrameDamaged
            | FindingKind::BodyDamaged
            | FindingKind::SealMismatch => {
                let of_it = ["took their place is missing; ", "an event that is missing may tell why: "];
                !of_it.iter().any(|why| finding.detail.contains(&format!("{why}{path}, ")))
            }
            _ => true,
        });
        must!(other.is_none() && report.anchored, "without {path}: {other:?}");
        Ok(())
    }

    /// Takes down which paths took over since this was looked at last.
    pub(super) fn note_switches(&mut self) -> Outcome {
        let told = self.host.told.lock().map_err(|_| "a panic")?[self.beside.told..].to_vec();
        self.beside.told += told.len();
        for line in told {
            let Some((from, to)) = line.split_once(": the log goes on in ") else { continue };
            let (from, _) = from.split_once(" failed (").ok_or_else(|| format!("it is told: {line}"))?;
            self.say("another path takes over", &line);
            let pair = (from.to_owned(), to.to_owned());
            self.model.switches.counts.entry(pair.clone()).or_default().1 += 1;
            self.model.switches.current.push(pair);
        }
        Ok(())
    }

    /// The log was closed in order, or everything of it was signed: the log tells of each path that took over.
    pub(super) fn keep_switches(&mut self) {
        let Switches { counts, current } = &mut self.model.switches;
        // Each is kept once.
        for pair in current.drain(..) {
            let (least, most) = counts.entry(pair).or_default();
            *least = (*least + 1).min(*most);
        }
    }

    /// The process that had the log open is gone, and what it was told may be told by no event.
    pub(super) fn forget_switches(&mut self) {
        self.model.switches.current.clear();
    }

    /// Whether an error says that frames are missing, which lie on a path that is gone, or that what is left of one elsewhere is damaged.
    pub(super) fn is_for_want_of_path(&self, error: &Error) -> bool {
        let text = error.to_string();
        let says_so = text.contains(FindingKind::FramesMissing.name())
            || text.contains("an event that is missing may tell why");
        self.beside.detached.is_some() && error.kind() == ErrorKind::Tampered && says_so
    }

    /// That events tell of the paths that took over, each once. What all of a log does not tell of now it never will.
    pub(super) fn compare_switches(&mut self, observed: &Observed, covers: Covers) -> Outcome {
        let mut found = BTreeMap::<Pair, u64>::new();
        let places = self.places()?;
        for event in observed.events.iter().filter_map(|logged| logged.event.as_ref().ok()) {
            let Event::PathReplaced { from, to, .. } = event else { continue };
            let place = |id: &String| places.get(id).cloned().ok_or_else(|| format!("{id} is no path"));
            *found.entry((place(from)?, place(to)?)).or_default() += 1;
        }
        let counts = &mut self.model.switches.counts;
        for pair in found.keys() {
            must!(
                counts.contains_key(pair),
                "an event tells of {pair:?}, and only of {counts:?} was it told"
            );
        }
        for (pair, (least, most)) in counts {
            let found = found.get(pair).copied().unwrap_or_default();
            must!(found <= *most, "{found} events tell of {pair:?}, which came about {most} times");
            if covers == Covers::Everything {
                must!(found >= *least, "{found} events tell of {pair:?}, which came about {least} times");
                (*least, *most) = (found, found);
            }
        }
        if covers == Covers::Everything {
            self.model.switches.current.clear();
        }
        Ok(())
    }

    /// The places of the paths, by their ids.
    fn places(&self) -> Outcome<BTreeMap<String, String>> {
        let mut places = BTreeMap::from([(self.whose.id.to_string(), "audit".to_owned())]);
        for path in self.beside.paths.iter().skip(1) {
            let id = match &self.beside.lost {
                Some((lost, id)) if lost == path => id.clone(),
                _ => self.id_of_path(path)?,
            };
            places.insert(id, (*path).to_owned());
        }
        Ok(places)
    }

    /// The id of a backup path.
    pub(super) fn id_of_path(&self, path: &str) -> Outcome<String> {
        let text = self.host.read(&format!("{path}/path"))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(text.lines().nth(2).ok_or("a path has no id")?.to_owned())
    }

    /// Of a log that was opened and closed where nothing failed: each path has all full tiles.
    pub(super) fn compare_trees(&self, size: u64) -> Outcome {
        for index in 0..size / u64::from(FULL_WIDTH) {
            let name = TileId { level: 0, index, width: FULL_WIDTH }.path();
            let read = |path: &&str| self.host.machine.read(&format!("{path}/{name}"));
            let tiles = self.beside.paths.iter().map(read).collect::<Vec<_>>();
            must!(tiles[0].is_some(), "{name} is gone");
            must!(tiles.iter().all(|tile| *tile == tiles[0]), "{name} is not the same on all paths");
        }
        Ok(())
    }
}
