//! A crash at every operation on a file, in the ways in which a disk may keep it in turn, then opened again.

use super::*;
use bulla_testkit::fault::{Fault, FaultStore};
use bulla_testkit::sweep::in_full;

const SEEDS: u64 = 12;

/// A vault whose roots are on a machine that fails on request. SQLite's own files are real ones: what it has committed is
/// synced, so a copy of the files is what a crash leaves. What a crash may leave of a transaction is tested in [`super::database`].
struct Machine {
    place: TempDir,
    machine: Faults,
    settings: Settings,
}

impl Machine {
    fn new() -> Self {
        let machine = Faults::new();
        machine.store("keys").create_directory("").unwrap();
        let settings = Settings { index_every: 4, ..Settings::default() };
        Machine { place: tempfile::tempdir().unwrap(), machine, settings }
    }

    /// A vault of six people, to some of whom the index does not lead.
    fn made() -> Self {
        let world = Self::new();
        world.create().unwrap();
        let vault = world.open().unwrap();
        fill(&vault, "s", 6);
        let meta = vault.shared.meta().unwrap();
        assert!(meta.indexed.least() < meta.next_number && meta.indexed != record::Indexed::up_to(0));
        drop(vault);
        world
    }

    fn store(&self) -> Arc<FaultStore> {
        Arc::new(self.machine.store("keys"))
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("vault")
    }

    fn create(&self) -> Result<()> {
        Vault::create_in(self.store(), &self.directory(), LOG, &self.settings)
    }

    fn open(&self) -> Result<Vault> {
        Vault::open_in(self.store(), &self.directory(), LOG, Access::Write, &self.settings)
    }

    /// What the disk could hold now.
    fn crashed(&self, seed: u64) -> Self {
        self.with(if seed == SEEDS { self.machine.kill() } else { self.machine.crash(seed) })
    }

    fn with(&self, machine: Faults) -> Self {
        let place = tempfile::tempdir().unwrap();
        if self.directory().exists() {
            copy(&self.directory(), &place.path().join("vault"));
        }
        Machine { place, machine, settings: self.settings.clone() }
    }

    fn roots(&self) -> Vec<String> {
        let items = self.store().list("roots").unwrap();
        items.into_iter().map(|item| item.name).collect()
    }

    fn generation_files(generation: u64) -> Vec<String> {
        vec![format!("{generation}.keys"), format!("{generation}.root")]
    }
}

/// Runs `work` with the machine stopped at each of its operations in turn, and `judge` on what each crash may leave;
/// `judge` is also told whether the work was done.
fn at_every_stop(
    world: impl Fn() -> Machine,
    work: impl Fn(&Machine) -> Result<()>,
    mut judge: impl FnMut(Machine, bool, u64),
) -> u64 {
    let whole = world();
    let start = whole.machine.operations();
    work(&whole).unwrap();
    let end = whole.machine.operations();
    for stop in start..=end {
        let world = world();
        world.machine.stop_at(stop);
        let done = work(&world).is_ok();
        assert_eq!(done, stop == end);
        in_turn(0..=SEEDS, stop).into_iter().for_each(|seed| judge(world.crashed(seed), done, stop));
    }
    println!("swept: {} operations on the files of a vault", end - start);
    end - start
}

#[test]
fn making_a_vault_is_all_or_nothing() {
    let (mut nothing, mut all) = (0, 0);
    let operations = at_every_stop(Machine::new, Machine::create, |world, done, stop| {
        match world.open() {
            Ok(vault) => {
                all += 1;
                assert_eq!(number(&vault, "alice"), 0);
            }
            Err(error) => {
                nothing += 1;
                assert!(!done, "{stop}: {error}");
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{stop}: {error}");
                world.create().unwrap();
                assert_eq!(number(&world.open().unwrap(), "alice"), 0);
            }
        }
        assert_eq!(world.create().unwrap_err().kind(), ErrorKind::Refused);
    });
    assert!(operations > 8 && nothing > 0 && all > 0, "{operations} {nothing} {all}");
}

