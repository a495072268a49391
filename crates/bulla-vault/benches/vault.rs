//! What the vault takes: `cargo bench -p bulla-vault --bench vault -- 1000000 10000000`, so many subjects (default 100,000).
//!
//! Subjects are new in batches of 10,000, a transaction each. Look-ups are of subjects chosen at random, while the file
//! is in the page cache. `own` is the memory of the process alone, `mapped` what it has of the file, which the system
//! takes back when it has other use for it.
#![allow(clippy::disallowed_methods, reason = "it measures")]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

use bulla_proof::commitment::LogId;
use bulla_vault::{Access, ReplicaLocation, Settings, Vault};
use std::path::Path;
use std::time::{Duration, Instant};

const LOG: LogId = LogId([1; 16]);
const BATCH: usize = 10_000;
const LOOKUPS: usize = 200_000;
const ERASURES: u32 = 20;

fn main() -> bulla_store::Result<()> {
    let counts = std::env::args().filter_map(|argument| argument.parse().ok()).collect::<Vec<usize>>();
    for count in if counts.is_empty() { vec![100_000] } else { counts } {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .map_err(|error| bulla_store::Error::io("making a directory", error))?;
        measure(place.path(), count)?;
    }
    Ok(())
}

fn measure(directory: &Path, count: usize) -> bulla_store::Result<()> {
    println!("{count} subjects");
    let settings = Settings { cache: 65_536, ..Settings::default() };
    Vault::create(directory, LOG, &settings)?;
    let vault = Vault::open(directory, LOG, Access::Write, &settings)?;
    let filled = timed(|| (0..count).step_by(BATCH).try_for_each(|from| fill(&vault, from, count)))?;
    say("filling", filled, &format!("{:.0} a second", count as f64 / filled.as_secs_f64()));
    let log = length(&directory.join("vault/vault.db-wal"));
    drop(vault);
    let [data, keys] = ["vault/vault.db", "roots/0.keys"].map(|name| length(&directory.join(name)));
    println!(
        "  database {:.1} MiB, {:.1} bytes a subject; keys {:.1} KiB; log of changes, while open, {:.1} KiB",
        data as f64 / 1048576.0,
        data as f64 / count as f64,
        keys as f64 / 1024.0,
        log as f64 / 1024.0
    );

    let start = Instant::now();
    let vault = Vault::open(directory, LOG, Access::Write, &settings)?;
    say("opening", start.elapsed(), "");
    replicate(directory, vault)?;
    let vault = Vault::open(directory, LOG, Access::Write, &settings)?;
    look_up(&vault, count)?;
    let names = (0..4096).map(|index| format!("user_{}", index * 7 % count)).collect::<Vec<_>>();
    let names = names.iter().map(String::as_str).collect::<Vec<_>>();
    for some in [&names[..1], &names[..]] {
        let look_up = timed(|| vault.look_up(some, |_| false).map(drop))?;
        say("looking up so that", look_up, &format!("nobody is hidden, {} names", some.len()));
    }
    let new = timed(|| (0..20).try_for_each(|index| vault.resolve(&[&format!("new {index}")]).map(drop)))?;
    say("one new subject", new / 20, "synced");
    erase(&vault, count)?;
    let checking =
        timed(|| vault.check(&|_| true, &|_| ()).map(|checked| assert!(checked.damage.is_empty())))?;
    say("checking all", checking, "");
    println!("  memory: own {} MiB, mapped {} MiB", memory("RssAnon"), memory("RssFile"));
    Ok(())
}

/// Opening beside a replica: making it, and finding that it is the same.
fn replicate(directory: &Path, vault: Vault) -> bulla_store::Result<()> {
    drop(vault);
    let replica = directory.join("replica");
    std::fs::create_dir(&replica).map_err(|error| bulla_store::Error::io("making a directory", error))?;
    let settings = Settings { replicas: vec![ReplicaLocation::new(&replica)], ..Settings::default() };
    for what in ["whose replica is made", "whose replica is the same"] {
        let open = timed(|| Vault::open(directory, LOG, Access::Write, &settings).map(drop))?;
        say("opening", open, what);
    }
    Ok(())
}

fn fill(vault: &Vault, from: usize, count: usize) -> bulla_store::Result<()> {
    let names = (from..count.min(from + BATCH)).map(|index| format!("user_{index}")).collect::<Vec<_>>();
    vault.resolve(&names.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
}

fn look_up(vault: &Vault, count: usize) -> bulla_store::Result<()> {
    let mut state = 1;
    let mut random = || {
        state =
            u64::wrapping_add(u64::wrapping_mul(state, 6_364_136_223_846_793_005), 1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let names = (0..LOOKUPS).map(|_| format!("user_{}", random())).collect::<Vec<_>>();
    let per = |time: Duration| time / LOOKUPS as u32;
    // `find` does not fill the cache.
    let find = || names.iter().try_for_each(|name| vault.find(name).map(drop));
    find()?;
    say("uncached look-up", per(timed(find)?), "by name");
    let numbers = (0..LOOKUPS).map(|_| random() as u64).collect::<Vec<_>>();
    say("", per(timed(|| numbers.iter().try_for_each(|number| vault.key(*number).map(drop)))?), "by number");

    let hot = names.iter().take(1000).map(String::as_str).collect::<Vec<_>>();
    vault.resolve(&hot)?;
    for threads in [1, 2] {
        let time = timed(|| {
            std::thread::scope(|scope| {
                let work = || {
                    let mut found = Vec::with_capacity(4);
                    for index in 0..LOOKUPS {
                        found.clear();
                        vault.resolve_into(&hot[index % 1000..][..1], &mut found)?;
                    }
                    Ok(())
                };
                let threads = (0..threads).map(|_| scope.spawn(work)).collect::<Vec<_>>();
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })
        })?;
        say("cached look-up", per(time), &format!("{threads} threads"));
    }
    Ok(())
}

fn erase(vault: &Vault, count: usize) -> bulla_store::Result<()> {
    let (mut steps, mut worst) = ([Duration::ZERO; 4], Duration::ZERO);
    for index in 0..ERASURES {
        let number = (index as usize * (count / ERASURES as usize)) as u64;
        let start = Instant::now();
        let erasure = vault.begin_erasure_of(&[number])?.expect("it is there");
        let begun = start.elapsed();
        let committed = erasure.commit()?;
        let done = start.elapsed();
        let erased = committed.destroy()?;
        let destroyed = start.elapsed();
        vault.confirm(erased.numbers())?;
        let confirmed = start.elapsed();
        worst = worst.max(confirmed);
        for (sum, step) in
            steps.iter_mut().zip([begun, done - begun, destroyed - done, confirmed - destroyed])
        {
            *sum += step / ERASURES;
        }
    }
    say(
        "erasing one",
        steps.iter().sum(),
        &format!("at most {worst:.1?}; begin, commit, destroy, confirm {steps:.1?}"),
    );
    Ok(())
}

fn say(what: &str, time: Duration, more: &str) {
    println!("  {what:<18} {time:>10.2?}  {more}");
}

fn timed(work: impl FnOnce() -> bulla_store::Result<()>) -> bulla_store::Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A line of this process's status, in MiB.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}
