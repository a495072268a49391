//! Asking whether to go on, where somebody is there to ask.

use crate::exit::{Exit, Failure};
use std::io::{self, BufRead, IsTerminal, Read, Write};

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 1024;

/// Asks at the terminal that is standard input and standard error, unless `yes` says that it need not. Without a terminal nobody is asked.
///
/// # Errors
/// `Refused` where the answer is another one than `yes`.
pub(crate) fn confirm(yes: bool) -> Result<(), Failure> {
    if yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    let failed = |error: io::Error| Failure::io("asking at the terminal", &error);
    io::stderr().write_all(b"This cannot be undone. To go on, type yes: ").map_err(failed)?;
    let mut answer = Vec::new();
    io::stdin().lock().take(LONGEST).read_until(b'\n', &mut answer).map_err(failed)?;
    match answer.trim_ascii() {
        b"yes" => Ok(()),
        _ => Err(Failure::new(Exit::Refused, "nothing was done: the answer was not `yes`")),
    }
}
