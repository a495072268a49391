//! Entries of a workload as bytes, which programs of every language get on standard input before their time begins.
//!
//! First comes the length of the rest, in 64 bits; numbers are little-endian. An entry is the numbers that it has (the bits of `bulla.h`,
//! `BULLA_HAS_TIME` and so on), its status and its flags, 32 bits each; its time, duration and size, 64 bits each, and 0 where it has none; and its texts:
//! operation, location, data subject, controller, processor, purpose, actor, client, stream and payload. A text is its length in 32 bits, and
//! so many bytes; none where the length is `ABSENT`.

use crate::arena::Lengths;
use crate::outcome::Failure;
use crate::statistics::whole;
use bulla_proof::Entry;
use bulla_workload::Workload;
use serde::Serialize;
use smallvec::smallvec;
use std::io::Read;

const ABSENT: u32 = u32::MAX;
/// The bits of the numbers, in the order in which `bulla.h` has them.
const TIME: u32 = 1;
const DURATION: u32 = 2;
const SIZE: u32 = 4;
const STATUS: u32 = 8;
const FLAGS: u32 = 16;

/// Bytes of rows that a program is given, unless that would be more than [`MOST`] entries: more than the largest block has either way.
const HELD_BYTES: f64 = (64 << 20) as f64;
const MOST: u64 = 1 << 18;

/// How many entries a program is given that appends at most so many.
pub(super) fn held(workload: Workload, seed: u64, entries: Option<u64>) -> u64 {
    let row = Lengths::of(workload, seed).row;
    whole(HELD_BYTES / row).min(MOST).min(entries.unwrap_or(MOST)).max(1)
}

/// So many entries for each of so many producers, one producer's after the other's.
pub(super) fn records(workload: Workload, seed: u64, producers: u32, each: u64) -> Vec<u8> {
    let mut out = vec![0; 8];
    for producer in 0..producers {
        let mut generator = workload.generator(seed, producer);
        (0..each).for_each(|_| push(&generator.next_entry(), &mut out));
    }
    let length = out.len() as u64 - 8;
    out[..8].copy_from_slice(&length.to_le_bytes());
    out
}

fn push(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let bits = [
        (TIME, entry.time.is_some()),
        (DURATION, entry.duration.is_some()),
        (SIZE, entry.size.is_some()),
        (STATUS, entry.status.is_some()),
        (FLAGS, entry.flags.is_some()),
    ];
    let has = bits.iter().filter(|(_, is_there)| *is_there).map(|(bit, _)| bit).sum::<u32>();
    for number in [has, entry.status.unwrap_or_default(), entry.flags.unwrap_or_default()] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&entry.time.unwrap_or_default().to_le_bytes());
    for number in [entry.duration, entry.size] {
        out.extend_from_slice(&number.unwrap_or_default().to_le_bytes());
    }
    let subject = entry.subjects.as_deref().and_then(|subjects| subjects.first().copied());
    let texts = [entry.controller, entry.processor, entry.purpose, entry.actor, entry.client, entry.stream];
    push_text(Some(entry.operation.as_bytes()), out);
    push_text(entry.location, out);
    push_text(subject.map(str::as_bytes), out);
    texts.iter().for_each(|text| push_text(text.map(str::as_bytes), out));
    push_text(entry.payload, out);
}

/// No text of a workload is as long as 32 bits can say.
fn push_text(text: Option<&[u8]>, out: &mut Vec<u8>) {
    let length = text.map_or(ABSENT, |text| u32::try_from(text.len()).unwrap_or(ABSENT));
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.unwrap_or_default());
}

