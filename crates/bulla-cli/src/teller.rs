//! [`Teller`]: tells at once what a log waits for, from a thread of its own, since the log's must not wait for whoever reads what is told.

use crate::exit::Failure;
use crate::interrupt::no_room;
use crate::terminal::tell_what_is_tried_again;
use bulla::environment::Tell;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// The same trouble is told again after so long.
const TOLD_AGAIN: Duration = Duration::from_secs(10);
/// So long the end waits for whoever reads what is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module. What the log told last, as it was closed, is told before this is gone, unless nobody reads it.
pub(crate) struct Teller {
    tell: Tell,
    untold: Arc<Untold>,
}

/// How much was given to the thread that is not told yet.
#[derive(Default)]
struct Untold {
    count: Mutex<usize>,
    is_told: Condvar,
}

impl Untold {
    fn add(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn remove(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.is_told.notify_all();
    }

    fn wait_until_none(&self, most: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.is_told.wait_timeout_while(count, most, |count| *count > 0));
    }
}

impl Teller {
    /// # Errors
    /// Where the thread cannot be started.
    pub(crate) fn start() -> Result<Self, Failure> {
        Self::telling(tell_what_is_tried_again)
    }

    fn telling(tell: impl Fn(&str) + Send + 'static) -> Result<Self, Failure> {
        let (failed, told) = mpsc::sync_channel::<String>(1);
        let untold = Arc::new(Untold::default());
        let of_thread = untold.clone();
        let run = move || {
            let mut before = None::<(String, Instant)>;
            for what in told {
                // Several threads may meet the same.
                if !before.is_some_and(|(before, at)| before == what && at.elapsed() < TOLD_AGAIN) {
                    tell(&what);
                }
                of_thread.remove();
                before = Some((what, Instant::now()));
            }
        };
        let thread = std::thread::Builder::new().name("bulla-told".to_owned()).spawn(run);
        thread.map_err(|error| no_room("starting a thread", &error))?;
        let of_log = untold.clone();
        let tell = Arc::new(move |what: &str| {
            of_log.add();
            if failed.try_send(what.to_owned()).is_err() {
                of_log.remove();
            }
        });
        Ok(Teller { tell, untold })
    }

    /// For a log's environment.
    pub(crate) fn tell(&self) -> Tell {
        self.tell.clone()
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.untold.wait_until_none(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_last_is_told_before_the_end_and_nobody_who_does_not_read_holds_it_up() {
        let (told, heard) = mpsc::channel();
        let teller = Teller::telling(move |what| {
            std::thread::sleep(Duration::from_millis(50));
            told.send(what.to_owned()).unwrap();
        });
        let teller = teller.unwrap();
        (teller.tell())("it has not answered");
        drop(teller);
        assert_eq!(heard.try_recv().unwrap(), "it has not answered");

        let (go_on, waits) = mpsc::channel::<()>();
        let teller = Teller::telling(move |_| _ = waits.recv()).unwrap();
        let tell = teller.tell();
        // One is being told, one waits, and the third is of nobody.
        (0..3).for_each(|number| tell(&number.to_string()));
        drop(teller);
        drop(go_on);
    }
}
