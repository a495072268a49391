//! What encoding a block takes: `cargo bench -p bulla-bench --bench encode -- json web-subjects`, the workloads by name (default
//! all).
//!
//! A block of 8 MiB of rows, in groups by data subject as sealing makes them, is encoded again and again on one thread: its columns,
//! the survey of its groups, and the groups. Of each the least time an entry of all passes is told, and the bytes that came out.
#![allow(clippy::disallowed_methods, reason = "it measures")]
#![allow(clippy::cast_precision_loss)]

use bulla_columns::{Compression, Encoder, PERSONAL, Partition};
use bulla_proof::entry::RawRow;
use bulla_workload::Workload;
use std::collections::HashMap;
use std::time::{Duration, Instant};

const BLOCK: usize = 8 << 20;
const PASSES: usize = 40;
const COMMON: u32 = 16;

fn main() {
    let names = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect::<Vec<_>>();
    println!(
        "{:<16} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}",
        "ns an entry", "entries", "groups", "columns", "survey", "write", "bytes"
    );
    for workload in Workload::ALL {
        if names.is_empty() || names.iter().any(|name| name == workload.name()) {
            measure(workload);
        }
    }
}

/// The rows of a block, and those of each group.
struct Block {
    rows: Vec<Vec<u8>>,
    member: Vec<u64>,
    groups: Vec<Vec<usize>>,
}

impl Block {
    fn of(workload: Workload) -> Self {
        let mut generator = workload.generator(1, 0);
        let mut block = Block { rows: Vec::new(), member: Vec::new(), groups: Vec::new() };
        let (mut bytes, mut known) = (0, HashMap::new());
        while bytes < BLOCK {
            let entry = generator.next_entry();
            let length = entry.measure().expect("a workload's entries are within limits");
            let mut row = vec![0; length];
            entry.encode(0, &mut row);
            bytes += length;
            let subjects = RawRow::parse(&row).expect("it is a row").subjects;
            let names = subjects.into_iter().flatten().map(<[u8]>::to_vec).collect::<Vec<_>>();
            block.member.push(0);
            if !names.is_empty() {
                let group = *known.entry(names).or_insert(block.groups.len());
                block.groups.resize(block.groups.len().max(group + 1), Vec::new());
                block.groups[group].push(block.rows.len());
                *block.member.last_mut().expect("it was pushed") = group as u64 + 1;
            }
            block.rows.push(row);
        }
        block
    }
}

fn rows_of<'a>(rows: &'a [&'a [u8]], group: &'a [usize]) -> impl Iterator<Item = &'a [u8]> + Clone {
    group.iter().map(|&row| rows[row])
}

fn measure(workload: Workload) {
    let block = Block::of(workload);
    let rows = block.rows.iter().map(Vec::as_slice).collect::<Vec<_>>();
    let partition = Partition { member: &block.member, groups: block.groups.len(), personal: PERSONAL };
    let mut encoder = Encoder::new(Compression::FAST);
    let mut least = [Duration::MAX; 3];
    let (mut out, mut bytes) = (Vec::new(), 0);
    for _ in 0..PASSES {
        let mut note = |stage: usize, since: Instant| least[stage] = least[stage].min(since.elapsed());
        out.clear();
        let start = Instant::now();
        encoder.encode_and_tell(&rows, &partition, &mut out, |_, _| {}).expect("these are rows");
        note(0, start);
        bytes = out.len();
        let all = block.groups.iter().map(|group| (rows_of(&rows, group), true));
        let start = Instant::now();
        encoder.survey_groups(all, rows.len(), PERSONAL, COMMON).expect("these are rows");
        note(1, start);
        let start = Instant::now();
        for group in &block.groups {
            out.clear();
            encoder.encode_group(rows_of(&rows, group), PERSONAL, &mut out).expect("these are rows");
            bytes += out.len();
        }
        note(2, start);
    }
    let each = |time: Duration| time.as_nanos() as f64 / rows.len() as f64;
    println!(
        "{:<16} {:>8} {:>8} {:>9.1} {:>9.1} {:>9.1} {:>9.2}",
        workload.name(),
        rows.len(),
        block.groups.len(),
        each(least[0]),
        each(least[1]),
        each(least[2]),
        bytes as f64 / rows.len() as f64
    );
}
