//! An entry as C has it.

use crate::status::{Failed, Outcome};
#[cfg(feature = "read")]
use bulla::Redaction;
use bulla::{Entry, Error};
use std::ffi::c_char;
use std::slice;

/// Bytes that somebody else owns. `data` is null where there are none, which is something else than an empty value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_bytes {
    /// Where they are. They need no zero at their end.
    pub data: *const c_char,
    /// How many they are.
    pub size: usize,
}

/// One record of one operation on somebody's data. Absent, zero and empty are three different things. Begin with `{0}`.
///
/// What it points to belongs to whoever made it, and is only read while the library is called, or while the callback runs that gets it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_entry {
    /// What was done: `create`, `read`, `update`, `delete`, or any verb of the source. UTF-8, never empty.
    pub operation: bulla_bytes,
    /// What was touched: a key, path or URL. Any bytes.
    pub location: bulla_bytes,
    /// Whose data: so many data subjects, 64 at most. Null where there are none; UTF-8 each.
    pub subjects: *const bulla_bytes,
    /// How many data subjects.
    pub subject_count: usize,
    /// The GDPR controller. UTF-8, as the next five.
    pub controller: bulla_bytes,
    /// The GDPR processor.
    pub processor: bulla_bytes,
    /// Why.
    pub purpose: bulla_bytes,
    /// The authenticated principal that did it.
    pub actor: bulla_bytes,
    /// The network address it came from.
    pub client: bulla_bytes,
    /// A label.
    pub stream: bulla_bytes,
    /// Anything else, 16 MiB at most. Any bytes.
    pub payload: bulla_bytes,
    /// Nanoseconds since the Unix epoch, UTC; the time of appending, without `BULLA_HAS_TIME`.
    pub time: i64,
    /// How long it took, in nanoseconds; with `BULLA_HAS_DURATION`.
    pub duration: u64,
    /// Bytes touched; with `BULLA_HAS_SIZE`.
    pub size: u64,
    /// The source's outcome code; with `BULLA_HAS_STATUS`.
    pub status: u32,
    /// Free bits; with `BULLA_HAS_FLAGS`.
    pub flags: u32,
    /// Which of the numbers there are: `BULLA_HAS_TIME` and so on.
    pub has: u32,
    /// Of an entry that is read: why it comes without its personal fields, a `bulla_withheld`. Nothing of one that is appended: 0.
    pub withheld: u32,
}

/// Why an entry comes without its personal fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bulla_withheld {
    /// It comes with all that it has.
    BULLA_NOT_WITHHELD = 0,
    /// The log says that the key of one of its data subjects was destroyed.
    BULLA_WITHHELD_ERASED = 1,
    /// The key of one of its data subjects is lost, and the log says of no erasure.
    BULLA_WITHHELD_KEY_LOST = 2,
    /// The keys at hand, or those in the proof, are not everybody's.
    BULLA_WITHHELD_NOT_GIVEN = 3,
    /// An event of a damaged log cannot be read, which may say that the key of one of its data subjects was destroyed.
    BULLA_WITHHELD_CANNOT_TELL = 4,
}

/// `time` is given.
pub const BULLA_HAS_TIME: u32 = 1;
/// `duration` is given.
pub const BULLA_HAS_DURATION: u32 = 2;
/// `size` is given.
pub const BULLA_HAS_SIZE: u32 = 4;
/// `status` is given.
pub const BULLA_HAS_STATUS: u32 = 8;
/// `flags` is given.
pub const BULLA_HAS_FLAGS: u32 = 16;

/// Bits that `has` may have.
const HAS: u32 = 31;

/// A list that C gives, empty where it is null.
///
/// # Safety
/// `first` is null, or the first of `count` that nobody changes while `'a` lasts.
#[inline]
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize, name: &str) -> Outcome<&'a [T]> {
    match (first.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(refused(name, "is null, and yet has a count")),
        (false, count) if isize::try_from(count.saturating_mul(size_of::<T>())).is_err() => {
            Err(refused(name, "has a count that nothing has"))
        }
        // SAFETY: there are so many, which nobody changes meanwhile.
        (false, count) => Ok(unsafe { slice::from_raw_parts(first, count) }),
    }
}

/// Why something of this name is not taken.
#[cold]
fn refused(name: &str, why: &str) -> Failed {
    Error::invalid(format!("`{name}` {why}")).into()
}

/// Whether they are ASCII, and at most 32: found out in a few reads, which may overlap, as most texts are of that kind.
#[inline(always)]
fn is_short_ascii(bytes: &[u8]) -> bool {
    let (count, half) = (bytes.len(), bytes.len() / 2);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("they are eight"));
    let short =
        |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("they are four")));
    let all = match count {
        0 => 0,
        1..=3 => u64::from(bytes[0] | bytes[half] | bytes[count - 1]),
        4..=7 => short(0) | short(count - 4),
        8..=16 => word(0) | word(count - 8),
        17..=32 => word(0) | word(8) | word(count - 16) | word(count - 8),
        _ => return false,
    };
    all & 0x8080_8080_8080_8080 == 0
}

