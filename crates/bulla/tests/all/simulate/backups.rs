//! Backups of the vault: whom an older one brings back the log erases again, and one that would give numbers a second time is refused.

use super::life::Life;
use super::observed::Covers;
use super::outcome::{Outcome, must, sound};
use bulla::{ErrorKind, Log};
use tempfile::TempDir;

/// A vault as it was while nobody had the log open.
pub(super) struct Backup {
    files: TempDir,
    /// The number that the next new data subject would have had.
    next: u64,
}

impl Life {
    /// Makes a backup of the vault, or puts one back, where the log was closed in order.
    pub(super) fn between_sessions(&mut self) -> Outcome {
        if !self.plan.vault || !self.in_order {
            return Ok(());
        }
        match (self.rng.below(5), self.backup.is_some()) {
            (0 | 1, _) | (2, false) => {
                let (files, next) = (self.host.vault_copy(), self.next_number()?);
                self.backup = files.map(|files| Backup { files, next });
                self.say("backup", next);
                Ok(())
            }
            (2 | 3, true) => self.put_back(),
            _ => Ok(()),
        }
    }

    fn next_number(&self) -> Outcome<u64> {
        let vault = self.host.vault(self.whose.id)?.ok_or("there is no vault")?;
        sound("asking the vault", vault.next_number())
    }

    fn put_back(&mut self) -> Outcome {
        let Some(Backup { files, next }) = self.backup.take() else { return Ok(()) };
        let newest = self.next_number()?;
        // Of numbers from here on the log has none.
        let state = self.host.read("audit.keys/seal.state")?;
        let subjects = state[state.len() - 56..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let replaced = self.host.put_vault_back(files);
        let before = self.host.content();
        self.sessions += 1;
        let opened = self.try_to_open();
        self.say(("the vault is put back", next, newest, subjects), opened.as_ref().map(Log::recovery));
        match opened {
            Ok(log) => {
                must!(
                    next >= subjects,
                    "the log has numbers up to {subjects}, the vault that it opens with {next}"
                );
                self.model.opened(self.sessions);
                // Whoever had these is in no entry.
                self.model.numbers.split_off(&next);
                sound("closing", log.close())?;
                self.examine(Covers::Everything, false).map(|_| ())
            }
            Err(error) => {
                must!(error.kind() == ErrorKind::Refused && next < newest, "{:?}: {error}", error.kind());
                must!(self.host.content() == before, "what is refused has changed something");
                let newest = replaced.ok_or("there was no vault")?;
                drop(self.host.put_vault_back(newest));
                Ok(())
            }
        }
    }

    pub(super) fn try_to_open(&mut self) -> bulla::Result<Log> {
        let environment = self.host.environment(self.rng.next(), &self.model.recorder);
        let options = self.plan.options();
        Log::open_stepped(self.host.log(), self.host.keys(), options, environment)
    }
}
