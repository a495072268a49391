//! How far a mirror is: a line on a terminal, lines of JSON, or, at its end, one for people.

use crate::exit::Failure;
use crate::output::{print, time};
use bulla::mirror::{Behind, Shipped};
use bulla::text::spelling::counted;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// While frames arrive, a program is told of it so often.
const EVERY: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Teller {
    destination: String,
    json: bool,
    /// Shown on a terminal only.
    bar: ProgressBar,
    /// What the destination had before anything arrived.
    found: Option<Shipped>,
    last: Option<Shipped>,
    /// What was printed last, and when.
    printed: Option<(Shipped, Instant)>,
    /// Whether anything has arrived since something failed.
    gone_on: bool,
}

impl Teller {
    pub(super) fn new(destination: &str, json: bool) -> Self {
        let style = ProgressStyle::with_template("{spinner} {wide_msg}");
        let bar = match json {
            true => ProgressBar::hidden(),
            false => ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())),
        };
        bar.enable_steady_tick(EVERY);
        Teller {
            destination: destination.to_owned(),
            json,
            bar,
            found: None,
            last: None,
            printed: None,
            gone_on: false,
        }
    }

    /// Whether the destination was ever reached.
    pub(super) fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Whether anything has arrived since this was asked last.
    pub(super) fn has_gone_on(&mut self) -> bool {
        std::mem::take(&mut self.gone_on)
    }

    /// Tells what the destination has before anything arrives, and of one that has nothing that the copy begins: where there was one before,
    /// it is not there.
    pub(super) fn tell_found(&mut self, shipped: &Shipped) {
        if self.found.replace(*shipped).is_none() && shipped.frames == 0 {
            self.bar.suspend(|| note!("a first copy is begun in {}", self.destination));
        }
        self.show(shipped);
    }

    /// Tells what has arrived.
    pub(super) fn tell(&mut self, shipped: &Shipped) {
        if self.found.is_none() {
            self.tell_found(shipped);
        }
        let before = self.last.replace(*shipped);
        self.gone_on |= before.is_some_and(|before| before != *shipped);
        self.show(shipped);
    }

    fn show(&mut self, shipped: &Shipped) {
        self.bar.set_message(sentence(shipped));
        let is_new = self.printed.is_none_or(|(printed, at)| {
            (printed.frames, printed.behind) != (shipped.frames, shipped.behind)
                && (shipped.behind == Behind::default() || at.elapsed() >= EVERY)
        });
        if self.json && is_new {
            // That nobody reads this is no reason to end.
            let _ = self.print_json(shipped, true);
        }
    }

    /// Tells that something failed and is tried again.
    pub(super) fn lost(&mut self, why: &str) -> Result<(), Failure> {
        self.bar.suspend(|| note!("{why}"));
        match self.last.filter(|_| self.json) {
            Some(last) => self.print_json(&last, false),
            None => Ok(()),
        }
    }

    fn print_json(&mut self, shipped: &Shipped, connected: bool) -> Result<(), Failure> {
        self.printed = Some((*shipped, Instant::now()));
        let Shipped { frames, entries, signed_time, behind, .. } = *shipped;
        let object = json!({
            "connected": connected,
            "frames": frames,
            "entries": entries,
            "signed_time": signed_time.map(time),
            "age": signed_time.map(age),
            "behind": { "frames": behind.frames, "entries": behind.entries, "bytes": behind.bytes },
        });
        print(&format!("{object}\n"))
    }

    /// Tells what the copy holds in the end.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        self.clear();
        match self.last.filter(|_| !self.json) {
            Some(last) => print(&format!("{}: {}\n", self.destination, sentence(&last))),
            None => Ok(()),
        }
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// How many seconds ago that was, by this host's clock.
fn age(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(seconds).max(0)
}

fn sentence(shipped: &Shipped) -> String {
    let Shipped { frames, entries, signed_time, behind, .. } = *shipped;
    let signed =
        signed_time.map_or_else(String::new, |at| format!(", signed {}, {} s ago", time(at), age(at)));
    let holds = format!("{}, {}{signed}", counted(frames, "frame"), counted(entries, "entry"));
    match behind.frames {
        0 => holds,
        frames => format!(
            "{holds}; behind by {}, {}, {}",
            counted(frames, "frame"),
            counted(behind.entries, "entry"),
            HumanBytes(behind.bytes)
        ),
    }
}
