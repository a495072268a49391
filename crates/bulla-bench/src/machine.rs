//! What a measurement was made on.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) processors: usize,
    /// Instructions that matter here, of those that the processor has.
    pub(crate) features: Vec<String>,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    /// Of the place that files were written to.
    pub(crate) file_system: String,
}

const FEATURES: [&str; 12] = [
    "avx2",
    "avx512f",
    "aes",
    "vaes",
    "vpclmulqdq",
    "sha_ni",
    "gfni",
    "bmi2",
    "asimd",
    "pmull",
    "sha2",
    "sve",
];

impl Machine {
    pub(crate) fn look(place: &Path) -> Self {
        let cpu = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
            line.map(|value| value.trim().to_owned())
        };
        let flags = field(&cpu, "flags").or_else(|| field(&cpu, "Features")).unwrap_or_default();
        let memory = field(&read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal");
        Machine {
            processor: field(&cpu, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            features: FEATURES
                .into_iter()
                .filter(|feature| flags.split_whitespace().any(|flag| flag == *feature))
                .map(str::to_owned)
                .collect(),
            memory_mib: memory
                .and_then(|memory| memory.trim_end_matches(" kB").parse::<u64>().ok())
                .unwrap_or_default()
                / 1024,
            kernel: read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            file_system: file_system(place).unwrap_or_else(|| "unknown".to_owned()),
        }
    }
}

/// The type of the file system that a directory is on.
fn file_system(place: &Path) -> Option<String> {
    let (place, mounts) = (place.canonicalize().ok()?, read_to_string("/proc/self/mounts").ok()?);
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (directory, kind) = (words.next()?, words.next()?);
        place.starts_with(directory).then_some((directory.len(), kind))
    });
    // Of several on one directory the last is what one sees.
    mounted.max_by_key(|(length, _)| *length).map(|(_, kind)| kind.to_owned())
}

/// The commit of the working directory, and whether files differ from it.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "--untracked-files=no"]).as_deref() {
        Some("") => commit,
        _ => commit + " and changes",
    }
}

/// The time, in RFC 3339.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let mut text = Vec::new();
    bulla::text::time::format_time(seconds * 1_000_000_000, &mut text);
    String::from_utf8(text).unwrap_or_default()
}
