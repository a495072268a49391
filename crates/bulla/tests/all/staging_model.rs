//! The staging queue, checked by loom: the sources of `src/write/stage` themselves, in every interleaving of their atomic
//! operations and locks that a few preemptions can make, with the weakest memory order that they ask for.
//!
//! Every model checks that each row that was published arrives once, in its producer's order, under dense numbers;
//! that no two accesses to a byte race; that nobody waits for ever; and that every buffer finds its way back.

#[allow(dead_code)]
mod stage;

use crate::helpers::in_full;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use stage::block_size::BlockOutcome;
use stage::buffer::{Buffer, Mark, ROW_PREFIX, Slice, Writer};
use stage::queue::{AssignFrames, Batch, Bounds, NoSpace, ProducerId, StagingQueue, Steady, Wait, Work};
use std::sync::atomic::{AtomicUsize, Ordering};

const ROW: usize = ROW_PREFIX + 1;

/// Numbers entries; lets so many bytes be in flight.
struct Count {
    next: u64,
    in_flight: usize,
    limit: usize,
}

impl AssignFrames for Count {
    type Assignment = u64;

    fn control(&mut self) -> Option<u64> {
        None
    }

    fn has_control(&self) -> bool {
        false
    }

    fn admits(&self) -> bool {
        self.in_flight < self.limit
    }

    fn block(&mut self, entries: u64, bytes: usize, _: Steady) -> u64 {
        self.in_flight += bytes;
        self.next += entries;
        self.next - entries
    }

    fn now(&self) -> Steady {
        0
    }

    fn seconds(&self) -> i64 {
        0
    }
}

type Shared = Arc<StagingQueue<Count>>;

/// Rows with their numbers.
type Arrived = Vec<(u64, u8)>;

/// Buffers of `rows` rows each; as many in flight as there may be.
fn queue(buffers: usize, rows: usize) -> Shared {
    gated(buffers, rows, usize::MAX)
}

fn gated(buffers: usize, rows: usize, limit: usize) -> Shared {
    let size = rows * ROW;
    bounded(Bounds { buffers, block_size: size, most_block_size: size, ..bounds(size) }, limit)
}

/// Two buffers of `size` bytes, and blocks that only pressure makes.
fn bounds(size: usize) -> Bounds {
    let never = 100 * size;
    Bounds { buffers: 2, buffer_size: size, large_rows: 2 * size, block_size: never, most_block_size: never }
}

fn bounded(bounds: Bounds, limit: usize) -> Shared {
    Arc::new(StagingQueue::new(bounds, Count { next: 0, in_flight: 0, limit }))
}

/// No bound on preemptions.
const ALL: usize = usize::MAX;

/// Runs `model` in every interleaving of so many preemptions where a sweep is in full, else of two at most: they show most
/// faults (Musuvathi and Qadeer, Iterative Context Bounding for Systematic Testing of Multithreaded Programs, PLDI 2007).
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let preemptions = if in_full() { preemptions } else { preemptions.min(2) };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (preemptions != ALL).then_some(preemptions);
    builder.max_branches = 10_000;
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let runs = runs.load(Ordering::Relaxed);
    println!("{runs} interleavings");
    assert!(runs > 5, "a model of {runs} interleavings shows nothing");
}

fn spawn<T: 'static>(queue: &Shared, run: impl FnOnce(&StagingQueue<Count>) -> T + 'static) -> JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || run(&queue))
}

/// What a log's producer does.
struct Producer<'a> {
    queue: &'a StagingQueue<Count>,
    id: ProducerId,
    writer: Option<Writer>,
}

impl<'a> Producer<'a> {
    fn new(queue: &'a StagingQueue<Count>) -> Self {
        let (id, _) = queue.register().unwrap();
        Producer { queue, id, writer: None }
    }

    fn append(&mut self, row: u8) -> Result<(), NoSpace> {
        self.append_within(row, Wait::Forever)
    }

