//! Holds: who must not be erased for now, by whose word and why.
//!
//! Who holds and why is in a file of the key directory, with what the order to hold was salted with; the log tells, in events, which
//! data subject was held and released, by number and by whose signed order. Invariants:
//! - a hold is in the file before the log tells of it, and stays there until the log tells of its release: so a crash leaves
//!   whoever is to be held, and whoever is to be released, held, and opening the log has it tell of what it has not told yet;
//! - the log's events count. Where the file says otherwise, because it was deleted, put back or edited, it is brought in
//!   line with them, and what differed is told;
//! - where frames of the log are gone for good, with a path that is lost, the file counts for what those told of it: whoever is held in
//!   it by one of them stays held, and without the file nobody is erased, held or released.

use super::hold_order::{HoldSalts, open};
use super::refusals::{erasure_key, held};
use super::told_holds::{ToldHold, ToldHolds};
use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::format::json;
use crate::keys::files;
use bulla_proof::hash::Hash;
use bulla_proof::hold_order::HoldNote;
use bulla_proof::note::SignedNote;
use bulla_proof::order::order_digest;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// A reason not to erase a data subject for now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Hold {
    /// The number of the data subject.
    pub number: u64,
    /// Who says so. One person or office has at most one hold on a data subject.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when, in seconds since the epoch, UTC.
    pub since: i64,
    /// The frame of the event that tells of it; none where the log does not tell of it yet, which opening the log makes good.
    #[serde(default)]
    pub frame: Option<u64>,
    /// The order, a signed note: its public part, which the event has.
    pub order: String,
    /// What the order was salted with, where the file was not made up from the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) salts: Option<HoldSalts>,
    /// The note of the order to release it, of which the log does not tell yet: until it does, the data subject is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) release: Option<String>,
}

impl Hold {
    /// Whether this is what the log tells of it.
    fn is_in(&self, told: &ToldHold) -> bool {
        told.number == self.number && told.order == order_digest(&self.order)
    }

    /// Whether it was released, and the log does not tell of that yet: until it does, the data subject is held.
    pub fn is_releasing(&self) -> bool {
        self.release.is_some()
    }
}

/// How the file of holds differs from what the log's signed events tell.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HoldDifference {
    /// The log tells, in a frame, of a hold that is not in the file: who holds, and why, is not known any more.
    Missing {
        /// The number of the data subject.
        number: u64,
        /// The frame of the event.
        frame: u64,
    },
    /// The file has a hold that was released, as the log tells.
    Released {
        /// The number of the data subject.
        number: u64,
        /// The frame of the event that told of the hold.
        frame: u64,
    },
    /// The file says of a hold that the log tells of it in a frame, which tells of no such hold.
    Untold {
        /// The number of the data subject.
        number: u64,
        /// The frame that the file names.
        frame: u64,
    },
    /// The file cannot be read: nobody is erased, held or released until it is put back, or removed.
    Unreadable(String),
}

impl fmt::Display for HoldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { number, frame } => write!(
                f,
                "data subject {number} is held, as frame {frame} of the log tells, and the file of holds does not say so"
            ),
            Self::Released { number, frame } => write!(
                f,
                "the hold on data subject {number} of which frame {frame} of the log tells was released, and the file of \
                 holds has it"
            ),
            Self::Untold { number, frame } => write!(
                f,
                "the file of holds says that frame {frame} of the log tells of a hold on data subject {number}, and it \
                 does not"
            ),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

/// A hold or a release that is begun and not finished: a writer is at it, or was cut short. Opening the log finishes it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HoldUnderWay {
    /// The data subject is held, and the log does not tell of it yet.
    Hold {
        /// The number of the data subject.
        number: u64,
        /// Who holds.
        by: String,
    },
    /// It was asked for, and the log does not tell of it yet: until then the data subject is held.
    Release {
        /// The number of the data subject.
        number: u64,
        /// Who holds until then.
        by: String,
    },
    /// The log tells of it, so that the data subject is held no more by this one, and the file in the key directory still has it.
    Released {
        /// The number of the data subject.
        number: u64,
        /// Who held.
        by: String,
    },
}

