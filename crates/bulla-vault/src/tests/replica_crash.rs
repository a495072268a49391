//! A vault with a replica, stopped at every operation on a file, and with every fault of the replica's medium.

use super::*;
use bulla_testkit::fault::{Fault, FaultStore};
use bulla_testkit::sweep::in_full;

const SEEDS: u64 = 3;

/// A vault and a replica, the roots of which are on a machine that fails on request, as those of [`super::crash`].
struct Machine {
    place: TempDir,
    machine: Faults,
}

impl Machine {
    /// A vault of six people.
    fn made() -> Self {
        let world = Machine { place: tempfile::tempdir().unwrap(), machine: Faults::new() };
        for name in ["keys", "replica"] {
            world.machine.store(name).create_directory("").unwrap();
            std::fs::create_dir(world.path(name)).unwrap();
        }
        Vault::create_in(world.store("keys"), &world.path("keys/vault"), LOG, &world.settings()).unwrap();
        fill(&world.open().unwrap(), "s", 6);
        world
    }

    fn store(&self, name: &str) -> Arc<FaultStore> {
        Arc::new(self.machine.store(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn settings(&self) -> Settings {
        let replica = ReplicaLocation::new_in(self.store("replica"), self.path("replica/vault"));
        Settings { replicas: vec![replica], ..Self::alone() }
    }

    fn alone() -> Settings {
        Settings::default()
    }

    fn open(&self) -> Result<Vault> {
        let directory = self.path("keys/vault");
        Vault::open_in(self.store("keys"), &directory, LOG, Access::Write, &self.settings())
    }

    /// The replica, in the place of a vault that is lost.
    fn open_replica(&self) -> Result<Vault> {
        let directory = self.path("replica/vault");
        Vault::open_in(self.store("replica"), &directory, LOG, Access::Write, &Self::alone())
    }

    /// What the disks could hold now.
    fn crashed(&self, seed: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        copy(self.place.path(), place.path());
        Machine { place, machine: if seed == SEEDS { self.machine.kill() } else { self.machine.crash(seed) } }
    }

    fn assert_same(&self) {
        let kept = |name| kept(&self.path(name), &*self.store(name));
        assert!(kept("keys") == kept("replica"));
    }
}

/// Runs `work` stopped at each operation in turn, in short at every other, and `judge` on what each crash may leave, with whether it was done.
fn at_every_stop(work: impl Fn(&Machine) -> Result<()>, mut judge: impl FnMut(&Machine, bool, u64)) -> u64 {
    let whole = Machine::made();
    let start = whole.machine.operations();
    work(&whole).unwrap();
    let end = whole.machine.operations();
    for stop in (start..=end).step_by(if in_full() { 1 } else { 2 }) {
        let world = Machine::made();
        world.machine.stop_at(stop);
        let done = work(&world).is_ok();
        in_turn(0..=SEEDS, stop / 2).into_iter().for_each(|seed| judge(&world.crashed(seed), done, stop));
    }
    println!("swept: {} operations on the files of a vault with a replica", end - start);
    end - start
}

/// Whatever was given out is in the replica that a crash leaves, should the vault be lost in it, and the next opening
/// makes the two the same again.
#[test]
fn who_was_given_out_is_in_the_replica_after_a_crash() {
    let next = u64::from(keys::AHEAD) << keys::ROWS_LOG2;
    let work = |world: &Machine| {
        let vault = world.open()?;
        vault.skip_to(next - 1)?;
        vault.resolve(&["a"])?;
        vault.resolve(&["b"])?;
        // One that was left out promises nothing.
        vault.shared.replicas().require_all()
    };
    let mut all = 0;
    let operations = at_every_stop(work, |world, done, stop| {
        let lost = world.crashed(SEEDS);
        let vault = lost.open_replica().unwrap_or_else(|error| panic!("stop {stop}: {error}"));
        assert_sound(&vault);
        assert_eq!(number(&vault, "s5"), 5);
        if let (Some(subject), true) = (vault.find("b").unwrap(), done) {
            assert_eq!(subject.number, next);
            all += 1;
        }
        assert!(!done || vault.find("b").unwrap().is_some(), "stop {stop}");
        drop(vault);
        drop(world.open().unwrap_or_else(|error| panic!("stop {stop}: {error}")));
        world.assert_same();
    });
    assert!(operations > 12 && all > 0, "{operations} {all}");
}

/// At every operation of an erasure: the next opening goes on with it, and leaves nothing of the old generation in
/// either place.
#[test]
fn an_erasure_that_a_crash_cut_short_is_finished_in_the_replica() {
    let erase = |world: &Machine| {
        let vault = world.open()?;
        let erased = super::erase(&vault, &["s2", "s4"])?.unwrap();
        vault.confirm(erased.numbers())?;
        vault.shared.replicas().require_all()
    };
    let operations = at_every_stop(erase, |world, done, stop| {
        let lost = world.crashed(SEEDS);
        let vault = lost.open_replica().unwrap_or_else(|error| panic!("stop {stop}: {error}"));
        assert_sound(&vault);
        assert!(!done || vault.key(2).is_ok_and(|key| key.is_none()), "stop {stop}");
        drop(vault);

        let vault = world.open().unwrap_or_else(|error| panic!("stop {stop}: {error}"));
        world.assert_same();
        match vault.resume_erasure().unwrap() {
            Some(erasure) => drop(erasure.commit().unwrap().destroy().unwrap()),
            None if vault.generation().unwrap() == 0 => {
                drop(super::erase(&vault, &["s2", "s4"]).unwrap().unwrap())
            }
            None => {}
        }
        vault.confirm(&[2, 4]).unwrap();
        world.assert_same();
        for name in ["keys", "replica"] {
            let roots = world.store(name).list("roots").unwrap();
            assert_eq!(
                roots.iter().map(|file| &file.name).collect::<Vec<_>>(),
                ["1.keys", "1.root"],
                "{stop}"
            );
        }
        assert!(vault.find("s2").unwrap().is_none() && vault.key(4).unwrap().is_none());
        assert_eq!(number(&vault, "s3"), 3);
    });
    assert!(operations > 30, "{operations}");
}

/// The medium of the replica's roots fails in the middle, in every way: the vault is none the worse, and an erasure is
/// either not done or done in both.
#[test]
fn a_fault_of_the_replica_s_medium_is_the_replica_s() {
    for fault in Fault::ALL {
        for begun in [false, true] {
            let world = Machine::made();
            let vault = world.open().unwrap();
            let erasure = begun.then(|| vault.begin_erasure(&["s2"]).unwrap().unwrap());
            world.machine.fail_below("replica", fault);
            vault.skip_to(u64::from(keys::AHEAD) << keys::ROWS_LOG2).unwrap();
            // New keys have to be written.
            fill(&vault, "new", 3);
            assert!(vault.replicas()[0].failure.is_some(), "{fault:?}");
            match erasure {
                Some(erasure) => drop(erasure.commit().err().unwrap()),
                None => drop(vault.begin_erasure(&["s2"]).err().unwrap()),
            }
            assert_eq!(vault.generation().unwrap(), 0);
            drop(vault);
            assert_eq!(world.open().err().unwrap().kind(), ErrorKind::Unavailable, "{fault:?}");
            world.machine.heal();
            let vault = world.open().unwrap();
            world.assert_same();
            if let Some(erasure) = vault.resume_erasure().unwrap() {
                erasure.withdraw().unwrap();
            }
            vault.confirm(super::erase(&vault, &["s2"]).unwrap().unwrap().numbers()).unwrap();
            world.assert_same();
        }
    }
}

/// The keys of whoever is erased could not be destroyed in the replica: then it is not said that they were.
#[test]
fn an_erasure_that_the_replica_did_not_follow_is_not_done() {
    let mut failures = 0;
    for fault in Fault::ALL {
        let world = Machine::made();
        let vault = world.open().unwrap();
        let committed = vault.begin_erasure(&["s2"]).unwrap().unwrap().commit().unwrap();
        world.machine.fail_below("replica", fault);
        failures += u64::from(committed.destroy().is_err());
        if vault.confirm(&[2]).is_err() {
            assert!(vault.unconfirmed().unwrap().unwrap().erased);
        }
        drop(vault);
        world.machine.heal();
        let vault = world.open().unwrap();
        vault.confirm(&[2]).unwrap();
        world.assert_same();
        assert!(world.store("replica").list("roots").unwrap().iter().all(|file| file.name.starts_with("1.")));
    }
    assert_eq!(failures, Fault::ALL.len() as u64);
}