#[test]
fn opening_can_be_cut_short_anywhere() {
    let open = |world: &Machine| world.open().map(drop);
    let operations = at_every_stop(Machine::made, open, |world, _, _| {
        let vault = world.open().unwrap();
        assert_sound(&vault);
        assert_eq!(number(&vault, "s5"), 5);
        assert_eq!(number(&vault, "new"), 6);
    });
    assert!(operations > 3, "{operations}");
}

/// Stops inside a bulk of new people that needs new keys: those that were given out before stay, those that were not
/// given out leave no trace that matters.
#[test]
fn new_keys_are_there_before_what_lies_under_them() {
    let next = u64::from(keys::AHEAD) << keys::ROWS_LOG2;
    let made = || {
        let world = Machine::made();
        world.open().unwrap().skip_to(next - 3).unwrap();
        world
    };
    let work = |world: &Machine| {
        let vault = world.open()?;
        vault.resolve(&["a", "b"])?;
        vault.resolve(&["c", "d", "e"]).map(drop)
    };
    let (mut before, mut after) = (0, 0);
    at_every_stop(made, work, |world, done, _| {
        let vault = world.open().unwrap();
        assert_sound(&vault);
        match vault.find("e").unwrap() {
            Some(subject) => {
                assert_eq!(subject.number, next + 1);
                after += 1;
            }
            None => before += 1,
        }
        assert!(!done || vault.find("e").unwrap().is_some());
        fill(&vault, "more", 5);
        assert_sound(&vault);
    });
    assert!(before > 0 && after > 0);
}

/// At every operation of every step of an erasure: whoever opens the vault then finds it begun or done, can go on,
/// and nothing of another generation is left.
#[test]
fn an_erasure_survives_a_crash_anywhere() {
    let erase = |world: &Machine| {
        let vault = world.open()?;
        let erased = super::erase(&vault, &["s2", "s4"])?.unwrap();
        vault.confirm(erased.numbers())
    };
    let (mut untouched, mut begun, mut committed, mut confirmed) = (0, 0, 0, 0);
    let operations = at_every_stop(Machine::made, erase, |world, done, stop| {
        let vault = world.open().unwrap_or_else(|error| panic!("stop {stop}: {error}"));
        assert_sound(&vault);
        let generation = vault.generation().unwrap();
        assert_eq!(world.roots(), Machine::generation_files(generation), "stop {stop}");
        assert!(generation == 1 || !done);
        match vault.unconfirmed().unwrap() {
            None if generation == 0 => {
                untouched += 1;
                assert_eq!(super::erase(&vault, &["s2", "s4"]).unwrap().unwrap().numbers(), [2, 4]);
                vault.confirm(&[2, 4]).unwrap();
            }
            None => confirmed += 1,
            Some(found) => {
                assert_eq!(found.numbers, [2, 4]);
                assert_eq!(found.erased, generation == 1);
                if found.erased {
                    committed += 1;
                } else {
                    begun += 1;
                    assert_eq!(vault.resolve(&["s2"]).err().unwrap().kind(), ErrorKind::Erased);
                    let erasure = vault.resume_erasure().unwrap().unwrap();
                    assert_eq!(erasure.commit().unwrap().destroy().unwrap().generation(), 1);
                }
                vault.confirm(&[2, 4]).unwrap();
            }
        }
        assert!(vault.find("s2").unwrap().is_none() && vault.find("s4").unwrap().is_none());
        assert_eq!(vault.key(3).unwrap().unwrap().bytes(), vault.find("s3").unwrap().unwrap().key.bytes());
        assert_eq!(world.roots(), Machine::generation_files(1), "stop {stop}");
        assert_eq!(number(&vault, "s2"), 6);
        assert_sound(&vault);
        drop(vault);
        assert_sound(&world.open().unwrap());
    });
    assert!(operations > 20, "{operations}");
    assert!(untouched > 0 && begun > 0 && committed > 0 && confirmed > 0);
}

