//! What whoever trusts nobody does: checking a proof, verifying a log. And the erasure, whose certificate is one.

use crate::entry::to_dict;
use crate::error::{Raise, invalid, raise};
use crate::given::{optional_text, texts};
use crate::read::log_key;
use bulla::control::{Client, through_writer};
use bulla::environment::Environment;
use bulla::keys::{files, signing::SigningKey};
use bulla::policy::Policy;
use bulla::{
    CheckedProof, Disclosed, Entry, ErasureOrder, Error, ErrorKind, Log, LogKey, Opened, Options, Redaction,
    Severity, Verify, check_proof, default_keys, named_keys, open_log,
};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a proof that holds shows. `check` gives it.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Checked {
    /// Whether the proof is signed by the key that was given. Without a key it only agrees with itself.
    anchored: bool,
    /// How many entries it discloses.
    entries: u64,
    /// How many of these come without what is personal.
    withheld: u64,
    /// How many frames (blocks and events) the signed tree has.
    tree_size: u64,
    /// The entries: a list of dicts (`LoggedEntry`).
    disclosed: Py<PyList>,
}

#[pymethods]
impl Checked {
    fn __repr__(&self) -> String {
        let (entries, withheld, tree_size) = (self.entries, self.withheld, self.tree_size);
        let anchored = anchored(self.anchored);
        format!(
            "<bulla_audit.Checked: {anchored}, entries={entries}, withheld={withheld}, tree_size={tree_size}>"
        )
    }
}

fn anchored(anchored: bool) -> &'static str {
    if anchored { "anchored" } else { "not anchored" }
}

/// The policy that a key and the text of a policy come to; none where neither is given.
fn trusted(py: Python<'_>, key: Option<LogKey>, policy: Option<&str>) -> PyResult<Option<Policy>> {
    let wrong = |error| invalid(py, format!("`policy`: {error}"));
    let policy = policy.map(str::parse::<Policy>).transpose().map_err(wrong)?;
    Policy::of(key, policy).map_err(wrong)
}

/// Checks a proof of entries, a `str` or `bytes`, or a receipt in COSE, `bytes`, offline, with the log's public key alone. Returns what it shows
/// (`Checked`); without a `key` it says only that the proof agrees with itself.
///
/// `policy` is the text of a policy (C2SP tlog-policy): which logs are believed, and how many of which witnesses have to have cosigned the proof's checkpoint.
/// Beside a `key` both have to hold: the key has to have signed, and where the policy names logs one of these, too. A receipt is cosigned by nobody.
///
/// Raises `Invalid` where this is no proof or the key or policy is none, `Tampered` where the proof does not hold or the key did not
/// sign it, `Refused` where it holds far more than its length is trusted with. A proof that somebody has altered is
/// either: a changed byte may leave something that cannot be read at all.
#[pyfunction]
#[pyo3(signature = (proof, *, key=None, policy=None))]
pub(crate) fn check(
    py: Python<'_>,
    proof: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    policy: Option<&Bound<'_, PyAny>>,
) -> PyResult<Checked> {
    let policy = optional_text("policy", policy)?;
    let policy = trusted(py, log_key(key)?, policy.as_deref())?;
    let bytes = crate::entry::bytes(proof).ok_or_else(|| invalid(py, "a proof has to be a str or bytes"))?;
    let checked = py.detach(|| {
        let mut rows = Vec::new();
        let checked = check_proof(bytes, policy.as_ref(), |Disclosed { number, entry, withheld, .. }| {
            let time = entry.time.unwrap_or_default();
            let mut row = vec![0; entry.measure().map_err(|error| Error::tampered(error.to_string()))?];
            entry.encode(time, &mut row);
            rows.push((*number, row, *withheld));
            Ok(())
        });
        checked.map(|checked| (checked, rows))
    });
    let (CheckedProof { anchored, tree_size, opened: Opened { entries, withheld }, .. }, rows) =
        checked.raise(py)?;
    let disclosed = PyList::empty(py);
    for (number, row, withheld) in rows {
        let entry = Entry::decode(&row)
            .map_err(|error| raise(py, &Error::tampered(format!("entry {number}: {error}"))))?;
        disclosed.append(to_dict(py, number, &entry, withheld.then_some(Redaction::NotGiven))?)?;
    }
    Ok(Checked { anchored, entries, withheld, tree_size, disclosed: disclosed.unbind() })
}

