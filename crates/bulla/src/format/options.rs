//! Options as a caller or the settings of a log give them, and [`Tuning`], the checked values that the engine runs with.

mod on_failure;
pub(crate) mod settings;

pub use settings::{Setting, SettingPlace, SettingSource};

use bulla_columns::Compression;
use bulla_crypto::plugin;
use bulla_proof::commitment::MAX_CONTENT_LOG2;
use bulla_proof::entry::MAX_ROW;
use bulla_store::{Error, Result};
use bulla_vault::MAX_REPLICAS;
pub use on_failure::OnFailure;
use serde::{Deserialize, Deserializer, de};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How an acknowledgement relates to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Every group of blocks is synced before it is acknowledged.
    #[default]
    Group,
    /// Synced at this interval, and when a checkpoint is asked for; acknowledged after the sync.
    Interval(Duration),
    /// Synced and signed at rotation, at an explicit flush or checkpoint, and at close only. Receipts answer once the
    /// operating system has the bytes, which a power cut can still take; they are counted as durable after the sync.
    Os,
}

/// Whether speed or size counts more. A profile says how hard to compress and how large blocks are, where no other option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Columns, dictionaries, packed numbers and words, no general compressor.
    Fast,
    /// Level 1.
    #[default]
    Balanced,
    /// Level 19, blocks of 8 MiB, 320 MiB of memory: zstd takes 82 of them for each writer.
    Max,
}

impl Profile {
    /// All of them, by their names in settings.
    pub const ALL: [(&str, Profile); 3] =
        [("fast", Profile::Fast), ("balanced", Profile::Balanced), ("max", Profile::Max)];

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, profile)| *profile)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    fn compression(self) -> i32 {
        match self {
            Profile::Fast => 0,
            Profile::Balanced => 1,
            Profile::Max => 19,
        }
    }

    fn memory(self) -> usize {
        match self {
            Profile::Fast | Profile::Balanced => 192 << 20,
            Profile::Max => 320 << 20,
        }
    }

    fn block_size(self) -> usize {
        match self {
            Profile::Fast | Profile::Balanced => 1 << 20,
            Profile::Max => 8 << 20,
        }
    }
}

/// What a caller may choose. Anything left out comes from the log's settings, then from the defaults: from `settings.toml` of
/// the key directory, and, of what no promise rests on, `[settings]` of `bulla.toml`.
///
/// ```
/// use bulla::{Durability, Options};
/// let options = Options::default().memory(128 << 20).writers(2).durability(Durability::Group);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    #[serde(default, deserialize_with = "size")]
    memory: Option<usize>,
    #[serde(default, deserialize_with = "size")]
    block_size: Option<usize>,
    #[serde(default, deserialize_with = "size")]
    segment_size: Option<usize>,
    writers: Option<usize>,
    #[serde(default, deserialize_with = "profile")]
    profile: Option<Profile>,
    compression: Option<i32>,
    #[serde(default, deserialize_with = "duration")]
    linger: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    append_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    checkpoint_interval: Option<Duration>,
    retries: Option<u32>,
    #[serde(default, deserialize_with = "duration")]
    retry_delay: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    plugin_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "durability")]
    durability: Option<Durability>,
    vault_replicas: Option<Vec<PathBuf>>,
    pin: Option<PathBuf>,
    backup_paths: Option<Vec<PathBuf>>,
    #[serde(default, deserialize_with = "on_failure::deserialize")]
    on_failure: Option<OnFailure>,
    error_path: Option<PathBuf>,
    #[serde(default, deserialize_with = "size")]
    error_path_size: Option<usize>,
    /// Of the program alone, and no setting of a log.
    #[serde(skip)]
    yielding: Option<bool>,
    /// As `yielding`.
    #[serde(skip)]
    default_retries: Option<u32>,
    /// As `yielding`.
    #[serde(skip)]
    enough: Option<u32>,
    /// As `yielding`.
    #[serde(skip)]
    witness_interval: Option<Duration>,
}

