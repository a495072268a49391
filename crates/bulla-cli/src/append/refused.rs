//! Refused lines: the first told one by one, the others counted by their reason, and all kept where the user asks for it.

use super::input::Input;
use super::lines::Place;
use crate::exit::Failure;
use crate::log_paths::LogPaths;
use rustix::fs::OFlags;
use rustix::io::{Errno, ioctl_fionbio};
use std::fmt::Display;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// How many are told one by one.
const SHOWN: u64 = 10;

/// How many reasons the others are counted by, at most.
const REASONS: usize = 20;

/// So many bytes of lines wait to be written together, at most.
const ROOM: usize = 8 << 10;

pub(super) struct Refused {
    count: u64,
    more: More,
    rejects: Option<Rejects>,
}

/// Lines that were not told one by one.
#[derive(Default)]
struct More {
    reasons: Vec<(String, u64)>,
    /// Those of other reasons.
    others: u64,
}

/// The file that gets the lines as they are. It is added to: nothing that an earlier run refused is lost. A line is in it whole, and
/// synced, or it is told to be none that was kept.
struct Rejects {
    name: String,
    file: File,
    /// Its length, up to the last line that is in it; `None` where it is a device.
    length: Option<u64>,
    /// Lines that are yet to be written, and where each of them ends.
    buffer: Vec<u8>,
    waiting: Vec<(Place, usize)>,
    /// How many are written and not synced yet, and the first of these.
    written: u64,
    first: Option<Place>,
    unkept: Option<Unkept>,
    /// Why lines were not kept, until somebody is told.
    failure: Option<Failure>,
}

/// Lines that were refused, and are not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unkept {
    pub(super) first: Place,
    pub(super) count: u64,
}

impl Refused {
    /// The file `rejects` is not to lie in `place`, nor to be one of the inputs.
    pub(super) fn open(rejects: Option<&Path>, place: &LogPaths, inputs: &[Input]) -> Result<Self, Failure> {
        let rejects = rejects.map(|path| Rejects::open(path, place, inputs)).transpose()?;
        Ok(Refused { count: 0, more: More::default(), rejects })
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether something is told of the next refused line: of one of the first, or how many there are, at each power of ten.
    pub(super) fn tells_next(&self) -> bool {
        self.count < SHOWN || is_power_of_ten(self.count + 1)
    }

    /// A record was refused, which stands at `at`. `raw` is absent where it was too long to be held.
    pub(super) fn add(
        &mut self,
        at: impl Display,
        place: Place,
        reason: &str,
        raw: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let lost = if raw.is_none() && self.rejects.is_some() { "; it is not among the rejects" } else { "" };
        let tells = self.tells_next();
        self.count += 1;
        match self.count <= SHOWN {
            true => note!("{at}: {reason}{lost}"),
            false => self.more.add(reason, lost),
        }
        if tells && self.count > SHOWN {
            // More than are shown, so that it is never one.
            note!("{} lines were refused so far, up to {at}", self.count);
        }
        if let (Some(raw), Some(rejects)) = (raw, &mut self.rejects) {
            rejects.add(place, raw)?;
        }
        Ok(())
    }

    /// Makes the rejects durable, and tells how many lines were not told one by one, and why they were refused.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let More { reasons, others } = std::mem::take(&mut self.more);
        for (reason, count) in reasons {
            note!("and {count} more: {reason}");
        }
        if others > 0 {
            note!("and {others} more for other reasons");
        }
        self.keep_now()
    }

    /// Makes the rejects durable that are not, or says why they cannot be.
    pub(super) fn keep_now(&mut self) -> Result<(), Failure> {
        self.keep();
        self.rejects.as_mut().and_then(|rejects| rejects.failure.take()).map_or(Ok(()), Err)
    }

    /// Makes the rejects durable that are not. Where that fails, whoever refuses the next line is told, or ends.
    pub(super) fn keep(&mut self) {
        self.rejects.iter_mut().for_each(Rejects::keep);
    }

    /// Of the lines that were to be kept, those that are not: known once what there is was kept.
    pub(super) fn unkept(&self) -> Option<Unkept> {
        self.rejects.as_ref()?.unkept
    }
}

impl More {
    fn add(&mut self, reason: &str, lost: &str) {
        let reason = without_column(reason) + lost;
        match self.reasons.iter().position(|(known, _)| *known == reason) {
            Some(index) => self.reasons[index].1 += 1,
            None if self.reasons.len() < REASONS => self.reasons.push((reason, 1)),
            None => self.others += 1,
        }
    }
}

/// A reason without the place in its line, by which one would be many.
fn without_column(reason: &str) -> String {
    match reason.split_once(" at column ") {
        Some((before, after)) => before.to_owned() + after.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => reason.to_owned(),
    }
}

fn is_power_of_ten(count: u64) -> bool {
    count.checked_ilog10().is_some_and(|power| count == 10_u64.pow(power))
}

/// Has a file begin with its next line, also where a last one was broken off, and be there after a power cut. Returns its length.
fn begin(mut file: &File, path: &Path, length: u64) -> io::Result<u64> {
    let mut last = *b"\n";
    match length.checked_sub(1) {
        // By a descriptor of its own, since this one only writes.
        Some(at) => {
            File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?.read_exact_at(&mut last, at)?
        }
        None => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        }
    }
    if last == *b"\n" {
        return Ok(length);
    }
    file.write_all(b"\n")?;
    Ok(length + 1)
}

