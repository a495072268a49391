//! A log: one that this process has open, or one that another has.

use crate::error::{Raise, invalid, raise};
use crate::owner::Owner;
use crate::producer::{Producer, Way};
use bulla::socket::{self, Listen, Listening};
use bulla::{Error, Init, Options, default_keys};
use pyo3::exceptions::{PyResourceWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, RwLockExt};
use pyo3::types::{PyBool, PyDict, PyString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

/// What a log stands for, until it is closed. Whoever uses it has it locked for reading, whoever closes it for writing.
pub(crate) struct Shared {
    opened: RwLock<Option<Opened>>,
    pub(crate) owner: Owner,
    name: String,
}

enum Opened {
    Here(bulla::Log, Option<Listening>),
    Elsewhere(socket::Connection),
}

/// All that are open, to be closed when the interpreter ends.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Shared {
    fn new(opened: Opened, name: String) -> Arc<Self> {
        let shared = Arc::new(Shared { opened: RwLock::new(Some(opened)), owner: Owner::new(), name });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        shared
    }

    fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&Opened) -> bulla::Result<T>) -> PyResult<T> {
        self.owner.check(py)?;
        let opened = self.opened.read_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        match &*opened {
            Some(opened) => call(opened).raise(py),
            None => Err(raise(py, &closed())),
        }
    }

    /// A forked child's copy is closed, too.
    pub(crate) fn is_closed(&self, py: Python<'_>) -> bool {
        !self.owner.is_here()
            || self.opened.read_py_attached(py).unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// A producer of this, which is `kept` in Python while there is one.
    fn producer(self: &Arc<Self>, py: Python<'_>, kept: Py<PyAny>) -> PyResult<Producer> {
        let way = self.with(py, |opened| {
            py.detach(|| {
                Ok(match opened {
                    Opened::Here(log, _) => Way::Here(log.producer()?),
                    Opened::Elsewhere(connection) => Way::Elsewhere(connection.producer()?),
                })
            })
        })?;
        Ok(Producer::new(way, self.clone(), kept))
    }

    fn origin(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |opened| {
            Ok(match opened {
                Opened::Here(log, _) => log.origin(),
                Opened::Elsewhere(connection) => connection.origin().to_owned(),
            })
        })
    }

    /// Closes it. What is closed stays so.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.owner.check(py)?;
        // Its threads may have something to tell Python while it is closed.
        let closed = py.detach(|| {
            let opened = self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
            match opened {
                None => Ok(()),
                Some(Opened::Here(log, listening)) => {
                    drop(listening);
                    log.close()
                }
                Some(Opened::Elsewhere(connection)) => connection.close(),
            }
        });
        closed.raise(py)
    }

    /// Closes what somebody let go of without closing it, and says so, as Python does of files.
    fn let_go(&self, py: Python<'_>) {
        if self.is_closed(py) {
            return;
        }
        let closed = self.close(py);
        let message = std::ffi::CString::new(format!("unclosed {}", self.name)).unwrap_or_default();
        let warned = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1);
        for error in [warned, closed].into_iter().filter_map(Result::err) {
            error.write_unraisable(py, None);
        }
    }
}

fn closed() -> Error {
    Error::new(bulla::ErrorKind::Closed, "the log was closed")
}

/// Closes all that this process has open, and gives the errors of what was not.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub(crate) fn close_all(py: Python<'_>) -> Vec<PyErr> {
    let open = std::mem::take(&mut *OPEN.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner));
    let mut open = open.iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
    open.retain(|shared| shared.owner.is_here());
    // What others listen for comes last: this process may be connected to itself.
    open.sort_by_key(|shared| {
        shared.with(py, |opened| Ok(matches!(opened, Opened::Here(..)))).unwrap_or_default()
    });
    open.iter().filter_map(|shared| shared.close(py).err()).collect()
}

/// Makes an empty log, and returns its public key.
#[pyfunction]
#[pyo3(signature = (directory, *, keys=None, origin=None, recipients=Vec::new(), erasure=true))]
pub(crate) fn create(
    py: Python<'_>,
    directory: PathBuf,
    keys: Option<PathBuf>,
    origin: Option<String>,
    recipients: Vec<String>,
    erasure: bool,
) -> PyResult<String> {
    let keys = keys.unwrap_or_else(|| default_keys(&directory));
    let mut init = Init::default().erasure(erasure);
    if let Some(origin) = origin {
        init = init.origin(origin);
    }
    for recipient in recipients {
        init = init.recipient(recipient);
    }
    let created = py.detach(|| init.create_with_keys(&directory, &keys)).raise(py)?;
    Ok(created.verifier_key.to_string())
}