impl fmt::Display for HoldUnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold { number, by } => {
                write!(f, "under way: {by} holds data subject {number}, and the log is yet to tell of it")
            }
            Self::Release { number, by } => write!(
                f,
                "under way: {by} releases data subject {number}, who is held until the log tells of it"
            ),
            Self::Released { number, by } => write!(
                f,
                "under way: {by} has released data subject {number}, as the log tells, and the file of holds is yet to follow"
            ),
        }
    }
}

/// All holds of a log, as they lie in the key directory.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holds {
    /// The number of the log's frames up to the last event of a hold that is in here.
    #[serde(default)]
    told: u64,
    holds: Vec<Hold>,
}

const LIMIT: u64 = 64 << 20;

impl Holds {
    /// Reads them; none where there is no file, which is an answer only where no event is lost: [`Holds::missing`]. What the log is to be told
    /// of them is another matter: [`Holds::check`].
    ///
    /// # Errors
    /// As [`Holds::load_if_there`].
    pub(crate) fn load(keys: &dyn Store) -> Result<Self> {
        Holds::load_if_there(keys).map(Option::unwrap_or_default)
    }

    /// Reads them, where there is a file.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be read or is damaged: who is held is then unknown, and nobody is erased.
    pub(crate) fn load_if_there(keys: &dyn Store) -> Result<Option<Self>> {
        let text = files::read_if_there(keys, files::HOLDS, LIMIT)?;
        let parsed = text.map(|text| json::objects(&text)).transpose();
        parsed.map_err(|error| files::damaged(keys, files::HOLDS, error))
    }

    /// That there is no file, of a log that has lost events: those may have told of holds, which nothing else knows of.
    pub(crate) fn missing(keys: &dyn Store) -> Error {
        Error::unavailable(format!(
            "{} is missing, and it alone says who is held by events that were lost with a path of the log: nobody is erased, held or \
             released without it. Bring it from the newest backup of the key directory; where there is none, or nobody was ever held, a \
             file with {{\"holds\":[]}} in its place says that nobody is held by what is lost: docs/operating.md, \"Several paths\"",
            keys.describe(files::HOLDS)
        ))
    }

    /// The number behind the last one that is held, of those that a vault can give.
    pub(crate) fn next_number(&self) -> u64 {
        let last = u64::from(u32::MAX);
        self.holds.iter().map(|hold| hold.number.saturating_add(1).min(last)).max().unwrap_or(0)
    }

    /// Makes the file, durably, of a log in which nobody was ever held, where there is none: once events are lost nothing is done without it.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read or written.
    pub(crate) fn begin(keys: &dyn Store) -> Result<()> {
        match files::read_if_there(keys, files::HOLDS, LIMIT)? {
            None => Holds::default().save(keys),
            Some(_) => Ok(()),
        }
    }

    /// Checks that what the log is to be told was ordered, and that each hold is by whom, and for the reason, that was ordered. Of those
    /// that were brought in line with what the log has `told`, also that none of their orders was carried out.
    ///
    /// # Errors
    /// As for a file that is damaged.
    pub(crate) fn check(&self, keys: &dyn Store, config: &LogConfig, told: Option<&ToldHolds>) -> Result<()> {
        let checked = self.holds.iter().try_for_each(|hold| self.check_one(hold, config, told));
        checked.map_err(|why| files::damaged(keys, files::HOLDS, why))
    }

