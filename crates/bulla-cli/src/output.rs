//! What the command prints. Results go to standard output, all else to standard error; that either is closed is
//! never an error, and never a panic.

pub(crate) use crate::escaped::{on_line, printable};
use crate::exit::Failure;
use bulla::text::is_obeyed;
use bulla::text::time::format_seconds;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Prints a line to standard error. A line end in it, as a file's name may have one, would begin a line that nobody wrote.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::note(format_args!($($text)*)) };
}

pub(crate) fn note(line: fmt::Arguments<'_>) {
    match IN_OBJECTS.load(Ordering::Relaxed) {
        true => note_lines(&line.to_string()),
        false => note_lines(&on_line(&line.to_string())),
    }
}

/// Prints lines to standard error, of which whoever asks for it has made every one.
pub(crate) fn note_lines(lines: &str) {
    match IN_OBJECTS.load(Ordering::Relaxed) {
        true => note_object(json!({ "message": lines })),
        // In one write, so that the lines of two processes do not mix. Nobody is left to tell of a failure here.
        false => drop(io::stderr().write_all(format!("{}\n", printable(lines)).as_bytes())),
    }
}

/// Whether what goes to standard error is for programs, too.
static IN_OBJECTS: AtomicBool = AtomicBool::new(false);

/// From now on each line on standard error is a JSON object: for a command that runs for long, and is asked for JSON.
#[cfg(feature = "proxy")]
pub(crate) fn note_in_objects() {
    IN_OBJECTS.store(true, Ordering::Relaxed);
}

/// Prints a JSON object to standard error, with the time.
pub(crate) fn note_object(mut object: Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    object["time"] = time(now).into();
    let _ = io::stderr().write_all((escape_controls(&object.to_string()) + "\n").as_bytes());
}

/// Seconds since the epoch in RFC 3339, and as a number of years that this cannot say.
pub(crate) fn time(seconds: impl Into<i128>) -> String {
    let seconds = seconds.into();
    let date = i64::try_from(seconds).ok().and_then(format_seconds);
    date.unwrap_or_else(|| format!("{seconds} s from 1970 on"))
}

/// Prints a result to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(printable(text).as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("writing to standard output", &error))
        }
        _ => Ok(()),
    }
}

/// Whether a JSON object was printed, or could not be.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Tells why a command failed: on standard error, and with `json`, where it failed before it printed its object, in one.
pub(crate) fn tell_failure(failure: &Failure, json: bool) {
    note_lines(&format!("bulla: {}", failure.message));
    tell_in_json(&failure.message, json);
}

/// The same to a program, if `json`.
pub(crate) fn tell_in_json(message: &str, json: bool) {
    if !json {
        return;
    }
    // Another thread may be printing.
    let _only = io::stdout().lock();
    if !PRINTED.load(Ordering::Relaxed) {
        // It has failed already, and standard error says with what.
        let _ = print_json(&serde_json::json!({ "error": message }));
    }
}

/// Prints one JSON object, on one line.
pub(crate) fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    let _only = io::stdout().lock();
    PRINTED.store(true, Ordering::Relaxed);
    let text = serde_json::to_string(object);
    let text = text.map_err(|error| Failure::usage(format!("the result is not JSON: {error}")))?;
    print(&(escape_controls(&text) + "\n"))
}

/// JSON in which no character stands as it is that a terminal obeys; of these JSON itself asks that for ASCII's first 32 alone.
fn escape_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match is_obeyed(c) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => text.push(c),
        }
    }
    text
}

/// A progress bar over a part of a whole, for work that is done in several passes; shown on a terminal only.
pub(crate) fn pass_bar() -> ProgressBar {
    let template = "{elapsed} {prefix} [{wide_bar}] {percent}% {msg}, {eta} left";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(1).with_style(style.progress_chars("=> "))
}

/// A progress bar over bytes; shown on a terminal only. A total of zero is one that is not known.
pub(crate) fn progress_bar(total: u64) -> ProgressBar {
    let (bar, template) = match total {
        0 => (ProgressBar::no_length(), "{elapsed} {bytes} {msg} {bytes_per_sec}"),
        total => {
            (ProgressBar::new(total), "{elapsed} [{wide_bar}] {bytes}/{total_bytes} {msg} {bytes_per_sec}")
        }
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style.progress_chars("=> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_what_a_date_can_say_is_told_as_the_number_that_it_is() {
        assert_eq!(time(9_223_372_037_i64), "2262-04-11T23:47:17Z");
        assert_eq!(time(253_402_300_799_i64), "9999-12-31T23:59:59Z");
        assert_eq!(time(253_402_300_800_i64), "253402300800 s from 1970 on");
        assert_eq!(time(-9_223_372_037_i64), "1677-09-21T00:12:43Z");
        assert_eq!(time(-62_167_219_200_i64), "0000-01-01T00:00:00Z");
        assert_eq!(time(-62_167_219_201_i64), "-62167219201 s from 1970 on");
        assert_eq!(time(u64::MAX), "18446744073709551615 s from 1970 on");
        assert_eq!(time(i64::MIN), "-9223372036854775808 s from 1970 on");
    }
}
