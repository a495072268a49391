//! Times as programs write them.

use super::MapError;
use super::document::Item;
use super::number::scaled;
use super::scope::Problem;
use bulla_text::time::{TimeError, parse_time};
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// How a time is read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    formats: Vec<Form>,
    zone: TimeZone,
    /// Whether the zone is the one that the user of the map gives.
    is_local: bool,
}

#[derive(Clone, Debug)]
enum Form {
    Rfc3339,
    /// Since the epoch, in units that are 10 to the minus so many seconds.
    Unix(usize),
    Fields(Fields),
}

/// A format of `strptime`.
#[derive(Clone, Debug)]
struct Fields {
    format: String,
    /// The same, but that it reads a leap second only; where there is a second.
    leap: Option<String>,
    has_year: bool,
    has_offset: bool,
    /// Whether the abbreviation of a time zone follows at the end.
    has_abbreviation: bool,
}

/// The zone that the user of the map gives; UTC where none is given.
const LOCAL: &str = "local";

/// Times without a year are before now and this much.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// So many years before that a day and its day of the week are looked for: February 29 is not in every fourth year.
const YEARS: i16 = 8;

impl Reading {
    /// What is read where nothing is said of it.
    pub(super) fn rfc_3339() -> Self {
        Reading { formats: vec![Form::Rfc3339], zone: TimeZone::UTC, is_local: false }
    }

    /// Reads what a map says.
    pub(super) fn parse(format: Option<&Item<'_>>, zone: Option<&Item<'_>>) -> Result<Self, MapError> {
        let formats = match format {
            Some(format) => format.one_or_more().iter().map(Form::parse).collect::<Result<Vec<_>, _>>()?,
            None => vec![Form::Rfc3339],
        };
        let is_zone_needed =
            formats.iter().any(|form| matches!(form, Form::Fields(fields) if !fields.has_offset));
        let is_local = zone.is_some_and(|zone| zone.string().is_ok_and(|zone| zone == LOCAL));
        let zone = match (zone, format) {
            (Some(_), _) if is_local && is_zone_needed => TimeZone::UTC,
            (Some(zone), _) if !is_zone_needed => {
                return Err(zone.error("`zone` is of no use: each of the formats says what the zone is"));
            }
            (Some(zone), _) => read_zone(zone.string()?).ok_or_else(|| {
                zone.error(
                    "`zone` has to be \"local\", \"UTC\", an offset such as \"+01:00\", or a name such as \"Europe/Berlin\", of those that \
                     the system knows (/usr/share/zoneinfo)",
                )
            })?,
            (None, Some(format)) if is_zone_needed => {
                let what = "the format has no offset (%z): say what the clock's zone is, as in zone = \"UTC\" or zone = \"Europe/Berlin\"";
                return Err(format.error(what));
            }
            (None, _) => TimeZone::UTC,
        };
        Ok(Reading { formats, zone, is_local })
    }

    /// Nanoseconds since the epoch of a time, which is read at `now`.
    pub(super) fn read(&self, text: &[u8], now: i64) -> Result<i64, Problem> {
        let mut problem = None;
        for form in &self.formats {
            match form.read(text, &self.zone, now) {
                Ok(time) => return Ok(time),
                // Of a format that reads it, but for what it says, the reason says more.
                Err(NotRead::Format) => {}
                Err(NotRead::Because(reason)) => problem = problem.or(Some(reason)),
            }
        }
        Err(problem.unwrap_or("is in none of the formats that the map has for it").into())
    }

    /// Whether the map leaves the zone open.
    pub(super) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Gives the zone, where the map leaves it open.
    pub(super) fn set_local_zone(&mut self, zone: &TimeZone) {
        if self.is_local {
            self.zone = zone.clone();
        }
    }
}

