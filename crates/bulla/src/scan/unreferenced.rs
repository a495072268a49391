//! Bytes of segments that belong to no frame, and the events that explain them.

use crate::format::event::Event;
use crate::format::frame;
use crate::format::segment::SegmentName;
use crate::scan::cursor::Cursor;
use crate::scan::finding::{Finding, FindingKind};
use bulla_store::Result;
use bulla_store::Store;
use bulla_text::spelling::{agreeing, counted};

/// Bytes that belong to no frame.
#[derive(Clone, Copy)]
pub(crate) struct Unreferenced {
    pub(crate) name: SegmentName,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Unreferenced {
    /// The event that explains where they begin, if one does.
    fn event<'a>(&self, events: &'a [Event]) -> Option<&'a Event> {
        let name = self.name.to_string();
        events.iter().rev().find(|event| event.explains() == Some((name.as_str(), self.offset)))
    }

    /// Whether any event explains them.
    pub(crate) fn is_explained(&self, events: &[Event]) -> bool {
        self.event(events).is_some()
    }

    /// What there is to tell of them, where these paths of the log are not there, in words.
    pub(crate) fn finding(&self, store: &dyn Store, events: &[Event], not_there: &str) -> Result<Finding> {
        let length = self.length;
        let (bytes, count) = (counted(length, "byte"), agreeing(length, "counts", "count"));
        let belong = agreeing(length, "belongs", "belong");
        let (kind, detail) = match self.event(events) {
            Some(Event::Abandoned { reason, .. }) => (
                FindingKind::Abandoned,
                format!("{bytes} {count} for nothing: the segment was abandoned ({reason})"),
            ),
            Some(Event::Recovered { length: known, sha256, adopted, .. }) => {
                let cursor = Cursor::open(store, self.name)?;
                let digest = frame::digest(&*cursor.file, self.offset, length);
                let digest = digest.map_err(|error| cursor.failed(error))?;
                match *known == length && *sha256 == digest.to_string() {
                    true => (
                        FindingKind::Abandoned,
                        format!(
                            "{bytes} {count} for nothing: left by a crash; {} among them {} adopted into later segments",
                            counted(*adopted, "frame"),
                            agreeing(*adopted, "was", "were"),
                        ),
                    ),
                    false => (
                        FindingKind::SurplusBytes,
                        format!(
                            "{bytes} {belong} to no frame, and {} recovery recorded",
                            agreeing(length, "is not what", "are not those that")
                        ),
                    ),
                }
            }
            _ => {
                let them = agreeing(length, "it", "them");
                let detail = format!("{bytes} {belong} to no frame, and no event explains {them}");
                let finding = Finding::new(FindingKind::SurplusBytes, detail).at(self.name, self.offset);
                return Ok(finding.unless_explained_elsewhere(not_there));
            }
        };
        Ok(Finding::new(kind, detail).at(self.name, self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_proof::hash::sha256;
    use bulla_testkit::Memory;

    const NAME: SegmentName = SegmentName { first: 0, generation: 0 };

    /// What is said of this many bytes behind the first one, where `event` is in the log: its segment and the digest are put in.
    fn told(length: u8, event: Option<Event>, not_there: &str) -> String {
        let (store, content) = (Memory::new(), vec![7; 1 + usize::from(length)]);
        store.create_directory("segments").unwrap();
        bulla_store::replace(&store, &NAME.path(), &content).unwrap();
        let events = event.map(|event| match event {
            Event::Recovered { next_frame, offset, length, adopted, .. } => {
                let sha256 = sha256(&[&content[1..]]).to_string();
                Event::Recovered { segment: NAME.to_string(), next_frame, offset, length, sha256, adopted }
            }
            other => other,
        });
        let unreferenced = Unreferenced { name: NAME, offset: 1, length: length.into() };
        unreferenced.finding(&store, events.as_slice(), not_there).unwrap().detail
    }

    #[test]
    fn one_of_them_is_in_the_singular() {
        let segment = || NAME.to_string();
        let recovered = |length: u64, adopted: u64| {
            let (segment, sha256) = (segment(), String::new());
            Some(Event::Recovered { segment, next_frame: 1, offset: 1, length, sha256, adopted })
        };
        let abandoned = || {
            let (segment, reason) = (segment(), "full".to_owned());
            Some(Event::Abandoned { segment, next_frame: 1, offset: 1, reason })
        };
        let crash = "9 bytes count for nothing: left by a crash";
        for (length, event, expected) in [
            (9, recovered(9, 1), &*format!("{crash}; 1 frame among them was adopted into later segments")),
            (9, recovered(9, 2), &format!("{crash}; 2 frames among them were adopted into later segments")),
            (1, recovered(2, 0), "1 byte belongs to no frame, and is not what recovery recorded"),
            (2, recovered(1, 0), "2 bytes belong to no frame, and are not those that recovery recorded"),
            (1, abandoned(), "1 byte counts for nothing: the segment was abandoned (full)"),
            (2, abandoned(), "2 bytes count for nothing: the segment was abandoned (full)"),
            (1, None, "1 byte belongs to no frame, and no event explains it"),
            (2, None, "2 bytes belong to no frame, and no event explains them"),
        ] {
            assert_eq!(told(length, event, ""), expected);
        }
        let missing = "; an event that is missing may tell why: it is lost";
        assert_eq!(told(2, recovered(1, 0), "it is lost"), told(2, recovered(1, 0), ""));
        assert_eq!(told(2, None, "it is lost"), told(2, None, "") + missing);
    }
}
