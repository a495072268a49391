//! The simulator: a seed drives producers, stages, erasures, holds, changes of the configuration, faults, crashes, clocks and restarts of the
//! engine itself, stepped in one thread, and all that it promised is held against a model. In some lives there are paths, a mirror or witnesses
//! beside it ([`beside`]).
//!
//! `BULLA_SIMULATE_SEED=n` runs that seed alone and prints what happened; `BULLA_SIMULATE_SEEDS=n` runs so many, from
//! `BULLA_SIMULATE_FROM` on.

mod backups;
mod beside;
mod entries;
mod host;
mod life;
mod lost;
mod mirror;
mod model;
mod observed;
mod orders;
mod outcome;
mod paths;
mod plan;
mod sources;
mod steps;
mod witnesses;

use crate::crash::for_each;
use beside::Lives;
pub(crate) use host::{KeyStore, copied, place};
use life::{Life, Trace};
use outcome::Outcome;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that once failed, each with what it found, and the lives of which that was: what is drawn beside them is drawn apart, so that an
/// older seed stays what it was.
const KEPT: [(u64, Lives); 28] = [
    // A number that an event names, and no block has, is given to nobody else by a vault from before that.
    (243_141, Lives::Beside),
    // With a path gone, what a damaged copy of a frame that lies there says of sources cannot be read.
    (246_247, Lives::Beside),
    // Frames of which damaged copies are left are told by a finding for all.
    (249_698, Lives::Beside),
    // A mirror may have a checkpoint whose publishing failed once it had its name.
    (231_799, Lives::Beside),
    // A copy stays, and is told of: removed, it may be back where its path has failed since.
    (226_744, Lives::Beside),
    // Whoever is new and erased at once had a number, also where the log does not tell of it.
    (212_645, Lives::Beside),
    // A mirror that was stopped between a name and its directory's sync has not got that name for good.
    (191_732, Lives::Beside),
    // A key that is found after the attempt to make it failed is durable before anything is written under it.
    (148_207, Lives::Beside),
    // With a path gone, the body of a copy of a frame that lies there may be damaged: it is told with that path.
    (141_574, Lives::Beside),
    // A configuration that is in force again goes with no checkpoint of the time between.
    (141_439, Lives::Beside),
    // With a path gone, a copy of a frame that lies there, with a torn seal, is told with that path.
    (115_285, Lives::Beside),
    // Whom an erasure reached that was cut short, and of which the log tells nothing, an older vault brings back.
    (102_121, Lives::Beside),
    // With a path gone, a damaged copy of an event that lies there is told with that path.
    (101_906, Lives::Beside),
    // Of a frame of a path that is lost only a copy is left that counts for nothing: it is read, and a verification names the path.
    (20_504, Lives::Beside),
    // Where an older vault is refused, the leftover of a change of the configuration that was cut short is removed all the same.
    (5533, Lives::Alone),
    // Recovery on another path goes on from the checkpoint that was published last, not from the one that lies there.
    (1, Lives::Beside),
    // A flush ends where one path takes no frames and another no checkpoint.
    (6, Lives::Beside),
    // The third path is tried where two fail.
    (124, Lives::Beside),
    // A copy on another path than the one in use stays, and is told of.
    (152, Lives::Beside),
    // What recovery left unfinished on a path that failed since is not looked for on the one in use.
    (100_553, Lives::Beside),
    // An opening that is refused gives no path the tiles that it lacks.
    (3593, Lives::Beside),
    // What a power cut left on another path of frames that lie on one that is gone is not told as their damage.
    (6385, Lives::Beside),
    // Of what a crash left on a path it is said that what explains it may be on another one, which is lost.
    (4062, Lives::Beside),
    // Of a frame that is lost with a path a copy on another one is damaged by what failed there: it is told.
    (4469, Lives::Beside),
    // Where that is an event, the log is refused.
    (4889, Lives::Beside),
    // Frames that were found only in bytes which do not count are told with the path that is not there.
    (6806, Lives::Beside),
    // A frame without entries may be the one of which a copy on another path is damaged.
    (20591, Lives::Beside),
    // What an event explains that lies on a path which is missing is told as surplus until that path is there.
    (21024, Lives::Beside),
];

/// How many seeds a test runs.
const SEEDS: u64 = 1000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, which is no number")))
}

/// Runs a seed; a failure tells what it takes to see it again.
fn simulate(seed: u64, lives: Lives) -> Outcome<(Life, Trace)> {
    let trace = Trace::default();
    let lived = catch_unwind(AssertUnwindSafe(|| Life::live(seed, lives, &trace)));
    let lived = lived.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("see above")))
    });
    lived.map(|life| (life, trace.clone())).map_err(|failure| {
        // Of several that fail, only one is told in full.
        println!("failed: seed {seed}: {}", failure.lines().next().unwrap_or_default());
        format!(
            "seed {seed}: {failure}\n  what happened:\n    {}\n  again: BULLA_SIMULATE_SEED={seed} cargo test --package bulla --test all -- simulate::seeds --nocapture",
            trace.lines().join("\n    ")
        )
    })
}

#[test]
fn seeds() {
    if let Some(seed) = number("BULLA_SIMULATE_SEED") {
        let (_, trace) = simulate(seed, Lives::Beside).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{}", trace.lines().join("\n"));
        return;
    }
    let from = number("BULLA_SIMULATE_FROM").unwrap_or(0);
    let count = number("BULLA_SIMULATE_SEEDS").unwrap_or(SEEDS);
    let seeds = (from..from + count).collect::<Vec<_>>();
    for_each(&seeds, |&seed| simulate(seed, Lives::Beside).map(|_| ()));
    println!("swept: {count} seeds from {from} on");
}

#[test]
fn seeds_that_once_failed() {
    for_each(&KEPT, |&(seed, lives)| simulate(seed, lives).map(|_| ()));
}

/// Byte for byte: what happened, and what is on the disk then.
#[test]
fn the_same_seed_is_the_same_run() {
    let seeds = (0..20).collect::<Vec<_>>();
    for_each(&seeds, |&seed| {
        let [(one, first), (two, second)] = [simulate(seed, Lives::Beside)?, simulate(seed, Lives::Beside)?];
        assert_eq!(first.lines(), second.lines(), "seed {seed}");
        let [one, two] = [one.host.content(), two.host.content()];
        let others = one.iter().zip(&two).filter(|(one, two)| one != two);
        let others = others.map(|((path, _), _)| path).collect::<Vec<_>>();
        assert!(
            one.len() == two.len() && others.is_empty(),
            "seed {seed} leaves others the second time: {others:?}"
        );
        Ok(())
    });
}