/// The zone of this name.
pub(super) fn read_zone(text: &str) -> Option<TimeZone> {
    if let [sign @ (b'+' | b'-'), hours @ .., b':', tens, ones] = text.as_bytes()
        && hours.len() == 2
    {
        let digits = [hours[0], hours[1], *tens, *ones];
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let [h, k, t, o] = digits.map(|digit| i32::from(digit - b'0'));
        let seconds = 3600 * (10 * h + k) + 60 * (10 * t + o);
        let offset = Offset::from_seconds(if *sign == b'-' { -seconds } else { seconds }).ok()?;
        return (t < 6).then(|| TimeZone::fixed(offset));
    }
    TimeZone::get(text).ok().filter(|zone| !zone.is_unknown())
}

/// Why a format does not read a text.
enum NotRead {
    /// It is written in another way.
    Format,
    Because(&'static str),
}

const OUT_OF_RANGE: NotRead = NotRead::Because("is not between the years 1677 and 2262");
const LEAP_SECOND: NotRead =
    NotRead::Because("is a leap second (`:60`), which a time that counts the seconds since 1970 cannot say");

impl Form {
    fn parse(item: &Item<'_>) -> Result<Self, MapError> {
        Ok(match item.string()? {
            "rfc3339" => Form::Rfc3339,
            "unix" => Form::Unix(0),
            "unix-ms" => Form::Unix(3),
            "unix-us" => Form::Unix(6),
            "unix-ns" => Form::Unix(9),
            format if format.contains('%') => Form::Fields(Fields::parse(item, format)?),
            _ => {
                return Err(item.error(
                    "`format` has to be \"rfc3339\", \"unix\", \"unix-ms\", \"unix-us\", \"unix-ns\", or made of conversions such as \
                     \"%d/%b/%Y:%H:%M:%S %z\"",
                ));
            }
        })
    }

    fn read(&self, text: &[u8], zone: &TimeZone, now: i64) -> Result<i64, NotRead> {
        match self {
            Form::Unix(power) => {
                let time = scaled(text, 9 - power).ok_or(NotRead::Format)?;
                i64::try_from(time).map_err(|_| OUT_OF_RANGE)
            }
            Form::Rfc3339 => {
                let text = std::str::from_utf8(text).map_err(|_| NotRead::Format)?;
                parse_time(text).map_err(|error| match error {
                    TimeError::Malformed => NotRead::Format,
                    TimeError::OutOfRange => OUT_OF_RANGE,
                    TimeError::LeapSecond => LEAP_SECOND,
                })
            }
            Form::Fields(fields) => fields.read(text, zone, now),
        }
    }
}

impl Fields {
    fn parse(item: &Item<'_>, format: &str) -> Result<Self, MapError> {
        let (format, has_abbreviation) = match format.strip_suffix(" %Z") {
            Some(format) => (format, true),
            None => (format, false),
        };
        let mut has = [false; 4];
        let [has_year, has_day, has_offset, has_second] = &mut has;
        let mut leap = String::new();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            leap.push_str(&rest[..at]);
            let flags = rest[at + 1..].bytes().take_while(|byte| b"-_0^#.:0123456789".contains(byte)).count();
            let Some(letter) = rest[at + 1 + flags..].chars().next() else {
                return Err(item.error("the format ends with `%`; the character itself is `%%`"));
            };
            let end = at + 1 + flags + letter.len_utf8();
            let conversion = &rest[at..end];
            let mut is_second = false;
            match letter {
                'Y' | 'y' | 'G' | 'g' => *has_year = true,
                'F' | 'D' => (*has_year, *has_day) = (true, true),
                'd' | 'e' | 'j' => *has_day = true,
                'z' => *has_offset = true,
                's' => (*has_year, *has_day, *has_offset) = (true, true, true),
                'S' | 'T' => is_second = true,
                'Z' => {
                    return Err(item.error("the abbreviation of a zone can be read at the end only: ` %Z`"));
                }
                '%' | 'A' | 'a' | 'B' | 'b' | 'h' | 'C' | 'f' | 'N' | 'H' | 'k' | 'I' | 'l' | 'M' | 'm'
                | 'n' | 't' | 'P' | 'p' | 'R' | 'u' | 'w' | 'U' | 'V' | 'W' => {}
                _ => {
                    let what = format!("there is no conversion `{}` of times", conversion.escape_debug());
                    return Err(item.error(what));
                }
            }
            leap.push_str(match letter {
                'S' => "60",
                'T' => "%H:%M:60",
                _ => conversion,
            });
            *has_second |= is_second;
            rest = &rest[end..];
        }
        leap.push_str(rest);
        if !*has_day {
            return Err(item.error("the format says no day (%d)"));
        }
        if *has_offset && has_abbreviation {
            return Err(item
                .error("the format has an offset (%z) and the abbreviation of a zone (%Z): one is enough"));
        }
        Ok(Fields {
            format: format.to_owned(),
            leap: has_second.then_some(leap),
            has_year: *has_year,
            has_offset: *has_offset,
            has_abbreviation,
        })
    }

