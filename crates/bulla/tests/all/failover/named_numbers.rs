//! Numbers of data subjects that events name which no checkpoint covers yet, when a key directory is taken up.

use super::world::World;
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::signing::SigningKey;
use bulla::{Entry, ErasureOrder, HoldOrder, Log, LogId, Reader};
use bulla_vault::{Access, Settings, Vault};

/// Gives whoever is named a number, of whom no entry came into the log: a writer was cut short before that.
fn give_number(world: &mut World, subject: &str) {
    let id = bulla::info_of(world.log()).unwrap().id;
    let place = world.vault_copy();
    Vault::open(place.path(), id, Access::Write, &Settings::default()).unwrap().resolve(&[subject]).unwrap();
    world.put_vault_back(place);
}

struct Orders {
    key: SigningKey,
    log: LogId,
}

impl Orders {
    fn of(world: &World) -> Orders {
        let key = String::from_utf8(world.machine.read("audit.keys/erasure.key").unwrap()).unwrap();
        Orders { key: SigningKey::parse(&key).unwrap(), log: bulla::info_of(world.log()).unwrap().id }
    }

    fn hold(&self, log: &Log, subject: &str) -> bulla::Result<()> {
        let because = ("legal", "case 4711");
        let order = HoldOrder::give(&self.key, self.log, subject, because, &Environment::default())?;
        log.hold(&order).map(drop)
    }

    fn erase(&self, log: &Log, subject: &str) -> bulla::Result<()> {
        let order = ErasureOrder::give(&self.key, self.log, &[subject], None, &Environment::default())?;
        log.erase(&order).map(drop)
    }
}

/// The frames of the events that name a data subject, with what they name.
fn naming(world: &World) -> Vec<(u64, Vec<u64>)> {
    let mut named = Vec::new();
    let tell = |logged: bulla::LoggedEvent| {
        match logged.event {
            Ok(Event::Held { number, .. } | Event::Released { number, .. }) => {
                named.push((logged.frame, vec![number]));
            }
            Ok(Event::Erased { numbers, .. }) => named.push((logged.frame, numbers)),
            _ => {}
        }
        Ok(())
    };
    Reader::open_store(world.log()).unwrap().events(tell).unwrap();
    named
}

fn append_of(log: &Log, subjects: &[&str]) {
    let mut producer = log.producer().unwrap();
    for subject in subjects {
        producer.append(&Entry::new("read", "1").subject(subject)).unwrap();
    }
    let _ = producer.flush().unwrap();
    log.flush().unwrap();
}

/// The events that no checkpoint covers yet are adopted once the log is opened, and are read for numbers then: nothing else tells of somebody who is
/// in no block, and whom the keys that are put back do not know.
#[test]
fn a_number_that_an_event_names_which_nobody_has_signed_is_given_to_nobody_else() {
    for erases in [false, true] {
        let mut made = World::with_erasure(&[], true);
        let orders = Orders::of(&made);
        let log = made.open_stepped().unwrap();
        append_of(&log, &["ada", "bob"]);
        log.close().unwrap();
        let (keys, vault) = (made.files_below("audit.keys"), made.vault_copy());
        let next = made.next_number();
        give_number(&mut made, "cleo");
        let mut unsigned = 0;
        for operation in (0..).step_by(2) {
            let world = made.killed();
            let log = world.open_stepped().unwrap();
            world.machine.stop_at(world.machine.operations() + operation);
            let ordered = if erases { orders.erase(&log, "cleo") } else { orders.hold(&log, "cleo") };
            let mut after = world.killed();
            drop(log);
            after.put_back("audit.keys", &keys);
            let older = World::copy_of(&vault);
            after.put_vault_back(older);
            let signed = bulla::info_of(after.log()).unwrap().tree_size;
            after.take_up().unwrap();
            if let [(frame, numbers)] = &naming(&after)[..] {
                let what = format!("{erases}, {operation}: frame {frame} of {signed}");
                assert_eq!(numbers, &[next], "{what}");
                assert!(after.next_number() > next, "{what}: {}", after.next_number());
                unsigned += u64::from(*frame >= signed);
            }
            let log = after.open_stepped().unwrap();
            append_of(&log, &["dora"]);
            log.close().unwrap();
            after.read_with_keys().unwrap();
            let report = after.verify();
            assert!(report.ok, "{erases}, {operation}: {:#?}", report.findings);
            if ordered.is_ok() {
                break;
            }
        }
        assert!(unsigned > 0, "{erases}");
    }
}
