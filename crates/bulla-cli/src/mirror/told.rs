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
    /// Whether it was told what the destination had before anything arrived.
    found: bool,
    last: Option<Shipped>,
    /// Whether the copy was ever seen to hold anything of the log.
    begun: bool,
    /// What was printed last, and when.
    printed: Option<(Shipped, Instant)>,
    /// Which frames have arrived.
    reached: Reached,
    /// Whether any arrived since something failed that had not before.
    gone_on: bool,
}

/// How far a mirror came: each attempt begins at its checkpoint again, and tells of frames once more that an earlier one had shipped.
#[derive(Default)]
struct Reached {
    /// The frames up to which the attempt that is under way ships them.
    signed: u64,
    /// Frames that had arrived at the furthest.
    furthest: u64,
}

impl Reached {
    /// Whether frames have arrived by `shipped` that never had before. `last` is what was told before that.
    fn goes_on(&mut self, last: Option<&Shipped>, shipped: &Shipped) -> bool {
        let begins = last
            .is_none_or(|last| last.frames != shipped.frames || last.behind.frames < shipped.behind.frames);
        if begins {
            self.signed = shipped.frames + shipped.behind.frames;
        }
        // Before an attempt has looked at the log it is behind by nothing.
        let arrived = match shipped.behind.frames {
            0 => shipped.frames,
            behind => self.signed.saturating_sub(behind).max(shipped.frames),
        };
        let goes_on = arrived > self.furthest || shipped.advanced;
        self.furthest = self.furthest.max(arrived);
        goes_on
    }
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
            found: false,
            last: None,
            begun: false,
            printed: None,
            reached: Reached::default(),
            gone_on: false,
        }
    }

    /// Whether the copy was ever seen to hold anything of the log.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether anything has arrived since this was asked last that had not before.
    pub(super) fn has_gone_on(&mut self) -> bool {
        std::mem::take(&mut self.gone_on)
    }

    /// Tells what the destination has before anything arrives, and of one that has nothing that the copy begins: where there was one before,
    /// it is not there.
    fn tell_found(&mut self, shipped: &Shipped) {
        self.found = true;
        if shipped.frames == 0 {
            self.bar
                .suspend(|| note!("nothing of the log is in {} yet: this is a first copy", self.destination));
        }
    }

    /// Tells what has arrived.
    pub(super) fn tell(&mut self, shipped: &Shipped) {
        if !self.found {
            self.tell_found(shipped);
        }
        let goes_on = self.reached.goes_on(self.last.as_ref(), shipped);
        self.gone_on |= goes_on;
        self.begun |= goes_on;
        self.last = Some(*shipped);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(frames: u64, behind: u64) -> Shipped {
        let mut shipped = Shipped::default();
        (shipped.frames, shipped.behind.frames) = (frames, behind);
        shipped
    }

    /// Has an attempt told that finds a copy of `frames` frames, and ships from `signed` of the log until so many have arrived.
    fn attempt(teller: &mut Teller, frames: u64, signed: u64, arrived: u64) -> bool {
        teller.tell(&shipped(frames, 0));
        for behind in (signed - arrived..=signed - frames).rev() {
            teller.tell(&shipped(frames, behind));
        }
        teller.has_gone_on()
    }

    #[test]
    fn an_attempt_that_comes_no_further_than_the_last_one_came_to_nothing() {
        let mut teller = Teller::new("copy", false);
        attempt(&mut teller, 10, 10, 10);
        assert!(!attempt(&mut teller, 10, 50, 10));
        assert!(attempt(&mut teller, 10, 50, 30));
        for arrived in [30, 30, 20, 10] {
            assert!(!attempt(&mut teller, 10, 50, arrived), "{arrived}");
        }
        assert!(!attempt(&mut teller, 10, 60, 30), "that the log has grown is nothing that arrived");
        assert!(attempt(&mut teller, 10, 60, 31));
        // The next checkpoint is published, and then everything is as it was.
        teller.tell(&shipped(60, 0));
        assert!(teller.has_gone_on());
        assert!(!attempt(&mut teller, 60, 60, 60));
    }

    #[test]
    fn nothing_has_begun_before_anything_of_the_log_is_there() {
        let mut teller = Teller::new("copy", false);
        assert!(!attempt(&mut teller, 0, 5, 0) && !teller.has_begun());
        assert!(attempt(&mut teller, 0, 5, 1) && teller.has_begun());
        // That of a log without frames is its checkpoint.
        let mut teller = Teller::new("copy", false);
        let mut published = shipped(0, 0);
        published.advanced = true;
        teller.tell(&published);
        assert!(teller.has_begun());
        let mut teller = Teller::new("copy", false);
        teller.tell(&shipped(3, 0));
        assert!(teller.has_begun(), "there is a mirror already");
    }
}
