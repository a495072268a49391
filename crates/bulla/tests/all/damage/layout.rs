//! Where everything lies in a log, read by the test's own hand, and what damage to each byte must come to.

use super::image::Image;
use super::world::Level;
use bulla_proof::tile::{TilePath, parse_path};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const HEAD: usize = 24 + 152;
pub(crate) const SEAL: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) segment: String,
    pub(crate) offset: usize,
    pub(crate) length: usize,
    pub(crate) number: u64,
    pub(crate) kind: u8,
    pub(crate) first_entry: u64,
    pub(crate) entries: u64,
    pub(crate) epoch: u64,
    /// A copy of an epoch frame that stands in another segment.
    pub(crate) copy: bool,
    /// Where an event says that a segment's trusted bytes end.
    explains: Option<(String, usize)>,
    /// Whether it records a digest of what follows there.
    pub(crate) recorded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) frames: Vec<Frame>,
    /// Bytes that count for nothing: segment, and from where to its end.
    pub(crate) surplus: Vec<(String, usize)>,
    pub(crate) size: u64,
    baseline: BTreeSet<String>,
}

pub(crate) const BLOCK: u8 = 1;
pub(crate) const EPOCH: u8 = 2;
pub(crate) const EVENT: u8 = 3;
pub(crate) const GAP: u8 = 4;

impl Frame {
    pub(crate) fn end(&self) -> usize {
        self.offset + self.length
    }

