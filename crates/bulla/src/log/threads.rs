//! The threads of a log, each with what it owns.
//!
//! Those that seal own their working memory, the committing thread the committer, the checkpointing thread the checkpointer. They
//! give these back when they end, in whatever way: a panic is caught around what a thread does, not around what it owns.

use crate::format::options::Durability;
use crate::write::engine::checkpointing::{CheckpointWork, Checkpointing};
use crate::write::engine::committing::{Committing, SyncRequest};
use crate::write::engine::sequencer::AssignedFrame;
use crate::write::engine::{Engine, SerialStages};
use bulla_crypto::environment::Interrupt;
use bulla_crypto::yielding;
use bulla_store::{Error, Result};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// See the module.
pub(super) struct Threads {
    writers: Vec<JoinHandle<()>>,
    committer: JoinHandle<Committing>,
    checkpointer: JoinHandle<Checkpointing>,
    linger: JoinHandle<()>,
    /// Of a log that sets aside what it drops.
    set_aside: Option<SettingAside>,
    /// Ends the threads of `linger` and `set_aside`.
    ended: Arc<Interrupt>,
}

/// The thread that writes what was dropped to files, and what it raises when it has written the last one.
struct SettingAside(JoinHandle<()>, Arc<Interrupt>);

/// The pause between two files of what was dropped.
const BETWEEN_FILES: Duration = Duration::from_millis(100);
/// For so long closing a log waits for the last of them.
const LAST_FILE: Duration = Duration::from_secs(2);

impl Threads {
    /// Gives the engine's stages to threads.
    ///
    /// # Errors
    /// Where a thread cannot be started. The log has failed then, and those that were started end.
    pub(super) fn start(engine: &Arc<Engine>) -> Result<Self> {
        let ended = Arc::new(Interrupt::default());
        Self::start_all(engine, &ended).inspect_err(|error| {
            engine.fail(error);
            engine.checkpoints.close();
            ended.raise();
        })
    }

    fn start_all(engine: &Arc<Engine>, ended: &Arc<Interrupt>) -> Result<Self> {
        let stages = engine.give_stages();
        let stages = stages.ok_or_else(|| Error::unavailable("the log has threads already"))?;
        let writers = 0..engine.tuning.writers;
        Ok(Threads {
            writers: writers.map(|_| spawn("bulla-writer", engine, (), seal)).collect::<Result<_>>()?,
            committer: spawn("bulla-committer", engine, stages.committing, commit)?,
            checkpointer: spawn("bulla-checkpoint", engine, stages.checkpointing, checkpoint)?,
            linger: {
                let until = ended.clone();
                spawn("bulla-linger", engine, (), move |engine, ()| linger(engine, &until))?
            },
            set_aside: engine.sets_aside().then(|| SettingAside::start(engine, ended)).transpose()?,
            ended: ended.clone(),
        })
    }

    /// Waits until everything that is staged is sealed and committed, or the log has failed, and ends the threads. The
    /// caller has closed the staging queue.
    pub(super) fn join(self, engine: &Engine) {
        self.writers.into_iter().for_each(|writer| drop(writer.join()));
        engine.commits.close();
        let committing = self.committer.join();
        engine.checkpoints.close();
        let checkpointing = self.checkpointer.join();
        self.ended.raise();
        drop(self.linger.join());
        if let Some(set_aside) = self.set_aside {
            set_aside.join(engine);
        }
        if let (Ok(committing), Ok(checkpointing)) = (committing, checkpointing) {
            engine.take_stages_back(SerialStages { committing, checkpointing });
        }
    }
}

impl SettingAside {
    fn start(engine: &Arc<Engine>, ended: &Arc<Interrupt>) -> Result<Self> {
        let done = Arc::new(Interrupt::default());
        let (until, raise) = (ended.clone(), done.clone());
        let thread = spawn("bulla-set-aside", engine, (), move |engine, ()| {
            set_aside(engine, &until);
            raise.raise();
        })?;
        Ok(SettingAside(thread, done))
    }

    /// Waits until the last file is written, unless the directory takes too long for that: then the thread is left to itself.
    fn join(self, engine: &Engine) {
        let SettingAside(thread, done) = self;
        if done.wait(LAST_FILE) || thread.is_finished() {
            return drop(thread.join());
        }
        engine.tell_of_paths(
            "whether what was dropped last is set aside is not known: the directory of `error_path` does not answer",
        );
    }
}

