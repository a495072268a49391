//! The drills of docs/operating.md do what they print: each is performed as it stands there.

use crate::console::{Step, perform, steps};
use crate::support::Place;
use std::sync::Mutex;

static OPERATING: &str = include_str!("../../../../docs/operating.md");

/// How many are performed at a time: they wait for the disk most of the time.
const AT_A_TIME: usize = 4;

struct Drill<'a> {
    title: &'a str,
    steps: Vec<Step<'a>>,
}

fn section() -> &'static str {
    let (_, section) = OPERATING.split_once("\n## Drills\n").expect("it has drills");
    section.split("\n## ").next().unwrap()
}

/// The steps that each drill begins with, and the drills.
fn drills() -> (Vec<Step<'static>>, Vec<Drill<'static>>) {
    let steps_of = |part: &'static str| {
        let before = part.as_ptr() as usize - OPERATING.as_ptr() as usize;
        steps(part, OPERATING[..before].matches('\n').count() + 1)
    };
    let mut parts = section().split("\n### ");
    let beginning = steps_of(parts.next().unwrap());
    let drills = parts.map(|part| Drill { title: part.lines().next().unwrap(), steps: steps_of(part) });
    (beginning, drills.collect())
}

#[test]
fn every_drill_works_as_printed() {
    let (beginning, drills) = drills();
    assert!(!beginning.is_empty() && drills.len() >= 15);
    let left = Mutex::new(drills.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(drill) = left.lock().unwrap().next() else { break };
                    let place = Place::empty();
                    let all = beginning.iter().chain(&drill.steps);
                    if let Err(why) = perform(all, &place.path("")) {
                        failed.lock().unwrap().push(format!("docs/operating.md, “{}”, {why}", drill.title));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A drill that has no commands, or commands outside of a block, would be one that nobody performs.
#[test]
fn every_drill_has_commands_and_they_are_the_ones_in_the_text() {
    let (beginning, drills) = drills();
    for drill in &drills {
        assert!(!drill.steps.is_empty(), "“{}” has no commands", drill.title);
    }
    let lines = OPERATING.lines().collect::<Vec<_>>();
    for step in beginning.iter().chain(drills.iter().flat_map(|drill| &drill.steps)) {
        assert_eq!(lines[step.line - 1], format!("$ {}", step.command));
    }
    let typed = section().lines().filter(|line| line.starts_with("$ ")).count();
    let performed = beginning.len() + drills.iter().map(|drill| drill.steps.len()).sum::<usize>();
    assert_eq!(typed, performed, "every command is in a block ```console");
}
