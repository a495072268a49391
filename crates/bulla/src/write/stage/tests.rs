//! The staging queue on real threads and real memory; `tests/all/staging_model.rs` checks it on modelled ones.

use super::block_size::{BlockOutcome, BlockSizeController};
use super::buffer::{Buffer, Mark, Slice, StagedPlace, Writer};
use super::queue::{AssignFrames, Bounds, NoSpace, StagingQueue, Steady, Wait, Work};
use super::sync::Arc;
use std::time::Duration;

struct Count(u64);

impl AssignFrames for Count {
    type Assignment = u64;

    fn control(&mut self) -> Option<u64> {
        None
    }

    fn has_control(&self) -> bool {
        false
    }

    fn admits(&self) -> bool {
        true
    }

    fn block(&mut self, entries: u64, _: usize, _: Steady) -> u64 {
        self.0 += entries;
        self.0 - entries
    }

    fn now(&self) -> Steady {
        0
    }

    fn seconds(&self) -> i64 {
        0
    }
}

type Rows = Vec<(u64, Vec<u8>)>;

fn write(queue: &StagingQueue<Count>) -> Rows {
    let mut arrived = Vec::new();
    while let Some(Work::Block(first, batch)) = queue.take(true) {
        let rows = batch.slices.iter().flat_map(|slice| slice.rows().map(|(row, _)| row.to_vec()));
        arrived.extend((first..).zip(rows));
        queue.release(batch, BlockOutcome::default());
    }
    arrived
}

/// Rows of a producer's letter and a count, of all lengths up to twice a buffer's.
fn produce(queue: &StagingQueue<Count>, letter: u8, count: u32) {
    let (id, _) = queue.register().unwrap();
    let mut writer = None;
    for index in 0..count {
        let length = 5 + index as usize * 7 % 120;
        let encode = |row: &mut [u8]| {
            row.fill(letter);
            row[1..5].copy_from_slice(&index.to_le_bytes());
        };
        let wait = Wait::lasting(Duration::MAX);
        if length > 60 {
            queue.push_large(id, length, None, encode, wait, false).unwrap();
            continue;
        }
        while !writer
            .as_mut()
            .is_some_and(|writer: &mut super::buffer::Writer| writer.push(length, None, encode))
        {
            writer = Some(queue.exchange(id, writer.take(), wait, false).unwrap());
        }
        if index % 100 == 0 {
            queue.flush(id).unwrap();
        }
    }
    queue.retire(id, writer);
}

/// However far is looked ahead of a row, and whether anything is there; and which of them have a place.
#[test]
fn rows_of_any_length_come_out_of_a_buffer_as_they_went_in() {
    let lengths = [1, 59, 60, 61, 4_091, 4_092, 4_093, 2, 9_000, 300, 1, 8_189];
    let rows = (1..).zip(lengths).map(|(fill, length)| vec![fill; length]).collect::<Vec<_>>();
    let place = |row: &[u8]| StagedPlace {
        source: u32::MAX - u32::from(row[0]),
        start: u64::MAX - u64::from(row[0]),
        end: u64::MAX,
        check: row.len() as u64,
    };
    for placed in [0, 1, 2, usize::MAX] {
        let place = |at: usize| match placed {
            0 => None,
            each => at.is_multiple_of(each).then(|| place(&rows[at])),
        };
        for end in 0..=rows.len() {
            let mut buffer = Arc::new(Buffer::new(64 << 10));
            let mut writer = Writer::new(&mut buffer).unwrap();
            for (at, row) in rows[..end].iter().enumerate() {
                assert!(writer.push(row.len(), place(at).as_ref(), |space| space.copy_from_slice(row)));
            }
            let (slice, _) = Slice::beyond(&buffer, Mark::default());
            let expected = rows[..end].iter().enumerate().map(|(at, row)| (&row[..], place(at)));
            assert!(slice.rows().eq(expected), "{end} rows");
        }
    }
}

