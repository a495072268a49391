//! Erasing data subjects of a log that is open.
//!
//! 1. The order is checked, and that nobody of it is held.
//! 2. What the log will tell is made durable beside the vault.
//! 3. No block is being sealed; the vault destroys the keys; the event gets its place. A block that was sealed before
//!    has a frame before the event, and one that is sealed afterwards has other keys.
//! 4. Once a checkpoint covers the event, the vault forgets about the erasure.
//!
//! A crash anywhere leaves the vault's own record and that of step 2, of which the former has the digest: opening the log goes on from
//! there, and by nothing else. Up to the vault's
//! transaction nothing is erased, but what was ordered is carried out all the same, unless somebody of it is held by then: the log may
//! have told of a hold since, where files were put back. Where the log tells of the erasure already, the
//! vault's record suffices: so it is with whoever is erased again in a vault that was restored, of whom there is no order.

use super::Engine;
use super::locks::Rank;
use super::subject_keys::Vaults;
use crate::erase::holds::Holds;
use crate::erase::pending::{Pending, Written};
use crate::erase::refusals::{erasure_key, nobody_known, older_than_lost, refused, without_erasure};
use crate::erase::{
    Erasure, ErasureOrder, Hold, HoldDifference, HoldOrder, KnownAgain, ReleaseOrder, ResumedErasure,
};
use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::keys::files;
use crate::scan::carried_out::CarriedOut;
use crate::scan::erasures::Erased;
use crate::scan::events::{each_event, hold_order, told_holds};
use crate::scan::given_up::Line;
use crate::scan::keyless::Keyless;
use crate::scan::lost::are_lost;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use bulla_crypto::group::PartId;
use bulla_proof::hash::Hash;
use bulla_proof::hold_order::HoldNote;
use bulla_proof::note::SignedNote;
use bulla_proof::order::{Order, order_digest};
use bulla_store::{Error, Result, Store};
use bulla_vault::{Committed, Unconfirmed, Vault};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, PoisonError, Weak};

impl Engine {
    /// Carries out an order to erase. An order that was carried out before is not carried out again: the person may have come
    /// back since, and be logged under new keys. Where there are `only_these` numbers, ascending, nobody is erased unless they
    /// are those of all whom the vault knows of the order.
    ///
    /// # Errors
    /// `Refused` where the log has no erasure, the order is not signed with its key, somebody is held, the vault knows
    /// nobody of it, the order is older than events that are lost, or others than `only_these`; else where the vault or the log cannot be written: opening the log goes on then.
    pub(crate) fn erase(&self, order: &ErasureOrder, only_these: Option<&[u64]>) -> Result<Erasure> {
        self.require_own_config()?;
        let mut only = self.erasing.lock();
        self.require_in_place()?;
        let vault = self.vault()?;
        let config = self.config();
        let key = erasure_key(&config)?;
        let ordered = order.unsigned(config.id)?;
        if let Some(withdrawn @ ResumedErasure::Withdrawn { .. }) =
            self.settle(vault, (&[], Vaults::Newest), &mut only)?.resumed
        {
            return Err(refused(&format!("{withdrawn}")));
        }
        let log = Manifest::load(Snapshot::of(self.log.clone())?)?;
        if let Some(CarriedOut { frame, numbers, places }) = CarriedOut::find(&log, &ordered)? {
            let unknown = owned(&order.not_carried_out(&places));
            let keys_lost = !unknown.is_empty() && self.lacks_keys(vault)?;
            let now = self.look_up(vault, &order.subjects().collect::<Vec<_>>())?;
            let known_again = KnownAgain::of(order.subjects(), &now);
            return Ok(Erasure { numbers, unknown, frame, keys_lost, before: true, known_again });
        }
        order.check(key, config.id)?;
        if log.lost()?.may_tell_of(&ordered) {
            return Err(older_than_lost(log.lost()?));
        }
        let (numbers, carried_out) = self.known(vault, order)?;
        if only_these.is_some_and(|these| these != numbers) {
            return Err(refused(&format!(
                "the names of the order are those of data subjects {numbers:?} by now: nobody is erased; look again"
            )));
        }
        if numbers.is_empty() {
            return Err(nobody_known(self.lacks_keys(vault)?));
        }
        // By what the log tells, whatever the file of holds says of how much of that it has.
        *only = None;
        self.holds(&mut only)?.0.refuse(&numbers)?;
        let unknown = owned(&order.not_carried_out(&carried_out));
        let keys_lost = !unknown.is_empty() && self.lacks_keys(vault)?;
        let pending = Pending { numbers: numbers.clone(), carried_out, order: order.note().to_owned() };
        let event = self.told_of(&pending).map_err(|why| refused(&why))?;
        let written = pending.save(&*self.keys)?;
        let names = order.subjects().collect::<Vec<_>>();
        let frame = self.carry_out(vault, (&numbers, written), event, &names)?;
        Ok(Erasure { numbers, unknown, frame, keys_lost, before: false, known_again: Vec::new() })
    }