/// Between any two steps, with the files as they are then.
#[test]
fn an_erasure_can_stop_between_its_steps() {
    for steps in 0..4 {
        let world = Machine::made();
        let vault = world.open().unwrap();
        let erasure = vault.begin_erasure(&["s2"]).unwrap().unwrap();
        if steps > 0 {
            let committed = erasure.commit().unwrap();
            if steps > 1 {
                let erased = committed.destroy().unwrap();
                if steps > 2 {
                    vault.confirm(erased.numbers()).unwrap();
                }
            }
        }
        drop(vault);
        let vault = world.open().unwrap();
        let expected = [Some(false), Some(true), Some(true), None][steps];
        assert_eq!(vault.unconfirmed().unwrap().map(|it| it.erased), expected, "{steps}");
        assert_eq!(world.roots(), Machine::generation_files(u64::from(steps > 0)), "{steps}");
        assert_eq!(vault.key(2).is_err(), steps == 0);
    }
}

/// A file operation that fails, once, or after it was done: the erasure says so, and can be done again at once.
#[test]
fn an_erasure_survives_every_fault() {
    let made = Machine::made();
    // In short each fault strikes at every third operation, and at each operation some do.
    let step = if in_full() { 1 } else { 3 };
    for (which, fault) in Fault::ALL.into_iter().enumerate() {
        let mut failures = 0;
        for operation in (0..40).skip(which % step).step_by(step) {
            let world = made.crashed(SEEDS);
            let vault = world.open().unwrap();
            world.machine.fail_at(world.machine.operations() + operation, fault);
            let erased = super::erase(&vault, &["s2"]);
            world.machine.heal();
            if erased.is_err() {
                failures += 1;
                let unconfirmed = vault.unconfirmed().unwrap().unwrap();
                if let Some(erasure) = vault.resume_erasure().unwrap() {
                    assert!(!unconfirmed.erased);
                    assert_eq!(vault.resolve(&["s2"]).err().unwrap().kind(), ErrorKind::Erased);
                    erasure.commit().unwrap().destroy().unwrap();
                }
            }
            vault.confirm(&[2]).unwrap();
            assert!(vault.find("s2").unwrap().is_none());
            assert_eq!(world.roots(), Machine::generation_files(1), "{fault:?} at {operation}");
            assert_sound(&vault);
            drop(vault);
            assert_sound(&world.crashed(operation % SEEDS).open().unwrap());
        }
        assert!(failures > 0, "{fault:?} never struck");
    }
}

/// Who only reads leaves everything as it is.
#[test]
fn a_reader_tidies_nothing_up() {
    let world = Machine::made();
    let vault = world.open().unwrap();
    let committed = vault.begin_erasure(&["s2"]).unwrap().unwrap().commit().unwrap();
    drop(committed);
    drop(vault);
    let reader =
        Vault::open_in(world.store(), &world.directory(), LOG, Access::Read, &world.settings).unwrap();
    assert!(reader.find("s2").unwrap().is_none());
    assert_eq!(reader.unconfirmed().unwrap().unwrap().numbers, [2]);
    assert_eq!(world.roots().len(), 4);
}

/// Numbers are left out all together or not at all, and doing it again is no error.
#[test]
fn what_is_left_out_survives_a_crash_anywhere() {
    let made = || {
        let world = Machine::made();
        let vault = world.open().unwrap();
        vault.confirm(erase(&vault, &["s1", "s4"]).unwrap().unwrap().numbers()).unwrap();
        drop(vault);
        world
    };
    let operations = at_every_stop(
        made,
        |world| leave_out(&world.open()?, &|_| false),
        |world, done, stop| {
            let vault = world.open().unwrap();
            let skipped = vault.skipped().unwrap();
            assert!(skipped == [1..2, 4..5] || !done && skipped.is_empty(), "{stop}: {skipped:?}");
            leave_out(&vault, &|_| false).unwrap();
            assert_eq!(vault.check(&|_| false, &|_| ()).unwrap().damage, [], "{stop}");
            assert_eq!(vault.look_up(&["s2"], |_| false).unwrap(), [Some(2)]);
        },
    );
    assert!(operations > 3, "{operations}");
}
