//! Reading a log: queries, as dicts and as Arrow's record batches; exports, proofs.

use crate::arrow::capsule;
use crate::entry::{number, to_dict};
use crate::error::{Raise, invalid, raise, warn};
use crate::given::{optional_text, paths, text};
use crate::owner::{Owner, not_pickled};
use crate::query::query;
use crate::stream::{Next, Read, Stream};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use bulla::config;
use bulla::control::{SubjectKeys, identity_in};
use bulla::keys::group::SharedOnly;
use bulla::keys::identities::{decrypt_with_passphrase, is_encrypted};
use bulla::keys::recipients::IdentityFile;
use bulla::text::jsonl;
use bulla::{Error, ErrorKind, Kept, LogKey, Matches, Query, Redaction, named_keys};
use bulla_arrow::{Columns, schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long it is waited before signals are looked after, such as that of an interrupt.
const SLICE: Duration = Duration::from_millis(100);

/// What reads a log. Any thread may use it, and a writer may be at work meanwhile: what a signed checkpoint covers when a
/// query begins is what it finds. Entries that are merely durable come with the next checkpoint, which is signed within
/// `checkpoint_interval`, by `Receipt.checkpointed` and by closing the log.
///
/// `key` is the public key that the log must be signed by; without one nobody can say whose log it is. `keys` is the
/// directory of its secrets, by default `directory` with `.keys` behind it; `identity` are files of age identities in
/// place of the one that is there, under a `passphrase` maybe. With `withhold_personal` entries come without what is
/// personal, and no keys of data subjects are needed.
///
/// Raises `NoKey` where no identity or no vault is at hand, `Invalid` for a key or an identity that is none, `Refused` where
/// `keys` is given and is not there, else `Unavailable`.
#[pyclass(frozen, module = "bulla_audit")]
pub(crate) struct Reader {
    reader: Arc<bulla::Reader>,
    withhold_personal: bool,
    owner: Owner,
}

/// A public key.
pub(crate) fn log_key(key: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LogKey>> {
    let Some(key) = key else { return Ok(None) };
    let none = "`key` is no public key (NAME+ID+KEY), as `create` and `bulla info` give it";
    text("key", key)?.parse::<LogKey>().map(Some).map_err(|_| invalid(key.py(), none))
}

/// The identities in these files.
fn identities(files: &[PathBuf], passphrase: Option<&str>) -> bulla::Result<Option<IdentityFile>> {
    let opened = files.iter().map(|path| {
        #[expect(clippy::disallowed_methods, reason = "a file that the caller names")]
        let text =
            std::fs::read(path).map_err(|error| Error::io(format!("reading {}", path.display()), error))?;
        identity(&text, passphrase)
            .map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))
    });
    let opened = opened.collect::<bulla::Result<Vec<_>>>()?;
    Ok(opened.into_iter().reduce(IdentityFile::and))
}

fn identity(text: &[u8], passphrase: Option<&str>) -> bulla::Result<IdentityFile> {
    let decrypted = match (is_encrypted(text), passphrase) {
        (false, _) => None,
        (true, Some(passphrase)) => Some(decrypt_with_passphrase(text, passphrase)?),
        (true, None) => {
            return Err(Error::new(ErrorKind::NoKey, "it is under a passphrase: give it with passphrase="));
        }
    };
    let plain = std::str::from_utf8(text).map_err(|_| Error::invalid("it is not text"));
    match &decrypted {
        Some(decrypted) => IdentityFile::parse(decrypted),
        None => IdentityFile::parse(plain?),
    }
}

