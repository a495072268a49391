//! How long a sync is delayed, and who is woken after it.

use super::*;
use crate::command::CommandTable;
use crate::config::Config;
use crate::settings::Lasting;
use crate::subject::Learned;
use bulla::environment::Environment;
use bulla::{Init, Log, Options};

#[test]
fn clients_that_have_left_are_waited_for_a_few_times_and_no_more() {
    for count in 1..40 {
        let delay = CommitDelay::new(Vec::new());
        (0..count).for_each(|_| delay.wait());
        delay.release(count);
        // One of them is left.
        let mut delayed = 0;
        loop {
            delay.wait();
            if delay.is_complete() {
                break;
            }
            delay.release(1);
            delayed += 1;
            assert!(delayed < count, "a client alone waits for {count} for ever");
        }
    }
}

#[test]
fn whoever_was_released_together_is_synced_together() {
    let delay = CommitDelay::new(Vec::new());
    (0..4).for_each(|_| delay.wait());
    delay.release(4);
    (0..3).for_each(|_| delay.wait());
    assert!(!delay.is_complete());
    delay.wait();
    assert!(delay.is_complete());
}

#[test]
fn whoever_was_woken_is_woken_for_the_same_entry_again() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("audit");
    Init::default().create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    let counters = Arc::<Counters>::default();
    let warnings = Arc::new(Warnings::new(Arc::new(|_, _| {})));
    let lasting = Lasting {
        table: CommandTable::pinned(),
        digest_key: [0; 32],
        learned: Arc::new(Learned::new(1 << 20)),
        counters: counters.clone(),
        warnings: warnings.clone(),
    };
    let settings = |top: &str| {
        let config = format!("mode = \"before-reply\"\n{top}\n[log]\ndirectory = \"audit\"\n");
        Arc::new(Settings::new(&Config::parse(config.as_bytes()).unwrap(), &lasting).unwrap())
    };
    let first = settings("");
    let clock = Environment::default().clock;
    let recorder = Recorder::new(log.producer().ok(), first.recording.clone(), clock.clone(), || {});
    let shared = Arc::new(Shared { counters, warnings, clock });
    let delay = Arc::new(CommitDelay::new(Vec::new()));
    let worker = Worker::new(shared, first, recorder, delay, Arc::default(), Arc::default());
    let (awaited, waker) = (Awaited::default(), Waker::noop());
    // Nothing was recorded: this entry is never durable.
    worker.wake_at(1, &awaited, waker);
    worker.wake_at(1, &awaited, waker);
    worker.wake();
    assert_eq!(worker.waiting.borrow().len(), 1, "it waits once");
    // The log takes nothing, and commands may pass without it.
    worker.adopt(settings("unrecordable = \"pass\""));
    worker.recorder().stop_taking();
    worker.wake();
    assert_eq!(worker.waiting.borrow().len(), 0);
    // It takes entries again before whoever was woken has gone on.
    worker.wake_at(1, &awaited, waker);
    assert_eq!(worker.waiting.borrow().len(), 1);
}
