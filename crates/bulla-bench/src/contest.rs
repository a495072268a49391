//! Runs in rounds: every contender once, then every one again, so that what changes on the machine meanwhile meets all.

use crate::measure::figure;
use crate::outcome::{Failure, Outcome};
use crate::proxied::figure::{COMMAND_RATE, COMPLETION};
use crate::statistics::{Summary, summarise};
use crate::trial::Trial;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Of the figures of a run, the one that is told once it is there is the first of these that it has.
const TOLD: [(&str, &str); 3] =
    [(figure::RATE, "entries/s"), (COMMAND_RATE, "commands/s"), (COMPLETION, "s")];

/// What is compared under one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) contenders: Vec<Contender>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) trial: Trial,
    /// Of all rounds, by figure.
    pub(crate) summary: BTreeMap<String, Summary>,
    pub(crate) rounds: Vec<Outcome>,
}

impl Contender {
    pub(crate) fn new(name: impl Into<String>, trial: Trial) -> Self {
        Contender { name: name.into(), trial, summary: BTreeMap::new(), rounds: Vec::new() }
    }

    pub(crate) fn median(&self, figure: &str) -> Option<f64> {
        self.summary.get(figure).map(|summary| summary.median)
    }

    /// One figure against another, round by round.
    pub(crate) fn ratio(&self, one: &str, other: &str) -> Option<Summary> {
        summarise(self.rounds.iter().filter_map(|round| Some(round.get(one)? / round.get(other)?)))
    }

    fn summarise(&mut self) {
        let names = self.rounds.iter().flat_map(|round| round.figures.keys());
        self.summary = names
            .filter_map(|name| {
                let figures = self.rounds.iter().filter_map(|round| round.get(name));
                Some((name.clone(), summarise(figures)?))
            })
            .collect();
    }
}

impl Case {
    pub(crate) fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }

    /// A figure of one contender against that of another, round by round.
    pub(crate) fn ratio(&self, one: &str, other: &str, figure: &str) -> Option<Summary> {
        let rounds = self.contender(one)?.rounds.iter().zip(&self.contender(other)?.rounds);
        summarise(rounds.filter_map(|(one, other)| Some(one.get(figure)? / other.get(figure)?)))
    }

    /// Runs so many rounds, with files below `place`; says on standard error how far it is.
    pub(crate) fn run(&mut self, rounds: usize, place: &Path) -> Result<(), Failure> {
        for round in 1..=rounds {
            for contender in &mut self.contenders {
                let outcome = contender
                    .trial
                    .run_apart(place)
                    .map_err(|error| format!("{}, {}: {error}", self.name, contender.name))?;
                let rate = TOLD.iter().find_map(|(figure, unit)| Some((outcome.get(figure)?, unit)));
                let rate = rate.map_or(String::new(), |(rate, unit)| {
                    let digits = if rate < 100.0 { 2 } else { 0 };
                    format!(": {rate:.digits$} {unit}")
                });
                eprintln!("{}, {}, round {round} of {rounds}{rate}", self.name, contender.name);
                contender.rounds.push(outcome);
            }
        }
        self.contenders.iter_mut().for_each(Contender::summarise);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::knobs::tests::knobs;
    use crate::trial::Task;

    /// A case whose contenders had these values of a figure, a round each.
    pub(crate) fn case(name: &str, figure: &str, contenders: &[(&str, &[f64])]) -> Case {
        let contenders = contenders.iter().map(|(name, rounds)| {
            let mut contender = Contender::new(*name, Trial { task: Task::Erase, knobs: Some(knobs(1)) });
            contender.add(figure, rounds);
            contender
        });
        Case { name: name.to_owned(), contenders: contenders.collect() }
    }

    impl Contender {
        pub(crate) fn add(&mut self, figure: &str, rounds: &[f64]) {
            self.rounds.resize(rounds.len(), Outcome::default());
            self.rounds.iter_mut().zip(rounds).for_each(|(round, &value)| round.set(figure, value));
            self.summarise();
        }
    }

    #[test]
    fn ratios_are_of_rounds_not_of_medians() {
        let case = case("a", "x", &[("one", &[10.0, 40.0, 90.0]), ("other", &[1.0, 20.0, 10.0])]);
        assert_eq!(case.ratio("one", "other", "x"), Some(Summary { median: 9.0, least: 2.0, most: 10.0 }));
        assert_eq!(case.ratio("one", "nobody", "x"), None);
        assert_eq!(case.contender("one").unwrap().median("x"), Some(40.0));
        assert_eq!(case.contender("one").unwrap().median("y"), None);
        let mut one = case.contender("one").unwrap().clone();
        one.add("y", &[1.0, 1.0, 1.0]);
        one.add("x", &[1.0, 8.0, 2.0]);
        one.add("z", &[2.0, 2.0, 2.0]);
        assert_eq!(one.ratio("x", "z"), Some(Summary { median: 1.0, least: 0.5, most: 4.0 }));
    }
}
