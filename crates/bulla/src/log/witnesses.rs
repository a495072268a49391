//! The threads that ask a log's witnesses: one that says who is asked for what and keeps the answers, and one for each witness that is
//! being asked, which waits for the network.
//!
//! Nobody waits for these: not whoever appends, commits or signs; whoever closes the log does for [`CLOSING`] at most, and what is
//! still being asked then is left to its own limit in time, and writes nothing any more.

use super::asking::{Answered, Asking};
use crate::write::engine::Engine;
use bulla_http::Client;
use bulla_store::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long closing a log waits for its witnesses, at most.
pub(crate) const CLOSING: Duration = Duration::from_secs(5);
/// How often it is looked whether there is a new checkpoint.
const TICK: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct Witnesses {
    thread: JoinHandle<()>,
    messages: Sender<Message>,
}

enum Message {
    /// The log is being closed, and signs no more.
    Close,
    /// What came of asking a witness.
    Answered(Answered),
}

impl Witnesses {
    /// Asks the log's witnesses from now on, as they are in `[log]` at any time.
    ///
    /// # Errors
    /// Where the thread cannot be started.
    pub(super) fn start(engine: &Arc<Engine>) -> std::io::Result<Self> {
        let (messages, received) = channel();
        let (engine, answers) = (engine.clone(), messages.clone());
        let run = move || {
            let asking = Asking::new(&engine);
            AskingThread { engine, asking, answers, client: None }.run(&received);
        };
        let thread = std::thread::Builder::new().name("bulla-witnesses".to_owned()).spawn(run)?;
        Ok(Witnesses { thread, messages })
    }

    /// Asks for the last checkpoint, and ends: after [`CLOSING`] at the latest.
    pub(super) fn close(self) {
        // It has ended by itself where it does not hear.
        let _ = self.messages.send(Message::Close);
        let _ = self.thread.join();
    }
}

struct AskingThread {
    engine: Arc<Engine>,
    asking: Asking,
    answers: Sender<Message>,
    client: Option<Client>,
}

impl AskingThread {
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            if let Err(error) = self.begin(false) {
                self.asking.tell(&error.to_string());
            }
            match messages.recv_timeout(TICK) {
                Ok(Message::Answered(answered)) => self.asking.take(answered),
                Ok(Message::Close) => return self.finish(messages),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Asks for what the log signed last, and waits for the answers, but not longer than [`CLOSING`].
    fn finish(mut self, messages: &Receiver<Message>) {
        let until = bulla_crypto::clock::Deadline::after(CLOSING);
        if self.engine.progress.failure().is_some() {
            return;
        }
        if let Err(error) = self.begin(true) {
            return self
                .asking
                .tell(&format!("the witnesses were not asked for the last checkpoint: {error}"));
        }
        while !self.asking.is_settled() {
            match messages.recv_timeout(until.left()) {
                Ok(Message::Answered(answered)) => {
                    self.asking.take(answered);
                    // One that was slow has yet to be asked for the last one.
                    self.ask(true);
                }
                Ok(Message::Close) => {}
                Err(_) => {
                    let within = CLOSING.as_secs();
                    return self
                        .asking
                        .give_up(&format!("it has not answered within {within} s of closing the log"));
                }
            }
        }
    }

    /// Has the newest checkpoint asked for, where it is time for that, and whoever is to be asked asked.
    fn begin(&mut self, closing: bool) -> Result<()> {
        self.asking.begin(closing)?;
        self.ask(closing);
        Ok(())
    }

    /// Starts a thread for each witness that is to be asked now.
    fn ask(&mut self, closing: bool) {
        let begun = self.asking.questions(closing);
        if begun.is_empty() {
            return;
        }
        let client = match &self.client {
            Some(client) => Ok(client.clone()),
            None => {
                Client::new(&bulla_http::Options { plain_loopback: true, ..bulla_http::Options::default() })
            }
        };
        self.client = client.as_ref().ok().cloned();
        for question in begun {
            let (answers, question) = (self.answers.clone(), Arc::new(question));
            let started = client.clone().map_err(|error| error.to_string()).and_then(|client| {
                let (answers, question) = (answers.clone(), question.clone());
                let run = move || {
                    let answered = question.ask(&|address, body| {
                        let answer = client.post(address, "text/plain; charset=utf-8", body);
                        answer.map_err(|error| error.to_string())
                    });
                    // Nobody listens any more where the log was closed.
                    let _ = answers.send(Message::Answered(answered));
                };
                let thread = std::thread::Builder::new().name("bulla-witness".to_owned()).spawn(run);
                thread.map(drop).map_err(|error| format!("starting a thread that asks it: {error}"))
            });
            if let Err(why) = started {
                let _ = answers.send(Message::Answered(question.failed(why)));
            }
        }
    }
}