    fn check_one(
        &self,
        hold: &Hold,
        config: &LogConfig,
        told: Option<&ToldHolds>,
    ) -> std::result::Result<(), String> {
        let Hold { number, by, reason, frame, order, salts, release, .. } = hold;
        let of = |what: &str, why: String| format!("the order to {what} data subject {number}: {why}");
        let key = || erasure_key(config).map_err(|error| error.to_string());
        let note = match frame {
            None => {
                let note = open(order, key()?).map_err(|why| of("hold", why))?;
                note.check_hold(config.id).map_err(|error| of("hold", error.to_string()))?;
                let digest = order_digest(order);
                if self.holds.iter().filter(|other| order_digest(&other.order) == digest).count() > 1 {
                    return Err(of("hold", "it is there twice".to_owned()));
                }
                if told.is_some_and(|told| told.has_order(&digest)) {
                    return Err(of("hold", "it was carried out before, and for somebody else".to_owned()));
                }
                Some(note)
            }
            // The log tells of it, with what that is worth.
            Some(_) => {
                SignedNote::parse(order.as_bytes()).ok().and_then(|note| HoldNote::parse(note.text).ok())
            }
        };
        if let (Some(salts), Some(note)) = (salts, note)
            && !salts.explain(&note, by, reason)
        {
            return Err(of("hold", "it is by somebody else, or for another reason".to_owned()));
        }
        if let Some(release) = release {
            let note = open(release, key()?).map_err(|why| of("release", why))?;
            let hold = note.check_release(config.id).map_err(|error| of("release", error.to_string()))?;
            if hold != order_digest(order) {
                return Err(of("release", "it is about another hold".to_owned()));
            }
        }
        Ok(())
    }

