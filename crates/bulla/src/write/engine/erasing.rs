//! Erasing data subjects of a log that is open.
//!
//! 1. The order is checked, and that nobody of it is held.
//! 2. What the log will tell is made durable beside the vault.
//! 3. No block is being sealed; the vault destroys the keys; the event gets its place. A block that was sealed before
//!    has a frame before the event, and one that is sealed afterwards has other keys.
//! 4. Once a checkpoint covers the event, the vault forgets about the erasure.
//!
//! A crash anywhere leaves the vault's own record and that of step 2: opening the log goes on from there. Up to the vault's
//! transaction nothing is erased, but what was ordered is carried out all the same, unless somebody of it is held by then: the log may
//! have told of a hold since, where files were put back. Where the log tells of the erasure already, the
//! vault's record suffices: so it is with whoever is erased again in a vault that was restored, of whom there is no order.

use super::Engine;
use super::locks::Rank;
use crate::erase::holds::Holds;
use crate::erase::key::{NOT_TOLD, erasure_key};
use crate::erase::pending::Pending;
use crate::erase::{Erasure, ErasureOrder, Hold, HoldDifference, HoldOrder, ReleaseOrder, WithdrawnErasure};
use crate::format::config::LogConfig;
use crate::format::event::{Event, Remains};
use crate::keys::files;
use crate::scan::erasures::Erased;
use crate::scan::events::{each_event, hold_order, told_holds};
use crate::scan::keyless::Keyless;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::hold_order::HoldNote;
use bulla_proof::order::{Order, order_digest};
use bulla_store::{Error, ErrorKind, Result};
use bulla_vault::{Committed, MAX_ERASED, Unconfirmed, Vault};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, Weak};

impl Engine {
    /// Carries out an order to erase. An order that was carried out before is not carried out again: the person may have come
    /// back since, and be logged under new keys.
    ///
    /// # Errors
    /// `Refused` where the log has no erasure, the order is not signed with its key, somebody is held, or the vault knows
    /// nobody of it; else where the vault or the log cannot be written: opening the log goes on then.
    pub(crate) fn erase(&self, order: &ErasureOrder) -> Result<Erasure> {
        self.require_own_config()?;
        let mut only = self.erasing.lock();
        self.require_in_place()?;
        let vault = self.vault()?;
        let config = self.config();
        let Some(key) = erasure_key(&config, NOT_TOLD) else {
            return Err(refused("the log has no `erasure_key` that could order an erasure"));
        };
        let ordered = order.check(key, config.id)?;
        if let Some(withdrawn) = self.settle(vault, &[], &mut only)?.withdrawn {
            return Err(refused(&format!("{withdrawn}")));
        }
        if let Some(CarriedOut { frame, numbers, places }) = self.carried_out(&ordered, key)? {
            let unknown = owned(&order.not_carried_out(&places));
            let keys_lost = !unknown.is_empty() && self.lacks_keys(vault)?;
            return Ok(Erasure { numbers, unknown, frame, keys_lost, before: true });
        }
        let (numbers, carried_out) = self.known(vault, order)?;
        if numbers.is_empty() {
            return Err(self.unknown(vault)?);
        }
        // By what the log tells, whatever the file of holds says of how much of that it has.
        *only = None;
        self.holds(&mut only)?.0.refuse(&numbers)?;
        let unknown = owned(&order.not_carried_out(&carried_out));
        let keys_lost = !unknown.is_empty() && self.lacks_keys(vault)?;
        let pending = Pending { numbers: numbers.clone(), carried_out, order: order.note().to_owned() };
        pending.save(&*self.keys)?;
        let frame = self.carry_out(vault, pending)?;
        Ok(Erasure { numbers, unknown, frame, keys_lost, before: false })
    }