/// A thread that owns something while it runs. A panic fails the log, and is all that whoever waits learns of it.
fn spawn<T: Send + 'static>(
    name: &str,
    engine: &Arc<Engine>,
    mut owned: T,
    run: impl FnOnce(&Engine, &mut T) + Send + 'static,
) -> Result<JoinHandle<T>> {
    let engine = engine.clone();
    let guarded = move || {
        // Everybody is told by the engine.
        let _ = engine.guarded(|| run(&engine, &mut owned));
        owned
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(guarded);
    thread.map_err(|error| {
        let what = format!("starting the thread {name}, of those that a log at work needs");
        Error::unavailable(format!("{what}: {error}; look at the limit on threads (`ulimit -u`)"))
    })
}

/// By so much threads that seal are nicer than others, where they are to be.
const NICER: i32 = 10;

fn seal(engine: &Engine, (): &mut ()) {
    // On Linux it is of the thread alone. Where it is refused, the thread goes on as all others.
    #[cfg(target_os = "linux")]
    if engine.tuning.yielding {
        let _ = rustix::process::nice(NICER);
    }
    if engine.tuning.yielding {
        yielding::begin();
    }
    let mut sealer = engine.sealer();
    while engine.seal_next(&mut sealer, true) {}
}

fn commit(engine: &Engine, committing: &mut Committing) {
    while let Some(work) = engine.commits.wait() {
        // Everybody is told of an error by the engine.
        if engine.work_off(committing, work).is_err() {
            return;
        }
    }
}

/// Queues what is staged after a while: sooner where many entries come, later where few do.
fn linger(engine: &Engine, ended: &Interrupt) {
    let shortest = engine.tuning.linger.max(Duration::from_micros(100));
    let mut time = shortest;
    while !ended.wait(time) {
        let entries = engine.staging.expire_linger();
        time = next_linger(time, entries, (shortest, engine.tuning.enough));
    }
}

/// Writes what was dropped to files, now and then. Nothing else is done here: the directory may be one that does not answer.
fn set_aside(engine: &Engine, ended: &Interrupt) {
    while !ended.wait(BETWEEN_FILES) {
        engine.set_rows_aside();
    }
    engine.set_rows_aside();
}

/// How long the next entries wait, where so many came in `time`: as long as it takes for `enough` to come, between `shortest` and 40 times that,
/// but no more than twice as long as those before them did.
fn next_linger(time: Duration, entries: u64, (shortest, enough): (Duration, u32)) -> Duration {
    let longest = time.saturating_mul(2).min(shortest.saturating_mul(40));
    let needed = time.saturating_mul(enough).checked_div(u32::try_from(entries).unwrap_or(u32::MAX));
    needed.unwrap_or(longest).clamp(shortest, longest)
}

/// Publishes a checkpoint once in `checkpoint_interval`, and whenever one is asked for; in mode `interval` has the committing
/// thread sync at that mode's own pace, and before each checkpoint. Has an event say that the log is at work where it
/// promises that, and a checkpoint cover the event.
fn checkpoint(engine: &Engine, checkpointing: &mut Checkpointing) {
    let interval = engine.tuning.checkpoint_interval;
    let sync_interval = match engine.tuning.durability {
        Durability::Interval(time) => Some(time),
        Durability::Group | Durability::Os => None,
    };
    let longest = sync_interval.map_or(interval, |time| time.min(interval));
    // Since the last one, counted in ticks: no clock is needed for that.
    let (mut since_sync, mut since_checkpoint) = (Duration::ZERO, Duration::ZERO);
    let mut heartbeat = None::<AssignedFrame>;
    loop {
        // A fourth of the time that is promised: then the event comes soon enough, and its checkpoint.
        let tick = engine.heartbeat().map_or(longest, |time| longest.min(time / 4));
        match engine.checkpoints.wait(tick) {
            CheckpointWork::End => return,
            CheckpointWork::Tick => {
                since_sync += tick;
                since_checkpoint += tick;
                let published = engine.published().size;
                heartbeat = heartbeat.filter(|frame| frame.get().is_none_or(|frame| *frame >= published));
                let unsigned = heartbeat.is_some();
                heartbeat = heartbeat.or_else(|| engine.beat());
                let due = unsigned || since_checkpoint >= interval;
                match sync_interval {
                    Some(time) if due || since_sync >= time => {
                        engine.commits.request(if due { SyncRequest::Checkpoint } else { SyncRequest::Sync });
                        since_sync = Duration::ZERO;
                    }
                    // Mode `os` syncs for nothing else.
                    None if unsigned && engine.tuning.durability == Durability::Os => {
                        engine.commits.request(SyncRequest::Checkpoint);
                    }
                    None if due && engine.publish(checkpointing).is_err() => return,
                    _ => {}
                }
                if due {
                    since_checkpoint = Duration::ZERO;
                }
            }
            CheckpointWork::Cosigned => engine.take_cosigned(checkpointing),
            CheckpointWork::Requested => {
                if engine.publish(checkpointing).is_err() {
                    return;
                }
                since_checkpoint = Duration::ZERO;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_wait_until_enough_have_come() {
        let ms = Duration::from_millis;
        let next = |time, entries| next_linger(ms(time), entries, (ms(5), 1000));
        // Nobody comes for a while: each wait is twice the one before it, up to 40 times the shortest.
        assert_eq!(
            (next(5, 0), next(80, 0), next(150, 0), next(200, 0)),
            (ms(10), ms(160), ms(200), ms(200))
        );
        // 20 a millisecond, and 500.
        assert_eq!((next(5, 100), next(30, 600), next(200, 4000)), (ms(10), ms(50), ms(50)));
        assert_eq!((next(200, 100_000), next(5, 2500)), (ms(5), ms(5)));
    }
}
