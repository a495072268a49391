//! Whatever step an erasure was cut short at: opening the log goes on, and the log tells of it.

use super::restored::put_back;
use super::world::{World, copy};
use bulla::event::Event;
use bulla::{ErasureOrder, ErrorKind, Log, Options, Query};
use bulla_vault::Access;
use serde_json::json;

/// What the log's events say that was erased.
fn told(world: &World) -> Vec<Vec<u64>> {
    let mut told = Vec::new();
    for frame in 0..bulla::info(&world.directory).unwrap().tree_size {
        if let Ok(event) = world.reader().prove_event(frame)
            && let Event::Erased { numbers, .. } = Event::decode(event.verify(None).unwrap().event()).unwrap()
        {
            told.push(numbers);
        }
    }
    told
}

/// A closed log, its order for `user_7`, and that one's number.
fn world() -> (World, ErasureOrder, u64) {
    let world = World::new();
    world.append(0..60);
    let order = world.order(&["user_7"]);
    let number = world.vault(Access::Read).find("user_7").unwrap().unwrap().number;
    (world, order, number)
}

pub(crate) fn write_pending(world: &World, order: &ErasureOrder, number: u64) {
    write(world, &pending(number, &[0], order.note()));
}

fn write(world: &World, pending: &str) {
    std::fs::write(world.keys().join("erasure.pending"), pending).unwrap();
}

fn pending(number: u64, carried_out: &[u32], order: &str) -> String {
    json!({ "numbers": [number], "carried_out": carried_out, "order": order }).to_string()
}

/// Opens and closes the log, which has to finish what was begun.
fn finished(world: &World, number: u64) {
    Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
    let vault = world.vault(Access::Read);
    assert!(vault.find("user_7").unwrap().is_none() && vault.unconfirmed().unwrap().is_none());
    drop(vault);
    assert!(!world.keys().join("erasure.pending").exists());
    assert_eq!(told(world), [vec![number]], "once");
    assert!(!world.entries().1.is_empty() && world.verified().ok);
}

#[test]
fn what_was_only_intended_is_carried_out() {
    let (world, order, number) = world();
    write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
    finished(&world, number);
}

#[test]
fn what_was_committed_is_destroyed_and_told() {
    let (world, order, number) = world();
    write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap();
    finished(&world, number);
}

#[test]
fn what_was_destroyed_is_told() {
    let (world, order, number) = world();
    write_pending(&world, &order, number);
    world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap().destroy().unwrap();
    finished(&world, number);
}

#[test]
fn what_was_written_down_and_not_begun_is_forgotten_and_told_of() {
    let (world, order, number) = world();
    write_pending(&world, &order, number);
    forgotten(&world, &format!("data subjects [{number}], of which neither the vault nor the log knows"));
    for damaged in ["", "{", &" ".repeat((1 << 20) + 1)] {
        write(&world, damaged);
        forgotten(&world, "cannot be read: it is damaged");
    }
}

/// Opens and closes the log, which has to say that something was written down of which nothing came.
fn forgotten(world: &World, what: &str) {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let told_of = log.resumed_erasure().unwrap().to_string();
    assert!(told_of.contains("erasure.pending") && told_of.contains(what), "{told_of}");
    log.close().unwrap();
    assert!(!world.keys().join("erasure.pending").exists());
    assert_eq!((told(world).len(), world.entries().1.len()), (0, 0));
}

/// Whoever ordered it was told that keys are destroyed, and that opening the log finishes it. With this vault it does not.
#[test]
fn an_erasure_that_an_older_vault_does_not_know_of_is_told_of() {
    let (world, order, number) = world();
    let older = copy(&world.keys());
    write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap();
    put_back(older.path(), &world.keys(), &["vault", "roots"]);
    forgotten(&world, "an older vault was put back");
    // Nothing is told where the log tells of it.
    write_pending(&world, &order, number);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.erase(&order).unwrap();
    log.close().unwrap();
    for _ in 0..2 {
        write_pending(&world, &order, number);
        let log = Log::open(&world.directory, Options::default()).unwrap();
        assert_eq!(log.resumed_erasure(), None);
        log.close().unwrap();
        assert!(!world.keys().join("erasure.pending").exists());
        assert_eq!(told(&world), [vec![number]], "once");
        put_back(older.path(), &world.keys(), &["vault", "roots"]);
    }
}

/// Nobody ordered it as far as anything says.
#[test]
fn what_nobody_ordered_is_withdrawn() {
    let (world, _, number) = world();
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
    withdrawn(&world, "it is missing");
}