    /// Goes on with an erasure that was cut short, to its end. Whom the log tells of already, in events that the checkpoint
    /// covers or whose numbers are `adopted`, is erased whatever else says so or does not: a number is given once, and what a
    /// vault that was restored follows has no order beside it. `known` is as for [`Engine::holds`].
    fn settle(&self, vault: &Vault, adopted: &[u64], known: &mut Option<u64>) -> Result<Settled> {
        let pending = Pending::load(&*self.keys)?;
        let Some(Unconfirmed { numbers, erased }) = vault.unconfirmed()? else {
            Pending::remove(&*self.keys)?;
            return Ok(Settled::default());
        };
        if self.tells_of(&numbers, adopted)? {
            destroy(vault, &numbers)?;
            vault.confirm(&numbers)?;
            Pending::remove(&*self.keys)?;
            return Ok(Settled::default());
        }
        if erased && vault.keys(numbers.iter().copied())?.iter().any(Option::is_some) {
            return Err(refused(&format!(
                "{} has keys of data subjects {numbers:?}, and a record which says that they were destroyed: its parts are of \
                 different times; put back `vault` and `roots` that are of one and the same time",
                self.keys.describe(files::VAULT)
            )));
        }
        match pending.filter(|pending| pending.numbers == numbers) {
            Some(pending) if erased => self.carry_out(vault, pending).map(|_| Settled::default()),
            Some(pending) => self.go_on_unless_held(vault, pending, known),
            None if erased => Err(Error::unavailable(format!(
                "{} is missing or of another erasure, and data subjects {numbers:?} are erased: restore it",
                self.keys.describe(files::ERASURE),
            ))),
            // Its keys are not destroyed, nobody was told of it, and the log has nothing to tell: it is withdrawn.
            None => self.withdraw(vault).map(|()| Settled::default()),
        }
    }

    /// Goes on with an erasure of which nothing is destroyed yet, or withdraws it where the log tells of a hold on somebody of it
    /// by now.
    fn go_on_unless_held(&self, vault: &Vault, pending: Pending, known: &mut Option<u64>) -> Result<Settled> {
        // Frames that were adopted may tell of a hold, and are looked at once a checkpoint covers them.
        self.if_at_rest(|stages| self.checkpoint(stages, true)).transpose()?;
        *known = None;
        let (held, differences) = match self.try_holds(known)? {
            Ok((holds, differences)) => (holds.refuse(&pending.numbers), differences),
            Err(damaged) => (Err(damaged), Vec::new()),
        };
        let withdrawn = match held {
            Ok(()) => self.carry_out(vault, pending).map(|_| None),
            Err(why) => self
                .withdraw(vault)
                .map(|()| Some(WithdrawnErasure { numbers: pending.numbers, reason: why.to_string() })),
        };
        Ok(Settled { withdrawn: withdrawn?, differences })
    }

    fn withdraw(&self, vault: &Vault) -> Result<()> {
        vault.resume_erasure()?.map_or(Ok(()), bulla_vault::Erasure::withdraw)?;
        Pending::remove(&*self.keys)
    }

    /// Whether the log's events name all of these data subjects as erased.
    fn tells_of(&self, numbers: &[u64], adopted: &[u64]) -> Result<bool> {
        let adopted = adopted.iter().collect::<HashSet<_>>();
        let mut left = numbers.iter().filter(|number| !adopted.contains(number)).collect::<HashSet<_>>();
        if !left.is_empty() {
            each_event(&Manifest::load(Snapshot::of(self.log.clone())?)?, 0, |_, event| {
                left.retain(|number| event.erases().binary_search(number).is_err());
            })?;
        }
        Ok(left.is_empty())
    }

    /// Destroys the keys and has the log tell of it. Returns the frame of the event.
    fn carry_out(&self, vault: &Vault, Pending { numbers, carried_out, order }: Pending) -> Result<u64> {
        let remains = Remains::ALL.to_vec();
        let event = Event::Erased { numbers: numbers.clone(), carried_out, order, remains };
        let held = Rank::Sealing.hold();
        let nothing_is_sealed = self.sealing.write().unwrap_or_else(PoisonError::into_inner);
        destroy(vault, &numbers).or_else(|error| self.take_back(vault, error))?;
        let frame = self.staging.with_sequencer(|sequencer| sequencer.request_event(event));
        drop((nothing_is_sealed, held));
        let frame = self.wait_for_checkpoint(&frame)?;
        vault.confirm(&numbers)?;
        Pending::remove(&*self.keys)?;
        Ok(frame)
    }

    /// Withdraws an erasure after an error: while it is under way the vault gives no keys of these data subjects, and no block
    /// of theirs could be sealed. Where the keys are destroyed already, or the vault cannot even be asked, the log fails,
    /// and opening it again goes on with the erasure.
    fn take_back(&self, vault: &Vault, error: Error) -> Result<()> {
        let withdrawn = vault.unconfirmed().and_then(|unconfirmed| match unconfirmed {
            Some(unconfirmed) if unconfirmed.erased => {
                Err(Error::unavailable(format!("an erasure was not finished: {error}")))
            }
            _ => vault.resume_erasure()?.map_or(Ok(()), bulla_vault::Erasure::withdraw),
        });
        withdrawn.inspect_err(|error| self.fail(error))?;
        Pending::remove(&*self.keys)?;
        Err(error)
    }

