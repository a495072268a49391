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

    /// What there is to tell of them.
    pub(crate) fn finding(&self, store: &dyn Store, events: &[Event]) -> Result<Finding> {
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
            _ => (
                FindingKind::SurplusBytes,
                format!(
                    "{bytes} {belong} to no frame, and no event explains {}",
                    agreeing(length, "it", "them")
                ),
            ),
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

    /// What is said of so many bytes behind the first one, of which so many frames were adopted.
    fn told(length: u64, event: Option<&dyn Fn(&str, &str) -> Event>) -> String {
        let (store, content) = (Memory::new(), vec![7; 1 + length as usize]);
        store.create_directory("segments").unwrap();
        bulla_store::replace(&store, &NAME.path(), &content).unwrap();
        let digest = sha256(&[&content[1..]]).to_string();
        let events = event.map(|event| event(&NAME.to_string(), &digest)).into_iter().collect::<Vec<_>>();
        let unreferenced = Unreferenced { name: NAME, offset: 1, length };
        unreferenced.finding(&store, &events).unwrap().detail
    }

    #[test]
    fn one_of_them_is_in_the_singular() {
        let recovered = |length: u64, adopted: u64| {
            move |segment: &str, sha256: &str| Event::Recovered {
                segment: segment.to_owned(),
                next_frame: 1,
                offset: 1,
                length,
                sha256: sha256.to_owned(),
                adopted,
            }
        };
        let abandoned = |segment: &str, _: &str| Event::Abandoned {
            segment: segment.to_owned(),
            next_frame: 1,
            offset: 1,
            reason: "full".to_owned(),
        };
        for (length, event, expected) in [
            (
                9,
                Some(&recovered(9, 1) as &dyn Fn(&str, &str) -> Event),
                "9 bytes count for nothing: left by a crash; 1 frame among them was adopted into later segments",
            ),
            (
                9,
                Some(&recovered(9, 2)),
                "9 bytes count for nothing: left by a crash; 2 frames among them were adopted into later segments",
            ),
            (1, Some(&recovered(2, 0)), "1 byte belongs to no frame, and is not what recovery recorded"),
            (
                2,
                Some(&recovered(1, 0)),
                "2 bytes belong to no frame, and are not those that recovery recorded",
            ),
            (1, Some(&abandoned), "1 byte counts for nothing: the segment was abandoned (full)"),
            (2, Some(&abandoned), "2 bytes count for nothing: the segment was abandoned (full)"),
            (1, None, "1 byte belongs to no frame, and no event explains it"),
            (2, None, "2 bytes belong to no frame, and no event explains them"),
        ] {
            assert_eq!(told(length, event), expected);
        }
    }
}
