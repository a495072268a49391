//! One ordered pool of block readers: work on many threads, its results in order, in bounded memory.
//!
//! Invariants:
//! - results are taken in the order in which their items were given, each once; what comes before an error is taken;
//! - no more is under way than [`MOST_WEIGHT`], by the most memory that reading an item may take, and one item;
//! - a panic, of a store, an identity or whatever gives keys, ends the reading with an error that names the frame: it
//!   neither passes through nor leaves a result out.

use bulla_store::{Error, Result};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How much may be under way at once, by the weights that items are given; one more may begin below that. Of blocks up to
/// 8 MiB that is twenty, of larger ones ten.
const MOST_WEIGHT: u64 = 4 << 30;

/// After an item that weighs as much a thread lets its memory go: what all of them keep between items is less than
/// [`MOST_WEIGHT`].
fn heavy(threads: usize) -> u64 {
    MOST_WEIGHT / threads.max(8) as u64
}

/// What one thread is to do.
pub(crate) struct Job<T> {
    /// The frame that it is about, for whoever is told that it failed.
    pub(crate) frame: u64,
    /// The most bytes of memory that it may take.
    pub(crate) weight: u64,
    pub(crate) item: T,
}

/// Takes jobs from `next`, applies `work` to their items on `threads` threads, each with working memory of its own, and
/// gives the results to `take` in the jobs' order. `next` and `take` are called on the calling thread. The first error in
/// that order ends it: where `next` fails, what it gave before is taken first. Where the system starts fewer threads, those
/// do the work, and where it starts none, the calling thread does.
///
/// # Errors
/// What `next`, `work` and `take` fail with; `Unavailable` where `next` or `work` panics. A panic of `take`, which is the
/// caller's own, passes through.
#[expect(clippy::disallowed_methods, reason = "threads that end before the call does")]
pub(crate) fn in_order<T: Send, R: Send, W: Default>(
    threads: usize,
    mut next: impl FnMut() -> Result<Option<Job<T>>>,
    work: impl Fn(&mut W, T) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    if threads <= 1 {
        return one_by_one(next, work, take);
    }
    let (jobs, queue) = mpsc::channel::<(Job<T>, SyncSender<Result<R>>)>();
    let (queue, stopped) = (Mutex::new(queue), AtomicBool::new(false));
    // What is called here keeps nothing that a panic could leave half done: the reading ends with it.
    let receive = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let serve = || {
        let mut memory = W::default();
        while let Some((Job { frame, weight, item }, result)) =
            receive().filter(|_| !stopped.load(Ordering::Relaxed))
        {
            let outcome = guarded(frame, || work(&mut memory, item));
            if weight >= heavy(threads) || outcome.is_err() {
                memory = W::default();
            }
            // Nobody waits for it any more where an earlier one failed.
            let _ = result.send(outcome);
        }
    };
    thread::scope(|scope| {
        let start =
            |_| thread::Builder::new().name("bulla-reader".to_owned()).spawn_scoped(scope, serve).ok();
        let threads = (0..threads).map_while(start).count();
        if threads == 0 {
            return one_by_one(next, &work, take);
        }
        let mut pending = VecDeque::<(Receiver<Result<R>>, u64)>::new();
        let (mut weight, mut end, mut after) = (0, None, 0);
        let mut run = || {
            loop {
                while end.is_none()
                    && (pending.is_empty() || pending.len() < 4 * threads && weight < MOST_WEIGHT)
                {
                    match guarded(after, &mut next) {
                        Ok(Some(job)) => {
                            let (sender, receiver) = mpsc::sync_channel(1);
                            after = job.frame + 1;
                            weight += job.weight;
                            pending.push_back((receiver, job.weight));
                            // The queue is there as long as this function is.
                            let _ = jobs.send((job, sender));
                        }
                        Ok(None) => end = Some(Ok(())),
                        Err(error) => end = Some(Err(error)),
                    }
                }
                let Some((result, light)) = pending.pop_front() else { return end.take().unwrap_or(Ok(())) };
                weight -= light;
                take(result.recv().map_err(|_| Error::unavailable("a thread that reads ended early"))??)?;
            }
        };
        let result = run();
        stopped.store(true, Ordering::Relaxed);
        drop(jobs);
        result
    })
}

/// The same on the calling thread alone, one item after the other.
fn one_by_one<T, R, W: Default>(
    mut next: impl FnMut() -> Result<Option<Job<T>>>,
    work: impl Fn(&mut W, T) -> Result<R>,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let (mut memory, mut after) = (W::default(), 0);
    while let Some(Job { frame, weight, item }) = guarded(after, &mut next)? {
        after = frame + 1;
        take(guarded(frame, || work(&mut memory, item))?)?;
        if weight >= heavy(1) {
            memory = W::default();
        }
    }
    Ok(())
}

