//! Up to which input line everything is durable or was refused.
//!
//! The log counts entries, whoever goes on after a failure counts lines: of these some are refused, and there are several
//! inputs. There is one producer, so that the log numbers the entries in the order of their lines.
//!
//! Lines in a row that were accepted are one [`Run`], so memory is bounded by how often a refused line comes between. Where
//! there are too many runs, those go that are durable as a whole, and then every second one, but for the first, in which the
//! durable prefix ends: the answer is then a line before the last that it could be, and never one after it.

use crate::output::on_line;
use serde::Serialize;
use std::collections::VecDeque;

/// So many runs are kept at most.
const MOST: usize = 1024;

/// A line of an input; the earlier one is less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Which input, counted from 0.
    pub(super) input: usize,
    /// Counted from 1. 0 is before its first line.
    pub(super) line: u64,
}

/// Lines that follow each other, each of which was accepted; or a record of several lines.
#[derive(Debug)]
struct Run {
    /// Entries that were accepted before these.
    entries: u64,
    /// The line before its first.
    before: Place,
    /// How many; 0 of a record of several.
    length: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lines {
    runs: VecDeque<Run>,
    accepted: u64,
    /// The last line that was accepted or refused.
    last: Place,
}

impl Lines {
    /// How many were accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// A record was accepted, which has so many lines and ends with the one at `place`. `durable` says how many entries from the first on are
    /// durable; it is asked now and then.
    pub(super) fn accept(&mut self, place: Place, lines: u64, durable: impl FnOnce() -> u64) {
        self.last = place;
        self.accepted += 1;
        let before = Place { line: place.line - lines, ..place };
        if let (Some(run), 1) = (self.runs.back_mut(), lines)
            && (run.before.input, run.before.line + run.length) == (before.input, before.line)
            && run.length > 0
        {
            run.length += 1;
            return;
        }
        if self.runs.len() == MOST {
            self.make_room(durable());
        }
        // A record of several lines is a run of its own, none of whose lines is done before all are.
        let length = u64::from(lines == 1);
        self.runs.push_back(Run { entries: self.accepted - 1, before, length });
    }

    /// The record that ends there was refused, or passed over.
    pub(super) fn refuse(&mut self, place: Place) {
        self.last = place;
    }

    /// The line up to which every line is durable or was refused, where so many entries from the first on are durable.
    pub(super) fn up_to(&self, durable: u64) -> Place {
        if durable >= self.accepted {
            return self.last;
        }
        match self.runs.iter().rev().find(|run| run.entries <= durable) {
            Some(run) => {
                Place { line: run.before.line + (durable - run.entries).min(run.length), ..run.before }
            }
            None => Place::default(),
        }
    }

    /// The same, but that it is never a refused line that an entry has yet to come after: the last line of an entry that is durable.
    pub(super) fn entries_up_to(&self, durable: u64) -> Place {
        match self.runs.iter().rev().find(|run| run.entries < durable) {
            Some(run) => {
                Place { line: run.before.line + (durable - run.entries).min(run.length), ..run.before }
            }
            None => Place::default(),
        }
    }

    fn make_room(&mut self, durable: u64) {
        while self.runs.get(1).is_some_and(|next| next.entries <= durable) {
            self.runs.pop_front();
        }
        if self.runs.len() > MOST / 2 {
            let mut index = 0;
            self.runs.retain(|_| {
                index += 1;
                index == 1 || index % 2 == 0
            });
        }
    }
}

/// [`Place`], as it is told.
#[derive(Debug, Serialize)]
pub(super) struct UpTo<'a> {
    /// The input's name.
    input: &'a str,
    /// Which input it is, counted from 1: the same name may be given twice.
    number: usize,
    line: u64,
}

impl<'a> UpTo<'a> {
    pub(super) fn new(place: Place, input: &'a str) -> Self {
        UpTo { input, number: place.input + 1, line: place.line }
    }

    /// Before the first line of all.
    pub(super) fn nothing(input: &'a str) -> Self {
        Self::new(Place::default(), input)
    }

