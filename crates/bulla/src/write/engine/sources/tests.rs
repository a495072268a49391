//! What is known of sources, block by block, in orders that threads come to now and then.

use super::*;

fn state() -> State {
    State {
        slots: HashMap::default(),
        by_id: HashMap::default(),
        next: 0,
        unknown: 0,
        ending: BTreeMap::new(),
        changed: false,
        durable: SourcesSoFar::default(),
        saved: 0,
        passed: AllPassed::default(),
        kept: AllPassed::default(),
    }
}

fn id(number: u64) -> SourceId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    SourceId(id)
}

/// As many ranges as `count`, none of which meets another of any `round`.
fn scattered(round: u64, count: u64) -> Ranges {
    let range = |at: u64| {
        let start = (round << 32) + 2 * at;
        CheckedRange { start, end: start + 1, check: at }
    };
    Ranges::of((0..count).map(range).collect())
}

impl State {
    fn seal(&self, ranges: &[(&Slot, Ranges)], first: StagedPosition) -> Vec<BlockSource> {
        self.of_block(ranges.iter().map(|(slot, ranges)| (slot.number, ranges.clone())).collect(), first)
    }

    fn make_durable(&mut self, frame: u64, sources: Vec<BlockSource>) {
        self.take(SourcedFrame { frame, leaf: Hash([u8::try_from(frame).unwrap(); 32]), sources });
    }

    fn end_at(&mut self, slot: &Slot, last: StagedPosition) {
        slot.refuses.store(ENDED, Ordering::Relaxed);
        self.ending.insert(slot.number, last);
    }

    fn label(&self, id: SourceId) -> &[u8] {
        &self.durable.table.get(id).unwrap().label
    }
}

/// Two writers seal two blocks, and the later one is done first, before the label is another one.
#[test]
fn the_newest_label_is_said_whatever_order_blocks_are_sealed_in() {
    let mut state = state();
    let slot = state.register(id(1), b"old"[..].into()).unwrap();
    let second = state.seal(&[(&slot, scattered(2, 1))], 2);
    state.relabel(&slot, b"new"[..].into());
    let first = state.seal(&[(&slot, scattered(1, 1))], 1);
    state.make_durable(1, first);
    assert_eq!(state.label(id(1)), b"new");
    state.make_durable(2, second);
    assert_eq!(state.label(id(1)), b"old");
    let third = state.seal(&[(&slot, scattered(3, 1))], 3);
    state.make_durable(3, third);
    assert_eq!(state.label(id(1)), b"new");
    assert_eq!(state.seal(&[(&slot, scattered(4, 1))], 4)[0].entry.label, None);
    assert_eq!((state.durable.frames, state.durable.leaf), (4, Hash([3; 32])));
}

/// Blocks may say several times that a source has ended, and what comes of its id after the first is another's.
#[test]
fn an_end_is_said_behind_what_was_staged_and_counts_once() {
    let mut state = state();
    let slot = state.register(id(1), b""[..].into()).unwrap();
    state.register(id(2), b""[..].into()).unwrap();
    state.end_at(&slot, 5);
    assert!(state.seal(&[], 5).is_empty(), "a slice of the block may have rows of it");
    let held = state.seal(&[(&slot, scattered(1, 1))], 6);
    assert!(held.len() == 1 && !held[0].entry.ranges.is_empty(), "no id twice");
    let (first, again) = (state.seal(&[], 6), state.seal(&[], 7));
    assert!(first[0].entry.ranges.is_empty() && again[0].entry.ranges.is_empty());
    assert_eq!(state.unknown, 2);
    state.make_durable(1, first);
    assert_eq!((state.unknown, state.ending.len()), (1, 0));
    let other = state.register(id(1), b"other"[..].into()).unwrap();
    assert_eq!(state.unknown, 2);
    state.make_durable(2, again);
    assert_eq!(state.unknown, 2);
    // Rows that were staged while it ended: of a source that is forgotten they say nothing, and they count nothing twice.
    assert!(state.seal(&[(&slot, scattered(1, 1))], 8).is_empty());
    state.make_durable(3, held);
    assert_eq!(state.unknown, 2);
    let sealed = state.seal(&[(&other, scattered(2, 1))], 9);
    state.make_durable(4, sealed);
    assert_eq!((state.unknown, state.label(id(1))), (1, &b"other"[..]));
}

/// However many sources there are, what is known of them is bounded.
#[test]
fn all_ranges_together_come_to_an_end() {
    let mut state = state();
    let count = (MAX_RANGES_OF_LOG / MAX_RANGES) as u64;
    for number in 0..count {
        let slot = state.register(id(number), b""[..].into()).unwrap();
        let sealed = state.seal(&[(&slot, scattered(1, MAX_RANGES as u64))], 1);
        state.make_durable(1, sealed);
        assert_eq!(slot.number().unwrap(), slot.number, "it has no more than one may have");
    }
    assert_eq!(state.durable.table.ranges(), MAX_RANGES_OF_LOG);
    let last = state.register(id(count), b""[..].into()).unwrap();
    for (round, taken) in [(1, true), (2, false)] {
        let sealed = state.seal(&[(&last, scattered(round, SHARE as u64))], 1);
        state.make_durable(2, sealed);
        assert_eq!(last.number().is_ok(), taken);
    }
    // One that goes on where it ended is taken as before, and one that has ended makes room.
    let sound = state.register(id(count + 1), b""[..].into()).unwrap();
    let sealed = state.seal(&[(&sound, scattered(1, 1))], 1);
    state.make_durable(2, sealed);
    sound.number().unwrap();
    let first = state.register(id(0), b""[..].into()).unwrap();
    state.end_at(&first, 1);
    let sealed = state.seal(&[], 2);
    state.make_durable(3, sealed);
    assert_eq!(state.durable.table.ranges(), MAX_RANGES_OF_LOG - MAX_RANGES + 2 * SHARE + 1);
}
