//! The pipeline of the thesis as anyone would build it well, without integrity: producers copy entries into a bounded
//! queue; writers take a batch, write it as length-prefixed binary, compress it by zlib at level 1, encrypt it with
//! AES-256-GCM and append it to the file of its group of streams.
//!
//! Entries go through the queue by the batch, which spares a lock and a wake-up for each. The compressor is libdeflate: at
//! level 1 it is smaller and quicker than zlib at level 1 on every workload, and than zlib-ng and zlib-rs where those are
//! as small. Of `gdpr` it makes 10.3x, where zlib makes the published 9.15x.

use super::files::{COMPRESSED, Files, GROUPS};
use super::owned::Owned;
use crate::append::sum;
use crate::feed::Source;
use crate::knobs::Knobs;
use crate::measure::{self, Watch, figure};
use crate::outcome::{Failure, Outcome};
use crate::process;
use bulla_proof::Entry;
use bulla_workload::Workload;
use crossbeam_channel::{Receiver, Sender};
use libdeflater::{CompressionLvl, Compressor};
use std::path::Path;
use std::time::Duration;

/// Entries that are compressed together.
const BATCH: usize = 2048;
/// Batches that may wait.
const QUEUE: usize = 8;
const LEVEL: i32 = 1;

pub(crate) fn run(workload: Workload, knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("conventional");
    let source = Source::new(workload, knobs);
    let watch = Watch::start();
    let files = Files::create(&directory, knobs.segment_bytes() as u64)?;
    let (entries, producing, stages) = append(&files, &source, knobs)?;
    files.close()?;
    let passed = watch.stop();

    let (bytes, count) = measure::files(&directory)?;
    let mut outcome = measure::appended(&source, entries, &passed, bytes);
    outcome.set(figure::FILES, count as f64);
    outcome.producers("copy", producing, entries, source.cost());
    outcome.stage("encode", stages.encode, entries);
    outcome.stage("compress", stages.compress, entries);
    outcome.stage("encrypt", stages.encrypt, entries);
    outcome.stage("write", stages.write, entries);
    Ok(outcome)
}

/// Appends with every producer; how many entries, and what threads took of the processors.
fn append(files: &Files, source: &Source, knobs: &Knobs) -> Result<(u64, Duration, Stages), Failure> {
    let (sender, receiver) = crossbeam_channel::bounded(QUEUE);
    std::thread::scope(|scope| {
        let writers = (0..knobs.writer_threads())
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move || Writer::new(files)?.run(&receiver))
            })
            .collect::<Vec<_>>();
        // Producers learn from it that no writer is left.
        drop(receiver);
        let produce = |producer, mut queue: Producer| {
            let start = process::thread_cpu();
            let entries = source.feed(producer).drive(knobs.share(), |entry| queue.append(entry))?;
            queue.flush()?;
            Ok((entries, process::thread_cpu() - start))
        };
        let producers = (0..knobs.producers)
            .map(|producer| {
                let queue = Producer::new(sender.clone());
                scope.spawn(move || produce(producer, queue))
            })
            .collect::<Vec<_>>();
        drop(sender);
        let produced = sum(producers);
        let mut stages = Stages::default();
        for writer in writers {
            stages.add(&writer.join().map_err(|_| "a writer panicked")??);
        }
        let (entries, producing) = produced?;
        Ok((entries, producing, stages))
    })
}

/// What copies entries into the queue.
struct Producer {
    batch: Vec<Owned>,
    queue: Sender<Vec<Owned>>,
}

impl Producer {
    fn new(queue: Sender<Vec<Owned>>) -> Self {
        Producer { batch: Vec::with_capacity(BATCH), queue }
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<(), Failure> {
        self.batch.push(Owned::copy(entry));
        if self.batch.len() == BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.queue.send(batch).map_err(|_| "every writer has failed")?;
        Ok(())
    }
}

/// Processor time of the steps of a writer.
#[derive(Debug, Default)]
struct Stages {
    encode: Duration,
    compress: Duration,
    encrypt: Duration,
    write: Duration,
}

impl Stages {
    fn add(&mut self, other: &Stages) {
        self.encode += other.encode;
        self.compress += other.compress;
        self.encrypt += other.encrypt;
        self.write += other.write;
    }
}

struct Writer<'a> {
    files: &'a Files,
    compressor: Compressor,
    /// The rows of a batch, by group.
    rows: [Vec<u8>; GROUPS],
    frame: Vec<u8>,
    stages: Stages,
}

