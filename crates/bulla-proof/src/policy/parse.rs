//! From a file to a policy.

use super::{
    Group, MAX_OF_EACH, MAX_POLICY, Member, Policy, PolicyError, PolicyLog, PolicyProblem, PolicyWitness,
};
use crate::cosignature::CosignerKey;
use crate::log_key::LogKey;
use std::collections::HashMap;
use std::str::FromStr;

/// The quorum that asks for no witness.
const NONE: &str = "none";

pub(super) fn parse(file: &[u8]) -> Result<Policy, PolicyError> {
    let whole = |problem| PolicyError { line: 0, problem };
    if file.len() > MAX_POLICY {
        return Err(whole(PolicyProblem::TooLong));
    }
    let lines = match file.strip_suffix(b"\n") {
        Some(lines) => lines,
        None if file.is_empty() => return Err(whole(PolicyProblem::NoQuorum)),
        None => return Err(whole(PolicyProblem::NoNewline)),
    };
    let mut parser = Parser::default();
    for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        parser.line(line).map_err(|problem| PolicyError { line: index + 1, problem })?;
    }
    let Parser { logs, witnesses, groups, quorum, .. } = parser;
    let quorum = quorum.ok_or_else(|| whole(PolicyProblem::NoQuorum))?;
    Ok(Policy { logs, key: None, witnesses, groups, quorum })
}

/// What was read so far.
#[derive(Default)]
struct Parser {
    logs: Vec<PolicyLog>,
    witnesses: Vec<PolicyWitness>,
    groups: Vec<Group>,
    /// The quorum, once there was one: of `none` it is nobody.
    quorum: Option<Option<Member>>,
    /// What each name stands for, and whether a group has it.
    names: HashMap<String, (Member, bool)>,
}

impl Parser {
    fn line(&mut self, line: &[u8]) -> Result<(), PolicyProblem> {
        if line.iter().any(|byte| matches!(byte, 0..=8 | 10..=31 | 127)) {
            return Err(PolicyProblem::Control);
        }
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let line = std::str::from_utf8(line).map_err(|_| PolicyProblem::NotText)?;
        // No other space separates: a name may have any other character.
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        match words.split_first() {
            Some((&"log", words)) => self.log(words),
            Some((&"witness", words)) => self.witness(words),
            Some((&"group", words)) => self.group(words),
            Some((&"quorum", words)) => self.quorum(words),
            Some((word, _)) => Err(PolicyProblem::Word((*word).to_owned())),
            None => Ok(()),
        }
    }

    fn log(&mut self, words: &[&str]) -> Result<(), PolicyProblem> {
        let (key, url) = match words {
            [key] => (key, None),
            [key, url] => (key, Some((*url).to_owned())),
            _ => return Err(PolicyProblem::Form("log VKEY [URL]")),
        };
        let log = PolicyLog { key: parse_key(key)?, url };
        if self.logs.iter().any(|other| other.key.is_same_key(&log.key)) {
            return Err(PolicyProblem::SameLog);
        }
        if let Some(witness) = self.witnesses.iter().find(|witness| is_both(&log.key, &witness.key)) {
            return Err(PolicyProblem::OwnWitness(witness.name.clone()));
        }
        push(&mut self.logs, log).map(|_| ())
    }

    fn witness(&mut self, words: &[&str]) -> Result<(), PolicyProblem> {
        let (name, key, url) = match words {
            [name, key] => (name, key, None),
            [name, key, url] => (name, key, Some((*url).to_owned())),
            _ => return Err(PolicyProblem::Form("witness NAME VKEY [URL]")),
        };
        let witness = PolicyWitness { name: (*name).to_owned(), key: parse_key(key)?, url };
        if let Some(other) = self.witnesses.iter().find(|other| other.key.is_same_key(&witness.key)) {
            return Err(PolicyProblem::SameWitness(other.name.clone()));
        }
        if self.logs.iter().any(|log| is_both(&log.key, &witness.key)) {
            return Err(PolicyProblem::OwnWitness(witness.name));
        }
        let index = push(&mut self.witnesses, witness)?;
        self.define(name, Member::Witness(index))
    }

    fn group(&mut self, words: &[&str]) -> Result<(), PolicyProblem> {
        let [name, threshold, members @ ..] = words else {
            return Err(PolicyProblem::Form("group NAME any|all|N MEMBER..."));
        };
        if members.is_empty() {
            return Err(PolicyProblem::Form("group NAME any|all|N MEMBER..."));
        }
        let threshold = match *threshold {
            "any" => Some(1),
            "all" => Some(members.len()),
            // C2SP tlog-policy asks for a decimal number, which may begin with zeros.
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok(),
            _ => None,
        };
        let threshold = threshold.filter(|threshold| (1..=members.len()).contains(threshold));
        let threshold = threshold.ok_or(PolicyProblem::Threshold(members.len()))?;
        let members = members.iter().map(|member| self.take(member)).collect::<Result<_, _>>()?;
        let index = push(&mut self.groups, Group { name: (*name).to_owned(), threshold, members })?;
        self.define(name, Member::Group(index))
    }

    fn quorum(&mut self, words: &[&str]) -> Result<(), PolicyProblem> {
        let [name] = words else {
            return Err(PolicyProblem::Form("quorum NAME|none"));
        };
        if self.quorum.is_some() {
            return Err(PolicyProblem::SecondQuorum);
        }
        self.quorum = Some(match *name {
            NONE => None,
            name => Some(self.names.get(name).ok_or_else(|| PolicyProblem::Unknown(name.to_owned()))?.0),
        });
        Ok(())
    }

    /// Makes the name stand for that.
    fn define(&mut self, name: &str, member: Member) -> Result<(), PolicyProblem> {
        if name == NONE || self.names.contains_key(name) {
            return Err(PolicyProblem::Name(name.to_owned()));
        }
        self.names.insert(name.to_owned(), (member, false));
        Ok(())
    }

    /// What the name stands for, which becomes a member of a group.
    fn take(&mut self, name: &str) -> Result<Member, PolicyProblem> {
        let (member, taken) =
            self.names.get_mut(name).ok_or_else(|| PolicyProblem::Unknown(name.to_owned()))?;
        if std::mem::replace(taken, true) {
            return Err(PolicyProblem::SecondGroup(name.to_owned()));
        }
        Ok(*member)
    }
}

/// Whether the key of a log is that of a witness: of ML-DSA-44, with which both sign alike.
fn is_both(log: &LogKey, witness: &CosignerKey) -> bool {
    matches!(log, LogKey::MlDsa44(key) if key.is_same_key(witness))
}

fn parse_key<T: FromStr<Err = crate::note::NoteError>>(text: &str) -> Result<T, PolicyProblem> {
    text.parse().map_err(PolicyProblem::Key)
}

/// Adds one of its kind, and says its place.
fn push<T>(all: &mut Vec<T>, one: T) -> Result<usize, PolicyProblem> {
    if all.len() == MAX_OF_EACH {
        return Err(PolicyProblem::TooMany);
    }
    all.push(one);
    Ok(all.len() - 1)
}