    fn append_within(&mut self, row: u8, wait: Wait) -> Result<(), NoSpace> {
        let push = |writer: &mut Option<Writer>| {
            writer.as_mut().is_some_and(|writer| writer.push(1, None, |space| space[0] = row))
        };
        while !push(&mut self.writer) {
            self.writer = Some(self.queue.exchange(self.id, self.writer.take(), wait, false)?);
        }
        Ok(())
    }

    fn append_large(&mut self, row: u8, length: usize) -> Result<(), NoSpace> {
        self.queue.push_large(self.id, length, None, |space| space.fill(row), Wait::Forever, false)
    }

    fn retire(mut self) {
        self.queue.retire(self.id, self.writer.take());
    }
}

/// What a log's writer does, until there is nothing left to do.
fn write(queue: &StagingQueue<Count>) -> Arrived {
    let mut arrived = Vec::new();
    while let Some(Work::Block(first, batch)) = queue.take(true) {
        seal(&mut arrived, first, &batch);
        queue.release(batch, BlockOutcome::default());
    }
    arrived
}

fn seal(arrived: &mut Arrived, first: u64, batch: &Batch) {
    let rows = batch.slices.iter().flat_map(|slice| slice.rows());
    arrived.extend((first..).zip(rows.map(|(row, _)| row[0])));
    assert_eq!(arrived.last().map(|&(number, _)| number + 1), Some(first + batch.entries));
}

/// What is left once the threads are gone: what a log's `drain` does.
fn drain(queue: &StagingQueue<Count>) -> Arrived {
    queue.take_all();
    let mut arrived = Vec::new();
    while let Some(Work::Block(first, batch)) = queue.take(false) {
        seal(&mut arrived, first, &batch);
        queue.release(batch, BlockOutcome::default());
    }
    arrived
}

/// Puts what several writers got in the order of numbers, which have to be dense.
fn in_order(arrived: impl IntoIterator<Item = Arrived>) -> Vec<u8> {
    let mut all = arrived.into_iter().flatten().collect::<Arrived>();
    all.sort_unstable();
    assert!(all.iter().map(|&(number, _)| number).eq(0..all.len() as u64), "numbers: {all:?}");
    all.into_iter().map(|(_, row)| row).collect()
}

/// The rows of one producer of two: those of the first are below 100.
fn rows_of(rows: &[u8], second: bool) -> Vec<u8> {
    rows.iter().copied().filter(|&row| (row >= 100) == second).collect()
}

#[test]
fn linger_takes_from_a_buffer_that_is_being_written() {
    check(5, || {
        let queue = queue(2, 2);
        let producer = spawn(&queue, |queue| {
            let mut producer = Producer::new(queue);
            for row in 1..=3 {
                producer.append(row).unwrap();
            }
            producer.retire();
        });
        let linger = spawn(&queue, |queue| {
            queue.expire_linger();
            drain(queue)
        });
        producer.join().unwrap();
        let early = linger.join().unwrap();
        queue.close();
        let late = drain(&queue);
        assert_eq!(in_order([early, late]), [1, 2, 3]);
        assert!(queue.is_at_rest());
    });
}

#[test]
fn buffers_are_used_again_while_a_writer_reads() {
    check(3, || {
        let queue = queue(2, 1);
        let writer = spawn(&queue, write);
        let linger = spawn(&queue, |queue| queue.expire_linger());
        let mut producer = Producer::new(&queue);
        for row in 1..=4 {
            producer.append(row).unwrap();
        }
        producer.retire();
        linger.join().unwrap();
        queue.close();
        assert_eq!(in_order([writer.join().unwrap()]), [1, 2, 3, 4]);
        assert!(queue.is_at_rest());
    });
}

#[test]
fn a_producer_goes_on_in_the_buffer_that_it_flushed() {
    check(ALL, || {
        let queue = queue(2, 3);
        let writer = spawn(&queue, write);
        let mut producer = Producer::new(&queue);
        producer.append(1).unwrap();
        assert_eq!(queue.flush(producer.id), Ok(1));
        producer.append(2).unwrap();
        producer.append(3).unwrap();
        assert_eq!(queue.flush(producer.id), Ok(2));
        producer.append(4).unwrap();
        producer.retire();
        queue.close();
        assert_eq!(in_order([writer.join().unwrap()]), [1, 2, 3, 4]);
        assert!(queue.is_at_rest());
    });
}