impl bulla_bytes {
    pub(crate) const NONE: Self = bulla_bytes { data: std::ptr::null(), size: 0 };

    pub(crate) fn of(bytes: Option<&[u8]>) -> Self {
        bytes.map_or(Self::NONE, |bytes| bulla_bytes { data: bytes.as_ptr().cast(), size: bytes.len() })
    }

    /// The bytes, for as long as C lets them be.
    ///
    /// # Safety
    /// `data` is null, or has `size` bytes that nobody changes while `'a` lasts.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(self, name: &str) -> Outcome<Option<&'a [u8]>> {
        match (self.data.is_null(), self.size) {
            (true, 0) => Ok(None),
            (true, _) => Err(refused(name, "is null, and yet has a size")),
            (false, size) if isize::try_from(size).is_err() => {
                Err(refused(name, "has a size that nothing has"))
            }
            // SAFETY: there are so many bytes, which nobody changes meanwhile.
            (false, size) => Ok(Some(unsafe { slice::from_raw_parts(self.data.cast(), size) })),
        }
    }

    /// The same of text.
    ///
    /// # Safety
    /// As [`bulla_bytes::get`].
    #[inline(always)]
    pub(crate) unsafe fn text<'a>(self, name: &str) -> Outcome<Option<&'a str>> {
        // SAFETY: by this function's contract.
        match unsafe { self.get(name)? } {
            // What most texts of an entry are.
            None => Ok(None),
            // SAFETY: ASCII is UTF-8.
            Some(bytes) if is_short_ascii(bytes) => Ok(Some(unsafe { str::from_utf8_unchecked(bytes) })),
            Some(bytes) => str::from_utf8(bytes).map(Some).map_err(|_| refused(name, "is not UTF-8")),
        }
    }
}

impl bulla_entry {
    /// The entry, borrowed from what C has. It is made where it stays: an entry is large, and copying it is no small part of appending one.
    ///
    /// # Safety
    /// What it points to is there, and nobody changes it while `'a` lasts.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(&self) -> Outcome<Entry<'a>> {
        if self.has & !HAS != 0 || self.withheld != 0 {
            return Err(self.unknown());
        }
        let has = |bit| self.has & bit != 0;
        // SAFETY: by this function's contract, for each of these.
        unsafe {
            Ok(Entry {
                time: has(BULLA_HAS_TIME).then_some(self.time),
                operation: self.operation.text("operation")?.unwrap_or_default(),
                location: self.location.get("location")?,
                subjects: self.subjects()?,
                controller: self.controller.text("controller")?,
                processor: self.processor.text("processor")?,
                purpose: self.purpose.text("purpose")?,
                actor: self.actor.text("actor")?,
                client: self.client.text("client")?,
                stream: self.stream.text("stream")?,
                status: has(BULLA_HAS_STATUS).then_some(self.status),
                duration: has(BULLA_HAS_DURATION).then_some(self.duration),
                size: has(BULLA_HAS_SIZE).then_some(self.size),
                flags: has(BULLA_HAS_FLAGS).then_some(self.flags),
                payload: self.payload.get("payload")?,
            })
        }
    }

    /// Its data subjects.
    ///
    /// # Safety
    /// As [`bulla_entry::get`].
    #[inline(always)]
    unsafe fn subjects<'a, S: Default + Extend<&'a str>>(&self) -> Outcome<Option<S>> {
        // SAFETY: by this function's contract.
        let given = unsafe { list(self.subjects, self.subject_count, "subjects")? };
        if self.subjects.is_null() {
            return Ok(None);
        }
        if self.subject_count > MAX_SUBJECTS {
            return Err(Error::invalid(format!("an entry has {MAX_SUBJECTS} subjects at most")).into());
        }
        let mut subjects = S::default();
        for subject in given {
            // SAFETY: as above.
            let subject = unsafe { subject.text("subject")? };
            subjects.extend([subject
                .ok_or_else(|| refused("subject", "is null: leave it out, or give it an empty text"))?]);
        }
        Ok(Some(subjects))
    }

    /// Why it is not taken, of which `has` or `withheld` say what they cannot.
    #[cold]
    fn unknown(&self) -> Failed {
        let why = match self.withheld {
            0 => "`has` has bits that mean nothing: begin an entry with {0}",
            _ => "`withheld` is of an entry that is read: append one with 0",
        };
        Error::invalid(why).into()
    }

    /// What C gets of an entry; `subjects` is where its data subjects are to be.
    #[cfg(feature = "read")]
    pub(crate) fn of(
        entry: &Entry<'_>,
        withheld: Option<Redaction>,
        subjects: &mut Vec<bulla_bytes>,
    ) -> Self {
        subjects.clear();
        subjects
            .extend(entry.subjects.iter().flatten().map(|subject| bulla_bytes::of(Some(subject.as_bytes()))));
        let text = |text: Option<&str>| bulla_bytes::of(text.map(str::as_bytes));
        let has = |is_there: bool, bit| if is_there { bit } else { 0 };
        bulla_entry {
            operation: text(Some(entry.operation)),
            location: bulla_bytes::of(entry.location),
            subjects: if entry.subjects.is_some() { subjects.as_ptr() } else { std::ptr::null() },
            subject_count: subjects.len(),
            controller: text(entry.controller),
            processor: text(entry.processor),
            purpose: text(entry.purpose),
            actor: text(entry.actor),
            client: text(entry.client),
            stream: text(entry.stream),
            payload: bulla_bytes::of(entry.payload),
            time: entry.time.unwrap_or_default(),
            duration: entry.duration.unwrap_or_default(),
            size: entry.size.unwrap_or_default(),
            status: entry.status.unwrap_or_default(),
            flags: entry.flags.unwrap_or_default(),
            has: has(entry.time.is_some(), BULLA_HAS_TIME)
                | has(entry.duration.is_some(), BULLA_HAS_DURATION)
                | has(entry.size.is_some(), BULLA_HAS_SIZE)
                | has(entry.status.is_some(), BULLA_HAS_STATUS)
                | has(entry.flags.is_some(), BULLA_HAS_FLAGS),
            withheld: match withheld {
                None => bulla_withheld::BULLA_NOT_WITHHELD,
                Some(Redaction::Erased) => bulla_withheld::BULLA_WITHHELD_ERASED,
                Some(Redaction::KeyLost) => bulla_withheld::BULLA_WITHHELD_KEY_LOST,
                Some(Redaction::NotGiven) => bulla_withheld::BULLA_WITHHELD_NOT_GIVEN,
                Some(Redaction::CannotTell) => bulla_withheld::BULLA_WITHHELD_CANNOT_TELL,
            } as u32,
        }
    }
}

