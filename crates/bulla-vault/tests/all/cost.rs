//! Sealing asks for subjects that were just met, at every entry.

use super::{create, open, resolve};
use bulla_testkit::allocator::allocations;
use bulla_testkit::{alone, is_alone};
use bulla_vault::Access;
use std::process::Command;

const LOOKUPS: usize = 100_000;
/// A system call that nothing else makes: a path with that name is looked for.
const MARKER: &str = "/a-marker-of-this-test";

fn mark() {
    let _ = std::fs::symlink_metadata(MARKER);
}

#[test]
fn a_cached_subject_costs_no_allocation() {
    let place = tempfile::tempdir().unwrap();
    create(place.path());
    let vault = open(place.path(), Access::Write);
    let (names, mut found) = (["alice", "bob", "alice"], Vec::with_capacity(4));
    vault.resolve_into(&names, &mut found).unwrap();
    let before = allocations();
    for _ in 0..LOOKUPS {
        found.clear();
        vault.resolve_into(&names, &mut found).unwrap();
        assert!(vault.find("bob").unwrap().is_some());
    }
    assert_eq!(allocations() - before, 0);
    assert_eq!(found.iter().map(|subject| subject.number).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn a_cached_subject_costs_no_system_call() {
    if is_alone() {
        let place = tempfile::tempdir().unwrap();
        create(place.path());
        let vault = open(place.path(), Access::Write);
        resolve(&vault, "s", 0..100);
        let mut found = Vec::with_capacity(4);
        vault.resolve_into(&["s1", "s2"], &mut found).unwrap();
        mark();
        for _ in 0..LOOKUPS {
            found.clear();
            vault.resolve_into(&["s1", "s2"], &mut found).unwrap();
        }
        return mark();
    }
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=all", "-o"]).arg(&trace);
    let output = alone(strace, "cost::a_cached_subject_costs_no_system_call").output();
    let output = output.expect("this test needs strace: `apt-get install strace`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = std::fs::read_to_string(trace).unwrap();
    assert_eq!(trace.matches(MARKER).count(), 2);
    let between = trace.split(MARKER).nth(1).unwrap();
    let calls = between.lines().skip(1).filter(|line| line.contains('(')).count();
    // The second marker's own line is one of them; the test's other thread waits.
    assert!(calls < 10, "{between}");
}
