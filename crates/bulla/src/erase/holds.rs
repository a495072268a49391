//! Holds: who must not be erased for now, by whose word and why.
//!
//! Who holds and why is in a file of the key directory; the log tells, in events, which data subject was held and released, by
//! number. Invariants:
//! - a hold is in the file before the log tells of it, and stays there until the log tells of its release: so a crash leaves
//!   whoever is to be held, and whoever is to be released, held, and opening the log has it tell of what it has not told yet;
//! - the log's events count. Where the file says otherwise, because it was deleted, put back or edited, it is brought in
//!   line with them, and what differed is told.

use super::refusals::held;
use crate::format::event::Event;
use crate::keys::files;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// Whether it was released, and the log does not tell of that yet: until it does, the data subject is held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub releasing: bool,
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

/// What the log's events tell of holds, in the order of their frames.
#[derive(Clone, Default, Debug)]
pub(crate) struct ToldHolds {
    /// Those that were not released, by the frame of the event: whom, and since when.
    held: BTreeMap<u64, (u64, i64)>,
    /// Those that were released, by that frame: whom.
    released: BTreeMap<u64, u64>,
    /// The number of frames up to the last of these events, that one included.
    frames: u64,
}

impl ToldHolds {
    /// Takes in an event in a frame of this time. A release of no hold that was told of says nothing.
    pub(crate) fn take(&mut self, frame: u64, seconds: i64, event: &Event) {
        match event {
            Event::Held { number } => _ = self.held.insert(frame, (*number, seconds)),
            Event::Released { number, held } => {
                if self.held.get(held).is_some_and(|(whom, _)| whom == number) {
                    self.held.remove(held);
                    self.released.insert(*held, *number);
                }
            }
            _ => return,
        }
        self.frames = frame + 1;
    }