/// Takes the entries from where they come, not read yet.
pub(super) fn receive(input: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let mut bytes = vec![0; usize::try_from(u64::from_le_bytes(length))?];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The entries of these bytes.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry<'_>>, Failure> {
    let (mut rest, mut entries) = (Rest(bytes), Vec::new());
    while !rest.0.is_empty() {
        entries.push(rest.entry()?);
    }
    Ok(entries)
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn entry(&mut self) -> Result<Entry<'a>, Failure> {
        let (has, status, flags) = (self.number()?, self.number()?, self.number()?);
        let (time, duration, size) = (
            i64::from_le_bytes(self.array()?),
            u64::from_le_bytes(self.array()?),
            u64::from_le_bytes(self.array()?),
        );
        let has = |bit: u32| has & bit != 0;
        Ok(Entry {
            time: has(TIME).then_some(time),
            operation: self.text()?.unwrap_or_default(),
            location: self.bytes()?,
            subjects: self.text()?.map(|subject| smallvec![subject]),
            controller: self.text()?,
            processor: self.text()?,
            purpose: self.text()?,
            actor: self.text()?,
            client: self.text()?,
            stream: self.text()?,
            status: has(STATUS).then_some(status),
            duration: has(DURATION).then_some(duration),
            size: has(SIZE).then_some(size),
            flags: has(FLAGS).then_some(flags),
            payload: self.bytes()?,
        })
    }

    fn number(&mut self) -> Result<u32, Failure> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or("the entries are cut off")?;
        self.0 = rest;
        Ok(*array)
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>, Failure> {
        let length = self.number()?;
        if length == ABSENT {
            return Ok(None);
        }
        let (bytes, rest) = self.0.split_at_checked(length as usize).ok_or("the entries are cut off")?;
        self.0 = rest;
        Ok(Some(bytes))
    }

    fn text(&mut self) -> Result<Option<&'a str>, Failure> {
        Ok(self.bytes()?.map(std::str::from_utf8).transpose()?)
    }
}

/// An entry of `web` as a line of JSON, with its time in nanoseconds.
#[derive(Serialize)]
struct Line<'a> {
    time: Option<i64>,
    operation: &'a str,
    location: Option<&'a str>,
    client: Option<&'a str>,
    status: Option<u32>,
    duration: Option<u64>,
    size: Option<u64>,
    flags: Option<u32>,
}

/// So many entries of `web` as lines of JSON, for programs in Python.
pub(super) fn lines(seed: u64, entries: u64) -> Result<Vec<u8>, Failure> {
    let (mut generator, mut out) = (Workload::Web.generator(seed, 0), Vec::new());
    for _ in 0..entries {
        let Entry { time, operation, location, client, status, duration, size, flags, .. } =
            generator.next_entry();
        let location = location.map(std::str::from_utf8).transpose()?;
        let line = Line { time, operation, location, client, status, duration, size, flags };
        serde_json::to_writer(&mut out, &line)?;
        out.push(b'\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were() {
        for workload in Workload::ALL {
            let bytes = records(workload, 3, 2, 100);
            let received = receive(&mut &bytes[..]).unwrap();
            let entries = parse(&received).unwrap();
            assert_eq!(entries.len(), 200);
            for (producer, entries) in (0..).zip(entries.chunks(100)) {
                let mut generator = workload.generator(3, producer);
                for entry in entries {
                    assert_eq!(format!("{entry:?}"), format!("{:?}", generator.next_entry()), "{workload}");
                }
            }
            assert!(parse(&received[..received.len() - 1]).is_err());
            assert!(receive(&mut &bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn lines_have_all_of_an_entry_of_web() {
        let lines = lines(3, 100).unwrap();
        let mut generator = Workload::Web.generator(3, 0);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let mut line = serde_json::from_slice::<serde_json::Value>(line).unwrap();
            let entry = generator.next_entry();
            assert_eq!(line["time"].as_i64(), entry.time);
            // What `append` reads has its time as text.
            line.as_object_mut().unwrap().remove("time");
            let read = bulla::text::jsonl::parse_line(line.to_string().as_bytes()).unwrap();
            assert_eq!(format!("{:?}", read.entry()), format!("{:?}", Entry { time: None, ..entry }));
        }
    }
}