/// Data subjects of an entry, at most.
const MAX_SUBJECTS: usize = 64;

#[cfg(all(test, feature = "read"))]
mod tests {
    use super::*;

    /// What C gets of an entry and gives back is that entry, whichever fields there are; absent and empty are two things.
    #[test]
    fn an_entry_comes_back_as_it_went() {
        for fields in 0..1_u32 << 14 {
            let has = |bit: u32| fields & 1 << bit != 0;
            let text =
                |bit: u32, value: &'static str| has(bit).then_some(if fields % 3 == 0 { "" } else { value });
            let entry = Entry {
                time: has(0).then_some(-7),
                operation: "read",
                location: has(1).then_some(&b"a\0\xff"[..]),
                subjects: has(2)
                    .then(|| ["ada", "", "bob"][..(fields % 4).min(3) as usize].iter().copied().collect()),
                controller: text(3, "c"),
                processor: text(4, "p"),
                purpose: text(5, "w"),
                actor: text(6, "x"),
                client: text(7, "::1"),
                stream: text(8, "s"),
                status: has(9).then_some(0),
                duration: has(10).then_some(u64::MAX),
                size: has(11).then_some(0),
                flags: has(12).then_some(u32::MAX),
                payload: has(13).then_some(&b""[..]),
            };
            let mut subjects = Vec::new();
            let given = bulla_entry::of(&entry, None, &mut subjects);
            // SAFETY: what it points to is the entry above, and the list beside it.
            let back = unsafe { given.get() };
            assert!(back.is_ok_and(|back| back == entry), "{fields:b}");
        }
    }

    #[test]
    fn what_is_taken_unchecked_is_what_a_check_takes() {
        for count in 0..=40 {
            for at in 0..count.max(1) {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'x'; count];
                    bytes.iter_mut().skip(at).take(1).for_each(|it| *it = byte);
                    assert_eq!(is_short_ascii(&bytes), bytes.is_ascii() && count <= 32, "{at} of {bytes:?}");
                    // SAFETY: what it points to lives on.
                    let text = unsafe { bulla_bytes::of(Some(&bytes)).text("x") };
                    assert_eq!(text.ok(), str::from_utf8(&bytes).ok().map(Some), "{at} of {bytes:?}");
                }
            }
        }
        // Characters of several bytes, at every place of short and long texts.
        for text in
            ["é", "€", "𝄞"].iter().flat_map(|it| (0..40).map(move |at| format!("{0:1$}{it}{0:1$}", "", at)))
        {
            // SAFETY: as above.
            let taken = unsafe { bulla_bytes::of(Some(text.as_bytes())).text("x") };
            assert!(taken.is_ok_and(|it| it == Some(&text)));
        }
    }

    #[test]
    fn lengths_that_nothing_has_are_refused_before_anything_is_read() {
        let byte = 0_u8;
        let bytes = bulla_bytes { data: (&raw const byte).cast(), size: usize::MAX };
        // SAFETY: it is refused for its size, and not read.
        assert!(unsafe { bytes.get("x") }.is_err());
        for count in [usize::MAX, isize::MAX as usize, isize::MAX as usize / size_of::<bulla_bytes>() + 1] {
            let one = bulla_bytes::NONE;
            // SAFETY: as above.
            assert!(unsafe { list(&raw const one, count, "x") }.is_err(), "{count}");
        }
        // SAFETY: there is nothing.
        assert!(unsafe { list::<u8>(std::ptr::null(), 0, "x") }.is_ok_and(<[u8]>::is_empty));
    }
}
