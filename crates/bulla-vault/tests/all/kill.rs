//! A process that gives numbers and erases people, killed again and again. `BULLA_TORTURE_ROUNDS` says how often.

use super::{LOG, assert_sound, create, open, settings};
use bulla_store::ErrorKind;
use bulla_vault::{Access, ReplicaLocation, Settings, Vault};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DIRECTORY: &str = "BULLA_VAULT_CHILD";
const ROUND: &str = "BULLA_VAULT_ROUND";

/// Not a test of its own: gives numbers, erases, and tells what was done, until it is killed.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let round = std::env::var(ROUND).unwrap();
    let vault = open_with_replica(Path::new(&directory));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (vault, round) = (&vault, &round);
            scope.spawn(move || {
                for batch in 0.. {
                    let names = (0..1 + batch % 40).map(|index| format!("r{round}t{thread}b{batch}i{index}"));
                    give(vault, &names.collect::<Vec<_>>());
                }
            });
        }
        for step in 0_u64.. {
            let next = vault.next_number().unwrap();
            let numbers = (0..1 + step % 3).map(|index| (step * 7919 + index * 31) % (next + 1));
            let Some(erasure) = vault.begin_erasure_of(&numbers.collect::<Vec<_>>()).unwrap() else {
                continue;
            };
            let numbers = erasure.numbers().to_vec();
            // From here on it may be erased by whoever opens the vault next.
            tell(&format!("begun {numbers:?}"));
            vault.confirm(erasure.commit().unwrap().destroy().unwrap().numbers()).unwrap();
            tell(&format!("erased {numbers:?}"));
        }
    });
}

fn open_with_replica(directory: &Path) -> Vault {
    let replicas = vec![ReplicaLocation::new(&directory.join("replica"))];
    Vault::open(directory, LOG, Access::Write, &Settings { replicas, ..settings() }).unwrap()
}

fn give(vault: &Vault, names: &[String]) {
    let found = match vault.resolve(&names.iter().map(String::as_str).collect::<Vec<_>>()) {
        // One of them is being erased already: nobody was told a number.
        Err(error) if error.kind() == ErrorKind::Erased => return,
        found => found.unwrap(),
    };
    for (name, subject) in names.iter().zip(found) {
        tell(&format!("given {name} {} {}", subject.number, hex(subject.key.bytes())));
    }
}

/// One write of a short line to a pipe is whole or not there.
fn tell(line: &str) {
    std::io::stdout().lock().write_all(format!("\n{line}\n").as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What children said.
#[derive(Default, Clone)]
struct Told {
    given: HashMap<u64, (String, String)>,
    begun: HashSet<u64>,
    erased: HashSet<u64>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let numbers = |list: &str| {
            let list = list.trim_matches(['[', ']']);
            list.split(", ").filter_map(|number| number.parse::<u64>().ok()).collect::<Vec<_>>()
        };
        match line.split_once(' ') {
            Some(("begun", list)) => self.begun.extend(numbers(list)),
            Some(("erased", list)) => self.erased.extend(numbers(list)),
            Some(("given", given)) => {
                let words = given.split(' ').collect::<Vec<_>>();
                if let [name, number, key] = words[..] {
                    let given = (name.to_owned(), key.to_owned());
                    let before = self.given.insert(number.parse().unwrap(), given);
                    assert!(before.is_none(), "number {number} was given twice: {before:?}");
                }
            }
            _ => {}
        }
    }

    /// Goes on with an erasure that was cut short.
    fn settle(&mut self, vault: &Vault) -> bool {
        let Some(left) = vault.unconfirmed().unwrap() else { return false };
        if let Some(erasure) = vault.resume_erasure().unwrap() {
            assert!(!left.erased);
            erasure.commit().unwrap().destroy().unwrap();
        }
        vault.confirm(&left.numbers).unwrap();
        self.begun.extend(&left.numbers);
        self.erased.extend(left.numbers);
        true
    }

    fn check(&self, vault: &Vault) {
        for (number, (name, key)) in &self.given {
            let found = vault.key(*number).unwrap().map(|key| hex(key.bytes()));
            if self.erased.contains(number) {
                assert_eq!(found, None, "{number} was erased");
            } else if !self.begun.contains(number) {
                assert_eq!(found.as_ref(), Some(key), "{number} was given");
                assert_eq!(vault.find(name).unwrap().unwrap().number, *number);
            }
            assert!(found.is_none_or(|found| found == *key));
        }
    }
}

fn run(directory: &Path, round: u64, after: Duration, told: &mut Told) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || output.lines().map_while(Result::ok).collect::<Vec<_>>());
    std::thread::sleep(after);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "the child ended by itself: {status}");
    reader.join().unwrap().iter().for_each(|line| told.hear(line));
}

/// As if the disk of the vault were lost that moment: whoever was told of is in the replica.
fn lose_the_vault(directory: &Path, mut told: Told) {
    let place = tempfile::tempdir().unwrap();
    for name in ["vault", "roots"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
        for file in std::fs::read_dir(directory.join("replica").join(name)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), place.path().join(name).join(file.file_name())).unwrap();
        }
    }
    let vault = open(place.path(), Access::Write);
    told.settle(&vault);
    told.check(&vault);
    assert_sound(&vault);
}

/// So many rounds at most go over one vault: each looks at all that was ever told of it.
const ROUNDS_OF_ONE: u64 = 8;

#[test]
fn what_was_told_holds_after_sigkill() {
    let rounds = std::env::var("BULLA_TORTURE_ROUNDS").map_or(8, |rounds| rounds.parse::<u64>().unwrap());
    let (mut given, mut erased, mut unfinished) = (0, 0, 0);
    for first in (0..rounds.max(1)).step_by(usize::try_from(ROUNDS_OF_ONE).unwrap()) {
        let (told, cut_short) = kill_again_and_again(ROUNDS_OF_ONE.min(rounds - first));
        given += told.given.len();
        erased += told.erased.len();
        unfinished += cut_short;
    }
    println!(
        "swept: {rounds} rounds of a vault: {given} given, {erased} erased, {unfinished} erasures cut short"
    );
}

/// So many rounds over a vault of their own. What was told, and how many erasures were cut short.
fn kill_again_and_again(rounds: u64) -> (Told, usize) {
    let place = tempfile::tempdir().unwrap();
    create(place.path());
    std::fs::create_dir(place.path().join("replica")).unwrap();
    let mut told = Told::default();
    let mut unfinished = 0;
    // Where nothing was told in these rounds, there are more, each of which takes longer.
    let is_enough = |told: &Told| told.given.len() > 100 && !told.erased.is_empty();
    let mut round = 0;
    while round < rounds || !is_enough(&told) {
        let longer = 500 * (round + 1).saturating_sub(rounds);
        run(place.path(), round, Duration::from_millis(150 + round * 97 % 400 + longer), &mut told);
        lose_the_vault(place.path(), told.clone());
        let vault = open_with_replica(place.path());
        unfinished += usize::from(told.settle(&vault));
        told.check(&vault);
        assert_sound(&vault);
        for roots in ["roots", "replica/roots"] {
            let files = std::fs::read_dir(place.path().join(roots)).unwrap().count();
            assert_eq!(files, 2, "round {round}");
        }
        round += 1;
    }
    (told, unfinished)
}