impl Rejects {
    fn open(path: &Path, place: &LogPaths, inputs: &[Input]) -> Result<Self, Failure> {
        let name = path.display().to_string();
        place.refuse_inside(path)?;
        let refused = |why: &str| Failure::usage(format!("{name} is {why}; nothing was appended"));
        // Whoever may write to the directory could have it be any other file: it is not followed, and what was opened is what is looked at.
        // Nor is a pipe's reader waited for.
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
        let opened = file.and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) if path.is_symlink() => {
                refused("a symbolic link, which rejects are not added through: name the file itself")
            }
            Some(Errno::NXIO) => refused(NO_FILE),
            _ => Failure::io(format!("writing {name}"), &error),
        })?;
        if let Some(why) = unfit(&metadata) {
            return Err(refused(why));
        }
        if !metadata.is_file() {
            let waits = ioctl_fionbio(&file, false).map_err(io::Error::from);
            waits.map_err(|error| Failure::io(format!("writing {name}"), &error))?;
        }
        if inputs.iter().any(|input| input.reads_back(&metadata)) {
            return Err(Failure::usage(format!("{name} is an input: rejects cannot be added to it")));
        }
        let length = match metadata.is_file() {
            true => Some(
                begin(&file, path, metadata.len())
                    .map_err(|error| Failure::io(format!("writing {name}"), &error))?,
            ),
            false => None,
        };
        let buffer = Vec::with_capacity(ROOM);
        let waiting = Vec::new();
        Ok(Rejects {
            name,
            file,
            length,
            buffer,
            waiting,
            written: 0,
            first: None,
            unkept: None,
            failure: None,
        })
    }

    fn add(&mut self, place: Place, raw: &[u8]) -> Result<(), Failure> {
        if self.failure.is_some() || self.buffer.len() + raw.len() >= ROOM {
            let written = self.failure.take().map_or_else(|| self.write_waiting(), Err);
            if let (Err(_), Some(unkept)) = (&written, &mut self.unkept) {
                unkept.count += 1;
            }
            written?;
        }
        if raw.len() >= ROOM {
            self.waiting.push((place, raw.len() + 1));
            return self.write([raw, b"\n"]);
        }
        self.buffer.extend_from_slice(raw);
        self.buffer.push(b'\n');
        self.waiting.push((place, self.buffer.len()));
        Ok(())
    }

    fn write_waiting(&mut self) -> Result<(), Failure> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.write([&buffer, b""]);
        self.buffer = buffer;
        self.buffer.clear();
        written
    }

    /// Writes the lines that wait. Of one that cannot be written whole nothing stays, lest the next one be taken for its end.
    fn write(&mut self, text: [&[u8]; 2]) -> Result<(), Failure> {
        let mut done = 0;
        let result = text.into_iter().try_for_each(|part| write_counted(&mut self.file, part, &mut done));
        let whole = self.waiting.iter().take_while(|(_, end)| *end <= done).count();
        let end = whole.checked_sub(1).map_or(0, |last| self.waiting[last].1);
        self.first = self.first.or(self.waiting.first().filter(|_| whole > 0).map(|(place, _)| *place));
        self.written += whole as u64;
        if let Some(length) = &mut self.length {
            let reached = *length + done as u64;
            *length += end as u64;
            // Not where somebody else has added to it, and where it cannot be cut it stays.
            if end < done && self.file.metadata().is_ok_and(|metadata| metadata.len() == reached) {
                let _ = self.file.set_len(*length);
            }
        }
        let left = self.waiting.split_off(whole);
        self.waiting.clear();
        if let (Some((first, _)), None) = (left.first(), self.unkept) {
            self.unkept = Some(Unkept { first: *first, count: left.len() as u64 });
        }
        result.map_err(|error| self.failed(&error))
    }

    fn keep(&mut self) {
        if self.waiting.is_empty() && self.written == 0 {
            return;
        }
        let written = self.write_waiting();
        let synced = match self.written {
            0 => Ok(()),
            _ => self.file.sync_all(),
        };
        let synced = match synced {
            // A device or a pipe has nothing to sync.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        };
        let (count, first) = (std::mem::take(&mut self.written), self.first.take());
        if let (Err(_), Some(first)) = (&synced, first) {
            let before = self.unkept.unwrap_or(Unkept { first, count: 0 });
            self.unkept = Some(Unkept { first: before.first.min(first), count: before.count + count });
        }
        if let Err(failure) = written.and(synced.map_err(|error| self.failed(&error))) {
            self.failure.get_or_insert(failure);
        }
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::io(format!("writing {}", self.name), error)
    }
}

const NO_FILE: &str = "no file, to which rejects can be added";

/// Why what was opened does not get the rejects: a file of several names may be another one, such as a key. A device may be `/dev/null`.
fn unfit(metadata: &Metadata) -> Option<&'static str> {
    match (metadata.is_file(), metadata.nlink()) {
        (true, 1) => None,
        (true, _) => Some(
            "one of several names of its file (hard links), and rejects are added to none that has others",
        ),
        (false, _) => (!metadata.file_type().is_char_device()).then_some(NO_FILE),
    }
}

/// Writes all of it, and adds to `done` what was written, however that ends.
fn write_counted(file: &mut File, mut text: &[u8], done: &mut usize) -> io::Result<()> {
    while !text.is_empty() {
        match file.write(text) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                text = &text[written..];
                *done += written;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
