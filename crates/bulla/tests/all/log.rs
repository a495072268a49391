//! A log on a real file system: append, close, open again.

use bulla::{Entry, Init, Log, Options};

#[test]
fn entries_survive_closing_and_opening_again() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    for round in 0..3 {
        let log = Log::open(&directory, Options::default()).unwrap();
        assert_eq!(log.recovery(), bulla::Recovery::default(), "round {round}");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let mut producer = log.producer().unwrap();
                scope.spawn(move || {
                    for index in 0..10_000 {
                        let key = format!("user_{thread}/{index}");
                        producer.append(&Entry::new("read", &key).subject("user")).unwrap();
                    }
                    producer.flush().unwrap().checkpointed().unwrap();
                });
            }
        });
        log.close().unwrap();
    }
}