    /// The number of frames up to the last event of a hold.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Which of these data subjects are held, and the frames that tell so.
    pub(crate) fn held_of(&self, numbers: &[u64]) -> Vec<(u64, u64)> {
        let held = self.held.iter().map(|(frame, (number, _))| (*number, *frame));
        held.filter(|(number, _)| numbers.binary_search(number).is_ok()).collect()
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
/// The longest `by` and `reason`, in bytes.
const MAX_TEXT: usize = 1024;

impl Holds {
    /// Reads them; none where there is no file.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be read or is damaged: who is held is then unknown, and nobody is erased.
    pub(crate) fn load(keys: &dyn Store) -> Result<Self> {
        match files::read_if_there(keys, files::HOLDS, LIMIT)? {
            None => Ok(Holds::default()),
            Some(text) => {
                serde_json::from_slice(&text).map_err(|error| files::damaged(keys, files::HOLDS, error))
            }
        }
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
        let written = bulla_store::replace(keys, files::HOLDS, &text);
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::HOLDS)), error))
    }

    /// The holds.
    pub(crate) fn into_list(self) -> Vec<Hold> {
        self.holds
    }

    /// The number of the log's frames up to the last event of a hold that is in here.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Brings them in line with what the log tells. What was about to be told, and was, is no difference.
    pub(crate) fn follow(&mut self, told: &ToldHolds) -> Vec<HoldDifference> {
        let (mut left, mut differences) = (told.held.clone(), Vec::new());
        self.holds.retain_mut(|hold| {
            let (number, Some(frame)) = (hold.number, hold.frame) else { return true };
            if told.released.get(&frame) == Some(&number) {
                if !hold.releasing {
                    differences.push(HoldDifference::Released { number, frame });
                }
                return false;
            }
            match left.remove(&frame) {
                Some((whom, _)) if whom == number => {}
                other => {
                    left.extend(other.map(|other| (frame, other)));
                    differences.push(HoldDifference::Untold { number, frame });
                    hold.frame = None;
                }
            }
            true
        });
        for hold in self.holds.iter_mut().filter(|hold| hold.frame.is_none()) {
            let frame = left.iter().find(|(_, (number, _))| *number == hold.number).map(|(frame, _)| *frame);
            hold.frame = frame.filter(|frame| left.remove(frame).is_some());
        }
        for (frame, (number, since)) in left {
            differences.push(HoldDifference::Missing { number, frame });
            let by = format!("unknown (frame {frame})");
            let reason = "the log tells of this hold; who holds, and why, is lost".to_owned();
            self.holds.push(Hold { number, by, reason, since, frame: Some(frame), releasing: false });
        }
        self.told = told.frames;
        differences
    }

    /// The same, and what is under way besides.
    pub(crate) fn compare(&mut self, told: &ToldHolds) -> (Vec<HoldDifference>, Vec<HoldUnderWay>) {
        let before = self.holds.clone();
        let differences = self.follow(told);
        let whom = |hold: &Hold| (hold.number, hold.by.clone());
        let mut under_way = Vec::new();
        for hold in &before {
            let (number, by) = whom(hold);
            let is_told = hold.frame.is_some_and(|frame| told.released.get(&frame) == Some(&number));
            if hold.releasing && is_told {
                under_way.push(HoldUnderWay::Released { number, by });
            }
        }
        for hold in &self.holds {
            let (number, by) = whom(hold);
            match hold {
                Hold { frame: None, .. } => under_way.push(HoldUnderWay::Hold { number, by }),
                Hold { releasing: true, .. } => under_way.push(HoldUnderWay::Release { number, by }),
                _ => {}
            }
        }
        (differences, under_way)
    }

    /// Adds a hold, of which the log has to be told then. False where it is there already; with another reason it gets that one.
    ///
    /// # Errors
    /// `Invalid` for a text that is empty or too long.
    pub(crate) fn add(&mut self, hold: Hold) -> Result<bool> {
        for (what, text) in [("who holds", &hold.by), ("the reason", &hold.reason)] {
            if text.trim().is_empty() || text.len() > MAX_TEXT || text.contains(|c: char| c.is_control()) {
                let message = format!("{what} has to be told in one line of 1 to {MAX_TEXT} bytes");
                return Err(Error::invalid(message));
            }
        }
        let same = |it: &Hold| it.number == hold.number && it.by == hold.by;
        match self.holds.iter_mut().find(|it| same(it)) {
            Some(held) if held.reason == hold.reason => return Ok(false),
            Some(held) => held.reason = hold.reason,
            None => self.holds.push(hold),
        }
        Ok(true)
    }

    /// Marks a hold as released, of which the log has to be told then.
    ///
    /// # Errors
    /// `Refused` where there is none.
    pub(crate) fn release(&mut self, number: u64, by: &str) -> Result<()> {
        let found = self.holds.iter_mut().find(|hold| hold.number == number && hold.by == by);
        let none = || Error::new(ErrorKind::Refused, format!("there is no such hold by `{by}`"));
        found.ok_or_else(none)?.releasing = true;
        Ok(())
    }

    /// What the log has to be told of next: the place in the list, and the event.
    pub(crate) fn untold(&self) -> Option<(usize, Event)> {
        self.holds.iter().enumerate().find_map(|(place, hold)| match hold {
            Hold { frame: None, number, .. } => Some((place, Event::Held { number: *number })),
            Hold { frame: Some(held), number, releasing: true, .. } => {
                Some((place, Event::Released { number: *number, held: *held }))
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
mod tests {
    use super::*;

    fn hold(number: u64, by: &str, frame: Option<u64>) -> Hold {
        Hold { number, by: by.to_owned(), reason: "why".to_owned(), since: 5, frame, releasing: false }
    }

    fn told(events: &[(u64, Event)]) -> ToldHolds {
        let mut told = ToldHolds::default();
        events.iter().for_each(|(frame, event)| told.take(*frame, 9, event));
        told
    }

    fn held(frame: u64, number: u64) -> (u64, Event) {
        (frame, Event::Held { number })
    }

    fn released(frame: u64, number: u64, held: u64) -> (u64, Event) {
        (frame, Event::Released { number, held })
    }

    #[test]
    fn what_was_about_to_be_told_and_was_is_no_difference() {
        let mut holds = Holds { told: 0, holds: vec![hold(7, "a", None)] };
        assert_eq!(holds.untold(), Some((0, Event::Held { number: 7 })));
        let first = told(&[held(3, 7)]);
        assert_eq!(holds.follow(&first), []);
        assert_eq!((holds.holds[0].frame, holds.told, holds.untold()), (Some(3), 4, None));
        // Another one holds, too, and the first is released.
        holds.add(hold(7, "b", None)).unwrap();
        holds.was_told(1, 5);
        holds.release(7, "a").unwrap();
        assert_eq!(holds.untold(), Some((0, Event::Released { number: 7, held: 3 })));
        let all = told(&[held(3, 7), held(5, 7), released(8, 7, 3)]);
        assert_eq!(holds.follow(&all), []);
        assert_eq!((holds.told, holds.holds), (9, vec![hold(7, "b", Some(5))]));
    }

    #[test]
    fn where_the_file_differs_the_log_counts_and_the_difference_is_told() {
        let log = told(&[held(3, 7), held(4, 8), released(5, 8, 4), held(6, 9)]);
        // The file was deleted.
        let mut holds = Holds::default();
        let missing = [(7, 3), (9, 6)].map(|(number, frame)| HoldDifference::Missing { number, frame });
        assert_eq!(holds.follow(&log), missing);
        assert_eq!(
            holds.holds.iter().map(|hold| (hold.number, hold.frame)).collect::<Vec<_>>(),
            [(7, Some(3)), (9, Some(6))]
        );
        assert!(holds.refuse(&[9]).unwrap_err().to_string().contains("unknown (frame 6)"));
        // It has what it has now, and no difference any more.
        assert_eq!((holds.follow(&log), holds.untold()), (vec![], None));
        // An older file, and one that names frames in which there is no such thing.
        let mut holds = Holds { told: 5, holds: vec![hold(7, "a", Some(3)), hold(8, "b", Some(4))] };
        let expected = vec![
            HoldDifference::Released { number: 8, frame: 4 },
            HoldDifference::Missing { number: 9, frame: 6 },
        ];
        assert_eq!(holds.follow(&log), expected);
        let mut holds = Holds { told: 7, holds: vec![hold(1, "a", Some(3)), hold(9, "b", Some(6))] };
        let expected = vec![
            HoldDifference::Untold { number: 1, frame: 3 },
            HoldDifference::Missing { number: 7, frame: 3 },
        ];
        assert_eq!(holds.follow(&log), expected);
        assert_eq!(holds.untold(), Some((0, Event::Held { number: 1 })), "whoever is in the file is held");
    }

    #[test]
    fn a_release_of_another_hold_says_nothing() {
        let log = told(&[held(3, 7), released(4, 8, 3), released(5, 7, 4), held(6, 8)]);
        assert_eq!(log.held_of(&[7, 8]), [(7, 3), (8, 6)]);
        assert_eq!(log.held_of(&[8]), [(8, 6)]);
        assert_eq!((log.held_of(&[1]), log.frames()), (vec![], 7));
    }
}
