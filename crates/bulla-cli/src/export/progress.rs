//! How far an export has come, on a terminal: how much, how fast, how much longer.

use crate::output::pass_bar;
use bulla::Progress;
use indicatif::ProgressBar;
use std::sync::{Mutex, PoisonError};

/// A bar that fills once for each time that the log is gone through.
#[derive(Clone)]
pub(super) struct Passes(ProgressBar);

impl Passes {
    pub(super) fn new() -> Self {
        Passes(pass_bar())
    }

    /// What to call with each step. `verified_first`: before anything is exported, all of it is verified.
    pub(super) fn stepper(&self, verified_first: bool) -> impl Fn(Progress) + Send + Sync + 'static {
        let bar = self.0.clone();
        bar.set_prefix(if verified_first { "verifying" } else { "exporting" });
        let last = Mutex::new(0);
        move |Progress { done, total, entries, .. }| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if done < *last {
                bar.set_prefix("exporting");
                bar.reset();
            }
            *last = done;
            bar.set_length(total);
            bar.set_position(done);
            let rate = u128::from(entries) * 1000 / bar.elapsed().as_millis().max(1);
            bar.set_message(format!("{entries} entries, {rate}/s"));
        }
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