    /// Has the log tell of an erasure that was not carried out, or of a hold or a release that nobody asked for, before the next block:
    /// for tests of what reads that.
    ///
    /// # Errors
    /// `Refused` for any other event, and where verification would object to its order by itself.
    pub(crate) fn tell(&self, event: Event) -> Result<()> {
        let config = self.config();
        let key = erasure_key(&config, NOT_TOLD);
        let key = key.ok_or_else(|| refused("the log has no `erasure_key` that could order that"))?;
        match &event {
            Event::Erased { numbers, carried_out, order, .. } => {
                let ordered = Order::open(order.as_bytes(), key);
                let ordered = ordered.map_err(|error| refused(&format!("the order to erase: {error}")))?;
                let checked = ordered.check_erasure(config.id, numbers, carried_out);
                checked.map_err(|error| refused(&format!("the erasure: {error}")))?;
            }
            Event::Held { order, .. } | Event::Released { order, .. } => {
                let ordered = HoldNote::open(order.as_bytes(), key).and_then(|note| match event {
                    Event::Held { .. } => note.check_hold(config.id),
                    _ => note.check_release(config.id),
                });
                ordered.map_err(|error| refused(&format!("the order: {error}")))?;
            }
            _ => return Err(refused("nothing but what was ordered can be recorded so")),
        }
        self.staging.with_sequencer(|sequencer| sequencer.request_event(event));
        Ok(())
    }

    /// Finds the event of an order that was carried out: its frame, and what it says of whom. Orders are compared by what
    /// they say: somebody may have put further signatures beneath the same order.
    fn carried_out(&self, ordered: &Order, key: &VerifierKey) -> Result<Option<CarriedOut>> {
        let mut found = None;
        each_event(&Manifest::load(Snapshot::of(self.log.clone())?)?, 0, |commitment, event| {
            if let Event::Erased { numbers, carried_out, order: note, .. } = event
                && Order::open(note.as_bytes(), key).is_ok_and(|order| order == *ordered)
            {
                found = Some(CarriedOut { frame: commitment.frame, numbers, places: carried_out });
            }
        })?;
        Ok(found)
    }

    /// Erases, in the vault, everybody whom the log says it erased: the vault may be a backup from before that. The log says
    /// so in events that the checkpoint covers, and in those above it, of which recovery `adopted` these numbers.
    /// Returns what came of an erasure that was cut short.
    pub(super) fn follow_erasures(&self, adopted: &[u64]) -> Result<Settled> {
        let Ok(vault) = self.vault() else { return Ok(Settled::default()) };
        let settled = self.settle(vault, adopted, &mut self.erasing.lock())?;
        let mut erased = adopted.to_vec();
        let (follows, published) = (vault.follows()?, self.published());
        if follows < published {
            let log = Manifest::load(Snapshot::of(self.log.clone())?)?;
            each_event(&log, follows, |_, event| erased.extend(event.erases()))?;
        }
        for numbers in erased.chunks(MAX_ERASED) {
            if let Some(erasure) = vault.begin_erasure_of(numbers)? {
                vault.confirm(erasure.commit()?.destroy()?.numbers())?;
            }
        }
        vault.follow(published)?;
        Ok(settled)
    }

    /// Gives no data subject a number below `next` from now on. Returns the number that would have been the next.
    pub(crate) fn skip_subjects(&self, next: u64) -> Result<u64> {
        let vault = self.vault()?;
        let before = vault.next_number()?;
        if before < next {
            vault.skip_to(next)?;
        }
        Ok(before)
    }

