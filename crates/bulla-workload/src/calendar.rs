//! RFC 3339 times of a fixed number of digits.

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Writes nanoseconds since the epoch with milliseconds.
pub(crate) fn milliseconds(nanoseconds: i64, out: &mut Vec<u8>) {
    rfc_3339(nanoseconds, b"0000-00-00T00:00:00.000Z", 1_000_000, out);
}

/// The length of what [`microseconds`] writes, whatever the time.
pub(crate) const MICROSECONDS: usize = 27;

/// Writes nanoseconds since the epoch with microseconds.
pub(crate) fn microseconds(nanoseconds: i64, out: &mut Vec<u8>) {
    rfc_3339(nanoseconds, b"0000-00-00T00:00:00.000000Z", 1000, out);
}

fn rfc_3339<const LENGTH: usize>(nanoseconds: i64, zero: &[u8; LENGTH], unit: i64, out: &mut Vec<u8>) {
    let (seconds, nanoseconds) = (nanoseconds.div_euclid(SECOND), nanoseconds.rem_euclid(SECOND));
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let mut text = *zero;
    let mut write = |end: usize, mut value: i64| {
        for digit in text[..end].iter_mut().rev().take_while(|digit| digit.is_ascii_digit()) {
            *digit += (value % 10) as u8;
            value /= 10;
        }
    };
    write(4, year);
    write(7, month);
    write(10, day);
    write(13, second / 3600);
    write(16, second / 60 % 60);
    write(19, second % 60);
    write(LENGTH - 1, nanoseconds / unit);
    out.extend_from_slice(&text);
}

/// The date of a day, counted from 1970-01-01: Howard Hinnant's `civil_from_days`,
/// <https://howardhinnant.github.io/date_algorithms.html>. Years begin in March there, so that the leap day is last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (400 * era + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (nanoseconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1000, "1969-12-31T23:59:59.999999Z"),
            (crate::clock::START, "2026-01-01T00:00:00.000000Z"),
            (951_782_400_000_001_999, "2000-02-29T00:00:00.000001Z"),
            (1_709_251_199_123_456_789, "2024-02-29T23:59:59.123456Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775Z"),
        ] {
            let mut out = Vec::new();
            microseconds(nanoseconds, &mut out);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), expected);
            assert_eq!(out.len(), MICROSECONDS);
        }
    }
}
