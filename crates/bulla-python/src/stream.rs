//! A query that is read on a thread of its own, a few blocks ahead of whoever takes them.

use crate::owner::Owner;
use bulla::{AskedSubject, Delivery, Error, ErrorKind, Matches, Query, ReadReport, Reader, Result};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Blocks that are read ahead.
const AHEAD: usize = 2;

/// What each block of a query's answer is made into, block after block.
pub(crate) struct Stream<P> {
    told: Receiver<Told<P>>,
    is_over: bool,
    owner: Owner,
}

impl<P> Drop for Stream<P> {
    fn drop(&mut self) {
        if !self.owner.is_here() {
            // A forked child leaves alone what its parent has.
            std::mem::forget(std::mem::replace(&mut self.told, sync_channel(0).1));
        }
    }
}

enum Told<P> {
    Block(P),
    End(Result<Read>),
}

/// What the whole of it came to.
pub(crate) struct Read {
    report: ReadReport,
    /// Where nothing was found: whom it asked for by name.
    subjects: Vec<AskedSubject>,
}

/// What is next.
pub(crate) enum Next<P> {
    Block(P),
    /// It is not there yet.
    NotYet,
    /// There is no more, once and for all.
    End(Option<Read>),
}

impl<P: Send + 'static> Stream<P> {
    /// Begins to read. It ends where this is dropped.
    pub(crate) fn start(
        reader: Arc<Reader>,
        query: Query,
        render: impl Fn(&Matches<'_>) -> Result<P> + Send + Sync + 'static,
    ) -> Result<Self> {
        let (teller, told) = sync_channel(AHEAD);
        let read = move || {
            let gone = |_| Error::new(ErrorKind::Closed, "nobody takes it any more");
            let read = reader.read(&query, Delivery::Checked, render, |block| {
                teller.send(Told::Block(block?)).map_err(gone)
            });
            let read = read.and_then(|report| {
                let nothing = report.entries == 0;
                let subjects = if nothing { reader.subjects_not_found(&query)? } else { Vec::new() };
                Ok(Read { report, subjects })
            });
            // Whoever does not wait for the end needs none.
            let _ = teller.send(Told::End(read));
        };
        #[expect(clippy::disallowed_methods, reason = "it reads beside whoever takes it")]
        let started = std::thread::Builder::new().name("bulla-query".to_owned()).spawn(read);
        started.map_err(|error| Error::io("starting to read", error))?;
        Ok(Stream { told, is_over: false, owner: Owner::new() })
    }

    /// What is next, within `timeout` or, without one, whenever it is there. A forked child has no thread that reads, and is refused.
    pub(crate) fn next(&mut self, timeout: Option<Duration>) -> Result<Next<P>> {
        self.owner.require()?;
        if self.is_over {
            return Ok(Next::End(None));
        }
        let told = match timeout {
            Some(timeout) => self.told.recv_timeout(timeout),
            None => self.told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match told {
            Ok(Told::Block(block)) => Ok(Next::Block(block)),
            Err(RecvTimeoutError::Timeout) => Ok(Next::NotYet),
            Ok(Told::End(read)) => {
                self.is_over = true;
                read.map(|read| Next::End(Some(read)))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.is_over = true;
                Err(Error::unavailable("reading stopped before its end: a defect of the library"))
            }
        }
    }
}

impl Read {
    /// Refuses an answer that lacks what keys were lost of, unless `allow_lost_keys`.
    ///
    /// # Errors
    /// `Tampered`.
    pub(crate) fn check(&self, allow_lost_keys: bool) -> Result<()> {
        if allow_lost_keys { Ok(()) } else { self.report.check_keys() }
    }

    /// What is to be said where nothing was found.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.subjects
            .iter()
            .map(|AskedSubject { subject, standing, .. }| format!("data subject `{subject}` {standing}"))
    }
}
