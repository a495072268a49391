//! Defects of the proxy: a panic ends a connection, or what a thread was at, and not the proxy.
//!
//! Whoever catches one counts it and tells of it with the place where it was. What it says itself is told to nobody, since it may be of
//! what clients sent.

use crate::counters::Counters;
use crate::warnings::{Kind, Warnings};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

thread_local! {
    /// Whether somebody catches what panics on this thread.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where this thread panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Something panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defect;

/// Does `work`, which may panic. What it was at is left as it is then.
///
/// # Errors
/// It panicked.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Defect> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Defect)
}

/// Does what a future does, which may panic.
///
/// # Errors
/// It panicked, and is not to be polled again.
pub(crate) async fn caught_within<F: Future>(mut work: Pin<&mut F>) -> Result<F::Output, Defect> {
    poll_fn(|cx| {
        caught(|| work.as_mut().poll(cx)).map_or_else(|defect| Poll::Ready(Err(defect)), |it| it.map(Ok))
    })
    .await
}

/// Counts a defect by which something ended, and warns of the first one. Asked on the thread on which that panicked.
pub(crate) fn report(counters: &Counters, warnings: &Warnings, what: &str) {
    counters.failed.add(1);
    let place = PLACE.take().map_or_else(String::new, |place| format!(", at {place}"));
    warnings.once(Kind::Failed, || {
        format!(
            "{what} ended by a defect of the proxy{place}: what was under way there is recorded with status 3, or counted as not recorded"
        )
    });
}

/// From now on whatever panics on this thread is caught by somebody.
pub(crate) fn catch_all() {
    IS_CAUGHT.set(true);
}

/// From now on, in all of this process, what a panic says is told to nobody. Where it was is told with what it ended, or to `tell` where
/// it is not the proxy that catches it.
pub fn keep_messages_back(tell: impl Fn(&str) + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        let place =
            panic.location().map_or_else(|| "a place that is not known".to_owned(), ToString::to_string);
        match IS_CAUGHT.get() {
            true => PLACE.set(Some(place)),
            false => {
                let thread = std::thread::current();
                tell(&format!(
                    "the thread {} has a defect, at {place}",
                    thread.name().unwrap_or("without a name")
                ));
            }
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_testkit::{alone, is_alone};
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    /// Every test of a process has the same hook, so this one has a process.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it starts itself")]
    fn where_a_panic_was_is_told_and_not_what_it_says() {
        if !is_alone() {
            let test = "defect::tests::where_a_panic_was_is_told_and_not_what_it_says";
            let output = alone(Command::new("env"), test).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && told.contains("1 passed") && !told.contains("secret"),
                "{told}"
            );
            return;
        }
        let told = Arc::<Mutex<Vec<String>>>::default();
        let lines = told.clone();
        keep_messages_back(move |line| lines.lock().unwrap().push(line.to_owned()));
        let panics = || assert!(caught(|| panic!("a secret of {}", "ada")).is_err());
        panics();
        assert_eq!(PLACE.take(), None);
        catch_all();
        panics();
        assert!(PLACE.take().is_some_and(|place| place.contains("defect.rs:")));
        assert_eq!(PLACE.take(), None);
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("defect.rs:") && !told[0].contains("secret"), "{told:?}");
    }
}