/// Opens and closes the log, which has to withdraw what was begun, and to say why.
fn withdrawn(world: &World, why: &str) {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let resumed = log.resumed_erasure().unwrap().to_string();
    assert!(resumed.contains("is withdrawn") && resumed.contains(why), "{why}: {resumed}");
    log.close().unwrap();
    assert_eq!((told(world).len(), world.entries().1.len()), (0, 0), "{why}");
    assert!(!world.keys().join("erasure.pending").exists() && world.verified().ok, "{why}");
}

/// Nothing vouches for the file that lies beside the vault: what a reader would refuse is never signed.
#[test]
fn what_the_log_could_not_tell_is_withdrawn_or_refused() {
    let other = World::new();
    other.append(0..60);
    let (world, order, number) = world();
    let unsigned = order.note().replace("\ntime ", "\ntime 1");
    let for_another = other.order(&["user_7"]);
    let cases = [
        (pending(number, &[], order.note()), "carried out"),
        (pending(number, &[1], order.note()), "carried out"),
        (pending(number, &[0, 0], order.note()), "carried out"),
        (pending(number, &[0], &unsigned), "the order in it"),
        (pending(number, &[0], ""), "the order in it"),
        (pending(number, &[0], for_another.note()), "the order in it"),
        ("{".to_owned(), "it is damaged"),
    ];
    for (pending, why) in &cases {
        write(&world, pending);
        let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
        withdrawn(&world, why);
    }
    for (pending, why) in &cases {
        let world = world.copied();
        write(&world, pending);
        let _ = world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap();
        refused(&world, why);
    }
}

/// That the log does not open, since the keys of somebody are destroyed, and nothing that counts says by whose order.
fn refused(world: &World, why: &str) {
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let message = error.to_string();
    assert!(["erasure.pending", why, "restore it"].iter().all(|part| message.contains(part)), "{message}");
}

/// Somebody who can write the file has an order that is signed, and was not carried out yet, or says that it meant another of its names.
#[test]
fn an_erasure_is_finished_by_what_it_was_begun_with_and_by_nothing_else() {
    let (world, _, number) = world();
    let order = world.order(&["user_7", "nobody"]);
    let others = [
        pending(number, &[0], world.order(&["user_8"]).note()),
        pending(number, &[0], world.order(&["user_7"]).note()),
        pending(number, &[1], order.note()),
    ];
    let why = "it is not what this erasure was begun with";
    for other in &others {
        write_pending(&world, &order, number);
        let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
        write(&world, other);
        withdrawn(&world, why);
    }
    write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap();
    for other in &others {
        write(&world, other);
        refused(&world, why);
    }
    write_pending(&world, &order, number);
    finished(&world, number);
}

/// The notes in the log are public: one that was carried out is no order for anybody else.
#[test]
fn an_order_that_was_carried_out_is_none_for_others() {
    let (world, _, number) = world();
    let used = world.order(&["user_8"]);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.erase(&used).unwrap();
    log.close().unwrap();
    write_pending(&world, &used, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let resumed = log.resumed_erasure().unwrap().to_string();
    assert!(resumed.contains("is withdrawn") && resumed.contains("carried out before"), "{resumed}");
    log.close().unwrap();
    assert!(world.vault(Access::Read).find("user_7").unwrap().is_some());
    assert!(told(&world).len() == 1 && world.verified().ok);
}

#[test]
fn keys_that_nobody_ordered_to_destroy_are_told_of() {
    let (world, _, number) = world();
    world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap().destroy().unwrap();
    let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable && error.to_string().contains("erasure.pending"),
        "{error}"
    );
}

/// Keys are destroyed, and nobody has told of it: a name that the vault knows nobody by may be theirs.
#[test]
fn a_name_is_not_called_unknown_while_the_log_does_not_tell_of_an_erasure() {
    let (world, order, number) = world();
    write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap();
    let read = |query: &Query| world.reader().for_each(query, |_, _| Ok(())).map(|read| read.entries);
    let asked = |name: &str| read(&Query::new().subject(name));
    // Also where nothing of theirs would be met: no block is looked at.
    let later = Query::new().subject("user_7").entries(58..=58);
    let errors = [
        asked("user_7").unwrap_err(),
        asked("nobody").unwrap_err(),
        read(&later).unwrap_err(),
        read(&Query::new()).unwrap_err(),
        world.reader().subjects_not_found(&later).unwrap_err(),
        world.reader().follow(&Query::new().subject("user_7")).map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Erased, "{error}");
        assert!(error.to_string().contains("is being erased"), "{error}");
    }
    assert_eq!(asked("user_8").unwrap(), 2);
    finished(&world, number);
    assert_eq!((asked("user_7").unwrap(), asked("nobody").unwrap()), (0, 0));
}