    /// Makes them durable.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) fn save(&self, keys: &dyn Store) -> Result<()> {
        let text =
            serde_json::to_vec_pretty(self).map_err(|_| Error::invalid("the holds do not fit memory"))?;
        if text.len() as u64 > LIMIT {
            return Err(Error::invalid(format!("the holds would take more than {LIMIT} bytes")));
        }
        files::replace(keys, files::HOLDS, &text)
    }

    /// The holds.
    pub(crate) fn into_list(self) -> Vec<Hold> {
        self.holds
    }

    /// The number of the log's frames up to the last event of a hold that is in here.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Brings them in line with what the log tells; `order_in` gives the order of the hold in a frame. What was about to be told, and
    /// was, is no difference.
    ///
    /// # Errors
    /// As `order_in`.
    pub(crate) fn follow(
        &mut self,
        told: &ToldHolds,
        mut order_in: impl FnMut(u64) -> Result<String>,
    ) -> Result<Vec<HoldDifference>> {
        let (mut left, mut differences) = (told.held.clone(), Vec::new());
        let by_order = told.held.iter().chain(&told.released);
        let by_order = by_order.map(|(frame, told)| (told.order, *frame)).collect::<HashMap<Hash, u64>>();
        for hold in &mut self.holds {
            // What was about to be told is known by its order.
            let found = hold.frame.is_none().then(|| by_order.get(&order_digest(&hold.order)).copied());
            hold.frame = hold.frame.or(found.flatten());
        }
        self.holds.retain_mut(|hold| {
            let (number, Some(frame)) = (hold.number, hold.frame) else { return true };
            if told.released.get(&frame).is_some_and(|told| hold.is_in(told)) {
                if !hold.is_releasing() {
                    differences.push(HoldDifference::Released { number, frame });
                }
                return false;
            }
            match left.remove(&frame) {
                Some(told) if hold.is_in(&told) => {}
                None if told.is_gone(frame) => {}
                other => {
                    left.extend(other.map(|other| (frame, other)));
                    differences.push(HoldDifference::Untold { number, frame });
                    hold.frame = None;
                }
            }
            true
        });
        for (frame, ToldHold { number, since, .. }) in left {
            differences.push(HoldDifference::Missing { number, frame });
            let by = format!("unknown (frame {frame})");
            let mut reason = "the log tells of this hold; who holds, and why, is lost".to_owned();
            if told.is_one_gone_after(frame) {
                reason += "; and frames are lost that may have told of its release";
            }
            let (order, frame) = (order_in(frame)?, Some(frame));
            self.holds.push(Hold { number, by, reason, since, frame, order, salts: None, release: None });
        }
        self.told = told.frames();
        Ok(differences)
    }

    /// The same, and what is under way besides.
    ///
    /// # Errors
    /// As [`Holds::follow`].
    pub(crate) fn compare(
        &mut self,
        told: &ToldHolds,
        order_in: impl FnMut(u64) -> Result<String>,
    ) -> Result<(Vec<HoldDifference>, Vec<HoldUnderWay>)> {
        let before = self.holds.clone();
        let differences = self.follow(told, order_in)?;
        let whom = |hold: &Hold| (hold.number, hold.by.clone());
        let mut under_way = Vec::new();
        for hold in &before {
            let (number, by) = whom(hold);
            let released = hold.frame.and_then(|frame| told.released.get(&frame));
            if hold.is_releasing() && released.is_some_and(|told| hold.is_in(told)) {
                under_way.push(HoldUnderWay::Released { number, by });
            }
        }
        for hold in &self.holds {
            let (number, by) = whom(hold);
            match hold {
                Hold { frame: None, .. } => under_way.push(HoldUnderWay::Hold { number, by }),
                Hold { release: Some(_), .. } => under_way.push(HoldUnderWay::Release { number, by }),
                _ => {}
            }
        }
        Ok((differences, under_way))
    }

    /// Adds a hold, of which the log has to be told then. False where it is there already.
    ///
    /// # Errors
    /// `Refused` where there is one by the same, for another reason.
    pub(crate) fn add(&mut self, hold: Hold) -> Result<bool> {
        let same = |it: &&Hold| it.number == hold.number && it.by == hold.by;
        match self.holds.iter().find(same) {
            Some(held) if held.reason == hold.reason => Ok(false),
            Some(Hold { number, by, .. }) => {
                let message = format!(
                    "data subject {number} is held by {by} for another reason, which was signed: hold under another name, and \
                     release that hold then"
                );
                Err(Error::new(ErrorKind::Refused, message))
            }
            None => {
                self.holds.push(hold);
                Ok(true)
            }
        }
    }

    /// Has the hold that was ordered by the note with this digest released by another, of which the log has to be told then. Returns
    /// the number of who is held.
    ///
    /// # Errors
    /// `Refused` where there is none.
    pub(crate) fn release(&mut self, order: &Hash, release: &str) -> Result<u64> {
        let found = self.holds.iter_mut().find(|hold| order_digest(&hold.order) == *order);
        let none = "there is no such hold: nobody was held by the order that this one is about, or was released before";
        let hold = found.ok_or_else(|| Error::new(ErrorKind::Refused, none))?;
        hold.release = Some(release.to_owned());
        Ok(hold.number)
    }

    /// What the log has to be told of next: the place in the list, and the event.
    pub(crate) fn untold(&self) -> Option<(usize, Event)> {
        self.holds.iter().enumerate().find_map(|(place, hold)| match hold {
            Hold { frame: None, number, order, .. } => {
                Some((place, Event::Held { number: *number, order: order.clone() }))
            }
            Hold { frame: Some(held), number, release: Some(order), .. } => {
                Some((place, Event::Released { number: *number, held: *held, order: order.clone() }))
            }
            _ => None,
        })
    }

    /// The log tells of what [`Holds::untold`] gave, in this frame.
    pub(crate) fn was_told(&mut self, place: usize, frame: u64) {
        match &mut self.holds[place] {
            hold @ Hold { frame: None, .. } => hold.frame = Some(frame),
            _ => _ = self.holds.remove(place),
        }
        self.told = frame + 1;
    }

    /// Has whoever opens the log next compare the file in the key directory with all that this tells: what the file followed had not all of it.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) fn compare_anew(keys: &dyn Store) -> Result<()> {
        match Holds::load(keys) {
            Ok(Holds { told: 0, .. }) => Ok(()),
            Ok(holds) => Holds { told: 0, ..holds }.save(keys),
            Err(error) if error.io_error().is_some() => Err(error),
            // Opening the log tells of that.
            Err(_) => Ok(()),
        }
    }

    /// Checks that none of these data subjects is held.
    ///
    /// # Errors
    /// `Refused`, saying by whom and why.
    pub(crate) fn refuse(&self, numbers: &[u64]) -> Result<()> {
        let Some(hold) = self.holds.iter().find(|hold| numbers.contains(&hold.number)) else { return Ok(()) };
        Err(held(hold.number, &hold.by, &hold.reason))
    }
}

#[cfg(test)]
mod tests;
