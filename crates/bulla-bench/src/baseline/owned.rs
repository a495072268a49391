//! An entry that owns its fields, as it waits in a queue.

use bulla_proof::Entry;
use smallvec::SmallVec;

#[derive(Debug)]
pub(super) struct Owned {
    time: Option<i64>,
    operation: String,
    location: Option<Vec<u8>>,
    subjects: Option<SmallVec<[String; 1]>>,
    controller: Option<String>,
    processor: Option<String>,
    purpose: Option<String>,
    actor: Option<String>,
    client: Option<String>,
    stream: Option<String>,
    status: Option<u32>,
    duration: Option<u64>,
    size: Option<u64>,
    flags: Option<u32>,
    payload: Option<Vec<u8>>,
}

impl Owned {
    pub(super) fn copy(entry: &Entry<'_>) -> Self {
        let text = |value: Option<&str>| value.map(str::to_owned);
        let subjects = entry.subjects.as_ref();
        Owned {
            time: entry.time,
            operation: entry.operation.to_owned(),
            location: entry.location.map(<[u8]>::to_vec),
            subjects: subjects.map(|list| list.iter().map(|&subject| subject.to_owned()).collect()),
            controller: text(entry.controller),
            processor: text(entry.processor),
            purpose: text(entry.purpose),
            actor: text(entry.actor),
            client: text(entry.client),
            stream: text(entry.stream),
            status: entry.status,
            duration: entry.duration,
            size: entry.size,
            flags: entry.flags,
            payload: entry.payload.map(<[u8]>::to_vec),
        }
    }

    pub(super) fn stream(&self) -> &str {
        self.stream.as_deref().unwrap_or("default")
    }

    /// Appends the entry's row, and its length before it.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), bulla_proof::EntryError> {
        let entry = self.borrow();
        let length = entry.measure()?;
        out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        let start = out.len();
        out.resize(start + length, 0);
        entry.encode(0, &mut out[start..]);
        Ok(())
    }

    fn borrow(&self) -> Entry<'_> {
        let subjects = self.subjects.as_ref();
        Entry {
            time: self.time,
            operation: &self.operation,
            location: self.location.as_deref(),
            subjects: subjects.map(|list| list.iter().map(String::as_str).collect()),
            controller: self.controller.as_deref(),
            processor: self.processor.as_deref(),
            purpose: self.purpose.as_deref(),
            actor: self.actor.as_deref(),
            client: self.client.as_deref(),
            stream: self.stream.as_deref(),
            status: self.status,
            duration: self.duration,
            size: self.size,
            flags: self.flags,
            payload: self.payload.as_deref(),
        }
    }
}