/// A reader with these identities, or else that of the key directory.
fn open(
    directory: &Path,
    keys: &Path,
    identities: Option<IdentityFile>,
    withhold_personal: bool,
) -> bulla::Result<bulla::Reader> {
    // With the paths on which it lies besides.
    let log = bulla::open_log(directory, Some(keys), &[])?;
    let (config, _) = config::load_of_log(&*log)?;
    let identities = identities.map_or_else(|| identity_in(keys), Ok)?;
    let reader = bulla::Reader::open_store(log)?.identity(Arc::new(identities));
    // Whoever withholds needs no vault.
    let subject_keys = if withhold_personal { None } else { SubjectKeys::in_directory(keys, config.id) };
    Ok(match subject_keys {
        _ if withhold_personal => reader.group_keys(Arc::new(SharedOnly)),
        Some(subject_keys) => reader.group_keys(Arc::new(subject_keys)),
        None if !config.erasure => reader,
        None => {
            return Err(Error::new(
                ErrorKind::NoKey,
                format!(
                    "there is no vault in {}, which has the keys of data subjects: name the key directory with keys=, or read what is not personal \
                     with withhold_personal=True",
                    keys.display()
                ),
            ));
        }
    })
}

impl Reader {
    /// The query of these conditions; of what it cannot tell is warned.
    fn query_of(&self, py: Python<'_>, conditions: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
        self.owner.check(py)?;
        let query = query(py, conditions)?;
        if self.withhold_personal && query.asks_for_personal() {
            return Err(invalid(
                py,
                "withhold_personal withholds subject, stream, actor, client and location: conditions for these would pass by without a word what \
                 is there; leave out one or the other",
            ));
        }
        for told in self.reader.not_as_logged(&query) {
            warn(py, &told.to_string())?;
        }
        Ok(query)
    }
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (directory, *, key=None, keys=None, identity=None, passphrase=None, withhold_personal=false))]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        key: Option<&Bound<'_, PyAny>>,
        keys: Option<PathBuf>,
        identity: Option<&Bound<'_, PyAny>>,
        passphrase: Option<&Bound<'_, PyAny>>,
        withhold_personal: bool,
    ) -> PyResult<Self> {
        let key = log_key(key)?;
        let passphrase = optional_text("passphrase", passphrase)?.map(Zeroizing::new);
        let files = identity.map_or(Ok(Vec::new()), |identity| paths("identity", identity))?;
        let opened = py.detach(|| {
            let keys = named_keys(&directory, keys)?;
            let identities = identities(&files, passphrase.as_deref().map(String::as_str))?;
            open(&directory, &keys, identities, withhold_personal)
        });
        let mut reader = opened.raise(py)?;
        if let Some(key) = key {
            reader = reader.key(key);
        }
        Ok(Reader { reader: Arc::new(reader), withhold_personal, owner: Owner::new() })
    }

    /// Asks for entries, and returns `Entries`: iterate over them, or give them to pandas, polars or DuckDB.
    ///
    /// Conditions are keyword arguments, and an entry meets all of them: `operation`, `location`, `subject`, `controller`,
    /// `processor`, `purpose`, `actor`, `client` and `stream` are one value or several, of which it has one; `status`,
    /// `duration`, `size` and `flags` a number, a `range` or several of these; `prefix` is a dict of fields and what they
    /// begin with; `start` (included) and `end` (not included) are times; `entries` is a `range` of numbers.
    ///
    /// Raises `Invalid` for a condition that is none. Reading raises `Tampered` where the log is not what was signed, and
    /// at its end where keys of data subjects are lost, unless `allow_lost_keys`; `NoKey` where the identity does not open
    /// it. What the answer cannot tell is warned of by `QueryWarning`.
    #[pyo3(signature = (*, allow_lost_keys=false, **conditions))]
    fn query(
        &self,
        py: Python<'_>,
        allow_lost_keys: bool,
        conditions: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Entries> {
        let query = self.query_of(py, conditions)?;
        Ok(Entries { reader: self.reader.clone(), query, allow_lost_keys, owner: self.owner })
    }

    /// Writes the entries that meet the conditions of `query` to a binary file, each as a line of JSON, and returns how
    /// many they were. A file that takes a part at a time (`buffering=0`) is given the rest.
    ///
    /// Raises what reading a query does, what `file.write` does, and `Unavailable` where that takes nothing, or returns
    /// what is neither `None` nor a number of bytes that it was given: what the file has by then is a part.
    #[pyo3(signature = (file, *, allow_lost_keys=false, **conditions))]
    fn export(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        allow_lost_keys: bool,
        conditions: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let query = self.query_of(py, conditions)?;
        let lines = |matches: &Matches<'_>| {
            let mut lines = Vec::new();
            for (number, entry) in matches.iter() {
                jsonl::write_read(&entry, number, matches.withheld(number).map(Redaction::name), &mut lines);
            }
            Ok((matches.len() as u64, lines))
        };
        let mut taken = Taken::start(py, &self.reader, query, allow_lost_keys, lines)?;
        let mut count = 0;
        while let Some((entries, lines)) = taken.next(py)? {
            write_all(file, &lines)?;
            count += entries;
        }
        Ok(count)
    }

    /// Proves that the log holds the entries that meet the conditions of `query`, to whoever has the log's public key alone
    /// (`check`). Returns the text of the proof, which discloses these entries: save it as a file.
    ///
    /// Raises `Refused` where no entry meets them, and what reading a query does.
    #[pyo3(signature = (**conditions))]
    fn prove(&self, py: Python<'_>, conditions: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let query = self.query_of(py, conditions)?;
        let proven = py.detach(|| self.reader.prove(&query)).raise(py)?;
        // It is text: a receipt was not asked for.
        Ok(String::from_utf8(proven.file).unwrap_or_default())
    }

    /// Raises `TypeError`: nothing of a log can be sent to another process, which opens it anew to read.
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("reader"))
    }
}

