//! What changes the log.

use super::{Place, append, plain};
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::identities::generate;
use bulla::{Configure, Entry, ErrorKind, ExportRecord, Log, Options, Query, record_export};
use std::sync::atomic::{AtomicBool, Ordering};

/// The events that the segments hold, as they lie there.
fn events(place: &Place) -> Vec<Event> {
    let segments = std::fs::read_dir(place.audit().join("segments")).unwrap();
    let mut paths = segments.map(|item| item.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    let mut events = Vec::new();
    for path in paths {
        let bytes = std::fs::read(path).unwrap();
        let begins = |at: &usize| bytes[*at..].starts_with(b"{\"event\":");
        for at in (0..bytes.len()).filter(begins) {
            let end = bytes[at..].iter().position(|&byte| byte == b'}').unwrap();
            events.extend(Event::decode(&bytes[at..=at + end]));
        }
    }
    events
}

#[test]
fn recipients_come_and_go_while_it_is_written() {
    let place = Place::new(plain());
    let (owner, (new, recipient)) = (place.owner(), generate());
    let log = place.open();
    append(&log, 500);
    let client = place.client();
    let added = client.configure(&Configure::default().add_recipients([&recipient]).unwrap()).unwrap();
    assert!(added.changed && added.live && !added.settings, "{added:?}");
    assert_eq!(added.keys, ["recipients"]);
    assert_eq!(bulla::info(place.audit()).unwrap().recipients.len(), 2);
    append(&log, 500);
    let again = client.configure(&Configure::default().add_recipients([&recipient]).unwrap()).unwrap();
    assert!(!again.changed && again.log.is_none(), "{again:?}");
    client.configure(&Configure::default().remove_recipients([&recipient]).unwrap()).unwrap();
    append(&log, 500);
    log.flush().unwrap();
    place.verifies_live();

    for live in [true, false] {
        assert_eq!(place.read(&owner, 0, 1499), Some(1500), "{live}");
        assert_eq!(place.read(&new, 500, 999), Some(500), "{live}");
        for (first, last) in [(0, 499), (499, 500), (999, 1000), (1000, 1499)] {
            assert_eq!(place.read(&new, first, last), None, "{first} {last} {live}");
        }
        if live {
            client.rotate().unwrap();
        }
    }
    log.close().unwrap();
    place.verifies();
    // The next writer goes on with it.
    let log = place.open();
    append(&log, 10);
    log.close().unwrap();
    place.verifies();
    let changes = events(&place).into_iter().filter(|event| matches!(event, Event::Configured { .. }));
    assert_eq!(changes.count(), 2);
}

impl Place {
    /// Beside a writer.
    #[track_caller]
    fn verifies_live(&self) {
        let report = bulla::Verify::open(self.audit()).unwrap().run().unwrap();
        assert!(report.ok, "{:?}", report.findings);
    }
}

#[test]
fn what_is_refused_changes_nothing_and_the_log_goes_on() {
    let place = Place::new(plain());
    let log = place.open();
    let client = place.client();
    let owner = bulla::info(place.audit()).unwrap().recipients[0].clone();
    let text = || std::fs::read_to_string(place.audit().join("bulla.toml")).unwrap();
    let before = text();
    for (configure, said) in [
        (Configure::default().remove_recipients([&owner]).unwrap(), "until there is another"),
        (Configure::default().field("client", "drop").unwrap(), "stop it first"),
        (Configure::default().set("memory", "1 MiB").unwrap(), "`memory`"),
    ] {
        let error = client.configure(&configure).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(
            log.configure(&configure).unwrap_err().to_string(),
            error.to_string(),
            "in one process, too"
        );
        assert_eq!(text(), before);
    }
    // What is edited behind its back is not carried on with.
    std::fs::write(place.audit().join("bulla.toml"), format!("# mine\n{before}")).unwrap();
    let (_, recipient) = generate();
    let add = Configure::default().add_recipients([recipient]).unwrap();
    assert_eq!(client.configure(&add).unwrap_err().kind(), ErrorKind::Refused);
    std::fs::write(place.audit().join("bulla.toml"), before).unwrap();
    append(&log, 10);
    client.configure(&add).unwrap();
    append(&log, 10);
    log.close().unwrap();
    place.verifies();
}

#[test]
fn settings_change_beside_it_and_count_later() {
    let place = Place::new(plain());
    let log = place.open();
    let (_, recipient) = generate();
    let both = Configure::default().set("retries", "9").unwrap().add_recipients([recipient]).unwrap();
    let done = place.client().configure(&both).unwrap();
    assert!(done.changed && done.settings && done.live && done.log.is_some(), "{done:?}");
    let done = place.client().configure(&Configure::default().set("linger", "30 ms").unwrap()).unwrap();
    assert!(done.changed && done.settings && done.live && done.log.is_none(), "{done:?}");
    log.close().unwrap();
    let keys = bulla::store::FileSystem::new(bulla::default_keys(&place.audit()));
    let options = bulla::keys::settings::load(&keys).unwrap();
    assert!(options.settings().iter().any(|setting| (setting.name, &*setting.value) == ("linger", "30 ms")));
    place.verifies();
}

#[test]
fn an_epoch_begins_when_somebody_asks_for_it() {
    let place = Place::new(plain());
    let log = place.open();
    append(&log, 100);
    log.flush().unwrap();
    let before = bulla::epochs(place.audit()).unwrap().len();
    let asked = place.client().rotate().unwrap();
    let own = log.rotate().unwrap();
    assert!(own > asked);
    let epochs = bulla::epochs(place.audit()).unwrap();
    assert_eq!(epochs[before..].iter().map(|epoch| epoch.number).collect::<Vec<_>>(), [asked, own]);
    append(&log, 100);
    log.close().unwrap();
    place.verifies();
    assert_eq!(place.read(&place.owner(), 0, 199), Some(200));
}

/// Segments become full all the time: epochs that would begin inside a change wait for it.
#[test]
fn changes_rotations_and_records_at_once_leave_a_sound_log() {
    let place = Place::new(plain());
    let options = Options::default().memory(64 << 20).writers(2).block_size(4 << 10).segment_size(64 << 10);
    let log = Log::open(place.audit(), options).unwrap();
    let (new, recipient) = generate();
    let payload = (0..1500_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = crate::helpers::Stop(&done);
        for writer in 0..2_u8 {
            let (mut producer, done, payload) = (log.producer().unwrap(), &done, &payload);
            scope.spawn(move || {
                let mut payload = payload.clone();
                while !done.load(Ordering::Relaxed) {
                    payload.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(writer | 1));
                    producer.append(&Entry::new("write", "x").payload(&payload)).unwrap();
                    producer.flush().unwrap().durable().unwrap();
                }
            });
        }
        let other = scope.spawn(|| {
            let client = place.client();
            (0..8).for_each(|_| assert!(client.rotate().unwrap() > 0));
        });
        let client = place.client();
        for _ in 0..8 {
            client.configure(&Configure::default().add_recipients([&recipient]).unwrap()).unwrap();
            client.record_export(&ExportRecord::new(1, &Query::new(), "jsonl")).unwrap();
            client.configure(&Configure::default().remove_recipients([&recipient]).unwrap()).unwrap();
        }
        other.join().unwrap();
        drop(stop);
    });
    log.close().unwrap();
    place.verifies();
    let total = bulla::info(place.audit()).unwrap().entries;
    assert_eq!(place.read(&place.owner(), 0, total), Some(total));
    assert_eq!(place.read(&new, 0, total), None);
    let log = place.open();
    assert_eq!(log.recovery(), bulla::Recovery::default());
}

