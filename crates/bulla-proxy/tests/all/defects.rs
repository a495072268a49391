//! A proxy with a defect: it panics. Whose connection that is, and what was under way there; everybody else is served.

use super::faults::wait_until;
use super::world::{World, plain};
use bulla::Options;
use bulla::environment::{Clock, Environment, Interrupt, SystemClock};
use bulla_proxy::config::{Config, Mode};
use bulla_proxy::proxy::Proxy;
use bulla_proxy::warnings::Kind;
use bulla_testkit::fault::{Fault, Faults};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A clock that panics when it is asked, so many times more.
#[derive(Default)]
struct Defective {
    now: AtomicUsize,
    steady: AtomicUsize,
}

fn panic_if(left: &AtomicUsize) {
    let shows = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
    assert!(!shows, "a defect, at secret");
}

impl Clock for Defective {
    fn now(&self) -> i64 {
        panic_if(&self.now);
        SystemClock.now()
    }

    fn steady(&self) -> u64 {
        panic_if(&self.steady);
        SystemClock.steady()
    }

    fn wait(&self, time: Duration, interrupt: &Interrupt) {
        SystemClock.wait(time, interrupt);
    }
}

/// A world with a proxy that has a defect, in the place of its own.
struct Broken {
    world: World,
    clock: Arc<Defective>,
    told: Arc<Mutex<Vec<(Kind, String)>>>,
}

impl Broken {
    fn new(machine: &Faults, mode: Mode) -> Broken {
        let options = Options::default().retries(1000).retry_delay(Duration::from_millis(1));
        let mut world = World::on(machine, options, Environment::default(), "", "");
        let clock = Arc::<Defective>::default();
        let environment = Environment { clock: clock.clone(), ..Environment::default() };
        let told = Arc::<Mutex<Vec<_>>>::default();
        let warned = told.clone();
        let warn = Arc::new(move |kind, what: &str| warned.lock().unwrap().push((kind, what.to_owned())));
        let config = Config { mode, ..world.config("", None, "") };
        world.replace(|log| Proxy::start_warning(&config, log, &environment, warn).unwrap());
        Broken { world, clock, told }
    }

    /// That it was warned of once, and nothing of what clients sent was told.
    fn is_told(&self) {
        let told = self.told.lock().unwrap();
        assert!(told.len() == 1 && told[0].0 == Kind::Failed && !told[0].1.contains("secret"), "{told:?}");
    }
}

#[test]
fn a_connection_that_ends_by_a_defect_has_what_was_under_way_recorded_as_unknown() {
    let broken = Broken::new(&Faults::new(), Mode::Async);
    let world = &broken.world;
    let mut client = world.connect();
    assert_eq!(client.ask("SET a 1"), "OK");
    broken.clock.now.store(1, Ordering::SeqCst);
    assert_eq!(client.ask("SET secret 1"), "the end");
    assert_eq!(world.connect().ask("GET secret"), "1");
    let counters = world.proxy().counters();
    assert_eq!((counters.failed.get(), counters.unrecorded.get()), (1, 0));
    broken.is_told();
    assert_eq!(plain(&broken.world.entries()), ["write a 0", "write secret 3", "read secret 0"]);
}

#[test]
fn operations_of_which_a_defect_lets_no_entry_be_made_are_counted_and_told_of() {
    let broken = Broken::new(&Faults::new(), Mode::Async);
    broken.clock.now.store(2, Ordering::SeqCst);
    assert_eq!(broken.world.connect().ask("SET secret 1"), "the end");
    assert_eq!(broken.world.connect().ask("GET secret"), "1");
    let counters = broken.world.proxy().counters().clone();
    assert_eq!((counters.failed.get(), counters.unrecorded.get()), (1, 1));
    broken.is_told();
    let told = broken.world.entries();
    assert_eq!(told, ["gap  - payload={\"unrecorded\":1}", &told[1]]);
    assert!(told[1].starts_with("read secret 0"), "{told:?}");
    assert_eq!(counters.untold.get(), 0);
}

#[test]
fn a_worker_that_ends_by_a_defect_takes_its_connections_along_and_is_followed_by_another() {
    let machine = Faults::new();
    let broken = Broken::new(&machine, Mode::BeforeReply);
    let world = &broken.world;
    let mut blocked = world.connect();
    assert_eq!(blocked.ask("PING"), "PONG");
    blocked.send("BLPOP secret 0\r\n");
    let mut waits = world.connect();
    assert_eq!(waits.ask("PING"), "PONG");
    machine.fail_below("audit", Fault::SyncFails);
    let counters = world.proxy().counters().clone();
    waits.send("SET secrets 1\r\n");
    wait_until(|| counters.recorded.get() == 1);
    // Until its entry is durable nobody asks for the time, and then who wakes the connection does.
    std::thread::sleep(Duration::from_millis(50));
    broken.clock.steady.store(1, Ordering::SeqCst);
    machine.heal();
    // What is durable may still be told.
    let told = waits.told();
    assert!(told == "the end" || told == "OK" && waits.told() == "the end", "{told}");
    assert_eq!(blocked.told(), "the end");
    assert_eq!(world.connect().ask("GET secrets"), "1");
    // Whoever waits for nothing by then just ends.
    assert!(counters.failed.get() >= 2, "a thread, and the connection that waits");
    broken.is_told();
    let told = broken.world.entries();
    let expected = ["write secrets 0", "read secret 3", "update secret 3", "read secrets 0"];
    assert_eq!(plain(&told), expected);
    assert_eq!((counters.unrecorded.get(), counters.clients.get()), (0, 0));
}
