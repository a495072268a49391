//! Threads that seal let others go first where that is asked for.

use bulla::{Init, Log, Options};
use std::fs::read_to_string;
use std::path::Path;

/// How nice a thread is, by its folder in `/proc`: the 19th field of its `stat`.
fn niceness(thread: &Path) -> Option<i32> {
    let stat = read_to_string(thread.join("stat")).ok()?;
    let behind_name = stat.rsplit_once(") ")?.1;
    behind_name.split(' ').nth(16)?.parse().ok()
}

/// How nice the threads of this process are that seal. Other tests have some, too.
fn of_sealing() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let seals = |thread: &std::path::PathBuf| {
        read_to_string(thread.join("comm")).is_ok_and(|name| name.trim_end() == "bulla-writer")
    };
    threads.filter(seals).filter_map(|thread| niceness(&thread)).collect()
}

#[test]
fn threads_that_seal_are_nicer_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    Init::default().create(place.path().join("audit")).unwrap();
    let nicer = (niceness(Path::new("/proc/thread-self")).unwrap() + 10).min(19);
    let asked = Options::default().yielding(true).writers(1);
    let log = Log::open(place.path().join("audit"), asked).unwrap();
    // A thread asks for it as the first thing that it does.
    while !of_sealing().contains(&nicer) {
        std::thread::yield_now();
    }
    log.close().unwrap();
}
