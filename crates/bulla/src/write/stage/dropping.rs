//! Rows that were dropped, since nothing took what the log writes.

/// How many, whose, and when.
#[derive(Debug)]
pub(crate) struct DroppedRows {
    entries: u64,
    producers: u64,
    /// When the first was dropped, and the last, by the time of day: seconds since the Unix epoch.
    from: i64,
    to: i64,
}

impl DroppedRows {
    /// None yet.
    pub(crate) fn beginning(seconds: i64) -> Self {
        DroppedRows { entries: 0, producers: 0, from: seconds, to: seconds }
    }

    /// One at this time, of a producer of which none was before where `is_first` says so.
    pub(crate) fn add(&mut self, is_first: bool, seconds: i64) {
        self.entries += 1;
        self.producers += u64::from(is_first);
        // A clock may be put back.
        (self.from, self.to) = (self.from.min(seconds), self.to.max(seconds));
    }

    /// How many there are.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// How many producers appended them.
    pub(crate) fn producers(&self) -> u64 {
        self.producers
    }

    /// The times between which they were dropped, both included.
    pub(crate) fn times(&self) -> (i64, i64) {
        (self.from, self.to)
    }
}