#[test]
fn exports_are_recorded_with_a_writer_and_without_one() {
    let place = Place::new(plain());
    let query = Query { from: Some(1), ..Query::new().subject("user_7") };
    let record = ExportRecord::new(23, &query, "csv");
    let environment = Environment::default;
    let log = place.open();
    record_export(place.audit(), place.keys(), environment(), &record).unwrap();
    let covered = bulla::info(place.audit()).unwrap().tree_size;
    let said = Event::Exported(ExportRecord {
        entries: 23,
        filters: vec!["subject".to_owned(), "time".to_owned()],
        format: "csv".to_owned(),
    });
    assert_eq!((events(&place), covered), (vec![said.clone()], 2), "under a checkpoint already");
    log.close().unwrap();
    record_export(place.audit(), place.keys(), environment(), &record).unwrap();
    assert_eq!(events(&place), [said.clone(), said]);

    let whole = |filters: &[&str], format: &str| ExportRecord {
        entries: 1,
        filters: filters.iter().map(|&filter| filter.to_owned()).collect(),
        format: format.to_owned(),
    };
    let log = place.open();
    for strange in [
        whole(&["user_7"], "csv"),
        whole(&["subject=user_7"], "csv"),
        whole(&["subject"; 2], "csv"),
        whole(&["payload"], "csv"),
        whole(&[], ""),
        whole(&[], "for user_7"),
        whole(&[], &"x".repeat(33)),
    ] {
        let error = place.client().record_export(&strange).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert_eq!(log.record_export(&strange).unwrap_err().kind(), ErrorKind::Invalid);
    }
    log.close().unwrap();
    assert_eq!(events(&place).len(), 2);
    place.verifies();
}
