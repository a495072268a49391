//! `--acks`: on standard output a line whenever more of the input is durable or was refused.
//!
//! Invariants:
//! - what was told stays so: no line up to it is missing from the log, nor, with `--rejects`, from that file;
//! - a thread of its own writes the lines, so that who reads none of them keeps nobody from appending. It tells what is so when
//!   it comes to it: of commits that went by meanwhile there is one line.

use super::alarm::Alarm;
use super::taken::{self, Taken};
use crate::exit::Failure;
use crate::interrupt::no_room;
use crate::output::print;
use bulla::Log;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// See the module.
pub(super) struct Acks {
    alarm: Alarm,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Result<(), Failure>)>,
}

impl Acks {
    /// Tells of `lines`, of one input, from now on.
    pub(super) fn start(log: &Log, lines: Arc<Mutex<Taken>>) -> Result<Self, Failure> {
        let (alarm, raised) = Alarm::new();
        let (ends, durable) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (of_log, of_thread, ended) = (alarm.clone(), durable.clone(), ends.clone());
        log.when_durable(move |entries| {
            durable.store(entries, Ordering::Release);
            of_log.raise();
        });
        let tell = move || {
            let mut told = 0;
            while raised.recv().is_ok() && !ended.load(Ordering::Acquire) {
                let line = taken::lock(&lines).settled(of_thread.load(Ordering::Acquire)).line;
                if line > told {
                    if let Err(failure) = print(&text(line)) {
                        return (told, Err(failure));
                    }
                    told = line;
                }
            }
            (told, Ok(()))
        };
        let thread = std::thread::Builder::new().name("bulla-acks".to_owned()).spawn(tell);
        let thread = thread.map_err(|error| no_room("starting a thread", &error))?;
        Ok(Acks { alarm, ends, thread })
    }

    /// What has the thread look how far it is.
    pub(super) fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Ends the thread: how far it told, and whether it could.
    pub(super) fn finish(self) -> (u64, Result<(), Failure>) {
        self.ends.store(true, Ordering::Release);
        self.alarm.raise();
        self.thread.join().unwrap_or((0, Ok(())))
    }
}

/// That every line up to this one is durable or was refused.
pub(super) fn text(line: u64) -> String {
    format!("durable {line}\n")
}