/// Two producers share four buffers of a row each; one retires while the other waits for space.
#[test]
fn producers_that_retire_leave_nothing_behind() {
    check(3, || {
        let queue = queue(4, 1);
        let writer = spawn(&queue, write);
        let other = spawn(&queue, |queue| {
            let mut producer = Producer::new(queue);
            producer.append(100).unwrap();
            producer.append(101).unwrap();
            producer.retire();
        });
        let mut producer = Producer::new(&queue);
        for row in 1..=3 {
            producer.append(row).unwrap();
        }
        producer.retire();
        other.join().unwrap();
        queue.close();
        let rows = in_order([writer.join().unwrap()]);
        assert_eq!((rows_of(&rows, false), rows_of(&rows, true)), (vec![1, 2, 3], vec![100, 101]));
        assert!(queue.is_at_rest());
    });
}

/// No writer runs: the only buffer that comes free is the one of a producer that retires.
#[test]
fn a_buffer_that_comes_free_by_retiring_wakes_whoever_waits() {
    check(ALL, || {
        let queue = queue(4, 1);
        let idle = {
            let (id, _) = queue.register().unwrap();
            let writer = queue.exchange(id, None, Wait::Never, false).unwrap();
            spawn(&queue, move |queue| queue.retire(id, Some(writer)))
        };
        let mut producer = Producer::new(&queue);
        for row in 1..=4 {
            producer.append(row).unwrap();
        }
        idle.join().unwrap();
        producer.retire();
        assert_eq!(in_order([drain(&queue)]), [1, 2, 3, 4]);
        assert!(queue.is_at_rest());
    });
}

/// Nothing more comes, and nobody closes: a writer gets what there is all the same.
#[test]
fn what_is_full_flushed_or_lingering_reaches_a_waiting_writer() {
    let flushes: [fn(&StagingQueue<Count>, &mut Producer<'_>); 4] = [
        |_, producer| producer.append(2).unwrap(),
        |queue, producer| drop(queue.flush(producer.id)),
        |queue, _| _ = queue.take_all(),
        |queue, _| _ = queue.expire_linger(),
    ];
    for flush in flushes {
        check(ALL, move || {
            let queue = queue(2, 1);
            let writer = spawn(&queue, |queue| match queue.take(true) {
                Some(Work::Block(_, batch)) => queue.release(batch, BlockOutcome::default()),
                _ => panic!("no block"),
            });
            let mut producer = Producer::new(&queue);
            producer.append(1).unwrap();
            flush(&queue, &mut producer);
            writer.join().unwrap();
        });
    }
}

/// Nothing more comes, and nobody closes: what lingers while a block is sealed is the next one of whoever seals it.
#[test]
fn what_lingers_while_a_block_is_sealed_is_taken_after_it() {
    check(ALL, || {
        let queue = bounded(Bounds { buffers: 4, ..bounds(ROW) }, usize::MAX);
        let writer = spawn(&queue, |queue| {
            let mut arrived = Vec::new();
            while arrived.len() < 2 {
                let Some(Work::Block(first, batch)) = queue.take(true) else { panic!("no block") };
                seal(&mut arrived, first, &batch);
                queue.release(batch, BlockOutcome::default());
            }
            arrived
        });
        let mut producer = Producer::new(&queue);
        for row in 1..=2 {
            producer.append(row).unwrap();
            queue.expire_linger();
        }
        assert_eq!(in_order([writer.join().unwrap()]), [1, 2]);
    });
}

/// Two blocks become ready at once: whoever takes the first tells the next writer of the second.
#[test]
fn one_notice_reaches_as_many_writers_as_there_are_blocks() {
    check(4, || {
        let queue = queue(4, 1);
        let writers = [(); 2].map(|()| {
            spawn(&queue, |queue| match queue.take(true) {
                Some(Work::Block(first, _)) => first,
                _ => panic!("no block"),
            })
        });
        let mut producers = [Producer::new(&queue), Producer::new(&queue)];
        assert!(queue.register().is_none(), "half of the buffers are taken");
        producers.iter_mut().for_each(|producer| producer.append(1).unwrap());
        queue.take_all();
        let mut numbers = writers.map(|writer| writer.join().unwrap());
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1]);
        producers.into_iter().for_each(Producer::retire);
        assert!(queue.register().is_some());
    });
}

