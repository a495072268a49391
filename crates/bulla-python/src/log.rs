//! A log: one that this process has open, or one that another has.

use crate::error::{Raise, invalid};
use crate::given::{number, optional_text, text, texts};
use crate::owner::not_pickled;
use crate::producer::Producer;
use crate::receipt::seconds;
use crate::shared::{Listens, Opened, Shared, closed};
use bulla::socket::{self, Listen};
use bulla::{Error, Init, Options, default_keys};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes an empty log, and returns its public key: keep that where the log is not.
///
/// `directory` and `keys`, by default `directory` with `.keys` behind it, must be absent or empty: the one is the log,
/// the other has its secrets. `origin` is the log's name in what it signs, by default one that is made up; `recipients`
/// are the age public keys (`age1…`) of who may read it, one or several, by default one that is made in `keys`; with
/// `erasure` each data subject has a key of its own, so that one person's entries can be erased.
///
/// Raises `Refused` where there is something in a directory, `Invalid` for an origin or a recipient that is none,
/// `Locked` where somebody else is making a log there, else `Unavailable`.
#[pyfunction]
#[pyo3(signature = (directory, *, keys=None, origin=None, recipients=None, erasure=true))]
pub(crate) fn create(
    py: Python<'_>,
    directory: PathBuf,
    keys: Option<PathBuf>,
    origin: Option<&Bound<'_, PyAny>>,
    recipients: Option<&Bound<'_, PyAny>>,
    erasure: bool,
) -> PyResult<String> {
    let keys = keys.unwrap_or_else(|| default_keys(&directory));
    let mut init = Init::default().erasure(erasure);
    if let Some(origin) = optional_text("origin", origin)? {
        init = init.origin(origin);
    }
    for recipient in recipients.map_or(Ok(Vec::new()), |recipients| texts("recipients", recipients))? {
        init = init.recipient(recipient);
    }
    let created = py.detach(|| init.create_with_keys(&directory, &keys)).raise(py)?;
    Ok(created.verifier_key.to_string())
}

/// A path of a setting that has several.
fn place(name: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    let place = value.extract::<PathBuf>().ok().and_then(|place| place.into_os_string().into_string().ok());
    place.map(toml::Value::String).ok_or_else(|| unfit(name))
}

fn unfit(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "setting `{name}` has to be a str, an int, a bool, or, of those that have several paths, a list of them"
    ))
}

/// Settings as the log's own file has them.
fn options(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut table = toml::Table::new();
    for (name, value) in settings.into_iter().flatten() {
        let name = name.extract::<String>()?;
        let value = if value.is_instance_of::<PyBool>() {
            toml::Value::Boolean(value.extract()?)
        } else if value.is_instance_of::<PyString>() {
            toml::Value::String(text(&name, &value)?)
        } else if let Ok(places) = value.cast::<PyList>() {
            toml::Value::Array(places.iter().map(|value| place(&name, &value)).collect::<PyResult<_>>()?)
        } else {
            toml::Value::Integer(value.extract().map_err(|_| unfit(&name))?)
        };
        table.insert(name, value);
    }
    if table.contains_key("backup_paths") {
        let message =
            "`backup_paths` is set for all that open the log: `bulla config DIR set backup_paths PATHS`";
        return Python::attach(|py| Err(invalid(py, message)));
    }
    let wrong = |error: toml::de::Error| {
        // Which of them it is, the message does not say.
        let one =
            |name: &String, value: &toml::Value| toml::Table::from_iter([(name.clone(), value.clone())]);
        let name = table.iter().find(|(name, value)| one(name, value).try_into::<Options>().is_err());
        let what = name.map_or_else(|| "settings".to_owned(), |(name, _)| format!("setting `{name}`"));
        Error::invalid(format!("{what}: {}", error.message()))
    };
    let options = table.clone().try_into::<Options>().map_err(wrong);
    Python::attach(|py| options.raise(py))
}

