//! What a log in Python stands for until it is closed, whichever process has it open.

use crate::error::{Raise, raise};
use crate::owner::Owner;
use crate::pending::Pending;
use crate::receipt::is_telling;
use crate::way::Way;
use bulla::socket::{self, Listening};
use bulla::{Error, ErrorKind};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// What a log stands for, until it is closed.
pub(crate) struct Shared {
    /// Locked for moments only: whoever uses what is open has a reference of its own to it, and whoever closes it waits until those are gone.
    state: Mutex<State>,
    changed: Condvar,
    pub(crate) owner: Owner,
    pub(crate) name: String,
}

enum State {
    Open(Arc<Opened>),
    Closing,
    Closed,
}

pub(crate) enum Opened {
    Here(bulla::Log, Mutex<Option<Listens>>),
    Elsewhere(socket::Connection),
}

/// What others connect to, with what the sockets are: a number of one may be another file's in a child that has closed what it came with.
pub(crate) struct Listens {
    _listening: Listening,
    sockets: Vec<Socket>,
}

/// A descriptor, with the device and the inode of what is open there.
type Socket = (RawFd, u64, u64);

impl Listens {
    pub(crate) fn new(listening: Listening) -> bulla::Result<Self> {
        let sockets = listening.sockets().map(|socket| {
            let looked_at = socket.try_clone_to_owned().and_then(|copy| File::from(copy).metadata());
            let looked_at = looked_at.map_err(|error| Error::io("looking at the socket", error))?;
            Ok((socket.as_raw_fd(), looked_at.dev(), looked_at.ino()))
        });
        Ok(Listens { sockets: sockets.collect::<bulla::Result<_>>()?, _listening: listening })
    }
}

/// All that are open, to be closed when the interpreter ends.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Shared {
    pub(crate) fn new(opened: Opened, name: String) -> Arc<Self> {
        let state = Mutex::new(State::Open(Arc::new(opened)));
        let shared = Arc::new(Shared { state, changed: Condvar::new(), owner: Owner::new(), name });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        shared
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with<T>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Opened) -> bulla::Result<T>,
    ) -> PyResult<T> {
        self.owner.check(py)?;
        // Making an exception runs Python, which may come here again: nothing is locked then.
        let opened = match &*self.lock() {
            State::Open(opened) => Some(opened.clone()),
            State::Closing | State::Closed => None,
        };
        let opened = opened.ok_or_else(|| raise(py, &closed()))?;
        let used = Used { opened, _told: Told(self) };
        call(&used.opened).raise(py)
    }

    /// Whether this process has the log open, and not another one.
    pub(crate) fn is_log(&self, py: Python<'_>) -> bool {
        self.with(py, |opened| Ok(matches!(opened, Opened::Here(..)))).unwrap_or_default()
    }

    /// A forked child's copy is closed, too.
    pub(crate) fn is_closed(&self) -> bool {
        !self.owner.is_here() || !matches!(*self.lock(), State::Open(_))
    }

    /// A new way into it.
    pub(crate) fn way(&self, py: Python<'_>) -> PyResult<Way> {
        self.with(py, |opened| {
            py.detach(|| {
                Ok(match opened {
                    Opened::Here(log, _) => Way::Here(log.producer()?),
                    Opened::Elsewhere(connection) => Way::Elsewhere(connection.producer()?),
                })
            })
        })
    }

    pub(crate) fn origin(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |opened| {
            Ok(match opened {
                Opened::Here(log, _) => log.origin(),
                Opened::Elsewhere(connection) => connection.origin().to_owned(),
            })
        })
    }

    /// Closes it, and waits until it is closed. What is closed stays so; a forked child's copy is its parent's to close.
    pub(crate) fn close(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if !self.owner.is_here() || is_telling() && self.is_closed() {
            return Ok(());
        }
        if is_telling() {
            self.close_elsewhere().raise(py)?;
            let message = "what is told of a receipt cannot wait until the log is closed: a thread of its own closes it";
            return Err(raise(py, &Error::invalid(message)));
        }
        // Its threads may have something to tell Python while it is closed.
        py.detach(|| self.shut()).raise(py)
    }

    fn shut(&self) -> bulla::Result<()> {
        let mut state = self.lock();
        let mut opened = loop {
            match std::mem::replace(&mut *state, State::Closing) {
                State::Open(opened) => break opened,
                State::Closing => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                State::Closed => {
                    *state = State::Closed;
                    return Ok(());
                }
            }
        };
        let opened = loop {
            match Arc::try_unwrap(opened) {
                Ok(opened) => break opened,
                Err(used) => {
                    opened = used;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(state);
        let _closed = Closes(self);
        match opened {
            Opened::Here(log, listening) => {
                drop(listening);
                log.close()
            }
            Opened::Elsewhere(connection) => connection.close(),
        }
    }

    /// Has a thread of its own close it, since this one is waited for.
    fn close_elsewhere(self: &Arc<Self>) -> bulla::Result<()> {
        let shared = self.clone();
        let close = move || {
            Python::try_attach(|py| {
                if let Err(error) = shared.close(py) {
                    shared.tell(py, error);
                }
            });
        };
        #[expect(clippy::disallowed_methods, reason = "it waits in place of a thread that cannot")]
        let started = std::thread::Builder::new().name("bulla-closer".to_owned()).spawn(close);
        started.map(drop).map_err(|error| Error::io("starting the thread that closes the log", error))
    }

    /// Closes what somebody let go of without closing it, maybe since an exception is on its way. Of a log it says so, as Python does of files.
    pub(crate) fn let_go(self: &Arc<Self>, py: Python<'_>) {
        let _pending = Pending::take(py);
        if self.is_closed() {
            return;
        }
        let is_log = self.is_log(py);
        let closed = if is_telling() { self.close_elsewhere().raise(py) } else { self.close(py) };
        let message = std::ffi::CString::new(format!("unclosed {}", self.name)).unwrap_or_default();
        let warned = match is_log {
            true => PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1),
            false => Ok(()),
        };
        for error in [warned, closed].into_iter().filter_map(Result::err) {
            self.tell(py, error);
        }
    }

    /// Tells `sys.unraisablehook` what failed, and of what: no line of the program does.
    fn tell(&self, py: Python<'_>, error: PyErr) {
        error.write_unraisable(py, Some(PyString::new(py, &self.name).as_any()));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.owner.is_here() {
            // A forked child leaves alone what its parent has.
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::replace(state, State::Closed));
        }
    }
}

