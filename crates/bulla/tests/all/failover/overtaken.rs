//! A commit that another thread overtakes: it finds that the path fails, and has another one take over, at any operation of the commit.

use super::world::World;
use crate::workshop::{Operation, Watch, Watched};
use bulla::environment::{Clock, Interrupt, SystemClock};
use bulla::store::Store;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Has the second path take over before the so manyth operation on the first one.
#[derive(Debug)]
struct Overtaking {
    log: OnceLock<Arc<dyn Store>>,
    left: AtomicI64,
    /// Whether the first path takes nothing from then on.
    dies: bool,
    machine: Faults,
}

impl Overtaking {
    fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            if self.dies {
                self.machine.fail_below("audit", Fault::WriteFails);
                self.machine.fail_below("audit", Fault::NameFails);
            }
            let paths = self.log.get().unwrap().paths().unwrap();
            assert!(paths.fail_over(0, "another thread found that it fails"));
        }
    }
}

impl Watch for Overtaking {
    fn before(&self, _: Operation, _: &str) -> std::io::Result<()> {
        self.count();
        Ok(())
    }

    fn before_sync_directory(&self, _: &str) -> std::io::Result<()> {
        self.count();
        Ok(())
    }

    fn before_look(&self, _: &str) {
        self.count();
    }
}

/// A clock that notes whether anybody waits for a further attempt, of whom there would be no end.
#[derive(Default)]
struct Patience {
    waited: AtomicBool,
    log: OnceLock<bulla::Closing>,
}

impl Clock for Patience {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn steady(&self) -> u64 {
        SystemClock.steady()
    }

    fn wait(&self, _: Duration, _: &Interrupt) {
        self.waited.store(true, Ordering::Relaxed);
        self.log.get().unwrap().give_up();
    }
}

/// A path that works is not held for one that fails because a segment lies on the one before it, and nobody waits for that one.
#[test]
fn a_commit_that_is_overtaken_at_any_operation_goes_on_on_the_path_that_took_over() {
    for dies in [false, true] {
        for moment in 0.. {
            let mut world = World::new(&["/backup"]);
            world.set("on_failure", "block");
            let clock = Arc::new(Patience::default());
            world.set_clock(clock.clone());
            let watch = Arc::new(Overtaking {
                log: OnceLock::new(),
                left: AtomicI64::new(i64::MAX),
                dies,
                machine: world.machine.clone(),
            });
            let first = Watched { store: Arc::new(world.machine.store("audit")), watch: watch.clone() };
            let joined = world.join(Arc::new(first));
            watch.log.set(joined.clone()).unwrap();
            let log = world.open_stepped_in(joined).unwrap();
            clock.log.get_or_init(|| log.closing());
            world.append_stepped(&log, 0..4);
            watch.left.store(moment, Ordering::Relaxed);
            let what = format!("at {moment}, dies: {dies}");
            let appended = world.try_append_stepped(&log, 4..6);
            assert!(!clock.waited.load(Ordering::Relaxed), "{what}: the second path takes what is written");
            appended.unwrap_or_else(|error| panic!("{what}: {error}"));
            if watch.left.load(Ordering::Relaxed) >= 0 {
                assert!(moment > 5, "{moment} operations");
                println!("swept: a commit overtaken at {moment} operations");
                break;
            }
            watch.left.store(i64::MAX, Ordering::Relaxed);
            world.append_stepped(&log, 6..8);
            log.close().unwrap();
            world.machine.heal();
            world.check(8);
            assert_eq!(world.replaced(), [(world.id("audit"), world.id("backup"))], "{what}");
        }
    }
}