    /// `kind segment@offset frame entries`, as findings are told in short.
    pub(crate) fn finding(&self, kind: &str) -> String {
        let mut text = format!("{kind} {}@{} f{}-{}", self.segment, self.offset, self.number, self.number);
        if self.entries > 0 {
            text += &format!(" e{}-{}", self.first_entry, self.first_entry + self.entries - 1);
        }
        text
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

impl Layout {
    pub(crate) fn of(image: &Image) -> Layout {
        let mut layout = Layout::default();
        let paths = image.paths();
        let segments = paths.iter().filter_map(|path| path.strip_prefix("segments/")).collect::<Vec<_>>();
        for (index, &segment) in segments.iter().enumerate() {
            let first = |name: &str| name[..20].parse::<u64>().unwrap();
            let limit = segments.get(index + 1).map_or(u64::MAX, |next| first(next));
            let content = image.get(&format!("segments/{segment}"));
            let mut offset = 0;
            while offset < content.len() {
                let frame = &content[offset..];
                if frame.len() < HEAD || &frame[..4] != b"Bulf" || word(&frame[48..56]) >= limit {
                    layout.surplus.push((segment.to_owned(), offset));
                    break;
                }
                let body = u32::from_le_bytes(frame[8..12].try_into().unwrap()) as usize;
                let kind = frame[5];
                let recorded = kind == EVENT && frame[HEAD..].starts_with(br#"{"event":"recovered""#);
                let event =
                    (kind == EVENT).then(|| serde_json::from_slice(&frame[HEAD..HEAD + body]).unwrap());
                let explains = event.and_then(|event: serde_json::Value| {
                    Some((event["segment"].as_str()?.to_owned(), event["offset"].as_u64()? as usize))
                });
                let frame = Frame {
                    segment: segment.to_owned(),
                    offset,
                    length: HEAD + body + SEAL,
                    number: word(&frame[48..56]),
                    kind,
                    first_entry: word(&frame[56..64]),
                    entries: word(&frame[64..72]),
                    epoch: word(&frame[88..96]),
                    copy: word(&frame[48..56]) < first(segment),
                    explains,
                    recorded,
                };
                offset = frame.end();
                layout.size = layout.size.max(frame.number + 1);
                layout.frames.push(frame);
            }
        }
        let gaps = layout.counted().filter(|frame| frame.kind == GAP).map(|frame| frame.finding("gap"));
        let surplus = layout.surplus.iter().map(|(segment, offset)| format!("abandoned {segment}@{offset}"));
        layout.baseline = gaps.chain(surplus).collect();
        layout
    }

    /// The frames that count, in order.
    pub(crate) fn counted(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.frames.iter().filter(|frame| !frame.copy)
    }

    pub(crate) fn frame(&self, number: u64) -> &Frame {
        self.counted().find(|frame| frame.number == number).unwrap()
    }

    /// The blocks that are like the frames before and after them, in one segment and one tile: those differ from them in
    /// number, time and secrets alone.
    pub(crate) fn alike(&self) -> BTreeSet<u64> {
        let frames = self.counted().collect::<Vec<_>>();
        let like = |one: &Frame, other: &Frame| {
            let of = |frame: &Frame| (frame.kind, frame.length, frame.entries, frame.number / 256);
            one.segment == other.segment && of(one) == of(other)
        };
        let between = frames.windows(3).filter(|three| like(three[0], three[1]) && like(three[1], three[2]));
        between.map(|three| three[1]).filter(|frame| frame.kind == BLOCK).map(|frame| frame.number).collect()
    }

    /// The frame that a byte is of, in a segment or of the tree's files in what stands there for a frame, and its place in that.
    pub(crate) fn place(&self, path: &str, at: usize) -> Option<(u64, usize)> {
        if let Some(segment) = path.strip_prefix("segments/") {
            let inside =
                |frame: &&Frame| frame.segment == segment && (frame.offset..frame.end()).contains(&at);
            return self.counted().find(inside).map(|frame| (frame.number, at - frame.offset));
        }
        match parse_path(path)? {
            TilePath::Hashes(tile) if tile.level == 0 => Some((tile.index * 256 + at as u64 / 32, at % 32)),
            TilePath::Hashes(_) => None,
            TilePath::Entries { index, .. } => Some((index * 256 + at as u64 / 154, at % 154)),
        }
    }

    /// All entries of blocks.
    pub(crate) fn entries(&self) -> BTreeSet<u64> {
        self.counted().filter(|frame| frame.kind == BLOCK).flat_map(range).collect()
    }

    /// What a verification tells of the log undamaged.
    pub(crate) fn baseline(&self) -> BTreeSet<String> {
        self.baseline.clone()
    }

    /// `baseline` where the event of `frame` cannot be read.
    pub(crate) fn unexplained(&self, frame: &Frame) -> BTreeSet<String> {
        let mut findings = self.baseline();
        if let Some((segment, offset)) = &frame.explains
            && findings.remove(&format!("abandoned {segment}@{offset}"))
        {
            findings.insert(format!("surplus-bytes {segment}@{offset}"));
        }
        findings
    }

    /// The event that says what the bytes from there on are, the last of them where there are several.
    pub(crate) fn explained(&self, segment: &str, offset: usize) -> Option<&Frame> {
        let place = Some((segment.to_owned(), offset));
        self.counted().rfind(|frame| frame.explains == place)
    }

    /// The lowest level at which a change of a byte in a segment is found, by `docs/threat-model.md`, "Who can find
    /// what"; nothing where none finds it.
    pub(crate) fn found_at(&self, segment: &str, at: usize) -> Option<Level> {
        let inside = |frame: &&Frame| frame.segment == segment && (frame.offset..frame.end()).contains(&at);
        let Some(frame) = self.frames.iter().find(inside) else {
            let (_, offset) = self.surplus.iter().find(|(name, _)| name == segment).unwrap();
            return self.explained(segment, *offset).filter(|event| event.recorded).map(|_| Level::Public);
        };
        let next = self.counted().find(|next| next.number == frame.number + 1);
        let copied = self.frames.iter().any(|copy| copy.copy && copy.number == frame.number);
        let seal = at >= frame.end() - SEAL && !copied && next.is_none_or(|next| next.kind != EPOCH);
        Some(if seal { Level::SealKey } else { Level::Public })
    }

    /// The blocks of an epoch that cannot be opened without its frame: those before the next copy of it.
    pub(crate) fn unopened(&self, epoch: u64) -> BTreeSet<u64> {
        let copies = self.frames.iter().filter(|frame| frame.copy && frame.number == epoch);
        let copied = copies.map(|frame| frame.segment.clone()).collect::<BTreeSet<_>>();
        let blocks = self.counted().filter(|frame| frame.kind == BLOCK && frame.epoch == epoch);
        blocks.filter(|frame| !copied.contains(&frame.segment)).map(|frame| frame.number).collect()
    }

    /// What a flip in a segment must come to.
    pub(crate) fn expect_in_segment(&self, segment: &str, at: usize, level: Level) -> BTreeSet<String> {
        let mut findings = self.baseline();
        let inside = |frame: &&Frame| frame.segment == segment && (frame.offset..frame.end()).contains(&at);
        let Some(frame) = self.frames.iter().find(inside) else {
            let (_, offset) = self.surplus.iter().find(|(name, _)| name == segment).unwrap();
            // Recovery recorded a digest of what it left; what an abandoned segment holds, nobody vouches for.
            if self.explained(segment, *offset).is_some_and(|event| event.recorded) {
                findings.remove(&format!("abandoned {segment}@{offset}"));
                findings.insert(format!("surplus-bytes {segment}@{offset}"));
            }
            return findings;
        };
        if frame.copy {
            findings.insert(format!("frame-damaged {segment}@0 f{}-{}", frame.number, frame.number));
            return findings;
        }
        let place = at - frame.offset;
        if place < HEAD {
            findings.insert(frame.finding("frame-damaged"));
            return findings;
        }
        if place < frame.length - SEAL {
            if frame.kind == EVENT {
                findings = self.unexplained(frame);
            }
            findings.insert(frame.finding("body-damaged"));
            if frame.kind == EPOCH && level == Level::Identity {
                findings.extend(self.told(&self.unopened(frame.number), "not-opened"));
            }
            return findings;
        }
        let copies = self.frames.iter().filter(|other| other.copy && other.number == frame.number);
        let next_is_epoch = frame.number + 1 < self.size && self.frame(frame.number + 1).kind == EPOCH;
        if level >= Level::SealKey || next_is_epoch {
            findings.insert(frame.finding("seal-mismatch"));
        }
        if level < Level::SealKey {
            findings.extend(copies.map(|copy| copy.finding("frame-damaged")));
        }
        findings
    }

    /// Blocks as findings of one kind are told of them: neighbours in one segment together.
    pub(crate) fn told(&self, frames: &BTreeSet<u64>, kind: &str) -> BTreeSet<String> {
        let mut runs = Vec::<(Frame, u64, Option<(u64, u64)>)>::new();
        for frame in frames.iter().map(|&number| self.frame(number)) {
            let entries =
                frame.entries.checked_sub(1).map(|more| (frame.first_entry, frame.first_entry + more));
            match runs.last_mut() {
                Some((first, last, told)) if *last + 1 == frame.number && first.segment == frame.segment => {
                    *last = frame.number;
                    *told = match (*told, entries) {
                        (Some((first, _)), Some((_, last))) => Some((first, last)),
                        (told, entries) => told.or(entries),
                    };
                }
                _ => runs.push((frame.clone(), frame.number, entries)),
            }
        }
        let text = |(frame, last, entries): (Frame, u64, Option<(u64, u64)>)| {
            let entries = entries.map_or_else(String::new, |(first, last)| format!(" e{first}-{last}"));
            format!("{kind} {}@{} f{}-{last}{entries}", frame.segment, frame.offset, frame.number)
        };
        runs.into_iter().map(text).collect()
    }

    /// What a flip in a file of the tree must come to.
    pub(crate) fn expect_in_tree(&self, path: &str, at: usize) -> BTreeSet<String> {
        let mut findings = self.baseline();
        let (kind, first, last) = match parse_path(path).unwrap() {
            TilePath::Hashes(tile) => {
                let span = 256_u64.pow(u32::from(tile.level));
                let place = (tile.index * 256 + at as u64 / 32) * span;
                ("tile-damaged", place, place + span - 1)
            }
            TilePath::Entries { index, width } => match at % 154 {
                0 | 1 => ("bundle-damaged", index * 256, index * 256 + u64::from(width) - 1),
                _ => ("bundle-damaged", index * 256 + at as u64 / 154, index * 256 + at as u64 / 154),
            },
        };
        findings.insert(format!("{kind} f{first}-{last}"));
        findings
    }

    /// Segments, and how long they are.
    pub(crate) fn segments(&self) -> BTreeMap<String, Vec<&Frame>> {
        let mut segments = BTreeMap::<String, Vec<&Frame>>::new();
        for frame in &self.frames {
            segments.entry(frame.segment.clone()).or_default().push(frame);
        }
        segments
    }
}

/// The entries of a frame.
pub(crate) fn range(frame: &Frame) -> std::ops::Range<u64> {
    frame.first_entry..frame.first_entry + frame.entries
}