/// What somebody uses: whoever waits to close it is told when it is not used any more, which is once the first field is dropped.
struct Used<'a> {
    opened: Arc<Opened>,
    _told: Told<'a>,
}

struct Told<'a>(&'a Shared);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        // Whoever has found it in use waits by now.
        drop(self.0.lock());
        self.0.changed.notify_all();
    }
}

/// That somebody closes it.
struct Closes<'a>(&'a Shared);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        *self.0.lock() = State::Closed;
        self.0.changed.notify_all();
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the log was closed")
}

/// The sockets at which the processes listened that this child comes from. What another thread of it had locked is passed over.
#[pyfunction]
#[pyo3(name = "_parent_listens_at")]
pub(crate) fn parent_listens_at() -> Vec<Socket> {
    let Ok(open) = OPEN.try_lock() else { return Vec::new() };
    let mut sockets = Vec::new();
    for shared in open.iter().filter_map(Weak::upgrade) {
        if let Ok(state) = shared.state.try_lock()
            && let State::Open(opened) = &*state
            && let Opened::Here(_, listening) = &**opened
            && let Ok(listening) = listening.try_lock()
        {
            sockets.extend(listening.iter().flat_map(|listens| &listens.sockets));
        }
    }
    sockets
}

/// Closes all that this process has open, and gives the errors of what was not.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub(crate) fn close_all(py: Python<'_>) -> Vec<PyErr> {
    let open = std::mem::take(&mut *OPEN.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner));
    let mut open = open.iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
    open.retain(|shared| shared.owner.is_here());
    // What others listen for comes last: this process may be connected to itself.
    open.sort_by_key(|shared| shared.is_log(py));
    open.iter().filter_map(|shared| shared.close(py).err()).collect()
}
