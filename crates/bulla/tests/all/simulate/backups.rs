//! Backups of keys: whom an older vault brings back the log erases again, and what would give numbers a second time is refused, and
//! changed by nobody, until it is restored.

use super::entries::NAMES;
use super::host::KeyFiles;
use super::life::Life;
use super::model::Loss;
use super::outcome::{Outcome, must, sound};
use crate::crash::world::OpenWrap;
use bulla::{ErrorKind, Log, Restore, Restored};
use std::sync::Arc;
use tempfile::TempDir;

/// The keys as they were while nobody had the log open.
pub(super) struct Backup {
    vault: Option<TempDir>,
    files: KeyFiles,
    /// The number that the next new data subject would have had.
    next: u64,
}

impl Life {
    /// Makes a backup of the keys, where the log was closed in order, or puts one back, or deletes the file of holds.
    pub(super) fn between_sessions(&mut self) -> Outcome {
        match (self.rng.below(8), self.backup.is_some()) {
            (0..=2, true) => self.put_back(),
            (0..=4, _) if self.in_order => {
                let (vault, files, next) =
                    (self.host.vault_copy(), self.host.key_files(), self.next_number()?);
                self.backup = Some(Backup { vault, files, next });
                self.say("backup", next);
                Ok(())
            }
            (5, _) if self.in_order => {
                // Whoever deletes it releases nobody: the log tells who is held.
                let removed = self.host.machine.remove_file("audit.keys/holds");
                self.say("the file of holds is removed", removed);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn next_number(&self) -> Outcome<u64> {
        let vault = self.host.vault(self.whose.id)?;
        vault.map_or(Ok(0), |vault| sound("asking the vault", vault.next_number()))
    }

    /// Puts the vault of the backup back, where there is one, and half of the times all other keys, too. The log opens with what is as
    /// new as it is, or refuses it.
    fn put_back(&mut self) -> Outcome {
        let Some(Backup { vault, files, next }) = self.backup.take() else { return Ok(()) };
        // In the middle of an erasure it cannot be asked.
        let (Ok(newest), Ok(current)) = (self.next_number(), self.current_numbers()) else { return Ok(()) };
        // Of numbers from here on the log has none under its checkpoint.
        let state = self.host.read("audit.keys/seal.state")?;
        let subjects = state[192..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let all = !self.plan.vault || self.rng.below(2) == 0;
        let replaced = (vault.and_then(|vault| self.host.put_vault_back(vault)), self.host.key_files());
        if all {
            self.host.put_key_files_back(&files);
        }
        let before = self.host.finished_content();
        self.sessions += 1;
        let opened = self.try_to_open();
        let what = format!("put back, all: {all}, numbers to {next}, were to {newest}, signed to {subjects}");
        self.say(what, opened.as_ref().map(Log::recovery));
        match opened {
            Ok(log) => {
                let is_new = next >= subjects || !self.plan.vault;
                must!(is_new, "the log has numbers up to {subjects}, the vault that it opens with {next}");
                self.model.opened(self.sessions);
                // Whoever had these is in no entry.
                self.model.numbers.split_off(&next);
                sound("closing", log.close())?;
                self.in_order = true;
                self.examine_closed().map(|_| ())
            }
            Err(error) => {
                let is_older = all || next < newest || !self.in_order;
                let may_be = error.kind() == ErrorKind::Refused && is_older && self.plan.vault;
                must!(may_be, "{:?}: {error}", error.kind());
                let after = self.host.finished_content();
                let gone = before.iter().filter(|file| !after.contains(file));
                let come = after.iter().filter(|file| !before.contains(file));
                let changed = gone.chain(come).map(|(path, _)| path).collect::<Vec<_>>();
                must!(changed.is_empty(), "what is refused has changed {changed:?}: {error}");
                let is_asked = self.model.losses.is_empty() && self.rng.below(2) == 0;
                if is_asked && !self.has_second_numbers(next, &current) {
                    return self.restore(next, &current);
                }
                let (vault, files) = replaced;
                self.host.put_key_files_back(&files);
                drop(vault.and_then(|vault| self.host.put_vault_back(vault)));
                Ok(())
            }
        }
    }

    /// Whether somebody has another number by now than the one below `next` that the vault which was put back knows: by an erasure that was cut short, and of
    /// which the log tells nothing. Of their entries some are lost with that vault then, and others come back.
    fn has_second_numbers(&self, next: u64, current: &[Option<u64>]) -> bool {
        let before = self.model.numbers.range(..next);
        let mut before = before.filter(|(number, _)| !self.model.erased_numbers.contains(number));
        before.any(|(_, name)| current.get(*name).copied().flatten().is_some_and(|now| now >= next))
    }

    /// The number that each name has now, as far as it has one.
    fn current_numbers(&self) -> Outcome<Vec<Option<u64>>> {
        let Some(vault) = self.host.vault(self.whose.id)? else { return Ok(Vec::new()) };
        let found = sound("asking the vault", vault.find_all(&NAMES))?;
        Ok(found.into_iter().map(|subject| subject.map(|subject| subject.number)).collect())
    }

    /// Goes on with the older keys, in whose vault the next number is `next`; `current` are the numbers that are known without them. It may
    /// be cut short, and is done again then.
    fn restore(&mut self, next: u64, current: &[Option<u64>]) -> Outcome {
        if self.rng.below(2) == 0 {
            let moments = self.rng.below(80);
            self.host.stop_in(moments);
            self.say("stop in", moments);
        }
        self.older_keys = true;
        let mut restored = self.try_to_restore();
        self.say("restore", &restored);
        if self.host.stopped() {
            self.crash(None, true)?;
            restored = self.try_to_restore();
            self.say("restore again", &restored);
        }
        let restored = sound("restoring", restored)?;
        self.older_keys = false;
        self.model.opened(self.sessions);
        // Whom an erasure that was cut short took out of the vault had a number that no event tells of.
        let numbers = &self.model.numbers;
        let untold = numbers.range(next..).filter(|(number, _)| !self.model.erased_numbers.contains(number));
        let untold = untold.map(|(_, name)| *name).collect::<Vec<_>>();
        let is_lost =
            |name: &usize| current[*name].is_some_and(|number| number >= next) || untold.contains(name);
        let names = (0..NAMES.len()).filter(is_lost).collect::<Vec<_>>();
        self.model
            .holds
            .iter_mut()
            .filter(|hold| names.contains(&hold.name))
            .for_each(|hold| hold.is_nobodys = true);
        let frames = super::observed::checkpoint(&self.host)?.0.size;
        self.model.losses.push(Loss { frames, names: names.clone() });
        self.in_order = true;
        let observed = self.examine_closed()?;
        // Whose keys are lost, of those that entries have.
        let erased_after = |name: usize, frame: u64| {
            let events = self.model.erasures.iter().filter(|erasing| erasing.names.contains(&name));
            events.filter_map(|erasing| erasing.event.as_ref()).any(|(event, _)| *event > frame)
        };
        let has_entries = |name: &usize| {
            let mut of_name =
                observed.entries.iter().filter(|seen| self.model.made(seen.id).subjects().contains(name));
            of_name.any(|seen| !erased_after(*name, seen.frame))
        };
        let lost = names.iter().filter(|name| has_entries(name)).count() as u64;
        // Where it was cut short at its end nothing is needed.
        must!(
            restored.lost == lost || !restored.outlook.needed && restored.lost == 0,
            "the keys of {names:?} are lost, {lost} of whom have entries, {restored:?} is told"
        );
        // Whoever had numbers that are given anew is in no entry.
        let next = self.next_number()?;
        let with_entries = self.model.numbers.range(next..).filter(|(_, name)| has_entries(name));
        let with_entries = with_entries.collect::<Vec<_>>();
        must!(with_entries.is_empty(), "the vault goes on with {next}, and entries have {with_entries:?}");
        self.model.numbers.split_off(&next);
        Ok(())
    }

    fn try_to_restore(&mut self) -> bulla::Result<Restored> {
        let environment = self.host.environment(self.rng.next(), &self.model.recorder);
        let restore = Restore::new("audit", Arc::new(OpenWrap)).environment(environment);
        restore.run_in(self.host.log(), self.host.keys())
    }

    pub(super) fn try_to_open(&mut self) -> bulla::Result<Log> {
        let environment = self.host.environment(self.rng.next(), &self.model.recorder);
        let options = self.plan.options();
        Log::open_stepped(self.host.log(), self.host.keys(), options, environment)
    }
}