impl Options {
    /// Bytes of memory for staging, sealing and blocks in flight together, zstd's own included (default: the profile's,
    /// 192 MiB; at least 64 MiB).
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Bytes of rows that make a full block (4 KiB to 16 MiB; default 1 MiB, and more where larger blocks are stored
    /// better). With small personal groups blocks grow all the same.
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Bytes after which a segment is closed and the next begun (default 1 GiB).
    pub fn segment_size(mut self, bytes: usize) -> Self {
        self.segment_size = Some(bytes);
        self
    }

    /// Threads that seal blocks (default: the processors there are, at most 16).
    pub fn writers(mut self, writers: usize) -> Self {
        self.writers = Some(writers);
        self
    }

    /// What compression level and block size are where they are not given (default [`Profile::Balanced`]).
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Compression level: 0 none, 1 to 19 as zstd's (default: the profile's).
    pub fn compression(mut self, level: i32) -> Self {
        self.compression = Some(level);
        self
    }

    /// How long an entry may stay in its producer's buffer while others come (default 5 ms). A log to which
    /// little comes waits up to 40 times as long ([`Options::enough_entries`]), so as not to pay a block for a handful of entries; and while a block is
    /// being sealed, until that is done or two blocks are full, unless somebody flushes or waits for memory.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = Some(linger);
        self
    }

    /// How long `append` waits for memory before it returns `Timeout` (default 10 s).
    pub fn append_timeout(mut self, timeout: Duration) -> Self {
        self.append_timeout = Some(timeout);
        self
    }

    /// The time between checkpoints while the log grows (default 1 s).
    pub fn checkpoint_interval(mut self, interval: Duration) -> Self {
        self.checkpoint_interval = Some(interval);
        self
    }

    /// How often a failed write is tried again before its file is abandoned (default 3).
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// What [`Options::retries`] are where neither these options nor the settings of the log say (default 3). A program that many wait
    /// for tries longer than one that somebody looks at.
    pub fn default_retries(mut self, retries: u32) -> Self {
        self.default_retries = Some(retries);
        self
    }

    /// The wait before the first retry; it doubles with each (default 20 ms).
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self
    }

    /// How long an age plugin may take to wrap an epoch's key (default 30 s). Entries wait meanwhile.
    pub fn plugin_timeout(mut self, limit: Duration) -> Self {
        self.plugin_timeout = Some(limit);
        self
    }

    /// What an acknowledgement promises (default [`Durability::Group`]).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Directories that each hold a replica of the vault (default: none): absolute paths without a comma, at most
    /// [`MAX_REPLICAS`]. Opening the log makes a replica in a directory that is empty; a directory that is missing it
    /// refuses. A log that the command works on, too, has them in its settings: `bulla erase` knows of no others, and an
    /// erasure does not reach what it does not know of.
    pub fn vault_replicas(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.vault_replicas = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// The log's pin: a copy of its checkpoint that lies elsewhere, on another disk or host (default: none). Opening the log refuses
    /// one that is further than the log is, or of another history; each checkpoint advances it before it is published itself. Where
    /// nothing is at the path the pin is made; from then on the key directory remembers it, and a log whose pin is gone is refused. A
    /// relative path starts from the current directory.
    pub fn pin(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.pin = Some(std::path::absolute(&path).unwrap_or(path));
        self
    }

    /// The paths on which the log goes on where the one that it is written to fails, in this order (default: none). Whoever opens the
    /// log does not give them: the key directory alone names them.
    #[cfg(test)]
    pub(crate) fn backup_paths(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.backup_paths = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// What becomes of a log where nothing takes what is written, after all attempts (default: [`OnFailure::Refuse`]).
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = Some(on_failure);
        self
    }

    /// The backup paths that these options name.
    pub(crate) fn named_backup_paths(&self) -> &[PathBuf] {
        self.backup_paths.as_deref().unwrap_or_default()
    }

    /// The directory that these options name for what is dropped.
    pub(crate) fn named_error_path(&self) -> Option<&Path> {
        self.error_path.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The pin that these options name.
    pub fn pinned(&self) -> Option<&Path> {
        self.pin.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// Whether threads that seal let others of the machine go first (default: no): they give their processor up each tenth of a millisecond,
    /// and on Linux they are ten steps nicer than the thread that opens the log. For programs whose own answers are awaited, and entries are not:
    /// where processors are busy, entries are durable later.
    pub fn yielding(mut self, yielding: bool) -> Self {
        self.yielding = Some(yielding);
        self
    }

    /// How many entries make a block that waits no longer than `linger` for more (default 512): where fewer come in that time, it waits
    /// until so many have, up to 40 times as long. For programs in which nobody waits for entries but who flushes: larger blocks take less
    /// of the processors.
    pub fn enough_entries(mut self, entries: u32) -> Self {
        self.enough = Some(entries);
        self
    }

    /// The time between checkpoints for which the log's witnesses are asked, while the log grows (default 10 s).
    pub fn witness_interval(mut self, interval: Duration) -> Self {
        self.witness_interval = Some(interval);
        self
    }

    /// These options, with what they leave out taken from `other`.
    pub(crate) fn or(self, other: Options) -> Options {
        Options {
            memory: self.memory.or(other.memory),
            block_size: self.block_size.or(other.block_size),
            segment_size: self.segment_size.or(other.segment_size),
            writers: self.writers.or(other.writers),
            profile: self.profile.or(other.profile),
            compression: self.compression.or(other.compression),
            linger: self.linger.or(other.linger),
            append_timeout: self.append_timeout.or(other.append_timeout),
            checkpoint_interval: self.checkpoint_interval.or(other.checkpoint_interval),
            retries: self.retries.or(other.retries),
            retry_delay: self.retry_delay.or(other.retry_delay),
            plugin_timeout: self.plugin_timeout.or(other.plugin_timeout),
            durability: self.durability.or(other.durability),
            vault_replicas: self.vault_replicas.or(other.vault_replicas),
            pin: self.pin.or(other.pin),
            backup_paths: self.backup_paths.or(other.backup_paths),
            on_failure: self.on_failure.or(other.on_failure),
            error_path: self.error_path.or(other.error_path),
            error_path_size: self.error_path_size.or(other.error_path_size),
            yielding: self.yielding.or(other.yielding),
            default_retries: self.default_retries.or(other.default_retries),
            enough: self.enough.or(other.enough),
            witness_interval: self.witness_interval.or(other.witness_interval),
        }
    }
}

/// Options that were checked: what the engine runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Buffers that producers stage into: how many, and their size.
    pub(crate) buffers: usize,
    pub(crate) buffer_size: usize,
    /// Bytes of rows too large for a buffer that may be staged at once.
    pub(crate) large_rows: usize,
    /// Bytes of rows that may be numbered and not yet committed.
    pub(crate) in_flight: usize,
    pub(crate) block_size: usize,
    /// The size that blocks may grow to where their personal groups are small.
    pub(crate) most_block_size: usize,
    /// Whether somebody chose the size of a block. Then a block grows beyond it only because of small groups.
    pub(crate) block_size_chosen: bool,
    pub(crate) segment_size: u64,
    pub(crate) writers: usize,
    pub(crate) compression: Compression,
    pub(crate) linger: Duration,
    pub(crate) append_timeout: Duration,
    pub(crate) checkpoint_interval: Duration,
    pub(crate) retries: u32,
    pub(crate) retry_delay: Duration,
    pub(crate) plugin_timeout: Duration,
    pub(crate) durability: Durability,
    pub(crate) vault_replicas: Vec<PathBuf>,
    pub(crate) pin: Option<PathBuf>,
    pub(crate) backup_paths: Vec<PathBuf>,
    pub(crate) on_failure: OnFailure,
    pub(crate) error_path: Option<PathBuf>,
    /// Bytes of files in `error_path` at most.
    pub(crate) error_path_size: u64,
    pub(crate) yielding: bool,
    /// So many entries wait for no more to come than in the shortest time.
    pub(crate) enough: u32,
    pub(crate) witness_interval: Duration,
}

/// The defaults of options.
mod default {
    use std::time::Duration;

    pub(super) const SEGMENT_SIZE: usize = 1 << 30;
    pub(super) const LINGER: Duration = Duration::from_millis(5);
    pub(super) const ENOUGH: u32 = 512;
    pub(super) const APPEND_TIMEOUT: Duration = Duration::from_secs(10);
    pub(super) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
    pub(super) const WITNESS_INTERVAL: Duration = Duration::from_secs(10);
    pub(super) const ERROR_PATH_SIZE: usize = 1 << 30;
    pub(super) const RETRIES: u32 = 3;
    pub(super) const RETRY_DELAY: Duration = Duration::from_millis(20);

    pub(super) fn writers() -> usize {
        std::thread::available_parallelism().map_or(2, usize::from).min(16)
    }
}

/// How many backup paths a log may have.
const MAX_BACKUP_PATHS: usize = 8;
/// The most memory that may be set, in bytes.
const MOST_MEMORY: usize = 1 << 44;
/// The most bytes of rows that make a full block.
const MOST_BLOCK_SIZE: usize = 16 << 20;
/// The smallest `block_size`, in bytes.
const LEAST_BLOCK_SIZE: usize = 4 << 10;
/// The size of a buffer where blocks are no smaller.
const BUFFER_SIZE: usize = 64 << 10;

// The largest block is a full one and one more buffer, or a single row; a commitment has room for the length of either.
const _: () = assert!(MOST_BLOCK_SIZE + BUFFER_SIZE <= 1 << MAX_CONTENT_LOG2);
const _: () = assert!(MAX_ROW + 4 <= 1 << MAX_CONTENT_LOG2);

impl TryFrom<Options> for Tuning {
    type Error = Error;

    fn try_from(options: Options) -> Result<Self> {
        let profile = options.profile.unwrap_or_default();
        let memory = within("memory", options.memory.unwrap_or(profile.memory()), 64 << 20, MOST_MEMORY)?;
        let block_size = options.block_size.unwrap_or(profile.block_size());
        let block_size = within("block_size", block_size, LEAST_BLOCK_SIZE, MOST_BLOCK_SIZE)?;
        let level = options.compression.unwrap_or(profile.compression());
        let compression = Compression::new(level)
            .ok_or_else(|| Error::invalid(format!("`compression` is {level}; it may be from 0 to 19")))?;
        let writers = within("writers", options.writers.unwrap_or_else(default::writers), 1, 256)?;
        // An eighth for staging, a quarter for large rows and for blocks in flight, and what is left for the writers' working
        // memory, which is about four times the rows at hand, and zstd's.
        let (staging, quarter) = (memory / 8, memory / 4);
        let working = memory - staging - 2 * quarter;
        let per_writer = 4 * block_size + compression.memory();
        let fewest = if options.writers.is_some() { writers } else { 1 };
        // What is staged is a block for each writer, one that is being filled, and buffers that producers hold.
        let needed =
            (fewest.saturating_mul(per_writer).div_ceil(3)).max((fewest + 2).saturating_mul(block_size));
        if needed > memory / 8 {
            return Err(Error::invalid(format!(
                "`memory` of {memory} bytes is too little for {fewest} writers with blocks of {block_size} bytes and \
                 compression {level}: raise it to {} or lower the others",
                needed.saturating_mul(8)
            )));
        }
        let writers = writers.min(working / per_writer).min(staging / block_size - 2);
        let most_block_size = (staging / (writers + 2)).min((working / writers - compression.memory()) / 4);
        let buffer_size = BUFFER_SIZE.min(block_size);
        let longest = Duration::from_secs(3600);
        let interval = options.checkpoint_interval.unwrap_or(default::CHECKPOINT_INTERVAL);
        let retries = options.retries.or(options.default_retries).unwrap_or(default::RETRIES);
        Ok(Tuning {
            buffers: staging / buffer_size,
            buffer_size,
            large_rows: quarter.max(MAX_ROW + 4),
            in_flight: quarter,
            block_size,
            block_size_chosen: block_size != profile.block_size(),
            most_block_size: most_block_size.min(MOST_BLOCK_SIZE),
            segment_size: within(
                "segment_size",
                options.segment_size.unwrap_or(default::SEGMENT_SIZE),
                64 << 10,
                1 << 46,
            )? as u64,
            writers,
            compression,
            linger: within("linger", options.linger.unwrap_or(default::LINGER), Duration::ZERO, longest)?,
            append_timeout: options.append_timeout.unwrap_or(default::APPEND_TIMEOUT),
            checkpoint_interval: within("checkpoint_interval", interval, Duration::from_millis(1), longest)?,
            retries: within("retries", retries, 0, 1000)?,
            retry_delay: within(
                "retry_delay",
                options.retry_delay.unwrap_or(default::RETRY_DELAY),
                Duration::ZERO,
                longest,
            )?,
            plugin_timeout: plugin::check_timeout(options.plugin_timeout.unwrap_or(plugin::DEFAULT_TIMEOUT))?,
            durability: match options.durability.unwrap_or_default() {
                // None at all would have a thread do nothing else.
                Durability::Interval(time) => {
                    Durability::Interval(within("durability", time, Duration::from_millis(1), longest)?)
                }
                durability => durability,
            },
            pin: pin("pin", options.pinned())?,
            error_path: pin("error_path", options.named_error_path())?,
            error_path_size: within(
                "error_path_size",
                options.error_path_size.unwrap_or(default::ERROR_PATH_SIZE),
                1 << 20,
                1 << 46,
            )? as u64,
            vault_replicas: places(
                "vault_replicas",
                options.vault_replicas.unwrap_or_default(),
                MAX_REPLICAS,
            )?,
            backup_paths: places("backup_paths", options.backup_paths.unwrap_or_default(), MAX_BACKUP_PATHS)?,
            on_failure: options.on_failure.unwrap_or_default(),
            yielding: options.yielding.unwrap_or_default(),
            enough: options.enough.unwrap_or(default::ENOUGH),
            witness_interval: options.witness_interval.unwrap_or(default::WITNESS_INTERVAL),
        })
    }
}

fn places(name: &str, paths: Vec<PathBuf>, most: usize) -> Result<Vec<PathBuf>> {
    if paths.len() > most {
        return Err(Error::invalid(format!("`{name}` has {} paths; it may have {most}", paths.len())));
    }
    match paths.iter().find(|path| !is_place(path)) {
        None => Ok(paths),
        Some(path) => Err(Error::invalid(format!(
            "`{name}` has `{}`, which is not an absolute path without a comma",
            path.display()
        ))),
    }
}

fn pin(name: &str, path: Option<&Path>) -> Result<Option<PathBuf>> {
    match path {
        Some(path) if !is_pin(path) => Err(Error::invalid(format!(
            "`{name}` is `{}`, which is not an absolute path of text",
            path.display()
        ))),
        path => Ok(path.map(Path::to_owned)),
    }
}

fn is_pin(path: &Path) -> bool {
    path.is_absolute() && path.to_str().is_some()
}

fn is_place(path: &Path) -> bool {
    path.is_absolute() && path.to_str().is_some_and(|path| !path.contains(','))
}

pub(crate) fn within<T: PartialOrd + Copy + fmt::Debug>(
    name: &str,
    value: T,
    least: T,
    most: T,
) -> Result<T> {
    if value < least || value > most {
        return Err(Error::invalid(format!("`{name}` is {value:?}; it may be from {least:?} to {most:?}")));
    }
    Ok(value)
}

/// A time limit for plugins as a person writes it: `30 s`, `2 min`.
///
/// # Errors
/// `Invalid` where it is none, or out of bounds.
pub fn parse_plugin_timeout(text: &str) -> Result<Duration> {
    let limit = parse_duration(text);
    plugin::check_timeout(limit.ok_or_else(|| Error::invalid(no_duration(text)))?)
}

/// A length of time as a person writes it: `10m`, `36 h`, `7d`.
///
/// # Errors
/// `Invalid` where it is none.
pub fn parse_age(text: &str) -> Result<Duration> {
    parse_duration(text).ok_or_else(|| Error::invalid(no_duration(text)))
}

/// What is taken for a length of time, to whoever wrote another.
pub(crate) fn no_duration(text: &str) -> String {
    format!("`{text}` is not {DURATION}")
}

pub(crate) const DURATION: &str =
    "a duration: one whole number and one of ns, us, ms, s, m (or min), h, d, such as 90m";

/// A length of time as [`parse_age`] reads it, in the largest unit up to seconds that it is a whole number of.
pub fn format_age(time: Duration) -> String {
    settings::duration(time)
}

/// A number of bytes as a person writes it: `64 MiB`, `4KiB`, or the plain number. `None` where it is none.
pub fn parse_size(text: &str) -> Option<usize> {
    let (number, shift) =
        split_unit(text, &[("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("B", 0), ("", 0)])?;
    usize::try_from(number).ok()?.checked_mul(1 << shift)
}

/// `"5 ms"`, `"1s"`, `"250 us"`, `"2 min"`, `"10m"`, `"1 h"`, `"7d"`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    const SECOND: u64 = 1_000_000_000;
    let units = [
        ("ns", 1),
        ("us", 1000),
        ("ms", 1_000_000),
        ("s", SECOND),
        ("m", 60 * SECOND),
        ("min", 60 * SECOND),
        ("h", 3600 * SECOND),
        ("d", 24 * 3600 * SECOND),
    ];
    let (number, nanos) = split_unit(text, &units)?;
    number.checked_mul(nanos).map(Duration::from_nanos)
}

fn parse_durability(text: &str) -> Option<Durability> {
    match text {
        "group" => Some(Durability::Group),
        "os" => Some(Durability::Os),
        other => other.strip_prefix("interval ").and_then(parse_duration).map(Durability::Interval),
    }
}

fn split_unit(text: &str, units: &[(&str, u64)]) -> Option<(u64, u64)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = text[digits..].trim();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some((text[..digits].parse().ok()?, *factor))
}

fn profile<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Profile>, D::Error> {
    let text = String::deserialize(source)?;
    let profile = Profile::parse(&text);
    profile
        .map(Some)
        .ok_or_else(|| de::Error::custom(format!("`{text}` is none of \"fast\", \"balanced\", \"max\"")))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(usize),
    Text(String),
}

fn size<'de, D: Deserializer<'de>>(source: D) -> Result<Option<usize>, D::Error> {
    match NumberOrText::deserialize(source)? {
        NumberOrText::Number(bytes) => Ok(Some(bytes)),
        NumberOrText::Text(text) => {
            let bytes = parse_size(&text);
            bytes
                .map(Some)
                .ok_or_else(|| de::Error::custom(format!("`{text}` is not a size such as \"64 MiB\"")))
        }
    }
}

fn duration<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(source)?;
    let duration = parse_duration(&text);
    duration.map(Some).ok_or_else(|| de::Error::custom(no_duration(&text)))
}

fn durability<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Durability>, D::Error> {
    let text = String::deserialize(source)?;
    parse_durability(&text).map(Some).ok_or_else(|| {
        de::Error::custom(format!("`{text}` is none of \"group\", \"interval 100 ms\", \"os\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_memory_for_a_writer_and_its_blocks() {
        for (name, profile) in Profile::ALL {
            for writers in [1, 2, 16] {
                let options = Options::default().profile(profile).writers(writers);
                let Ok(tuning) = Tuning::try_from(options) else {
                    assert!(writers > 1, "{name} has none for one");
                    continue;
                };
                assert!((tuning.block_size..=MOST_BLOCK_SIZE).contains(&tuning.most_block_size), "{name}");
                let staged = tuning.buffers * tuning.buffer_size;
                assert!(
                    staged >= (tuning.writers + 2) * tuning.most_block_size - tuning.buffer_size,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_enough() {
        for (writers, block_size, level) in
            [(1, 16 << 20, 1), (2, 8 << 20, 1), (16, 1 << 20, 1), (3, 4 << 20, 19)]
        {
            let options = |memory: usize| {
                Options::default().memory(memory).writers(writers).block_size(block_size).compression(level)
            };
            let refused = Tuning::try_from(options(64 << 20)).unwrap_err().to_string();
            let told = refused.split("raise it to ").nth(1).and_then(|rest| rest.split(' ').next());
            let enough: usize = told.unwrap().parse().unwrap();
            let tuning = Tuning::try_from(options(enough)).unwrap();
            assert_eq!((tuning.writers, tuning.block_size), (writers, block_size));
            assert!(tuning.most_block_size >= block_size, "{writers} {block_size} {level}");
            assert!(Tuning::try_from(options(enough - 24)).is_err());
        }
    }

    #[test]
    fn what_zstd_takes_counts() {
        let options = || Options::default().memory(64 << 20).writers(1);
        assert!(Tuning::try_from(options().compression(12)).is_err());
        assert!(Tuning::try_from(options().compression(1)).is_ok());
    }

    #[test]
    fn retries_of_the_program_are_for_logs_that_say_nothing() {
        let program = Options::default().default_retries(9);
        let retries = |options: Options| Tuning::try_from(options).unwrap().retries;
        assert_eq!(retries(Options::default()), 3);
        assert_eq!(retries(program.clone().or(Options::default())), 9);
        assert_eq!(retries(program.clone().or(Options::default().retries(5))), 5);
        assert_eq!(retries(program.retries(1).or(Options::default().retries(5))), 1);
    }
}
