//! How far an export, or what counts entries, has come, on a terminal: how much, how fast, how much longer.

use crate::output::pass_bar;
use bulla::Progress;
use bulla::text::spelling::counted;
use indicatif::ProgressBar;
use std::sync::{Mutex, PoisonError};

/// A bar that fills once for each time that the log is gone through.
#[derive(Clone)]
pub(crate) struct Passes(ProgressBar);

impl Passes {
    pub(crate) fn new() -> Self {
        Passes(pass_bar())
    }

    /// What to call with each step of an export. `verified_first`: before anything is exported, all of it is verified.
    pub(super) fn stepper(&self, verified_first: bool) -> impl Fn(Progress) + Send + Sync + 'static {
        self.steps(if verified_first { "verifying" } else { "exporting" }, "exporting")
    }

    /// The same of something that is done in passes of the names `first` and `then`.
    pub(crate) fn steps(
        &self,
        first: &'static str,
        then: &'static str,
    ) -> impl Fn(Progress) + Send + Sync + 'static {
        let bar = self.0.clone();
        bar.set_prefix(first);
        let last = Mutex::new(0);
        move |Progress { done, total, entries, .. }| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if done < *last {
                bar.set_prefix(then);
                bar.reset();
            }
            *last = done;
            bar.set_length(total);
            bar.set_position(done);
            let rate = u128::from(entries) * 1000 / bar.elapsed().as_millis().max(1);
            bar.set_message(format!("{}, {rate}/s", counted(entries, "entry")));
        }
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