    fn read(&self, text: &[u8], zone: &TimeZone, now: i64) -> Result<i64, NotRead> {
        let text = std::str::from_utf8(text).map_err(|_| NotRead::Format)?;
        let (text, abbreviation) = match text.rsplit_once(' ') {
            Some((text, abbreviation)) if self.has_abbreviation => (text, Some(abbreviation)),
            _ if self.has_abbreviation => return Err(NotRead::Format),
            _ => (text, None),
        };
        let mut parsed = BrokenDownTime::parse(&self.format, text).map_err(|_| NotRead::Format)?;
        // What is read here takes a leap second for the one before it, which would make two of them one.
        let leaps = |format: &String| BrokenDownTime::parse(format, text).is_ok();
        if parsed.second() == Some(59) && self.leap.as_ref().is_some_and(leaps) {
            return Err(LEAP_SECOND);
        }
        let time = if self.has_offset {
            parsed.to_timestamp().map_err(|_| NotRead::Format)?
        } else if self.has_year {
            at(parsed.to_datetime().map_err(|_| NotRead::Format)?, zone, abbreviation)?
        } else {
            let latest = Timestamp::from_nanosecond(now.into()).and_then(|now| now.checked_add(AHEAD));
            let latest = latest.map_err(|_| OUT_OF_RANGE)?;
            nearest_year(&mut parsed, latest, zone, abbreviation)?
        };
        i64::try_from(time.as_nanosecond()).map_err(|_| OUT_OF_RANGE)
    }
}

/// The time in the last year in which it is not after `latest`.
fn nearest_year(
    parsed: &mut BrokenDownTime,
    latest: Timestamp,
    zone: &TimeZone,
    abbreviation: Option<&str>,
) -> Result<Timestamp, NotRead> {
    let year = zone.to_datetime(latest).year();
    for year in (year - YEARS..=year).rev() {
        parsed.set_year(Some(year)).map_err(|_| OUT_OF_RANGE)?;
        // February 29 is not in every year, nor is a day of a month always the same day of the week.
        let Ok(civil) = parsed.to_datetime() else { continue };
        let time = at(civil, zone, abbreviation)?;
        if time <= latest {
            return Ok(time);
        }
    }
    Err(NotRead::Format)
}

/// When clocks of a zone showed this: what they showed twice, where nothing says which it is, is the first time; what they never
/// showed, as they were put forward, is as if they had not been.
fn at(civil: DateTime, zone: &TimeZone, abbreviation: Option<&str>) -> Result<Timestamp, NotRead> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    let offset = ambiguous.offset();
    let time = ambiguous.compatible().map_err(|_| OUT_OF_RANGE)?;
    let Some(abbreviation) = abbreviation else { return Ok(time) };
    let is_it = |time: Timestamp| zone.to_offset_info(time).abbreviation().eq_ignore_ascii_case(abbreviation);
    if is_it(time) {
        return Ok(time);
    }
    if let AmbiguousOffset::Fold { after, .. } = offset {
        let later = after.to_timestamp(civil).map_err(|_| OUT_OF_RANGE)?;
        if is_it(later) {
            return Ok(later);
        }
    }
    Err(NotRead::Because(
        "ends with the abbreviation of a zone that is not the one of the map's `zone`: set `zone` to the clock's",
    ))
}
