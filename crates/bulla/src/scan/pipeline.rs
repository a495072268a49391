//! Work on many threads, its results in order, in bounded memory.
#![expect(clippy::disallowed_methods, reason = "threads that open blocks, which end before the call does")]

use bulla_store::{Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};

/// How much may be under way at once, by the weights that items are given; one more may begin below that. Of blocks up to
/// 8 MiB that is twenty, of larger ones ten.
pub(crate) const MOST_WEIGHT: u64 = 4 << 30;
/// After an item that weighs as much a thread lets its memory go.
const HEAVY: u64 = MOST_WEIGHT / 8;

/// Takes items from `next`, each with a weight (the most bytes of memory that it may take), applies `work` to them on
/// `threads` threads, and gives the results to `take` in the items' order, on the calling thread. The first error in that order ends it:
/// where `next` fails, what it gave before is taken first.
pub(crate) fn in_order<T: Send, R: Send, W: Default>(
    threads: usize,
    mut next: impl FnMut() -> Result<Option<(T, u64)>>,
    work: impl Fn(&mut W, T) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    type Job<T, R> = (T, u64, SyncSender<Result<R>>);
    let (jobs, queue) = mpsc::channel::<Job<T, R>>();
    let (queue, stopped) = (Mutex::new(queue), AtomicBool::new(false));
    let receive =
        |queue: &Mutex<Receiver<Job<T, R>>>| queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let mut memory = W::default();
                while let Some((item, weight, result)) =
                    receive(&queue).filter(|_| !stopped.load(Ordering::Relaxed))
                {
                    let outcome = work(&mut memory, item);
                    if weight >= HEAVY {
                        memory = W::default();
                    }
                    // Nobody waits for it any more where an earlier one failed.
                    let _ = result.send(outcome);
                }
            });
        }
        let mut pending = VecDeque::<(Receiver<Result<R>>, u64)>::new();
        let (mut weight, mut end) = (0, None);
        let mut run = || {
            loop {
                while end.is_none()
                    && (pending.is_empty() || pending.len() < 4 * threads && weight < MOST_WEIGHT)
                {
                    let (item, heavy) = match next() {
                        Ok(Some(item)) => item,
                        Ok(None) => {
                            end = Some(Ok(()));
                            break;
                        }
                        Err(error) => {
                            end = Some(Err(error));
                            break;
                        }
                    };
                    let (sender, receiver) = mpsc::sync_channel(1);
                    weight += heavy;
                    pending.push_back((receiver, heavy));
                    // The queue is there as long as this function is.
                    let _ = jobs.send((item, heavy, sender));
                }
                let Some((result, light)) = pending.pop_front() else { return end.take().unwrap_or(Ok(())) };
                weight -= light;
                take(result.recv().map_err(|_| Error::unavailable("a reading thread panicked"))??)?;
            }
        };
        let result = run();
        stopped.store(true, Ordering::Relaxed);
        drop(jobs);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

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
                    Ok(next.map(|item| (item, MOST_WEIGHT / 3)))
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
        for (weight, kept) in [(HEAVY - 1, true), (HEAVY, false)] {
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
            in_order(1, || Ok(items.next().map(|item: u64| (item, weight))), work, take).unwrap();
            assert_eq!(met, if kept { vec![1, 2, 3, 4, 5] } else { vec![1; 5] });
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let mut taken = 0;
        let result = in_order(
            2,
            || Ok(Some(((), 1))),
            |count: &mut u64, ()| {
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
                Some(item) => Ok(Some((item, 1))),
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
}
