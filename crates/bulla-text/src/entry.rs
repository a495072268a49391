use bulla_proof::{Entry, EntryError};

/// An entry that owns its fields, as it came out of a line; within the limits of [`Entry`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // They are the fields of `Entry`, documented there.
pub struct ParsedEntry {
    pub time: Option<i64>,
    pub operation: String,
    pub location: Option<Vec<u8>>,
    pub subjects: Option<Vec<String>>,
    pub controller: Option<String>,
    pub processor: Option<String>,
    pub purpose: Option<String>,
    pub actor: Option<String>,
    pub client: Option<String>,
    pub stream: Option<String>,
    pub status: Option<u32>,
    pub duration: Option<u64>,
    pub size: Option<u64>,
    pub flags: Option<u32>,
    pub payload: Option<Vec<u8>>,
}

impl ParsedEntry {
    /// The entry, borrowed: what a producer appends.
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            time: self.time,
            operation: &self.operation,
            location: self.location.as_deref(),
            subjects: self.subjects.as_ref().map(|subjects| subjects.iter().map(String::as_str).collect()),
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

    /// The entry itself, when it is within every limit.
    pub(super) fn within_limits(self) -> Result<Self, EntryError> {
        self.entry().measure()?;
        Ok(self)
    }
}