/// The queue is not worth a block; that somebody waits for space makes it one.
#[test]
fn who_waits_presses_the_writers() {
    check(4, || {
        let queue = bounded(Bounds { large_rows: ROW, ..bounds(ROW) }, usize::MAX);
        let writer = spawn(&queue, write);
        let mut producer = Producer::new(&queue);
        for row in 1..=4 {
            producer.append(row).unwrap();
        }
        producer.append_large(5, ROW).unwrap();
        producer.append_large(6, ROW).unwrap();
        producer.retire();
        queue.close();
        assert_eq!(in_order([writer.join().unwrap()]), [1, 2, 3, 4, 5, 6]);
        assert!(queue.is_at_rest());
    });
}

/// Blocks of small groups make the next ones larger than all of the memory: who waits gets it all the same.
#[test]
fn blocks_that_grow_beyond_what_can_be_staged_are_taken() {
    check(3, || {
        let size = 2 * ROW;
        let queue =
            bounded(Bounds { block_size: ROW, most_block_size: 100 * size, ..bounds(size) }, usize::MAX);
        let writer = spawn(&queue, |queue| {
            let (mut arrived, mut lengths) = (Vec::new(), Vec::new());
            while let Some(Work::Block(first, batch)) = queue.take(true) {
                seal(&mut arrived, first, &batch);
                lengths.push(batch.bytes);
                let entries = batch.entries;
                queue.release(batch, BlockOutcome { groups: entries, ..BlockOutcome::default() });
            }
            (arrived, lengths)
        });
        let mut producer = Producer::new(&queue);
        for row in 1..=6 {
            producer.append(row).unwrap();
        }
        producer.retire();
        queue.close();
        let (arrived, lengths) = writer.join().unwrap();
        assert_eq!(in_order([arrived]), [1, 2, 3, 4, 5, 6]);
        assert!(lengths.iter().all(|&length| length <= 2 * size), "{lengths:?}");
        assert!(queue.is_at_rest());
    });
}

#[test]
fn who_never_waits_is_told_which_rows_were_taken() {
    check(ALL, || {
        let queue = queue(2, 1);
        let writer = spawn(&queue, write);
        let mut producer = Producer::new(&queue);
        let taken = (1..=4).filter(|&row| match producer.append_within(row, Wait::Never) {
            Ok(()) => true,
            Err(refusal) => {
                assert_eq!(refusal, NoSpace::Timeout);
                false
            }
        });
        let taken = taken.collect::<Vec<u8>>();
        assert!(taken.starts_with(&[1, 2]), "{taken:?}");
        producer.retire();
        queue.close();
        assert_eq!(in_order([writer.join().unwrap()]), taken);
        assert!(queue.is_at_rest());
    });
}

/// Whatever was flushed arrives; of the rest a prefix does; nobody is told that a row was taken after closing.
#[test]
fn closing_races_with_appending() {
    check(4, || {
        let queue = queue(2, 2);
        let writer = spawn(&queue, write);
        let producer = spawn(&queue, |queue| {
            let mut producer = Producer::new(queue);
            let mut flushed = 0;
            for row in 1..=3 {
                if producer.append(row).is_err() {
                    break;
                }
                if row == 2 && queue.flush(producer.id).is_ok() {
                    flushed = row;
                }
            }
            (producer.id, producer.writer.take(), flushed)
        });
        queue.close();
        let early = writer.join().unwrap();
        let late = drain(&queue);
        let (id, mut writer, flushed) = producer.join().unwrap();
        let rows = in_order([early, late]);
        assert!(
            rows.len() >= usize::from(flushed) && rows.iter().copied().eq(1..=rows.len() as u8),
            "{rows:?}"
        );
        // After closing, known to have happened before, nothing is taken any more.
        if let Some(writer) = &mut writer {
            assert!(!writer.push(0, None, |_| ()));
        }
        assert_eq!(queue.flush(id), Err(NoSpace::Closed));
        assert_eq!(queue.exchange(id, writer, Wait::Forever, false).err(), Some(NoSpace::Closed));
    });
}

