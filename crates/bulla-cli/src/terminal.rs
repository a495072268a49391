//! Asking a person, at the terminal that the command was started from, whatever its standard input is.
//!
//! Invariant: while something is typed that nobody is to see, an interrupt is a character that ends the question, so
//! the terminal shows what is typed again whatever happens.

use crate::exit::{Exit, Failure};
use crate::interrupt::NOTHING_DONE;
use bulla::environment::{Environment, Tell};
use bulla::keys::prompt::{Nobody, Prompt};
use bulla::keys::recipients::Age;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The longest answer, in bytes.
const LONGEST: usize = 1024;
/// What Ctrl-C sends.
const INTERRUPT: u8 = 3;

/// Asks for something that is not shown; `None` where there is no terminal.
pub(crate) fn secret(question: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    let Some(terminal) = open() else { return Ok(None) };
    let failed = |error: io::Error| Failure::io("asking at the terminal", &error);
    let hidden = Hidden::begin(&terminal).map_err(failed)?;
    let answer = ask(&terminal, question);
    drop(hidden);
    // The line end that was typed was not shown.
    let _ = (&terminal).write_all(b"\n");
    match answer.map_err(failed)? {
        Some(answer) => Ok(Some(answer)),
        None => Err(Failure::new(Exit::Interrupted, NOTHING_DONE)),
    }
}

/// An environment that has plugins ask at the terminal, and tells what is tried again.
pub(crate) fn environment() -> Environment {
    Environment {
        key_wrap: Arc::new(Age::with_prompt(Arc::new(Terminal))),
        trying_again: Some(Arc::new(tell_what_is_tried_again)),
        path_replaced: Some(Arc::new(tell_of_path)),
        ..Environment::default()
    }
}

/// An environment that shows what plugins say, and refuses what they ask: for a writer, which may run where nobody is.
pub(crate) fn telling_environment(trying_again: Tell) -> Environment {
    Environment {
        key_wrap: Arc::new(Age::with_prompt(Arc::new(Teller))),
        trying_again: Some(trying_again),
        path_replaced: Some(Arc::new(tell_of_path)),
        ..Environment::default()
    }
}

/// Says that a path of the log failed, and what became of that.
fn tell_of_path(what: &str) {
    note!("{what}");
}

pub(crate) fn tell_what_is_tried_again(what: &str) {
    note!("waiting, and trying again: {what}");
}

/// Answers plugins at the terminal.
pub(crate) struct Terminal;

impl Prompt for Terminal {
    fn show(&self, plugin: &str, message: &str) {
        Teller.show(plugin, message);
    }

    fn confirm(&self, plugin: &str, question: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let no = no.unwrap_or("no");
        loop {
            let answer = self.ask(plugin, &format!("{question} (y: {yes}, n: {no})"))?;
            match answer.trim() {
                "y" | "yes" => return Some(true),
                "n" | "no" => return Some(false),
                _ => {}
            }
        }
    }

    fn ask(&self, plugin: &str, question: &str) -> Option<String> {
        let answer = ask(&open()?, &format!("age-plugin-{plugin}: {question}")).ok()??;
        Some((*answer).clone())
    }

    fn ask_secret(&self, plugin: &str, question: &str) -> Option<Zeroizing<String>> {
        secret(&format!("age-plugin-{plugin}: {question}")).ok()?
    }
}

/// Shows what plugins say, and has nobody to ask.
struct Teller;

impl Prompt for Teller {
    fn show(&self, plugin: &str, message: &str) {
        crate::output::note_lines(&format!("age-plugin-{plugin}: {message}"));
    }

    fn confirm(&self, plugin: &str, question: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        Nobody.confirm(plugin, question, yes, no)
    }

    fn ask(&self, plugin: &str, question: &str) -> Option<String> {
        Nobody.ask(plugin, question)
    }

    fn ask_secret(&self, plugin: &str, question: &str) -> Option<Zeroizing<String>> {
        Nobody.ask_secret(plugin, question)
    }
}

fn open() -> Option<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok()
}

/// Asks, and reads a line; `None` where it was ended by an interrupt or the terminal is gone.
fn ask(mut terminal: &File, question: &str) -> io::Result<Option<Zeroizing<String>>> {
    let question = crate::output::printable(question).replace('\n', " ");
    terminal.write_all(format!("{question}: ").as_bytes())?;
    let mut line = Zeroizing::new([0; LONGEST]);
    let mut length = 0;
    loop {
        let room = &mut line[length..];
        if room.is_empty() {
            return Err(io::Error::other("the answer is too long"));
        }
        match terminal.read(room) {
            Ok(0) => return Ok(None),
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match line[..length].last() {
            Some(b'\n') => break,
            Some(&INTERRUPT) => return Ok(None),
            _ => {}
        }
    }
    let text = std::str::from_utf8(&line[..length - 1]).map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok(Some(Zeroizing::new(text.to_owned())))
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        hidden.local_modes |= LocalModes::ICANON;
        hidden.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Hidden { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}