#[test]
fn a_row_with_its_place_fits_or_it_does_not() {
    let place = StagedPlace { source: 1, start: 2, end: 3, check: 4 };
    for (room, fits) in [(42, false), (43, true)] {
        let mut buffer = Arc::new(Buffer::new(room));
        let mut writer = Writer::new(&mut buffer).unwrap();
        assert_eq!(writer.push(11, Some(&place), |row| row.fill(9)), fits);
        assert!(fits || writer.push(11, None, |row| row.fill(9)));
    }
}

#[test]
fn rows_arrive_whole_once_and_in_order() {
    let count = if cfg!(miri) { 60 } else { 30_000 };
    let bounds =
        Bounds { buffers: 6, buffer_size: 64, large_rows: 300, block_size: 200, most_block_size: 200 };
    let queue = StagingQueue::new(bounds, Count(0));
    let mut rows = std::thread::scope(|scope| {
        let writers = [(); 2].map(|()| scope.spawn(|| write(&queue)));
        let producers = [b'a', b'b'].map(|letter| {
            let queue = &queue;
            scope.spawn(move || produce(queue, letter, count))
        });
        while producers.iter().any(|producer| !producer.is_finished()) {
            queue.expire_linger();
            std::thread::yield_now();
        }
        queue.close();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Rows>()
    });
    rows.sort_unstable();
    assert!(rows.iter().map(|(number, _)| *number).eq(0..2 * u64::from(count)));
    for letter in [b'a', b'b'] {
        let of_one = rows.iter().map(|(_, row)| row).filter(|row| row[0] == letter);
        let indices = of_one.map(|row| {
            assert!(row[5..].iter().all(|&byte| byte == letter));
            u32::from_le_bytes(row[1..5].try_into().unwrap())
        });
        assert!(indices.eq(0..count));
    }
    assert!(queue.is_at_rest());
}

#[test]
fn waiting_ends_in_time() {
    let bounds = Bounds { buffers: 2, buffer_size: 16, large_rows: 64, block_size: 16, most_block_size: 16 };
    let queue = StagingQueue::new(bounds, Count(0));
    let (id, _) = queue.register().unwrap();
    let mut full = None;
    for _ in 0..2 {
        let mut writer = queue.exchange(id, full.take(), Wait::Never, false).unwrap();
        assert!(writer.push(12, None, |row| row.fill(1)));
        assert!(!writer.push(usize::MAX, None, |_| ()));
        full = Some(writer);
    }
    let wait = Wait::lasting(Duration::from_millis(1));
    assert_eq!(queue.exchange(id, full, wait, false).err(), Some(NoSpace::Timeout));
    queue.push_large(id, 60, None, |row| row.fill(1), Wait::Never, false).unwrap();
    assert_eq!(queue.push_large(id, 13, None, |_| (), Wait::Never, false), Err(NoSpace::Timeout));
}

#[test]
fn while_a_block_is_sealed_the_next_one_waits_for_more_or_for_somebody() {
    let bounds = Bounds { buffers: 20, buffer_size: 16, large_rows: 64, block_size: 32, most_block_size: 32 };
    let queue = StagingQueue::new(bounds, Count(0));
    let (id, _) = queue.register().unwrap();
    let mut full = None;
    let mut append = |buffers| {
        for _ in 0..buffers {
            let mut writer = queue.exchange(id, full.take(), Wait::Never, false).unwrap();
            assert!(writer.push(12, None, |row| row.fill(1)));
            full = Some(writer);
        }
    };
    let entries = || match queue.take(false) {
        Some(Work::Block(_, batch)) => Some((batch.entries, batch)),
        _ => None,
    };
    append(2);
    assert!(entries().is_none(), "there is no full block");
    queue.expire_linger();
    let (count, sealing) = entries().unwrap();
    assert_eq!(count, 2);
    append(2);
    queue.expire_linger();
    assert!(entries().is_none(), "nobody waits for it");
    queue.flush(id).unwrap();
    let (count, flushed) = entries().unwrap();
    assert_eq!(count, 2);
    append(3);
    assert!(entries().is_none(), "there are not two full blocks");
    append(2);
    let (count, full) = entries().unwrap();
    assert_eq!(count, 2);
    for batch in [sealing, flushed, full] {
        queue.release(batch, BlockOutcome::default());
    }
    assert_eq!(entries().unwrap().0, 2, "nobody seals");
}