#[test]
fn failing_wakes_everybody() {
    check(5, || {
        let queue = gated(2, 1, 0);
        let writer = spawn(&queue, write);
        let producer = spawn(&queue, |queue| {
            let mut producer = Producer::new(queue);
            (1..=3).find_map(|row| producer.append(row).err())
        });
        queue.fail();
        assert_eq!(writer.join().unwrap(), []);
        assert_eq!(producer.join().unwrap(), Some(NoSpace::Failed));
    });
}

#[test]
fn large_rows_keep_their_place_and_their_bound() {
    check(ALL, || {
        let queue = queue(2, 2);
        let writer = spawn(&queue, write);
        let mut producer = Producer::new(&queue);
        producer.append(1).unwrap();
        producer.append_large(2, 2 * ROW).unwrap();
        producer.append(3).unwrap();
        // Larger than what large rows may take together: it waits until it is alone.
        producer.append_large(4, 5 * ROW).unwrap();
        producer.append(5).unwrap();
        producer.retire();
        queue.close();
        assert_eq!(in_order([writer.join().unwrap()]), [1, 2, 3, 4, 5]);
        assert!(queue.is_at_rest());
    });
}

/// A large row that is queued while the log is closed is either refused or arrives.
#[test]
fn closing_races_with_a_large_row() {
    check(ALL, || {
        let queue = queue(2, 1);
        let writer = spawn(&queue, write);
        let producer = spawn(&queue, |queue| {
            let mut producer = Producer::new(queue);
            let taken = producer.append_large(1, ROW).is_ok();
            producer.retire();
            taken
        });
        queue.close();
        let early = writer.join().unwrap();
        let late = drain(&queue);
        let taken = producer.join().unwrap();
        assert_eq!(in_order([early, late]), if taken { vec![1] } else { vec![] });
        assert!(queue.is_at_rest());
    });
}

/// Two writers, and a gate that lets one row be in flight until it is committed.
#[test]
fn writers_behind_a_closed_gate_wake_up() {
    check(2, || {
        let queue = gated(2, 1, 1);
        let committing = |queue: &StagingQueue<Count>| {
            let mut arrived = Vec::new();
            while let Some(Work::Block(first, batch)) = queue.take(true) {
                seal(&mut arrived, first, &batch);
                let bytes = batch.bytes;
                queue.release(batch, BlockOutcome::default());
                queue.with_sequencer(|count| count.in_flight -= bytes);
            }
            arrived
        };
        let writers = [spawn(&queue, committing), spawn(&queue, committing)];
        let mut producer = Producer::new(&queue);
        for row in 1..=3 {
            producer.append(row).unwrap();
        }
        producer.retire();
        queue.close();
        assert_eq!(in_order(writers.map(|writer| writer.join().unwrap())), [1, 2, 3]);
        assert!(queue.is_at_rest());
    });
}

/// What the safety of `buffer` rests on, whoever uses it: no second writer, and no new one over somebody's slice.
#[test]
fn a_buffer_that_somebody_holds_gets_no_writer() {
    loom::model(|| {
        let mut buffer = Arc::new(Buffer::new(2 * ROW));
        let mut writer = Writer::new(&mut buffer).unwrap();
        assert!(writer.push(1, None, |row| row[0] = 1));
        assert!(Writer::new(&mut buffer).is_none());
        let (slice, mark) = Slice::beyond(&buffer, Mark::default());
        drop(writer);
        assert!(Writer::new(&mut buffer).is_none());
        assert!(slice.rows().map(|(row, _)| row).eq([[1]]));
        drop(slice);
        assert_eq!(buffer.mark(), mark);
        assert!(Writer::new(&mut buffer).is_some());
        assert_eq!(buffer.mark(), Mark::default());
    });
}