    /// Goes on with an erasure that was cut short, to its end. Whom the log tells of already, in events that the checkpoint
    /// covers or whose numbers are `adopted`, is erased whatever else says so or does not: a number is given once, and what a
    /// vault that was restored follows has no order beside it. `known` is as for [`Engine::holds`].
    fn settle(
        &self,
        vault: &Vault,
        (adopted, vaults): (&[u64], Vaults),
        known: &mut Option<u64>,
    ) -> Result<Settled> {
        let file = Pending::load(&*self.keys)?;
        let Some(begun) = vault.unconfirmed()? else {
            return self.clear(vault, file, adopted, vaults);
        };
        let log = Manifest::load_to_open(Snapshot::of(self.log.clone())?)?;
        let course = course((&*self.keys, &self.config()), vault, (&begun, file), (&log, adopted))?;
        let Unconfirmed { numbers, erased, written } = begun;
        match course {
            Course::IsTold => {
                destroy(vault, &numbers, written)?;
                vault.confirm(&numbers)?;
                Pending::remove(&*self.keys)?;
                Ok(Settled::of(ResumedErasure::Finished { numbers }))
            }
            Course::GoesOn(event) if erased => self
                .carry_out(vault, (&numbers, written), event, &[])
                .map(|_| Settled::of(ResumedErasure::Finished { numbers })),
            Course::GoesOn(event) => self.go_on_unless_held(vault, (numbers, written), event, known),
            Course::IsWithdrawn(why) => {
                self.withdraw(vault)?;
                let reason = format!("{}: {why}", self.keys.describe(files::ERASURE));
                Ok(Settled::of(ResumedErasure::Withdrawn { numbers, reason }))
            }
        }
    }

    /// Removes what is written down of an erasure of which the vault does not know, once that is told.
    fn clear(
        &self,
        vault: &Vault,
        file: Option<std::result::Result<Written, String>>,
        adopted: &[u64],
        vaults: Vaults,
    ) -> Result<Settled> {
        if file.is_none() {
            return Ok(Settled::default());
        }
        let log = Manifest::load_to_open(Snapshot::of(self.log.clone())?)?;
        let resumed = match leftover(&self.config(), vault, file, (&log, adopted), vaults)? {
            Leftover::IsTold => None,
            Leftover::Is(told) => Some(told),
            Leftover::IsToTell(numbers, event) => {
                self.record(event).map_err(|error| error.after(unfinished(&numbers)))?;
                Some(ResumedErasure::Finished { numbers })
            }
        };
        Pending::remove(&*self.keys)?;
        Ok(Settled { resumed, ..Settled::default() })
    }

    /// The event of an erasure, or what is wrong with it.
    fn told_of(&self, pending: &Pending) -> std::result::Result<Event, String> {
        told_of(&self.config(), pending)
    }

