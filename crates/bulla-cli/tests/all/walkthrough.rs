//! The README's walk-through does what it prints.

use crate::console::{perform, steps};
use crate::support::Place;

const README: &str = include_str!("../../../../README.md");

#[test]
fn the_walk_through_works_as_printed() {
    let (before, section) = README.split_once("### A walk-through\n").expect("the README has a walk-through");
    let section = section.split("\nOr from a program:").next().unwrap();
    let steps = steps(section, before.matches('\n').count() + 2);
    assert!(steps.len() > 15);
    let place = Place::empty();
    perform(&steps, &place.path("")).unwrap_or_else(|why| panic!("README.md, {why}"));
}