/// Does `work`. A panic of it is an error: nothing is known of the frame, and so nothing is said of the log.
fn guarded<T>(frame: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|panic| Err(panicked(frame, &*panic)))
}

/// What a panic is to whoever asked.
fn panicked(frame: u64, panic: &(dyn Any + Send)) -> Error {
    let message = panic.downcast_ref::<&str>().copied();
    let message =
        message.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given");
    Error::unavailable(format!("reading panicked at frame {frame} or behind it: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn job(item: u64, weight: u64) -> Job<u64> {
        Job { frame: item, weight, item }
    }

    #[test]
    fn results_come_in_order_and_few_are_under_way() {
        for threads in [1, 2, 7] {
            let (under_way, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let mut items = 0..1000_u64;
            let mut taken = Vec::new();
            in_order(
                threads,
                || {
                    let next = items.next();
                    if next.is_some() {
                        most.fetch_max(under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                    Ok(next.map(|item| job(item, MOST_WEIGHT / 3)))
                },
                |_: &mut (), item| Ok(item * 2),
                |result| {
                    under_way.fetch_sub(1, Ordering::Relaxed);
                    taken.push(result);
                    Ok(())
                },
            )
            .unwrap();
            assert!(taken.iter().copied().eq((0..1000).map(|item| item * 2)));
            assert!(most.load(Ordering::Relaxed) <= 4);
        }
    }

    #[test]
    fn memory_is_kept_between_items_but_heavy_ones() {
        for (weight, kept) in [(heavy(1) - 1, true), (heavy(1), false)] {
            let mut items = 0..5;
            let mut met = Vec::new();
            let work = |memory: &mut u64, _| {
                *memory += 1;
                Ok(*memory)
            };
            let take = |count| {
                met.push(count);
                Ok(())
            };
            in_order(1, || Ok(items.next().map(|item| job(item, weight))), work, take).unwrap();
            assert_eq!(met, if kept { vec![1, 2, 3, 4, 5] } else { vec![1; 5] });
        }
    }

    #[test]
    fn what_threads_keep_is_bounded_however_many_there_are() {
        for threads in [1, 8, 9, 100, 1000] {
            assert!(threads as u64 * heavy(threads) <= MOST_WEIGHT);
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let mut taken = 0;
        let result = in_order(
            2,
            || Ok(Some(job(0, 1))),
            |count: &mut u64, _| {
                *count += 1;
                if *count > 50 { Err(Error::unavailable("enough")) } else { Ok(()) }
            },
            |()| {
                taken += 1;
                Ok(())
            },
        );
        assert_eq!(result.unwrap_err().to_string(), "enough");
        assert!(taken >= 50);
    }

    #[test]
    fn what_comes_before_an_error_is_taken_first() {
        for threads in [1, 2, 7] {
            let mut items = 0..10_u64;
            let mut taken = Vec::new();
            let next = || match items.next() {
                Some(item) => Ok(Some(job(item, 1))),
                None => Err(Error::unavailable("there is no tenth")),
            };
            let result = in_order(
                threads,
                next,
                |_: &mut (), item| Ok(item),
                |item| {
                    taken.push(item);
                    Ok(())
                },
            );
            assert_eq!(result.unwrap_err().to_string(), "there is no tenth");
            assert!(taken.iter().copied().eq(0..10), "{taken:?}");
        }
    }

    #[test]
    fn a_panic_is_an_error_after_what_came_before() {
        for threads in [1, 2, 7] {
            for in_next in [false, true] {
                let mut items = 0..100_u64;
                let mut taken = Vec::new();
                let next = || {
                    let item = items.next();
                    assert!(!in_next || item != Some(40), "a store gave up");
                    Ok(item.map(|item| job(item, 1)))
                };
                let work = |(): &mut (), item| {
                    assert!(item != 40, "a store gave up");
                    Ok(item)
                };
                let result = in_order(threads, next, work, |item| {
                    taken.push(item);
                    Ok(())
                });
                let error = result.unwrap_err();
                assert_eq!(error.kind(), bulla_store::ErrorKind::Unavailable);
                let told = error.to_string();
                assert!(told.contains("frame 40") && told.contains("a store gave up"), "{told}");
                assert!(taken.iter().copied().eq(0..40), "{taken:?}");
            }
        }
    }
}
