//! Bytes of segments that belong to no frame, and the events that explain them.

use crate::format::event::Event;
use crate::format::frame;
use crate::format::segment::SegmentName;
use crate::scan::cursor::Cursor;
use crate::scan::finding::{Finding, FindingKind};
use bulla_store::Result;
use bulla_store::Store;

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
        let (kind, detail) = match self.event(events) {
            Some(Event::Abandoned { reason, .. }) => (
                FindingKind::Abandoned,
                format!("{length} bytes count for nothing: the segment was abandoned ({reason})"),
            ),
            Some(Event::Recovered { length: known, sha256, adopted, .. }) => {
                let cursor = Cursor::open(store, self.name)?;
                let digest = frame::digest(&*cursor.file, self.offset, length);
                let digest = digest.map_err(|error| cursor.failed(error))?;
                match *known == length && *sha256 == digest.to_string() {
                    true => (
                        FindingKind::Abandoned,
                        format!(
                            "{length} bytes count for nothing: left by a crash; {adopted} frames among them were \
                             adopted into later segments"
                        ),
                    ),
                    false => (
                        FindingKind::SurplusBytes,
                        format!(
                            "{length} bytes belong to no frame, and are not those that recovery recorded"
                        ),
                    ),
                }
            }
            _ => (
                FindingKind::SurplusBytes,
                format!("{length} bytes belong to no frame, and no event explains them"),
            ),
        };
        Ok(Finding::new(kind, detail).at(self.name, self.offset))
    }
}
