//! The time of an access log.

use super::scan::decimal;
use bulla_text::time::{TimeError, parse_time};

/// `DD/Mon/YYYY:HH:MM:SS ±HHMM`, or as RFC 3339 has it, in nanoseconds since the epoch.
pub(super) fn moment(time: &[u8]) -> Result<i64, TimeError> {
    match Clock::read(time) {
        Some(clock) => clock.nanoseconds(),
        None => parse_time(std::str::from_utf8(time).unwrap_or_default()),
    }
}

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// `DD/Mon/YYYY:HH:MM:SS ±HHMM`, the second with a fraction or without, as written.
struct Clock<'a> {
    day: i64,
    month: i64,
    year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    fraction: &'a [u8],
    offset: (u8, i64, i64),
}

impl<'a> Clock<'a> {
    fn read(time: &'a [u8]) -> Option<Self> {
        let (clock, rest) = time.split_first_chunk::<20>()?;
        let (rest, offset) = rest.split_last_chunk::<6>()?;
        let fraction = match rest {
            [] => rest,
            [b'.', digits @ ..] => Some(digits).filter(|digits| (1..=9).contains(&digits.len()))?,
            _ => return None,
        };
        let marks = [clock[2], clock[6], clock[11], clock[14], clock[17], offset[0]];
        if marks != *b"//::: "
            || !matches!(offset[1], b'+' | b'-')
            || !fraction.iter().all(u8::is_ascii_digit)
        {
            return None;
        }
        let number = |digits: &[u8]| decimal(digits).and_then(|number| i64::try_from(number).ok());
        Some(Clock {
            day: number(&clock[..2])?,
            month: (1..).zip(MONTHS).find_map(|(number, month)| (month == &clock[3..6]).then_some(number))?,
            year: number(&clock[7..11])?,
            hour: number(&clock[12..14])?,
            minute: number(&clock[15..17])?,
            second: number(&clock[18..])?,
            fraction,
            offset: (offset[1], number(&offset[2..4])?, number(&offset[4..])?),
        })
    }

    fn nanoseconds(&self) -> Result<i64, TimeError> {
        let (sign, hours, minutes) = self.offset;
        let is_usual = (1678..2262).contains(&self.year)
            && (1..=days_of(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && hours < 24
            && minutes < 60;
        if !is_usual {
            // What is wrong with it, or right after all at the ends of what can be said, is decided in one place.
            let Clock { day, month, year, hour, minute, second, .. } = self;
            let fraction = match self.fraction {
                [] => String::new(),
                digits => format!(".{}", String::from_utf8_lossy(digits)),
            };
            let sign = char::from(sign);
            let text = format!(
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{sign}{hours:02}:{minutes:02}"
            );
            return parse_time(&text);
        }
        let offset = 60 * (60 * hours + minutes) * if sign == b'-' { -1 } else { 1 };
        let seconds = 86_400 * days(self.year, self.month, self.day)
            + 3600 * self.hour
            + 60 * self.minute
            + self.second
            - offset;
        let fraction = (0..9).fold(0, |sum, place| {
            10 * sum + self.fraction.get(place).map_or(0, |digit| i64::from(digit - b'0'))
        });
        Ok(1_000_000_000 * seconds + fraction)
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        _ => 31,
    }
}

/// Days from 1970-01-01, in the Gregorian calendar: years begin with March here, so that the leap day is their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}
