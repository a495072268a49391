//! What this process has used: time of processors, memory.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time of all threads, those that ended included.
pub(crate) fn cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// Processor time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

/// From here on, [`peak_memory`] is what the process has from here on. Where the system does not let it forget, what
/// was before counts too, which makes the figure greater and never smaller.
pub(crate) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most resident memory that this process had, in bytes.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() * 1024
}