/// What a verification found to say.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Finding {
    /// `"violation"`: the log is not what was signed; or `"notice"`: something else that is worth knowing.
    severity: &'static str,
    /// What it is, and where.
    text: String,
}

#[pymethods]
impl Finding {
    fn __repr__(&self) -> String {
        format!("<bulla_audit.Finding: {}: {}>", self.severity, self.text)
    }
}

/// What a verification found. `verify` gives it.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Report {
    /// Whether nothing of what was signed is missing or altered: there is no violation among the findings.
    ok: bool,
    /// Whether the log is signed by the key that was given. Without a key it only agrees with itself.
    anchored: bool,
    /// How many entries the newest checkpoint covers.
    entries: u64,
    /// How many blocks of entries it covers.
    blocks: u64,
    /// How many frames (blocks and events) it covers.
    tree_size: u64,
    /// How many frames follow it that are not signed yet, while a writer is at work.
    pending: u64,
    /// How many frames are witnessed as the policy asks for: `None` where none was given, it asks for no witness, or it is not met.
    witnessed: Option<u64>,
    /// How many frames the pin covers now: `None` where none was given, or made.
    pinned: Option<u64>,
    /// Whether the pin was made now: whoever expected one to be there knows that it was not.
    pin_made: bool,
    /// What was found: a list of `Finding`.
    findings: Py<PyList>,
}

#[pymethods]
impl Report {
    fn __repr__(&self, py: Python<'_>) -> String {
        let ok = if self.ok { "ok" } else { "not ok" };
        let (anchored, entries, tree_size) = (anchored(self.anchored), self.entries, self.tree_size);
        let findings = self.findings.bind(py).len();
        format!(
            "<bulla_audit.Report: {ok}, {anchored}, entries={entries}, tree_size={tree_size}, findings={findings}>"
        )
    }
}

/// Verifies a log with public data alone: whether it is what was signed, and with the public `key` whose it is. Returns
/// what was found (`Report`), and raises nothing for a log that is damaged. `keys` is the directory of its secrets, by default `directory`
/// with `.keys` behind it; where that is there and may be listed it tells on which paths the log lies besides, and how far it had come.
///
/// `policy` is the text of a policy (C2SP tlog-policy): which logs are believed, and how many of which witnesses have to have seen how much. Beside a `key` both
/// have to hold: the key has to have signed, and where the policy names logs one of these, too. `pin` is the path of a copy of the checkpoint that lies elsewhere, from
/// which the log has to go on; it is advanced where no violation is found, and made where there is none (`pin_made`).
///
/// Raises `Unavailable` where there is no log, or its pin could not be made or advanced: the exception's `report` is then what was found; `Invalid` for a key or policy
/// that is none, and for a pin that is not there yet where nothing says whose the log is; `Refused` for a file that is no pin, or lies in the log, and where `keys` is given and is not there.
#[pyfunction]
#[pyo3(signature = (directory, *, key=None, keys=None, policy=None, pin=None))]
pub(crate) fn verify(
    py: Python<'_>,
    directory: PathBuf,
    key: Option<&Bound<'_, PyAny>>,
    keys: Option<PathBuf>,
    policy: Option<&Bound<'_, PyAny>>,
    pin: Option<PathBuf>,
) -> PyResult<Report> {
    let key = log_key(key)?;
    let policy = match optional_text("policy", policy)? {
        Some(policy) => trusted(py, key.clone(), Some(&policy))?,
        None => None,
    };
    let found = py.detach(|| {
        let keys = named_keys(&directory, keys)?;
        let mut verify = Verify::open_store(open_log(&directory, Some(&keys), &[])?)?;
        verify = match (policy, key) {
            (Some(policy), _) => verify.policy(policy),
            (None, Some(key)) => verify.key(key),
            (None, None) => verify,
        };
        if let Some(pin) = pin {
            verify = verify.pin(pin);
        }
        verify.run()
    });
    let found = found.raise(py)?;
    let pin = found.pin.as_ref();
    let (before, pinned) = (pin.and_then(|pin| pin.before), pin.and_then(|pin| pin.frames));
    let witnessed = found.witnessed.as_ref().and_then(|witnessed| witnessed.frames);
    let findings = PyList::empty(py);
    for finding in &found.findings {
        let severity = if finding.severity == Severity::Violation { "violation" } else { "notice" };
        findings.append(Bound::new(py, Finding { severity, text: finding.to_string() })?)?;
    }
    let report = Report {
        ok: found.ok,
        anchored: found.anchored,
        entries: found.entries,
        blocks: found.blocks,
        tree_size: found.tree_size,
        pending: found.pending,
        witnessed,
        pinned,
        pin_made: before.is_none() && pinned.is_some(),
        findings: findings.unbind(),
    };
    match pin.and_then(|pin| pin.failure.as_ref()) {
        Some(failure) => {
            let message = format!("the log was verified, and its pin was not advanced: {failure}");
            let raised = raise(py, &Error::new(ErrorKind::Unavailable, message));
            raised.value(py).setattr("report", Bound::new(py, report)?)?;
            Err(raised)
        }
        None => Ok(report),
    }
}