    /// Carries out an order to hold a data subject: it is not erased until that is released. False where it is so already.
    ///
    /// # Errors
    /// `Refused` where the log has no erasure, the order is not signed with its key or was carried out before, the vault does not know the
    /// data subject, or the same holds it for another reason; `Invalid` for a text that is empty or too long, else where a file
    /// cannot be written.
    pub(crate) fn hold(&self, order: &HoldOrder) -> Result<bool> {
        self.require_own_config()?;
        let mut only = self.erasing.lock();
        self.require_in_place()?;
        let config = self.config();
        order.check(self.key_for_holds(&config)?, config.id)?;
        let number = self.number_of(order.subject())?;
        // By what the log tells, whatever the file of holds says of how much of that it has.
        *only = None;
        let mut holds = self.settled_holds(&mut only)?.0;
        let (by, reason, since) = (order.by().to_owned(), order.reason().to_owned(), self.seconds());
        let (order, salts) = (order.note().to_owned(), Some(order.salts().clone()));
        let digest = order_digest(&order);
        let added =
            holds.add(Hold { number, by, reason, since, frame: None, order, salts, release: None })?;
        if added {
            let told = told_holds(&Manifest::load(Snapshot::of(self.log.clone())?)?)?;
            if told.has_order(&digest) {
                return Err(refused(
                    "the order to hold was carried out before, and is good for one hold: have another one given",
                ));
            }
            holds.save(&*self.keys)?;
        }
        self.tell_of(&mut holds, &mut only)?;
        Ok(added)
    }

    /// Carries out an order to release a hold.
    ///
    /// # Errors
    /// `Refused` where the order is not signed with the log's key, or there is no hold that it is about; else as [`Engine::hold`].
    pub(crate) fn release(&self, order: &ReleaseOrder) -> Result<()> {
        self.require_own_config()?;
        let mut only = self.erasing.lock();
        self.require_in_place()?;
        let config = self.config();
        let hold = order.check(self.key_for_holds(&config)?, config.id)?;
        *only = None;
        let mut holds = self.settled_holds(&mut only)?.0;
        holds.release(&hold, order.note())?;
        holds.save(&*self.keys)?;
        self.tell_of(&mut holds, &mut only)
    }