/// A block with so many groups.
fn groups(groups: u64) -> BlockOutcome {
    BlockOutcome { groups, body: 1_000_000, dictionaries: 0 }
}

/// A block with so many thousandths of dictionaries.
fn dictionaries(dictionaries: usize) -> BlockOutcome {
    BlockOutcome { groups: 0, body: 1_000_000, dictionaries: 1000 * dictionaries }
}

#[test]
fn large_dictionaries_double_it_and_small_ones_halve_it() {
    let mut controller = BlockSizeController::new(1000, 4000);
    for (part, expected) in
        [(50, 1000), (51, 2000), (51, 4000), (51, 4000), (17, 4000), (16, 2000), (16, 1000)]
    {
        controller.learn(controller.bytes(), 100, dictionaries(part));
        assert_eq!(controller.bytes(), expected, "{part}");
    }
}

#[test]
fn small_bodies_double_it_and_large_ones_halve_it() {
    let mut controller = BlockSizeController::new(1000, 4000);
    for (body, expected) in [(1 << 16, 1000), (65_535, 2000), (0, 4000), (3 * 65_535, 4000), (3 << 16, 2000)]
    {
        controller.learn(controller.bytes(), 100, BlockOutcome { body, ..BlockOutcome::default() });
        assert_eq!(controller.bytes(), expected, "{body}");
    }
}

#[test]
fn small_groups_have_it_grow_to_where_they_can_be_large_up_to_the_most() {
    for (groups_of_eighty, expected) in [(10, 1000), (11, 2000), (20, 2000), (21, 3000), (80, 8000)] {
        let mut controller = BlockSizeController::new(1000, 10_000);
        controller.learn(1000, 80, groups(groups_of_eighty));
        assert_eq!(controller.bytes(), expected, "{groups_of_eighty}");
        controller.learn(2000, 1, groups(1));
        assert_eq!(controller.bytes(), 10_000);
    }
}

#[test]
fn of_a_block_that_is_not_full_only_groups_count_and_only_where_a_full_one_would_not_do() {
    let mut controller = BlockSizeController::new(1000, 8000);
    controller.learn(999, 1000, dictionaries(500));
    controller.learn(999, 1000, BlockOutcome { body: 1, ..BlockOutcome::default() });
    controller.learn(125, 10, groups(10));
    assert_eq!(controller.bytes(), 1000);
    controller.learn(126, 10, groups(10));
    assert_eq!(controller.bytes(), 1008);
    controller.learn(999, 10, groups(5));
    assert_eq!(controller.bytes(), 3996);
}

#[test]
fn large_groups_halve_it_down_to_the_least() {
    let mut controller = BlockSizeController::new(1000, 3000);
    controller.learn(1000, 10, groups(10));
    controller.learn(2000, 10, groups(10));
    for expected in [1500, 1000, 1000] {
        controller.learn(10, 24, groups(1));
        assert_eq!(controller.bytes(), expected);
    }
}

#[test]
fn without_groups_it_is_the_least() {
    let mut controller = BlockSizeController::new(1000, 4000);
    controller.learn(1000, 1, groups(1));
    controller.learn(2000, 1000, groups(0));
    controller.learn(1000, 1000, groups(0));
    assert_eq!(controller.bytes(), 1000);
    assert_eq!(BlockSizeController::new(1000, 10).bytes(), 1000);
}

#[test]
fn it_comes_to_rest() {
    for entries_per_kilobyte in 1..40 {
        let mut controller = BlockSizeController::new(1 << 10, 1 << 20);
        // A fixed number of subject_keys, each as often in a block as the block is large.
        let learn = |controller: &mut BlockSizeController| {
            let entries = (controller.bytes() >> 10) as u64 * entries_per_kilobyte;
            controller.learn(controller.bytes(), entries, groups(entries.min(100)));
            controller.bytes()
        };
        for _ in 0..12 {
            learn(&mut controller);
        }
        let rest = learn(&mut controller);
        assert_eq!(learn(&mut controller), rest);
        assert!(rest as u64 / 1024 * entries_per_kilobyte >= 8 * 100, "{entries_per_kilobyte}: {rest}");
    }
}