/// Writes all of it to a file, of which one without a buffer may take a part at a time. What returns nothing has taken all.
fn write_all(file: &Bound<'_, PyAny>, mut bytes: &[u8]) -> PyResult<()> {
    let py = file.py();
    loop {
        let written = file.call_method1(intern!(py, "write"), (PyBytes::new(py, bytes),))?;
        let taken = match number::<usize>(&written) {
            // So a raw file says that it would have to wait.
            None if written.is_none() => Some(if is_raw(file)? { 0 } else { bytes.len() }),
            taken => taken,
        };
        let why = match taken.and_then(|taken| bytes.get(taken..)) {
            Some([]) => return Ok(()),
            Some(rest) if rest.len() < bytes.len() => {
                bytes = rest;
                continue;
            }
            Some(_) => "takes no more bytes, and what it has is a part",
            None => "does not say how many of the bytes that it was given it has taken, and may have a part",
        };
        return Err(raise(py, &Error::unavailable(format!("`file` {why}"))));
    }
}

fn is_raw(file: &Bound<'_, PyAny>) -> PyResult<bool> {
    file.is_instance(&file.py().import("io")?.getattr("RawIOBase")?)
}

/// A stream that Python takes from.
struct Taken<P> {
    stream: Stream<P>,
    allow_lost_keys: bool,
}

impl<P: Send + 'static> Taken<P> {
    fn start(
        py: Python<'_>,
        reader: &Arc<bulla::Reader>,
        query: Query,
        allow_lost_keys: bool,
        render: impl Fn(&Matches<'_>) -> bulla::Result<P> + Send + Sync + 'static,
    ) -> PyResult<Self> {
        let stream = Stream::start(reader.clone(), query, render).raise(py)?;
        Ok(Taken { stream, allow_lost_keys })
    }

    /// The next block, if there is one.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<P>> {
        loop {
            match py.detach(|| self.stream.next(Some(SLICE))).raise(py)? {
                Next::Block(block) => return Ok(Some(block)),
                Next::NotYet => py.check_signals()?,
                Next::End(read) => {
                    read.map_or(Ok(()), |read| finish(py, &read, self.allow_lost_keys))?;
                    return Ok(None);
                }
            }
        }
    }
}

/// Warns of what an answer does not tell, and refuses one that lacks something.
fn finish(py: Python<'_>, read: &Read, allow_lost_keys: bool) -> PyResult<()> {
    read.check(allow_lost_keys).raise(py)?;
    read.warnings().try_for_each(|told| warn(py, &told))
}