/// A log that this process has open. Any thread may use it; a forked child may not, and connects.
///
/// `directory` is the log and `keys` its secrets, by default `directory` with `.keys` behind it. `settings` are those
/// that `bulla config` has for a writer, by its names, and go before them: a `str` with its unit (`memory="128 MiB"`,
/// `linger="5 ms"`), an `int`, a `bool`, or a `list` of paths (`vault_replicas`). What a crash left is recovered first.
///
/// In a `with` block it is closed at the end. One that is let go of without being closed is closed then, with a
/// `ResourceWarning`.
///
/// Raises `Locked` where another process has it open, `Invalid` for a setting that is unknown or out of its limits,
/// `Tampered` where it is not what was written, `Refused` where keys and log do not belong together, else `Unavailable`.
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
        Ok(Log(Shared::new(Opened::Here(log, Mutex::default()), format!("log {}", directory.display()))))
    }

    /// The log's name in what it signs. Raises `Closed` where it was closed.
    #[getter]
    fn origin(&self, py: Python<'_>) -> PyResult<String> {
        self.0.origin(py)
    }

    /// Whether this was closed, or belongs to the process that this one was forked off from.
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Makes a `Producer`, by which entries are appended: best one for each thread.
    ///
    /// Raises `Invalid` where there are as many as the `memory` of the log allows, `Closed` where the log was closed.
    fn producer(slf: &Bound<'_, Self>) -> PyResult<Producer> {
        Producer::new(slf.py(), slf.get().0.clone(), slf.clone().into_any().unbind())
    }

    /// Listens for entries of other processes (`connect`) until the log is closed.
    ///
    /// `path` is a local socket, which is made with this `mode`: by default only the same user may connect. `clients` may
    /// be connected at once, where each producer of a connection is one, and a connection that has none yet. At
    /// `datagrams`, another socket, entries are taken that nobody acknowledges. With `actor_from_peer` every entry's actor
    /// is who the kernel says sent it (`uid:1000`), whatever it claims.
    ///
    /// Raises `Invalid` where it listens already, something else lies at a path, or `mode` or `clients` is out of range,
    /// `Locked` where somebody listens there, `Closed` where the log was closed, else `Unavailable`.
    #[pyo3(signature = (path, *, clients=64, mode=0o600, datagrams=None, actor_from_peer=false))]
    fn listen(
        &self,
        py: Python<'_>,
        path: PathBuf,
        clients: i64,
        mode: i64,
        datagrams: Option<PathBuf>,
        actor_from_peer: bool,
    ) -> PyResult<()> {
        let (clients, mode) = (number(py, "clients", clients)?, number(py, "mode", mode)?);
        let mut listen =
            Listen::default().stream(path).clients(clients).mode(mode).peer_is_actor(actor_from_peer);
        if let Some(datagrams) = datagrams {
            listen = listen.datagrams(datagrams);
        }
        self.0.with(py, |opened| match opened {
            Opened::Elsewhere(_) => Err(closed()),
            Opened::Here(log, listening) => py.detach(|| {
                let mut listening = listening.lock().unwrap_or_else(PoisonError::into_inner);
                if listening.is_some() {
                    return Err(Error::invalid("it is listened for already"));
                }
                *listening = Some(Listens::new(listen.start(log)?)?);
                Ok(())
            }),
        })
    }

    /// Waits until everything that any producer has appended so far is durable and below a signed checkpoint, so that
    /// readers find it. Raises what keeps it from that.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |opened| match opened {
            Opened::Here(log, _) => py.detach(|| log.flush()),
            Opened::Elsewhere(_) => Ok(()),
        })
    }

    /// What was done since the log was opened, and how much is under way: a dict of numbers, whose names and units are in
    /// `docs/json.md`. Raises `Closed` where the log was closed.
    fn telemetry<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let telemetry = self.0.with(py, |opened| match opened {
            Opened::Here(log, _) => Ok(Some(log.telemetry())),
            Opened::Elsewhere(_) => Ok(None),
        })?;
        let json = serde_json::to_string(&telemetry).map_err(|error| invalid(py, error.to_string()))?;
        py.import("json")?.getattr("loads")?.call1((json,))
    }

    /// Writes, syncs and signs everything, and lets go of the log. A log that is closed stays so; in a forked child this
    /// does nothing.
    ///
    /// Raises what keeps anything from being durable and signed: the log is closed then, too. Raises `Invalid` in a
    /// function that `Receipt.notify` calls, which must not wait: a thread of its own then closes the log.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    /// This, which is closed at the block's end.
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes this. Raises what `close` does.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// Raises `TypeError`: nothing of a log can be sent to another process.
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

/// A log that another process has open and listens for. Any thread may use it; a forked child may not, and
/// connects itself. `connect` makes it.
///
/// In a `with` block it is closed at the end. One that is let go of without being closed is closed then.
#[pyclass(frozen, weakref, module = "bulla_audit")]
pub(crate) struct Connection(Arc<Shared>);

/// Connects to the log that another process has open and listens for at this socket: `bulla append --listen`, or
/// `Log.listen`. Returns a `Connection`.
///
/// `append_timeout`, in seconds, is how long connecting waits at most for the log to answer, a second at least, and appending and flushing
/// for it to take something.
///
/// Raises `Unavailable` where nobody listens there, this user may not connect, or there are as many clients as there
/// may be, `Invalid` for a timeout that is none.
#[pyfunction]
#[pyo3(signature = (path, *, append_timeout=10.0))]
pub(crate) fn connect(py: Python<'_>, path: PathBuf, append_timeout: f64) -> PyResult<Connection> {
    let timeout = seconds(py, append_timeout)?;
    let connection =
        py.detach(|| socket::Connection::open_within(&path, timeout)).raise(py)?.append_timeout(timeout);
    let name = format!("connection to {}", path.display());
    Ok(Connection(Shared::new(Opened::Elsewhere(connection), name)))
}

#[pymethods]
impl Connection {
    /// The log's name in what it signs. Raises `Closed` where it was closed.
    #[getter]
    fn origin(&self, py: Python<'_>) -> PyResult<String> {
        self.0.origin(py)
    }

    /// Whether this was closed, or belongs to the process that this one was forked off from.
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Makes a `Producer`, by which entries are appended. Each has a connection of its own to the process that listens,
    /// and is one of the `clients` that may be connected there at once.
    ///
    /// Raises `Unavailable` where nobody listens any more or there are as many clients as there may be, `Refused` where
    /// another log listens there by now, `Closed` where this was closed.
    fn producer(slf: &Bound<'_, Self>) -> PyResult<Producer> {
        Producer::new(slf.py(), slf.get().0.clone(), slf.clone().into_any().unbind())
    }

    /// Sends what its producers have, and waits until all of it is durable. What is closed stays so; in a forked child
    /// this does nothing.
    ///
    /// Raises what keeps anything from being durable: `Closed` where the connection has ended, `Invalid` where the log
    /// refused entries, whether or not a receipt has told of that.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    /// This, which is closed at the block's end.
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes this. Raises what `close` does.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// Raises `TypeError`: nothing of a log can be sent to another process.
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