    /// Goes on with an erasure of which nothing is destroyed yet, or withdraws it where the log tells of a hold on somebody of it
    /// by now.
    fn go_on_unless_held(
        &self,
        vault: &Vault,
        (numbers, written): (Vec<u64>, Hash),
        event: Event,
        known: &mut Option<u64>,
    ) -> Result<Settled> {
        // Frames that were adopted may tell of a hold, and are looked at once a checkpoint covers them.
        self.if_at_rest(|stages| self.drain_with(stages)).transpose()?;
        *known = None;
        let (held, differences) = match self.try_holds(known)? {
            Ok((holds, differences)) => (holds.refuse(&numbers), differences),
            Err(damaged) => (Err(damaged), Vec::new()),
        };
        let resumed = match held {
            Ok(()) => self
                .carry_out(vault, (&numbers, written), event, &[])
                .map(|_| ResumedErasure::Finished { numbers }),
            Err(why) => {
                self.withdraw(vault).map(|()| ResumedErasure::Withdrawn { numbers, reason: why.to_string() })
            }
        };
        Ok(Settled { resumed: Some(resumed?), differences })
    }

    fn withdraw(&self, vault: &Vault) -> Result<()> {
        vault.resume_erasure()?.map_or(Ok(()), bulla_vault::Erasure::withdraw)?;
        Pending::remove(&*self.keys)
    }

    /// Destroys the keys and has the log tell of it. Returns the frame of the event. Whoever wants to know of erasures is told the
    /// `names`: while nothing is sealed, so that nobody of them has a number again by then.
    fn carry_out(
        &self,
        vault: &Vault,
        (numbers, written): (&[u64], Hash),
        event: Event,
        names: &[&str],
    ) -> Result<u64> {
        let held = Rank::Sealing.hold();
        let nothing_is_sealed = self.sealing.write().unwrap_or_else(PoisonError::into_inner);
        destroy(vault, numbers, written).or_else(|error| self.take_back(vault, error))?;
        if !names.is_empty() {
            self.when_erased
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .for_each(|tell| tell(names));
        }
        let frame = self.staging.with_sequencer(|sequencer| sequencer.request_event(event));
        drop((nothing_is_sealed, held));
        let told = self.wait_for_checkpoint(&frame).and_then(|frame| {
            vault.confirm(numbers)?;
            Pending::remove(&*self.keys)?;
            Ok(frame)
        });
        told.map_err(|error| error.after(unfinished(numbers)))
    }