/// What a query asks for: an iterable of dicts (`LoggedEntry`), and of Arrow record batches for whoever takes those. Each
/// time that it is iterated over or taken the log is read anew, a few blocks ahead of whoever takes them.
#[pyclass(frozen, module = "bulla_audit")]
pub(crate) struct Entries {
    reader: Arc<bulla::Reader>,
    query: Query,
    allow_lost_keys: bool,
    owner: Owner,
}

#[pymethods]
impl Entries {
    /// An iterator over the entries, in the order of their numbers.
    fn __iter__(&self, py: Python<'_>) -> PyResult<EntryIterator> {
        self.owner.check(py)?;
        let kept = |matches: &Matches<'_>| Ok(matches.to_kept());
        let stream = Stream::start(self.reader.clone(), self.query.clone(), kept).raise(py)?;
        let rows = Mutex::new(Rows { stream, block: Vec::new().into_iter() });
        Ok(EntryIterator { rows, allow_lost_keys: self.allow_lost_keys, owner: self.owner })
    }

    /// A capsule of an Arrow C stream of record batches, whose schema is always the same: `requested_schema` is not looked
    /// at. <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Whoever asks for other types casts what comes.
        let _ = requested_schema;
        self.owner.check(py)?;
        let schema = Arc::new(schema(&DataType::Utf8));
        let of_block = schema.clone();
        let batch = move |matches: &Matches<'_>| {
            let arrays = Columns::of(matches)?.arrays;
            RecordBatch::try_new(of_block.clone(), arrays).map_err(|error| Error::invalid(error.to_string()))
        };
        let taken = Taken::start(py, &self.reader, self.query.clone(), self.allow_lost_keys, batch)?;
        Ok(capsule(py, Box::new(Batches { taken, schema }))?.into_any())
    }

    /// Raises `TypeError`: as a `Reader` does. `list` makes dicts of them, which can be sent.
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("query"))
    }
}

/// A query's answer, as dicts.
#[pyclass(frozen, module = "bulla_audit")]
pub(crate) struct EntryIterator {
    /// Nothing of Python runs while this is locked, and whoever waits for it is detached.
    rows: Mutex<Rows>,
    allow_lost_keys: bool,
    owner: Owner,
}

struct Rows {
    stream: Stream<Vec<Kept>>,
    block: std::vec::IntoIter<Kept>,
}

#[pymethods]
impl EntryIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.owner.check(py)?;
        loop {
            match self.next_row(py) {
                Ok(Next::Block(kept)) => {
                    return to_dict(py, kept.number, &kept.entry().raise(py)?, kept.withheld).map(Some);
                }
                Ok(Next::NotYet) => py.check_signals()?,
                Ok(Next::End(read)) => {
                    read.map_or(Ok(()), |read| finish(py, &read, self.allow_lost_keys))?;
                    return Ok(None);
                }
                Err(error) => return Err(raise(py, &error)),
            }
        }
    }
}

impl EntryIterator {
    /// The next entry, if it is there.
    fn next_row(&self, py: Python<'_>) -> bulla::Result<Next<Kept>> {
        let mut rows = self.rows.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let Rows { stream, block } = &mut *rows;
        loop {
            if let Some(kept) = block.next() {
                return Ok(Next::Block(kept));
            }
            match py.detach(|| stream.next(Some(SLICE)))? {
                Next::Block(next) => *block = next.into_iter(),
                Next::NotYet => return Ok(Next::NotYet),
                Next::End(read) => return Ok(Next::End(read)),
            }
        }
    }
}

/// A query's answer, as Arrow's record batches.
struct Batches {
    taken: Taken<RecordBatch>,
    schema: SchemaRef,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // What asks need not be attached to Python.
        match self.taken.stream.next(None) {
            Ok(Next::Block(batch)) => Some(Ok(batch)),
            Ok(Next::NotYet | Next::End(None)) => None,
            Ok(Next::End(Some(read))) => {
                let finished = Python::try_attach(|py| {
                    finish(py, &read, self.taken.allow_lost_keys).map_err(|error| error.to_string())
                });
                let refused = finished.unwrap_or(Ok(())).err();
                refused.map(|message| Err(ArrowError::ExternalError(message.into())))
            }
            Err(error) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
