//! Times as text: RFC 3339, and the `i64` of nanoseconds since 1970-01-01T00:00:00Z that an entry holds.
//!
//! That range is 1677-09-21 to 2262-04-11. A leap second (`23:59:60Z` on the last day of a month), which RFC 3339 allows, has no
//! nanosecond of its own among those and is refused rather than moved.

use super::write;
use jiff::{SignedDuration, Timestamp, civil, tz::Offset};
use std::fmt;

/// What is said of a leap second, in the place of a time.
pub(super) const LEAP_SECOND: &str = "no leap second (`:60`), which a time that counts the seconds since 1970 cannot say: give the \
                                      second before or after it";

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// It is not spelled like one, or names a day or an hour that does not exist.
    Malformed,
    /// It lies outside what nanoseconds since the epoch can say.
    OutOfRange,
    /// It is a leap second, which nanoseconds since the epoch cannot say.
    LeapSecond,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "not an RFC 3339 time such as 2015-05-17T10:05:03Z"),
            Self::OutOfRange => write!(f, "not between the years 1677 and 2262"),
            Self::LeapSecond => write!(f, "{LEAP_SECOND}"),
        }
    }
}

impl std::error::Error for TimeError {}

/// Parses an RFC 3339 time with any offset, to the nanosecond, into nanoseconds since the epoch.
///
/// # Errors
/// Where it is not one. More than nine digits of a second would be lost, so they are not one either.
pub fn parse_time(text: &str) -> Result<i64, TimeError> {
    let mut scan = Scan(text.as_bytes());
    let moment = scan.rfc_3339().ok_or(TimeError::Malformed)?;
    if scan.0.is_empty() { moment.nanoseconds() } else { Err(TimeError::Malformed) }
}

/// Writes nanoseconds since the epoch as RFC 3339 in UTC, with `Z`, and with only as many digits of a second as
/// it takes.
///
/// ```
/// let mut text = Vec::new();
/// bulla_text::time::format_time(1_431_857_103_250_000_000, &mut text);
/// assert_eq!(text, b"2015-05-17T10:05:03.25Z");
/// ```
pub fn format_time(nanoseconds: i64, out: &mut Vec<u8>) {
    // Every i64 is within the range of a `Timestamp`, 9,999 years either side.
    let timestamp = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or_default();
    write_civil(Offset::UTC.to_datetime(timestamp), out);
}

/// Seconds since the epoch as RFC 3339 in UTC; `None` before the year 0 and after the year 9999, which it cannot say.
///
/// ```
/// assert_eq!(bulla_text::time::format_seconds(253_402_300_799).as_deref(), Some("9999-12-31T23:59:59Z"));
/// assert_eq!(bulla_text::time::format_seconds(253_402_300_800), None);
/// ```
pub fn format_seconds(seconds: i64) -> Option<String> {
    let epoch = civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let time = epoch.checked_add(SignedDuration::from_secs(seconds)).ok().filter(|time| time.year() >= 0)?;
    let mut text = Vec::new();
    write_civil(time, &mut text);
    String::from_utf8(text).ok()
}

fn write_civil(time: civil::DateTime, out: &mut Vec<u8>) {
    let mut part = |separator: &[u8], value: i32, width| {
        out.extend_from_slice(separator);
        write::number(u64::from(value.unsigned_abs()), width, out);
    };
    part(b"", time.year().into(), 4);
    part(b"-", time.month().into(), 2);
    part(b"-", time.day().into(), 2);
    part(b"T", time.hour().into(), 2);
    part(b":", time.minute().into(), 2);
    part(b":", time.second().into(), 2);
    if time.subsec_nanosecond() != 0 {
        part(b".", time.subsec_nanosecond(), 9);
        let digits = out.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        out.truncate(digits);
    }
    out.push(b'Z');
}

/// A civil time and its offset from UTC, as written, not yet checked to exist.
#[derive(Default)]
pub(super) struct Moment {
    pub(super) year: i16,
    pub(super) month: i8,
    pub(super) day: i8,
    pub(super) hour: i8,
    pub(super) minute: i8,
    pub(super) second: i8,
    pub(super) nanosecond: i32,
    pub(super) offset_seconds: i32,
}