    /// Withdraws an erasure after an error: while it is under way the vault gives no keys of these data subjects, and no block
    /// of theirs could be sealed. Where the keys are destroyed already, or the vault cannot even be asked, the log fails,
    /// and opening it again goes on with the erasure.
    fn take_back(&self, vault: &Vault, error: Error) -> Result<()> {
        let unconfirmed = vault.unconfirmed().map_err(|unknown| {
            unknown.after(format!(
                "whether an erasure was begun, or carried out ({error}), cannot be told: opening the log, as any command that writes \
                 does, goes on with it where it was"
            ))
        });
        let withdrawn = unconfirmed.and_then(|unconfirmed| match unconfirmed {
            Some(Unconfirmed { numbers, erased: true, .. }) => {
                Err(Error::unavailable(format!("{}: {error}", unfinished(&numbers))))
            }
            _ => vault.resume_erasure()?.map_or(Ok(()), bulla_vault::Erasure::withdraw).map_err(|unwithdrawn| {
                unwithdrawn.after(format!(
                    "an erasure was begun, and neither finished ({error}) nor withdrawn, so that opening the log, as any \
                     command that writes does, goes on with it"
                ))
            }),
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
        match event.clone() {
            Event::Erased { numbers, carried_out, order, .. } => {
                self.told_of(&Pending { numbers, carried_out, order }).map_err(|why| refused(&why))?;
            }
            Event::Held { ref order, .. } | Event::Released { ref order, .. } => {
                let config = self.config();
                let ordered = HoldNote::open(order.as_bytes(), erasure_key(&config)?);
                let ordered = ordered.and_then(|note| match event {
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

    /// Erases, in the vault, everybody whom the log says it erased: the vault may be a backup from before that. The log says
    /// so in events that the checkpoint covers, and in those above it, of which recovery `adopted` these numbers.
    /// `line` is how the vault stood to it when it was looked at. Returns what came of an erasure that was cut short.
    pub(super) fn follow_erasures(
        &self,
        adopted: &[u64],
        (vaults, line, parts): (Vaults, Line, BTreeSet<PartId>),
    ) -> Result<Settled> {
        let Ok(vault) = self.vault() else { return Ok(Settled::default()) };
        let settled = self.settle(vault, (adopted, vaults), &mut self.erasing.lock())?;
        self.follow(vault, adopted, (vaults, line, parts))
            .map_err(|error| after_resumed(settled.resumed.as_ref(), error))?;
        Ok(settled)
    }

    /// Gives no data subject a number below `next` from now on. Returns the numbers that were left out, now or before.
    pub(crate) fn skip_subjects(&self, next: u64) -> Result<Vec<Range<u64>>> {
        let vault = self.vault()?;
        if vault.next_number()? < next {
            vault.skip_to(next)?;
        }
        vault.skipped()
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
        order.check(erasure_key(&config)?, config.id)?;
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
            self.save_ordered(&holds, || {
                format!(
                    "data subject {number} may be held, and the log does not tell of it yet: opening the log, as any command that \
                     writes does, finishes that"
                )
            })?;
        }
        self.tell_of(&mut holds, &mut only).map_err(|error| {
            error.after(format!(
                "data subject {number} is held, and the log may not tell of it yet: opening the log, as any command that \
                 writes does, finishes that"
            ))
        })?;
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
        let hold = order.check(erasure_key(&config)?, config.id)?;
        *only = None;
        let mut holds = self.settled_holds(&mut only)?.0;
        let number = holds.release(&hold, order.note())?;
        self.save_ordered(&holds, || {
            format!(
                "the release of data subject {number} may be under way, who is held until the log tells of it: opening the log, as \
                 any command that writes does, finishes that"
            )
        })?;
        self.tell_of(&mut holds, &mut only).map_err(|error| {
            error.after(format!(
                "data subject {number} is held until the log tells of the release: opening the log, as any command that \
                 writes does, finishes that"
            ))
        })
    }

    /// Writes down what was ordered, where the log told of everything before. Where that fails once the file is in its place, it
    /// may be carried out all the same, as `what` says.
    fn save_ordered(&self, holds: &Holds, what: impl FnOnce() -> String) -> Result<()> {
        holds.save(&*self.keys).map_err(|error| match Holds::load(&*self.keys) {
            Ok(there) if there.untold().is_none() => error,
            _ => error.after(what()),
        })
    }

    /// Brings the file of holds in line with what the log tells, and has the log tell of what it does not tell yet. Returns how
    /// they differed. A log is opened with a file that is damaged, too: erasing and holding refuse it.
    ///
    /// # Errors
    /// Where a file cannot be written, or the log's events cannot be read.
    pub(super) fn settle_holds(&self) -> Result<Vec<HoldDifference>> {
        self.settle_holds_known(&mut self.erasing.lock())
    }

    /// The same, for whoever has the lock; `known` is as for [`Engine::holds`].
    pub(super) fn settle_holds_known(&self, known: &mut Option<u64>) -> Result<Vec<HoldDifference>> {
        match self.try_holds(known)? {
            Ok((mut holds, differences)) => self.tell_of(&mut holds, known).map(|()| differences),
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

    /// The same; where the file is damaged, or missing in a log that has lost events, so that it says nothing, that is the inner error.
    fn try_holds(&self, known: &mut Option<u64>) -> Result<Result<(Holds, Vec<HoldDifference>)>> {
        let (keys, config) = (&*self.keys, self.config());
        let file = match Holds::load_if_there(keys) {
            Ok(file) => file,
            Err(error) if error.io_error().is_some() => return Err(error),
            Err(damaged) => return Ok(Err(damaged)),
        };
        let may_be_lost = file.is_none() && are_lost(&*self.log);
        let mut holds = file.unwrap_or_default();
        if Some(holds.told()) == *known && holds.untold().is_none() && !may_be_lost {
            return Ok(holds.check(keys, &config, None).map(|()| (holds, Vec::new())));
        }
        let manifest = Manifest::load(Snapshot::of(self.log.clone())?)?;
        if may_be_lost && !manifest.lost()?.events.is_empty() {
            return Ok(Err(Holds::missing(keys)));
        }
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
            None => Err(nobody_known(self.lacks_keys(vault)?)),
        }
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

    /// The numbers of data subjects, of whom the vault hides nobody: whose number has no key any more, the log says was erased, or an event
    /// of it that is lost may have.
    fn look_up(&self, vault: &Vault, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        let log = Manifest::load(Snapshot::of(self.log.clone())?)?;
        let (erased, log_has_lost_events) =
            (Erased::in_manifest(&log, 0)?.numbers, !log.lost()?.events.is_empty());
        let begun = vault.unconfirmed()?.map_or_else(Vec::new, |begun| begun.numbers);
        let may_be_told = |number: &u64| log_has_lost_events && !begun.contains(number);
        vault.look_up(subjects, |number| erased.contains(&number) || may_be_told(&number))
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
        vault.ok_or_else(without_erasure)
    }
}

/// What is to be done with an erasure that was cut short.
pub(crate) enum Course {
    /// The log tells of it: what it has left is destroyed.
    IsTold,
    /// It is finished, with this event: in any case where the keys are destroyed, else unless somebody of it is held by now.
    GoesOn(Event),
    /// It is withdrawn: nothing is destroyed yet, and what is written down of it is wrong.
    IsWithdrawn(String),
}

/// What is to be done with an erasure that the vault has begun, of which `file` is written down, by what the log tells. Nothing is
/// written.
///
/// # Errors
/// `Unavailable` or `Refused` where it can be neither finished nor withdrawn; else where a file cannot be read.
pub(crate) fn course(
    (keys, config): (&dyn Store, &LogConfig),
    vault: &Vault,
    (begun, file): (&Unconfirmed, Option<std::result::Result<Written, String>>),
    (log, adopted): (&Manifest, &[u64]),
) -> Result<Course> {
    let Unconfirmed { numbers, erased, .. } = begun;
    let pending = match file {
        Some(written) => written.and_then(|written| written.of(begun)),
        None => Err("it is missing".to_owned()),
    };
    if tells_of(log, numbers, adopted)? {
        return Ok(Course::IsTold);
    }
    if *erased && vault.keys(numbers.iter().copied())?.iter().any(Option::is_some) {
        return Err(refused(&format!(
            "{} has keys of data subjects {numbers:?}, and a record which says that they were destroyed: its parts are of \
             different times; put back `vault` and `roots` that are of one and the same time",
            keys.describe(files::VAULT)
        )));
    }
    let event = match pending.and_then(|pending| told_of(config, &pending)) {
        Ok(event) => is_not_used(log, event)?,
        wrong => wrong,
    };
    match event {
        Ok(event) => Ok(Course::GoesOn(event)),
        Err(why) if *erased => Err(Error::unavailable(format!(
            "{}: {why}; and data subjects {numbers:?} are erased: restore it from a backup of when that was begun",
            keys.describe(files::ERASURE)
        ))),
        Err(why) => Ok(Course::IsWithdrawn(why)),
    }
}

/// What there is to do about an erasure that is written down, and of which the vault does not know any more, or not yet.
pub(crate) enum Leftover {
    /// Nothing: there is none, or the log tells of it.
    IsTold,
    /// It was carried out on these data subjects, and the part of the log that told of it is lost: it is told once more, with this event.
    IsToTell(Vec<u64>, Event),
    /// Whoever opens the log is told of it, and no more.
    Is(ResumedErasure),
}

/// What there is to do about an erasure of which `file` is written down, where the vault has no record of one. Nothing is written.
///
/// Nothing vouches for the file then but the order in it, which does not say whose the numbers are. So it is told of again only where
/// somebody has said that a part of the log is lost, and only of numbers whose keys are gone.
///
/// # Errors
/// Where the vault or the log cannot be read.
pub(crate) fn leftover(
    config: &LogConfig,
    vault: &Vault,
    file: Option<std::result::Result<Written, String>>,
    (log, adopted): (&Manifest, &[u64]),
    vaults: Vaults,
) -> Result<Leftover> {
    let pending = match file {
        None => return Ok(Leftover::IsTold),
        Some(Ok(written)) => written.pending,
        Some(Err(damage)) => return Ok(Leftover::Is(ResumedErasure::Forgotten { written: Err(damage) })),
    };
    let numbers = pending.numbers.clone();
    if tells_of(log, &numbers, adopted)? {
        return Ok(Leftover::IsTold);
    }
    let next = vault.next_number()?;
    let were_given = numbers.iter().all(|number| *number < next);
    if !were_given || vault.keys(numbers.iter().copied())?.iter().any(Option::is_some) {
        return Ok(Leftover::Is(ResumedErasure::Forgotten { written: Ok(numbers) }));
    }
    let event = match vaults {
        Vaults::NewerThanLog => told_of(config, &pending),
        Vaults::Newest | Vaults::Restored => Err("nothing says that a part of the log is lost".to_owned()),
    };
    let event = match event {
        Ok(event) => is_not_used(log, event)?,
        wrong => wrong,
    };
    Ok(match event {
        Ok(event) => Leftover::IsToTell(numbers, event),
        Err(reason) => Leftover::Is(ResumedErasure::Untold { numbers, reason }),
    })
}

/// The event of an erasure, or what is wrong with it.
fn told_of(config: &LogConfig, pending: &Pending) -> std::result::Result<Event, String> {
    let key = erasure_key(config).map_err(|error| error.to_string())?;
    pending.event(key, config)
}

/// That the log does not tell of this order: for others it is no order.
fn is_not_used(log: &Manifest, event: Event) -> Result<std::result::Result<Event, String>> {
    let Event::Erased { order, .. } = &event else { return Ok(Ok(event)) };
    let ordered = SignedNote::parse(order.as_bytes()).ok().and_then(|note| Order::parse(note.text).ok());
    let used = ordered.map(|ordered| CarriedOut::find(log, &ordered)).transpose()?.flatten();
    Ok(match used {
        Some(used) => Err(format!("the order in it was carried out before, as frame {} tells", used.frame)),
        None => Ok(event),
    })
}

/// Whether the log's events name all of these data subjects as erased, or they were `adopted` from events that no checkpoint covers.
fn tells_of(log: &Manifest, numbers: &[u64], adopted: &[u64]) -> Result<bool> {
    let adopted = adopted.iter().collect::<HashSet<_>>();
    let mut left = numbers.iter().filter(|number| !adopted.contains(number)).collect::<HashSet<_>>();
    if !left.is_empty() {
        each_event(log, 0, |_, event| left.retain(|number| event.erases().binary_search(number).is_err()))?;
    }
    Ok(left.is_empty())
}

/// What came of an erasure that was cut short.
#[derive(Default)]
pub(super) struct Settled {
    /// What came of the erasure, where there was one.
    pub(super) resumed: Option<ResumedErasure>,
    /// How the file of holds differed from what the log tells, as far as it was looked at.
    pub(super) differences: Vec<HoldDifference>,
}

impl Settled {
    fn of(resumed: ResumedErasure) -> Self {
        Settled { resumed: Some(resumed), ..Settled::default() }
    }
}

/// What came of an erasure that was cut short is told though opening the log fails behind it: it is told once.
pub(crate) fn after_resumed(resumed: Option<&ResumedErasure>, error: Error) -> Error {
    match resumed {
        Some(resumed) => error.after(resumed),
        None => error,
    }
}

/// What is said of an erasure that fails after the vault's transaction.
fn unfinished(numbers: &[u64]) -> String {
    format!(
        "data subjects {numbers:?} are erased, and the log may not tell of it yet: opening the log, as any command that writes \
         does, finishes that, and `bulla events DIR --kind erased` tells in which frame"
    )
}

/// Destroys the keys of data subjects, from wherever that was cut short; `written` is the digest of what is written down of it.
fn destroy(vault: &Vault, numbers: &[u64], written: Hash) -> Result<()> {
    let committed = match vault.resume_committed()? {
        Some(committed) => Some(committed),
        None => {
            vault.begin_written_erasure(numbers, written)?.map(bulla_vault::Erasure::commit).transpose()?
        }
    };
    committed.map(Committed::destroy).transpose().map(|_| ())
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