/// What an erasure did. `erase` gives it.
#[pyclass(frozen, get_all, module = "bulla_audit")]
pub(crate) struct Erasure {
    /// How many data subjects were erased.
    erased: usize,
    /// Of the names that were given those by which nobody is known.
    unknown: Vec<String>,
    /// The number of the frame in which the log tells of it.
    frame: u64,
    /// The text of the certificate, which `bulla check` takes: save it as a file.
    certificate: String,
}

#[pymethods]
impl Erasure {
    fn __repr__(&self) -> String {
        let (erased, unknown, frame) = (self.erased, self.unknown.len(), self.frame);
        format!("<bulla_audit.Erasure: erased={erased}, unknown={unknown}, frame={frame}>")
    }
}

/// Erases data subjects, a name or several: destroys their keys, so that nobody can read what is personal of their entries
/// any more, and has the log tell of it under a signed checkpoint. Returns what it did (`Erasure`). **This cannot be
/// undone.**
///
/// It goes through the process that has the log open, or opens the log. `reason` stands in the log, in public. `keys` is
/// the directory of the log's secrets, by default `directory` with `.keys` behind it, `authority` the file of the erasure
/// key, by default the one in `keys`.
///
/// Raises `Invalid` where a name or the reason is no text, `Refused` where the log has no erasure, the erasure key is not
/// there or is another's, somebody is held, or nobody is known by any of the names; `Unavailable`, which says so, where it is
/// done and the certificate cannot be read; else what opening a log does.
#[pyfunction]
#[pyo3(signature = (directory, subjects, *, reason=None, keys=None, authority=None))]
pub(crate) fn erase(
    py: Python<'_>,
    directory: PathBuf,
    subjects: &Bound<'_, PyAny>,
    reason: Option<&Bound<'_, PyAny>>,
    keys: Option<PathBuf>,
    authority: Option<PathBuf>,
) -> PyResult<Erasure> {
    let subjects = texts("subjects", subjects)?;
    let reason = optional_text("reason", reason)?;
    let keys = keys.unwrap_or_else(|| default_keys(&directory));
    let authority = authority.unwrap_or_else(|| keys.join(files::ERASURE_KEY));
    py.detach(|| carry_out(&directory, &keys, &authority, &subjects, reason.as_deref())).raise(py)
}

/// Gives the order, and has whoever has the log open carry it out, or opens it for that.
fn carry_out(
    directory: &Path,
    keys: &Path,
    authority: &Path,
    subjects: &[String],
    reason: Option<&str>,
) -> bulla::Result<Erasure> {
    let log = || open_log(directory, Some(keys), &[]);
    let info = bulla::info_of(log()?)?;
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
    let certify = || bulla::Reader::open_store(log()?)?.key(info.vkey).prove_event(erasure.frame);
    let certificate = certify().map_err(|error| {
        let frame = erasure.frame;
        let message = format!(
            "the erasure is done, and the log tells of it in frame {frame}; its certificate: {error}"
        );
        Error::new(ErrorKind::Unavailable, message)
    });
    let certificate = certificate?.render();
    Ok(Erasure { erased: erasure.numbers.len(), unknown: erasure.unknown, frame: erasure.frame, certificate })
}
