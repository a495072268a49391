//! By what a thread is told that there is something to look at.

use std::sync::mpsc::{self, Receiver, SyncSender};

#[derive(Clone)]
pub(super) struct Alarm(SyncSender<()>);

impl Alarm {
    /// One, and what whoever waits for it receives from.
    pub(super) fn new() -> (Self, Receiver<()>) {
        let (sender, raised) = mpsc::sync_channel(1);
        (Alarm(sender), raised)
    }

    pub(super) fn raise(&self) {
        // One that is raised already has this looked at, too.
        let _ = self.0.try_send(());
    }
}
