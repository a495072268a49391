//! Times as a person gives them to a command: days and clocks of a time zone, and RFC 3339.

use crate::time::{LEAP_SECOND, Moment, Scan, TimeError};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Span, Timestamp};
use std::fmt;

/// A time zone: what a day is, and when a clock shows what.
///
/// ```
/// use bulla_text::zone::{Zone, parse_moment};
/// let zone = Zone::parse("+02:00")?;
/// let now = 1_431_857_103_000_000_000; // 2015-05-17T10:05:03Z
/// assert_eq!(parse_moment("yesterday", &zone, now)?, 1_431_727_200_000_000_000); // 2015-05-15T22:00:00Z
/// assert_eq!(parse_moment("2015-05-16", &zone, now)?, 1_431_727_200_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// Why a text is not a time, or not one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentError {
    /// It is not spelled like one, or names a day or an hour that does not exist.
    Malformed,
    /// It lies outside what nanoseconds since the epoch can say.
    OutOfRange,
    /// It is a leap second, which nanoseconds since the epoch cannot say.
    LeapSecond,
    /// Clocks of the zone were put back, and showed it twice.
    Twice,
    /// Clocks of the zone were put forward, and never showed it.
    Never,
}

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MomentError::Malformed => {
                "not a time: give `yesterday`, `today`, `tomorrow`, `now`, a date such as 2026-11-03, or a time such as \
                 2026-11-03T14:00, which may have seconds and end with an offset (+01:00) or `Z`"
            }
            MomentError::OutOfRange => "not between the years 1677 and 2262",
            MomentError::LeapSecond => LEAP_SECOND,
            MomentError::Twice => {
                "a time that clocks showed twice in that zone, as they were put back: add an offset such as +01:00"
            }
            MomentError::Never => "a time that clocks never showed in that zone, as they were put forward",
        })
    }
}

impl std::error::Error for MomentError {}

impl From<TimeError> for MomentError {
    fn from(error: TimeError) -> Self {
        match error {
            TimeError::Malformed => MomentError::Malformed,
            TimeError::OutOfRange => MomentError::OutOfRange,
            TimeError::LeapSecond => MomentError::LeapSecond,
        }
    }
}

/// Why a text is not a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneError;

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a time zone: give `UTC`, an offset such as +01:00, or a name such as Europe/Berlin, of those that the system \
             knows (/usr/share/zoneinfo)",
        )
    }
}

impl std::error::Error for ZoneError {}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Zone = Zone(TimeZone::UTC);

    /// The zone of this name: `UTC`, an offset as `+01:00`, or one of the system's database of zones.
    ///
    /// # Errors
    /// Where there is none.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        let mut scan = Scan(text.as_bytes());
        if let Some(seconds) = scan.offset(b":").filter(|_| scan.0.is_empty()) {
            let offset = Offset::from_seconds(seconds).map_err(|_| ZoneError)?;
            return Ok(Zone(TimeZone::fixed(offset)));
        }
        let zone = TimeZone::get(text).map_err(|_| ZoneError)?;
        if zone.is_unknown() { Err(ZoneError) } else { Ok(Zone(zone)) }
    }

    /// When a clock showed this.
    fn at(&self, time: DateTime) -> Result<Timestamp, MomentError> {
        let ambiguous = self.0.to_ambiguous_timestamp(time);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => {
                ambiguous.unambiguous().map_err(|_| MomentError::OutOfRange)
            }
            AmbiguousOffset::Gap { .. } => Err(MomentError::Never),
            AmbiguousOffset::Fold { .. } => Err(MomentError::Twice),
        }
    }

    /// When a day begins: where clocks were put forward or back over midnight, with what they showed first.
    fn beginning(&self, day: jiff::civil::Date) -> Result<Timestamp, MomentError> {
        self.0.to_timestamp(day.at(0, 0, 0, 0)).map_err(|_| MomentError::OutOfRange)
    }
}

/// Nanoseconds since the epoch of `text`: `now`, or the beginning of `yesterday`, `today` or `tomorrow`, as seen from `now`; the
/// beginning of a date; a date and a time of day; all of these in `zone`; or an RFC 3339 time with its own offset.
///
/// # Errors
/// Where it is none of these.
pub fn parse_moment(text: &str, zone: &Zone, now: i64) -> Result<i64, MomentError> {
    let days = match text {
        "now" => return Ok(now),
        "yesterday" => Some(-1),
        "today" => Some(0),
        "tomorrow" => Some(1),
        _ => None,
    };
    if let Some(days) = days {
        let now = Timestamp::from_nanosecond(i128::from(now)).map_err(|_| MomentError::OutOfRange)?;
        let day = zone.0.to_datetime(now).date().checked_add(Span::new().days(i64::from(days)));
        return nanoseconds(zone.beginning(day.map_err(|_| MomentError::OutOfRange)?)?);
    }
    let (moment, read) = read(text).ok_or(MomentError::Malformed)?;
    let time = moment.civil().ok_or_else(|| moment.unsaid())?;
    match read {
        Read::Day => nanoseconds(zone.beginning(time.date())?),
        Read::Local => nanoseconds(zone.at(time)?),
        Read::WithOffset => Ok(moment.nanoseconds()?),
    }
}

/// How much of a time was given.
enum Read {
    Day,
    Local,
    WithOffset,
}

/// A date, which a time of day may follow, which an offset may follow.
fn read(text: &str) -> Option<(Moment, Read)> {
    let mut scan = Scan(text.as_bytes());
    let mut moment = scan.date()?;
    if scan.0.is_empty() {
        return Some((moment, Read::Day));
    }
    scan.one_of(b"Tt ")?;
    moment.hour = scan.small()?;
    scan.one_of(b":")?;
    moment.minute = scan.small()?;
    if scan.one_of(b":").is_some() {
        moment.second = scan.small()?;
        if scan.one_of(b".").is_some() {
            moment.nanosecond = scan.fraction()?;
        }
    }
    if scan.0.is_empty() {
        return Some((moment, Read::Local));
    }
    if scan.one_of(b"Zz").is_none() {
        moment.offset_seconds = scan.offset(b":")?;
    }
    scan.0.is_empty().then_some((moment, Read::WithOffset))
}

fn nanoseconds(time: Timestamp) -> Result<i64, MomentError> {
    i64::try_from(time.as_nanosecond()).map_err(|_| MomentError::OutOfRange)
}
