//! The order of a command line's words: what is done comes after the log's directory, in every command that has several things
//! to do there, and so does the field of pseudonyms. Who writes them the other way round is told how it goes.

use bulla::TextField;
use clap::{Arg, Command};
use std::ffi::OsString;
use std::path::Path;

/// The line to type, where `words` (the first is the program's name) say what to do, or with which field, before they say where. A
/// directory that is there by that name is the log that is meant.
pub(crate) fn put_right(command: &Command, mut words: Vec<OsString>) -> Option<String> {
    let subcommand = command.find_subcommand(words.get(1)?)?;
    let second = subcommand.get_positionals().nth(1)?;
    let (actions, takes_field) = match second.get_id().as_str() {
        "action" => (second.get_possible_values(), false),
        "field" => (Vec::new(), true),
        _ => return None,
    };
    let is_field = |word: &OsString| word.to_str().is_some_and(|word| TextField::named(word).is_some());
    let is_action = |word: &OsString| match takes_field {
        true => is_field(word),
        false => actions.iter().any(|action| word == action.get_name()),
    };
    let mut positions = positionals(subcommand, &words).into_iter();
    let first = positions.next().filter(|first| is_action(&words[*first]))?;
    if Path::new(&words[first]).exists() {
        return None;
    }
    match positions.next() {
        Some(second) if is_action(&words[second]) => return None,
        // What follows a field may be a name, and the directory be left out.
        Some(second) if !takes_field || Path::new(&words[second]).exists() => words.swap(first, second),
        _ => words.insert(first, "DIR".into()),
    }
    let what = if takes_field { "the field" } else { "what to do there" };
    let line = words[1..].iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
    Some(format!("the log's directory comes before {what}: bulla {line}"))
}

/// Where the words of a subcommand are that are no options, and no values of options.
fn positionals(subcommand: &Command, words: &[OsString]) -> Vec<usize> {
    let takes_value =
        |argument: Option<&Arg>| argument.is_some_and(|argument| argument.get_action().takes_values());
    let mut positions = Vec::new();
    let mut at = 2;
    while let Some(word) = words.get(at).map(|word| word.to_string_lossy()) {
        if word == "--" {
            positions.extend(at + 1..words.len());
            break;
        }
        let option = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => subcommand.get_arguments().find(|argument| argument.get_long() == Some(long)),
            (None, Some(short)) if short.chars().count() == 1 => {
                subcommand.get_arguments().find(|argument| argument.get_short() == short.chars().next())
            }
            (None, Some(_)) => None,
            (None, None) => {
                positions.push(at);
                None
            }
        };
        at += if takes_value(option) { 2 } else { 1 };
    }
    positions
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
