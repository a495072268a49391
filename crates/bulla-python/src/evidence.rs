//! What whoever trusts nobody does: checking a proof, verifying a log. And the erasure, whose certificate is one.

use crate::entry::to_dict;
use crate::error::{Raise, invalid, raise};
use crate::read::verifier_key;
use bulla::control::{Client, through_writer};
use bulla::environment::Environment;
use bulla::keys::{files, signing::SigningKey};
use bulla::proof::Proof;
use bulla::{
    Disclosed, Entry, ErasureOrder, Error, ErrorKind, Log, Options, Redaction, Severity, Verify,
    default_keys, open_proof,
};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a proof shows that holds.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Checked {
    anchored: bool,
    entries: u64,
    withheld: u64,
    tree_size: u64,
    disclosed: Py<PyList>,
}

/// Checks a proof of entries with the log's public key alone, offline.
#[pyfunction]
#[pyo3(signature = (proof, *, key=None))]
pub(crate) fn check(py: Python<'_>, proof: &Bound<'_, PyAny>, key: Option<&str>) -> PyResult<Checked> {
    let key = verifier_key(py, key)?;
    let bytes = crate::entry::bytes(proof).ok_or_else(|| invalid(py, "a proof has to be a str or bytes"))?;
    let checked = py.detach(|| {
        let proof = Proof::parse(bytes).map_err(|error| Error::invalid(error.to_string()))?;
        let holds = proof.verify(key.as_ref());
        let holds = holds.map_err(|error| Error::new(ErrorKind::Tampered, error.to_string()))?;
        // Nothing is given out of one whose groups do not all open.
        let mut rows = Vec::new();
        let opened = open_proof(&holds, |Disclosed { number, entry, withheld, .. }| {
            let time = entry.time.unwrap_or_default();
            let mut row = vec![0; entry.measure().map_err(|error| Error::tampered(error.to_string()))?];
            entry.encode(time, &mut row);
            rows.push((*number, row, *withheld));
            Ok(())
        })?;
        bulla::Result::Ok((holds.anchored(), holds.tree_size(), opened, rows))
    });
    let (anchored, tree_size, opened, rows) = checked.raise(py)?;
    let disclosed = PyList::empty(py);
    for (number, row, withheld) in rows {
        let entry = Entry::decode(&row)
            .map_err(|error| raise(py, &Error::tampered(format!("entry {number}: {error}"))))?;
        disclosed.append(to_dict(py, number, &entry, withheld.then_some(Redaction::NotGiven))?)?;
    }
    let (entries, withheld) = (opened.entries, opened.withheld);
    Ok(Checked { anchored, entries, withheld, tree_size, disclosed: disclosed.unbind() })
}

/// What a verification found to say.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Finding {
    severity: &'static str,
    text: String,
}

/// What a verification found.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Report {
    ok: bool,
    anchored: bool,
    entries: u64,
    blocks: u64,
    tree_size: u64,
    pending: u64,
    findings: Py<PyList>,
}

/// Verifies a log with public data alone.
#[pyfunction]
#[pyo3(signature = (directory, *, key=None))]
pub(crate) fn verify(py: Python<'_>, directory: PathBuf, key: Option<&str>) -> PyResult<Report> {
    let key = verifier_key(py, key)?;
    let found = py.detach(|| {
        let verify = Verify::open(&directory)?;
        match key {
            Some(key) => verify.key(key),
            None => verify,
        }
        .run()
    });
    let found = found.raise(py)?;
    let findings = PyList::empty(py);
    for finding in &found.findings {
        let severity = if finding.severity == Severity::Violation { "violation" } else { "notice" };
        findings.append(Bound::new(py, Finding { severity, text: finding.to_string() })?)?;
    }
    Ok(Report {
        ok: found.ok,
        anchored: found.anchored,
        entries: found.entries,
        blocks: found.blocks,
        tree_size: found.tree_size,
        pending: found.pending,
        findings: findings.unbind(),
    })
}

/// What an erasure did.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Erasure {
    erased: usize,
    unknown: Vec<String>,
    frame: u64,
    certificate: String,
}

/// A name or several.
#[derive(FromPyObject)]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

/// Erases data subjects: destroys their keys, and has the log tell of it.
#[pyfunction]
#[pyo3(signature = (directory, subjects, *, reason=None, keys=None, authority=None))]
pub(crate) fn erase(
    py: Python<'_>,
    directory: PathBuf,
    subjects: Names,
    reason: Option<&str>,
    keys: Option<PathBuf>,
    authority: Option<PathBuf>,
) -> PyResult<Erasure> {
    let subjects = match subjects {
        Names::One(subject) => vec![subject],
        Names::Several(subjects) => subjects,
    };
    let keys = keys.unwrap_or_else(|| default_keys(&directory));
    let authority = authority.unwrap_or_else(|| keys.join(files::ERASURE_KEY));
    py.detach(|| carry_out(&directory, &keys, &authority, &subjects, reason)).raise(py)
}

/// Gives the order, and has whoever has the log open carry it out, or opens it for that.
fn carry_out(
    directory: &Path,
    keys: &Path,
    authority: &Path,
    subjects: &[String],
    reason: Option<&str>,
) -> bulla::Result<Erasure> {
    let info = bulla::info(directory)?;
    if !info.erasure {
        let message = "the log has `erasure = \"off\"`: nothing of it can be erased";
        return Err(Error::new(ErrorKind::Refused, message));
    }
    #[expect(clippy::disallowed_methods, reason = "a file that the caller names")]
    let text = std::fs::read_to_string(authority).map(Zeroizing::new).map_err(|error| {
        let message =
            format!("{}, the log's erasure key: {error}; name it with authority=", authority.display());
        Error::new(ErrorKind::Refused, message)
    })?;
    let key = SigningKey::parse(&text)?;
    let subjects = subjects.iter().map(String::as_str).collect::<Vec<_>>();
    let order = ErasureOrder::give(&key, info.id, &subjects, reason, &Environment::default())?;
    let ask = |writer: &Client| writer.erase(&order);
    let alone = || {
        let log = Log::open_with_keys(directory, keys, Options::default())?;
        let erased = log.erase(&order)?;
        log.close()?;
        Ok(erased)
    };
    let erasure = through_writer(keys, ask, alone)?;
    let reader = bulla::Reader::open(directory)?.key(info.vkey);
    let certificate = reader.prove_event(erasure.frame)?.render();
    Ok(Erasure { erased: erasure.numbers.len(), unknown: erasure.unknown, frame: erasure.frame, certificate })
}