impl<'a> Writer<'a> {
    fn new(files: &'a Files) -> Result<Self, Failure> {
        let level = CompressionLvl::new(LEVEL).map_err(|_| "libdeflate has no such level")?;
        Ok(Writer {
            files,
            compressor: Compressor::new(level),
            rows: Default::default(),
            frame: Vec::new(),
            stages: Stages::default(),
        })
    }

    fn run(mut self, queue: &Receiver<Vec<Owned>>) -> Result<Stages, Failure> {
        while let Ok(batch) = queue.recv() {
            self.write(batch)?;
        }
        Ok(self.stages)
    }

    fn write(&mut self, batch: Vec<Owned>) -> Result<(), Failure> {
        let start = process::thread_cpu();
        for entry in &batch {
            entry.write(&mut self.rows[Files::group(entry.stream())])?;
        }
        drop(batch);
        self.stages.encode += process::thread_cpu() - start;
        for group in 0..GROUPS {
            if !self.rows[group].is_empty() {
                self.write_group(group)?;
            }
        }
        Ok(())
    }

    fn write_group(&mut self, group: usize) -> Result<(), Failure> {
        let rows = &mut self.rows[group];
        let start = process::thread_cpu();
        self.frame.resize(COMPRESSED + self.compressor.zlib_compress_bound(rows.len()), 0);
        let length = self.compressor.zlib_compress(rows, &mut self.frame[COMPRESSED..])?;
        self.frame.truncate(COMPRESSED + length);
        let compressed = process::thread_cpu();
        self.files.encrypt(&mut self.frame, rows.len())?;
        rows.clear();
        let encrypted = process::thread_cpu();
        self.files.append(group, &self.frame)?;
        self.stages.compress += compressed - start;
        self.stages.encrypt += encrypted - compressed;
        self.stages.write += process::thread_cpu() - encrypted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::tests::knobs;

    /// The rows in all files, sorted.
    fn rows(directory: &Path, files: &Files) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        for item in std::fs::read_dir(directory).unwrap() {
            for batch in files.read(&std::fs::read(item.unwrap().path()).unwrap()) {
                let mut rest = &batch[..];
                while let Some((length, tail)) = rest.split_first_chunk() {
                    let (row, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
                    rows.push(row.to_vec());
                    rest = tail;
                }
            }
        }
        rows.sort_unstable();
        rows
    }

    #[test]
    fn what_goes_in_is_in_the_files() {
        for workload in Workload::ALL {
            let place = tempfile::tempdir().unwrap();
            let directory = place.path().join("conventional");
            let knobs = knobs(5000);
            let source = Source::new(workload, &knobs);
            let files = Files::create(&directory, 64 << 10).unwrap();
            let (entries, ..) = append(&files, &source, &knobs).unwrap();
            files.close().unwrap();
            assert_eq!(entries, 5000);
            let mut expected = Vec::new();
            for producer in 0..knobs.producers {
                let mut generator = workload.generator(knobs.seed, producer);
                for _ in 0..2500 {
                    let entry = generator.next_entry();
                    let mut row = vec![0; entry.measure().unwrap()];
                    entry.encode(0, &mut row);
                    expected.push(row);
                }
            }
            expected.sort_unstable();
            assert!(rows(&directory, &files) == expected, "{workload}");
            assert!(std::fs::read_dir(&directory).unwrap().count() > 1, "{workload}: files are replaced");
        }
    }

    #[test]
    fn what_is_written_compresses_at_least_as_published() {
        for (workload, published) in [(Workload::Gdpr, 9.15), (Workload::Gdpr50, 3.5)] {
            let place = tempfile::tempdir().unwrap();
            let outcome = run(workload, &knobs(4 * BATCH as u64), place.path()).unwrap();
            let [logical, disk] = [figure::LOGICAL, figure::DISK].map(|name| outcome.get(name).unwrap());
            assert!(logical / disk > published, "{workload}: {:.2}", logical / disk);
        }
    }
}