    /// As a sentence without its end.
    pub(super) fn to_text(&self) -> String {
        let UpTo { input, number, line } = self;
        let input = on_line(input);
        match (number, line) {
            (1, 0) => "no line is durable".to_owned(),
            (_, 0) => format!("every line before {input} is durable or was refused"),
            _ => format!("every line up to {input}:{line} is durable or was refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told, held against a list of all lines.
    struct Model {
        lines: Lines,
        /// Each line, and whether it was accepted.
        all: Vec<(Place, bool)>,
        durable: u64,
    }

    impl Model {
        fn new() -> Self {
            Model { lines: Lines::default(), all: Vec::new(), durable: 0 }
        }

        fn take(&mut self, place: Place, accepted: bool) {
            self.all.push((place, accepted));
            match accepted {
                true => self.lines.accept(place, 1, || self.durable),
                false => self.lines.refuse(place),
            }
        }

        /// The last line before the first one that was accepted and is not durable.
        fn best(&self) -> Place {
            let mut left = self.durable;
            let done = self.all.iter().take_while(|(_, accepted)| {
                let done = !accepted || left > 0;
                left -= u64::from(*accepted && left > 0);
                done
            });
            done.last().map_or(Place::default(), |(place, _)| *place)
        }

        fn index(&self, place: Place) -> usize {
            self.all.iter().position(|(of, _)| *of == place).map_or(0, |index| index + 1)
        }
    }

    fn place(input: usize, line: u64) -> Place {
        Place { input, line }
    }

    #[test]
    fn refused_lines_count_and_the_first_that_is_not_durable_ends_it() {
        let mut model = Model::new();
        for (line, accepted) in [(1, false), (2, true), (3, true), (4, false), (5, true), (6, false)] {
            model.take(place(0, line), accepted);
        }
        let told = [0, 1, 2, 3].map(|durable| model.lines.up_to(durable).line);
        assert_eq!(told, [1, 2, 4, 6]);
        assert_eq!(Lines::default().up_to(0), place(0, 0));
    }

    #[test]
    fn a_record_of_several_lines_is_done_as_a_whole() {
        let mut lines = Lines::default();
        for (last, of_record) in [(1, 1), (4, 3), (5, 1), (7, 2)] {
            lines.accept(place(0, last), of_record, || 0);
        }
        let told = [0, 1, 2, 3, 4].map(|durable| lines.up_to(durable).line);
        assert_eq!(told, [0, 1, 4, 5, 7]);
    }

    #[test]
    fn what_durable_entries_are_of_ends_with_one_of_them() {
        let mut model = Model::new();
        for (line, is_accepted) in [(10, true), (11, false), (12, true), (13, true), (14, false)] {
            model.take(place(0, line), is_accepted);
        }
        assert_eq!([0, 1, 2, 3].map(|durable| model.lines.entries_up_to(durable).line), [0, 10, 12, 13]);
        assert_eq!([0, 1, 2, 3].map(|durable| model.lines.up_to(durable).line), [9, 11, 12, 14]);
    }

    #[test]
    fn inputs_follow_each_other() {
        let mut model = Model::new();
        for (input, line) in [(0, 1), (0, 2), (2, 1), (2, 2)] {
            model.take(place(input, line), true);
        }
        let told = [0, 1, 2, 3, 4].map(|durable| model.lines.up_to(durable));
        // Of the second input, which is empty, nothing is said: all before the third is done.
        assert_eq!(told, [place(0, 0), place(0, 1), place(2, 0), place(2, 1), place(2, 2)]);
    }

    #[test]
    fn a_prefix_that_stands_still_is_told_exactly_however_many_lines_follow() {
        let mut model = Model::new();
        for line in 1..200_000 {
            // An entry was lost there.
            model.durable = model.lines.accepted().min(1234);
            model.take(place(0, line), line % 2 == 0);
            assert!(model.lines.runs.len() <= MOST);
        }
        assert_eq!(model.lines.up_to(1234), model.best());
        assert_eq!(model.best().line, 2 * 1234 + 1);
    }

    #[test]
    fn what_is_told_is_never_too_much_and_exact_where_it_can_be() {
        for seed in 1..30_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut below = |limit: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % limit
            };
            let mut model = Model::new();
            let often = 1 + below(20);
            let (mut input, mut line) = (0, 0);
            for _ in 0..3000 {
                match below(500) {
                    0 => (input, line) = (input + 1, 1),
                    _ => line += 1,
                }
                model.take(place(input, line), below(often) > 0);
                if below(100) == 0 {
                    model.durable += below(model.lines.accepted() - model.durable + 1);
                }
                assert!(model.lines.runs.len() <= MOST);
            }
            let refused = model.all.iter().filter(|(_, accepted)| !accepted).count();
            let exact = refused + input < MOST;
            for durable in (model.durable..=model.lines.accepted()).step_by(17) {
                model.durable = durable;
                let (told, best) = (model.lines.up_to(durable), model.best());
                let before_an_input = told.line == 0 && told.input > 0;
                assert!(
                    before_an_input || model.index(told) <= model.index(best),
                    "{seed}: {told:?} {best:?}"
                );
                assert!(!exact || before_an_input || told == best, "{seed}: {told:?} {best:?}");
            }
        }
    }
}