/// Settings as the log's own file has them.
fn options(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut table = toml::Table::new();
    for (name, value) in settings.into_iter().flatten() {
        let name = name.extract::<String>()?;
        let value = if value.is_instance_of::<PyBool>() {
            toml::Value::Boolean(value.extract()?)
        } else if value.is_instance_of::<PyString>() {
            toml::Value::String(value.extract()?)
        } else {
            let number = value.extract().map_err(|_| {
                PyTypeError::new_err(format!("setting `{name}` has to be a str, an int or a bool"))
            });
            toml::Value::Integer(number?)
        };
        table.insert(name, value);
    }
    Ok(table.try_into::<Options>().map_err(|error| Error::invalid(format!("settings: {}", error.message()))))
        .and_then(|options| Python::attach(|py| options.raise(py)))
}

/// What cannot be sent to another process.
pub(crate) fn not_pickled(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {what} belongs to the process that opened it and cannot be pickled: in another one use bulla_audit.connect"
    ))
}

/// A log that this process has open. Any thread may use it.
#[pyclass(frozen, weakref, module = "bulla_audit")]
pub(crate) struct Log(Arc<Shared>);

#[pymethods]
impl Log {
    #[new]
    #[pyo3(signature = (directory, *, keys=None, **settings))]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        keys: Option<PathBuf>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keys = keys.unwrap_or_else(|| default_keys(&directory));
        let options = options(settings)?;
        let log = py.detach(|| bulla::Log::open_with_keys(&directory, &keys, options)).raise(py)?;
        Ok(Log(Shared::new(Opened::Here(log, None), format!("log {}", directory.display()))))
    }

    #[getter]
    fn origin(&self, py: Python<'_>) -> PyResult<String> {
        self.0.origin(py)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.0.is_closed(py)
    }

    fn producer(slf: &Bound<'_, Self>) -> PyResult<Producer> {
        slf.get().0.producer(slf.py(), slf.clone().into_any().unbind())
    }

    #[pyo3(signature = (path, *, clients=64, mode=0o600, datagrams=None, actor_from_peer=false))]
    fn listen(
        &self,
        py: Python<'_>,
        path: PathBuf,
        clients: usize,
        mode: u32,
        datagrams: Option<PathBuf>,
        actor_from_peer: bool,
    ) -> PyResult<()> {
        let mut listen =
            Listen::default().stream(path).clients(clients).mode(mode).peer_is_actor(actor_from_peer);
        if let Some(datagrams) = datagrams {
            listen = listen.datagrams(datagrams);
        }
        self.0.owner.check(py)?;
        let mut opened = self.0.opened.write_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        match &mut *opened {
            Some(Opened::Here(_, Some(_))) => Err(invalid(py, "it is listened for already")),
            Some(Opened::Here(log, listening)) => {
                *listening = Some(py.detach(|| listen.start(log)).raise(py)?);
                Ok(())
            }
            _ => Err(raise(py, &closed())),
        }
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |opened| match opened {
            Opened::Here(log, _) => py.detach(|| log.flush()),
            Opened::Elsewhere(_) => Ok(()),
        })
    }

    fn telemetry<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let telemetry = self.0.with(py, |opened| match opened {
            Opened::Here(log, _) => Ok(Some(log.telemetry())),
            Opened::Elsewhere(_) => Ok(None),
        })?;
        let json = serde_json::to_string(&telemetry).map_err(|error| invalid(py, error.to_string()))?;
        py.import("json")?.getattr("loads")?.call1((json,))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("log"))
    }

    fn __repr__(&self) -> String {
        format!("<bulla_audit.Log: {}>", self.0.name)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        Python::try_attach(|py| self.0.let_go(py));
    }
}

/// A log that another process has open and listens for. Any thread may use it.
#[pyclass(frozen, weakref, module = "bulla_audit")]
pub(crate) struct Connection(Arc<Shared>);

/// Connects to the log that another process has open and listens for at this socket.
#[pyfunction]
#[pyo3(signature = (path, *, append_timeout=10.0))]
pub(crate) fn connect(py: Python<'_>, path: PathBuf, append_timeout: f64) -> PyResult<Connection> {
    let timeout = seconds(py, append_timeout)?;
    let connection = py.detach(|| socket::Connection::open(&path)).raise(py)?.append_timeout(timeout);
    let name = format!("connection to {}", path.display());
    Ok(Connection(Shared::new(Opened::Elsewhere(connection), name)))
}

/// A time to wait.
pub(crate) fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid(py, "a timeout has to be a number of seconds, 0 or more"))
}

#[pymethods]
impl Connection {
    #[getter]
    fn origin(&self, py: Python<'_>) -> PyResult<String> {
        self.0.origin(py)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.0.is_closed(py)
    }

    fn producer(slf: &Bound<'_, Self>) -> PyResult<Producer> {
        slf.get().0.producer(slf.py(), slf.clone().into_any().unbind())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("connection"))
    }

    fn __repr__(&self) -> String {
        format!("<bulla_audit.Connection: {}>", self.0.name)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        Python::try_attach(|py| self.0.let_go(py));
    }
}
