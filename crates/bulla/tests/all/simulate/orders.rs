//! Erasures, holds, releases and changes of the configuration, as whoever may order them orders them.

use super::entries::NAMES;
use super::host::Host;
use super::life::{Life, Session};
use super::model::{Erasing, Holding, Told};
use super::outcome::{Outcome, must, sound};
use super::plan::{OTHER_RECIPIENT, RECIPIENT};
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::{Configure, Effect, ErasureOrder, Error, ErrorKind, HoldOrder, ReleaseOrder};
use std::sync::Arc;

impl Life {
    /// Whoever may order, who has a machine of their own, on which nothing fails; nobody where the log has no erasure.
    fn office(&mut self) -> Option<(Arc<SigningKey>, Environment)> {
        let key = self.erasure_key.clone()?;
        Some((key, Host::new(false).environment(self.rng.next(), &self.model.recorder)))
    }

    pub(super) fn names(&mut self, most: u64) -> Vec<usize> {
        let mut names = (0..=self.rng.below(most)).map(|_| self.rng.below(8) as usize).collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whom of these the vault knows. Their numbers are noted: they may be new, and erased before anybody asks again.
    pub(super) fn known(&mut self, names: &[usize]) -> Outcome<Vec<bool>> {
        let Some(vault) = self.host.vault(self.whose.id)? else { return Ok(vec![false; names.len()]) };
        let texts = names.iter().map(|name| NAMES[*name]).collect::<Vec<_>>();
        let found = sound("asking the vault", vault.find_all(&texts))?;
        for (name, subject) in names.iter().zip(&found) {
            if let Some(subject) = subject {
                self.model.numbers.entry(subject.number).or_insert(*name);
            }
        }
        Ok(found.iter().map(Option::is_some).collect())
    }

    pub(super) fn erase(&mut self, session: &mut Session) -> Outcome {
        let Some((key, office)) = self.office() else { return Ok(()) };
        let names = self.names(3);
        // What the vault says while it cannot be asked is not known.
        let Ok(known) = self.known(&names) else { return Ok(()) };
        let texts = names.iter().map(|name| NAMES[*name]).collect::<Vec<_>>();
        let order = sound("an order", ErasureOrder::give(&key, self.whose.id, &texts, None, &office))?;
        let erased = session.log.erase(&order);
        self.say(("erase", &texts), &erased);
        let of_known = || names.iter().zip(&known).filter(|(_, known)| **known).map(|(name, _)| *name);
        let mut told = Told::NotDone;
        match &erased {
            Ok(erasure) => {
                must!(
                    of_known().all(|name| self.model.is_held(name) != Some(true)),
                    "somebody is held and erased"
                );
                must!(
                    !erasure.before && erasure.numbers.len() == of_known().count(),
                    "{known:?} {erasure:?}"
                );
                // Nor does the log say who was erased where that is lost with a path.
                let may_lack_keys = !self.model.losses.is_empty() || self.beside.lost.is_some();
                let unknown =
                    names.iter().zip(&known).filter(|(_, known)| !**known).map(|(name, _)| NAMES[*name]);
                must!(
                    erasure.unknown == unknown.collect::<Vec<_>>() && (!erasure.keys_lost || may_lack_keys),
                    "{known:?} {erasure:?}"
                );
                told = Told::Done;
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                let held = of_known().any(|name| self.model.is_held(name) != Some(false));
                must!(held || of_known().count() == 0 || session.troubled, "erasing {texts:?}: {error}");
            }
            Err(error) => {
                must!(
                    session.troubled && self.may_pass(error),
                    "erasing {texts:?}: {:?}: {error}",
                    error.kind()
                );
                session.failed |= session.log.watch().failure().is_some();
                told = Told::Unknown(session.number);
            }
        }
        let event = erased.ok().map(|erasure| (erasure.frame, erasure.numbers));
        let reached = if event.is_some() { of_known().collect() } else { Vec::new() };
        let note = order.note().to_owned();
        if let Some((_, numbers)) = &event {
            self.model.erased_numbers.extend(numbers);
        }
        let order = order.render();
        self.model.erasures.push(Erasing { note, order, ordered: names, names: reached, told, event });
        Ok(())
    }

    /// Gives an order again that was carried out: it is told of, and not carried out a second time.
    pub(super) fn erase_again(&mut self, session: &mut Session) -> Outcome {
        let done = self.model.erasures.iter().filter(|erasing| erasing.event.is_some()).collect::<Vec<_>>();
        if done.is_empty() {
            return Ok(());
        }
        let which = self.rng.below(done.len() as u64) as usize;
        let (order, event) =
            (sound("an order", ErasureOrder::parse(&done[which].order))?, done[which].event.clone());
        let again = session.log.erase(&order);
        if let Some(again) = self.came(session, "erase again", again)? {
            let told = Some((again.frame, again.numbers.clone()));
            must!(again.before && told == event, "an order that was carried out, {event:?}, is {again:?}");
        }
        Ok(())
    }

    pub(super) fn hold(&mut self, session: &mut Session) -> Outcome {
        let Some((key, office)) = self.office() else { return Ok(()) };
        let (name, by) = (self.rng.below(8) as usize, *self.rng.one(&["legal", "audit"]));
        let Ok(known) = self.known(&[name]) else { return Ok(()) };
        self.orders += 1;
        let reason = format!("case {}", self.orders);
        let order =
            sound("an order", HoldOrder::give(&key, self.whose.id, NAMES[name], (by, &reason), &office))?;
        let held = session.log.hold(&order);
        self.say(("hold", NAMES[name], by), &held);
        let by_same =
            self.model.holds.iter().any(|hold| hold.name == name && hold.by == by && hold.may_hold());
        let told = match held {
            Ok(added) => {
                must!(known[0] && added, "{} is held by {by}: {known:?} {added}", NAMES[name]);
                Told::Done
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                must!(!known[0] || by_same || session.troubled, "holding {}: {error}", NAMES[name]);
                Told::NotDone
            }
            Err(error) => {
                must!(session.troubled && self.may_pass(&error), "holding: {:?}: {error}", error.kind());
                session.failed |= session.log.watch().failure().is_some();
                Told::Unknown(session.number)
            }
        };
        let note = order.note().to_owned();
        self.model.holds.push(Holding { note, name, by, told, release: None, is_nobodys: false });
        Ok(())
    }

    pub(super) fn release(&mut self, session: &mut Session) -> Outcome {
        let Some((key, office)) = self.office() else { return Ok(()) };
        let held = self.model.holds.iter().enumerate().filter(|(_, hold)| hold.may_hold());
        let held = held.map(|(which, _)| which).collect::<Vec<_>>();
        if held.is_empty() {
            return Ok(());
        }
        let which = *self.rng.one(&held);
        let (note, by, told) = {
            let hold = &self.model.holds[which];
            // One release at a time, whose outcome is known.
            if hold.release.as_ref().is_some_and(|(_, told)| matches!(told, Told::Unknown(_))) {
                return Ok(());
            }
            (hold.note.clone(), hold.by, hold.told)
        };
        let order =
            sound("an order", ReleaseOrder::give(&key, self.whose.id, &note, (by, "it is closed"), &office))?;
        let released = session.log.release(&order);
        self.say(("release", NAMES[self.model.holds[which].name], by), &released);
        let came = match released {
            Ok(()) => {
                self.model.holds[which].told = Told::Done;
                Told::Done
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                must!(told != Told::Done || session.troubled, "releasing: {error}");
                return Ok(());
            }
            Err(error) => {
                must!(session.troubled && self.may_pass(&error), "releasing: {:?}: {error}", error.kind());
                session.failed |= session.log.watch().failure().is_some();
                Told::Unknown(session.number)
            }
        };
        self.model.holds[which].release = Some((order.note().to_owned(), came));
        Ok(())
    }

    pub(super) fn configure(&mut self, session: &mut Session) -> Outcome {
        let new = match self.rng.below(3) {
            0 => vec![RECIPIENT.to_owned()],
            1 => vec![OTHER_RECIPIENT.to_owned()],
            _ => vec![RECIPIENT.to_owned(), OTHER_RECIPIENT.to_owned()],
        };
        let configure = sound("a change", Configure::default().recipients(new.clone()))?;
        let configured = session.log.configure(&configure);
        let effect = configured.as_ref().err().map(Error::effect);
        self.say(("recipients", new.len()), configured.as_ref().map(|configured| configured.changed));
        match effect {
            None | Some(Some(Effect::Done)) => self.model.recipients = vec![new],
            Some(Some(Effect::Unknown)) => self.model.recipients.push(new),
            Some(None) => {}
        }
        let done = configured.map(|_| ());
        self.came(session, "configure", done)?;
        self.check_recipients()
    }
}
