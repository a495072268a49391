//! A gate before the medium: segments do not come to a sync while it is shut.

use super::watched::{Operation, Watch};
use std::sync::{Condvar, Mutex};

/// Open at first.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    waiting: usize,
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.state.lock().unwrap().shut = true;
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().shut = false;
        self.changed.notify_all();
    }

    /// Waits until a sync waits.
    pub(crate) fn wait_until_reached(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.waiting == 0).unwrap());
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.shut).unwrap();
        state.waiting -= 1;
    }
}

impl Watch for Gate {
    fn before(&self, operation: Operation, path: &str) -> std::io::Result<()> {
        if operation == Operation::Sync && path.starts_with("segments/") {
            self.pass();
        }
        Ok(())
    }
}