    /// The key that orders to hold and to release have to be signed with.
    fn key_for_holds<'a>(&self, config: &'a LogConfig) -> Result<&'a VerifierKey> {
        self.vault()?;
        erasure_key(config, NOT_TOLD)
            .ok_or_else(|| refused("the log has no `erasure_key` that could order a hold"))
    }

    /// Brings the file of holds in line with what the log tells, and has the log tell of what it does not tell yet. Returns how
    /// they differed. A log is opened with a file that is damaged, too: erasing and holding refuse it.
    ///
    /// # Errors
    /// Where a file cannot be written, or the log's events cannot be read.
    pub(super) fn settle_holds(&self) -> Result<Vec<HoldDifference>> {
        let mut only = self.erasing.lock();
        match self.try_holds(&mut only)? {
            Ok((mut holds, differences)) => self.tell_of(&mut holds, &mut only).map(|()| differences),
            Err(damaged) => Ok(vec![HoldDifference::Unreadable(damaged.to_string())]),
        }
    }

    /// The holds, of which the log tells all, and how they differed from what it tells. What was cut short, or failed, before
    /// is finished before anything else is held or released.
    fn settled_holds(&self, known: &mut Option<u64>) -> Result<(Holds, Vec<HoldDifference>)> {
        let (mut holds, differences) = self.holds(known)?;
        self.tell_of(&mut holds, known)?;
        Ok((holds, differences))
    }

    /// The holds, in line with what the log tells: `known` is up to where it tells of any. Also, how they differed.
    fn holds(&self, known: &mut Option<u64>) -> Result<(Holds, Vec<HoldDifference>)> {
        self.try_holds(known)?
    }

    /// The same; where the file is damaged, so that it says nothing, that is the inner error.
    fn try_holds(&self, known: &mut Option<u64>) -> Result<Result<(Holds, Vec<HoldDifference>)>> {
        let (keys, config) = (&*self.keys, self.config());
        let mut holds = match Holds::load(keys) {
            Ok(holds) => holds,
            Err(error) if error.io_error().is_some() => return Err(error),
            Err(damaged) => return Ok(Err(damaged)),
        };
        if Some(holds.told()) == *known && holds.untold().is_none() {
            return Ok(holds.check(keys, &config, None).map(|()| (holds, Vec::new())));
        }
        let manifest = Manifest::load(Snapshot::of(self.log.clone())?)?;
        let told = told_holds(&manifest)?;
        if let Err(damaged) = holds.check(keys, &config, None) {
            return Ok(Err(damaged));
        }
        let differences = holds.follow(&told, |frame| hold_order(&manifest, frame))?;
        // What the log does not tell of after all, it is to be told.
        if let Err(damaged) = holds.check(keys, &config, Some(&told)) {
            return Ok(Err(damaged));
        }
        holds.save(keys)?;
        *known = Some(told.frames());
        Ok(Ok((holds, differences)))
    }

    /// Has the log tell of what it does not tell yet.
    fn tell_of(&self, holds: &mut Holds, known: &mut Option<u64>) -> Result<()> {
        while let Some((place, event)) = holds.untold() {
            // Where this fails, what came of it the log itself will say.
            *known = None;
            let frame = self.record(event)?;
            *known = Some(frame + 1);
            holds.was_told(place, frame);
            holds.save(&*self.keys)?;
        }
        Ok(())
    }

    fn number_of(&self, subject: &str) -> Result<u64> {
        let vault = self.vault()?;
        match self.look_up(vault, &[subject])?.pop().flatten() {
            Some(number) => Ok(number),
            None => Err(self.unknown(vault)?),
        }
    }

    /// What is said of somebody whom the vault does not know.
    fn unknown(&self, vault: &Vault) -> Result<Error> {
        Ok(refused(match self.lacks_keys(vault)? {
            false => {
                "the vault knows nobody of that name: nobody was logged by it, or they were erased before; \
                 `bulla events DIR --kind erased` lists erasures, by number"
            }
            true => {
                "the vault knows nobody of that name, who may be known or not, which cannot be told: keys are lost that the log \
                 does not say were erased; restore the newest `vault` and `roots`, where there are any that have them"
            }
        }))
    }

    /// Whether groups of the log may be somebody's whose key the vault has lost.
    fn lacks_keys(&self, vault: &Vault) -> Result<bool> {
        let log = Manifest::load(Snapshot::of(self.log.clone())?)?;
        let keyless = Keyless::of(vault, || Erased::in_manifest(&log, 0))?;
        Ok(!keyless.is_nobody_below(log.size()))
    }

    /// The numbers of the data subjects of an order whom the vault knows, ascending, and the places of their names in its list.
    fn known(&self, vault: &Vault, order: &ErasureOrder) -> Result<(Vec<u64>, Vec<u32>)> {
        let found = self.look_up(vault, &order.subjects().collect::<Vec<_>>())?;
        let known = (0..).zip(found).filter_map(|(place, number)| Some((number?, place)));
        let (mut numbers, places) = known.unzip::<_, _, Vec<_>, _>();
        numbers.sort_unstable();
        // An order can name somebody twice, with two salts.
        numbers.dedup();
        Ok((numbers, places))
    }

    /// The numbers of data subjects, of whom the vault hides nobody: whose number has no key any more, the log says was erased.
    fn look_up(&self, vault: &Vault, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        let log = Manifest::load(Snapshot::of(self.log.clone())?)?;
        let erased = Erased::in_manifest(&log, 0)?.numbers;
        vault.look_up(subjects, |number| erased.contains(&number))
    }

    /// The vault, if there is one, for whoever does not keep it open.
    pub(crate) fn shared_vault(&self) -> Weak<Vault> {
        let vault = self.subject_keys.as_ref().and_then(|subject_keys| subject_keys.vault.as_ref());
        vault.map_or_else(Weak::new, Arc::downgrade)
    }

    /// The vault of a log with erasure.
    ///
    /// # Errors
    /// `Refused` where it has none.
    pub(crate) fn vault(&self) -> Result<&Vault> {
        let vault = self.subject_keys.as_ref().and_then(|subject_keys| subject_keys.vault.as_deref());
        vault.ok_or_else(|| refused("the log has `erasure = \"off\"`: nothing of it can be erased"))
    }
}

/// What came of an erasure that was cut short.
#[derive(Default)]
pub(super) struct Settled {
    /// The erasure, where somebody of it was held.
    pub(super) withdrawn: Option<WithdrawnErasure>,
    /// How the file of holds differed from what the log tells, as far as it was looked at.
    pub(super) differences: Vec<HoldDifference>,
}

/// What the event of an order says that was carried out.
struct CarriedOut {
    frame: u64,
    numbers: Vec<u64>,
    /// The places in the order's list of the names that were theirs.
    places: Vec<u32>,
}

/// Destroys the keys of data subjects, from wherever that was cut short.
fn destroy(vault: &Vault, numbers: &[u64]) -> Result<()> {
    let committed = match vault.resume_committed()? {
        Some(committed) => Some(committed),
        None => vault.begin_erasure_of(numbers)?.map(bulla_vault::Erasure::commit).transpose()?,
    };
    committed.map(Committed::destroy).transpose().map(|_| ())
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Refused, message)
}