impl Moment {
    /// What a clock shows then, if there is such a day and time of day.
    pub(super) fn civil(&self) -> Option<civil::DateTime> {
        let Moment { year, month, day, hour, minute, second, nanosecond, offset_seconds: _ } = *self;
        civil::DateTime::new(year, month, day, hour, minute, second, nanosecond).ok()
    }

    /// Why there is no such day and time of day.
    pub(super) fn unsaid(&self) -> TimeError {
        match self.is_leap_second() {
            true => TimeError::LeapSecond,
            false => TimeError::Malformed,
        }
    }

    /// Whether it is the 61st second of the last minute of a month in UTC: leap seconds may be there, and nowhere else.
    fn is_leap_second(&self) -> bool {
        let next = Moment { second: 59, nanosecond: 0, ..*self }.civil().and_then(|before| {
            let ahead = SignedDuration::from_secs(self.offset_seconds.into());
            before.checked_sub(ahead).ok()?.checked_add(SignedDuration::from_secs(1)).ok()
        });
        self.second == 60 && next.is_some_and(|next| next == next.date().first_of_month().at(0, 0, 0, 0))
    }

    pub(super) fn nanoseconds(&self) -> Result<i64, TimeError> {
        let civil = self.civil().ok_or_else(|| self.unsaid())?;
        let offset = Offset::from_seconds(self.offset_seconds).map_err(|_| TimeError::Malformed)?;
        let timestamp = offset.to_timestamp(civil).map_err(|_| TimeError::OutOfRange)?;
        i64::try_from(timestamp.as_nanosecond()).map_err(|_| TimeError::OutOfRange)
    }
}

/// What is left to read of a time.
pub(super) struct Scan<'a>(pub(super) &'a [u8]);

impl Scan<'_> {
    fn rfc_3339(&mut self) -> Option<Moment> {
        let mut moment = self.date()?;
        self.one_of(b"Tt")?;
        (moment.hour, moment.minute, moment.second) = self.clock()?;
        if self.one_of(b".").is_some() {
            moment.nanosecond = self.fraction()?;
        }
        if self.one_of(b"Zz").is_none() {
            moment.offset_seconds = self.offset(b":")?;
        }
        Some(moment)
    }

    pub(super) fn date(&mut self) -> Option<Moment> {
        let year = self.number(4)?;
        self.one_of(b"-")?;
        let month = self.small()?;
        self.one_of(b"-")?;
        Some(Moment { year, month, day: self.small()?, ..Moment::default() })
    }

    /// `HH:MM:SS`.
    pub(super) fn clock(&mut self) -> Option<(i8, i8, i8)> {
        let hour = self.small()?;
        self.one_of(b":")?;
        let minute = self.small()?;
        self.one_of(b":")?;
        Some((hour, minute, self.small()?))
    }

    /// The digits after the point, as nanoseconds.
    pub(super) fn fraction(&mut self) -> Option<i32> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        let value = |place| i32::from(fraction.get(place).map_or(0, |digit| digit - b'0'));
        (1..=9).contains(&digits).then(|| (0..9).fold(0, |sum, place| 10 * sum + value(place)))
    }

    /// `±HH`, the separator, `MM`; in seconds.
    pub(super) fn offset(&mut self, separator: &[u8]) -> Option<i32> {
        let sign = if self.one_of(b"+-")? == b'-' { -60 } else { 60 };
        let hours = self.small()?;
        self.0 = self.0.strip_prefix(separator)?;
        let minutes = self.small()?;
        (hours < 24 && minutes < 60).then(|| sign * (60 * i32::from(hours) + i32::from(minutes)))
    }

    /// Two digits.
    pub(super) fn small(&mut self) -> Option<i8> {
        i8::try_from(self.number(2)?).ok()
    }

    /// Exactly so many digits, at most four.
    pub(super) fn number(&mut self, digits: usize) -> Option<i16> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number
            .iter()
            .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| 10 * sum + i16::from(byte - b'0')))
    }

    /// The next byte, when it is one of these.
    pub(super) fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        bytes.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }
}
