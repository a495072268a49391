//! What whoever trusts nobody does: checking a proof, verifying a log.

use crate::entry::{bulla_bytes, bulla_entry};
use crate::log::{optional_path, path};
use crate::read::{bulla_each_bytes, bulla_each_entry, clear, ended, key, stop, tell};
use crate::status::{Outcome, bulla_status, give, guarded};
use bulla::policy::Policy;
use bulla::{
    CheckedProof, Disclosed, Error, ErrorKind, LogKey, Opened, Redaction, Report, Verify, check_proof,
    named_keys, open_log,
};
use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};

/// By what a log, or a proof of one, is believed. Begin with `{0}`, which says nothing: then it can only be told to agree with itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_trust {
    /// The public key that the log must be of, Ed25519 or ML-DSA-44 (NAME+ID+KEY); null for none. Where a policy names logs both have to hold: this key has to have
    /// signed, and one of those logs, too.
    pub key: *const c_char,
    /// The text of a policy (C2SP tlog-policy): which logs are believed, and how many of which witnesses have to have cosigned them. Null for none. One that names no
    /// log needs a key.
    pub policy: bulla_bytes,
    /// Of a log that is verified: the path of a pin, a copy of its checkpoint that lies elsewhere; null for none.
    pub pin: *const c_char,
}

/// The same as Rust has it.
#[derive(Default)]
struct Trust {
    key: Option<LogKey>,
    policy: Option<Policy>,
    pin: Option<PathBuf>,
}

impl bulla_trust {
    /// # Safety
    /// It is null, or what it points to is there.
    unsafe fn get(trust: *const bulla_trust) -> Outcome<Trust> {
        // SAFETY: it is null, or such a struct.
        let Some(trust) = (unsafe { trust.as_ref() }) else { return Ok(Trust::default()) };
        // SAFETY: texts end with a zero, the policy has its size.
        let (key, policy, pin) =
            unsafe { (key(trust.key)?, trust.policy.get("policy")?, optional_path(trust.pin)) };
        let policy = policy.map(Policy::parse).transpose();
        let policy = policy.map_err(|error| Error::invalid(format!("`policy`: {error}")))?;
        Ok(Trust { key, policy, pin })
    }
}

impl Trust {
    /// The policy that key and policy come to; none where neither was given.
    fn policy(&self) -> Outcome<Option<Policy>> {
        let policy = Policy::of(self.key.clone(), self.policy.clone());
        policy.map_err(|error| Error::invalid(format!("`policy`: {error}")).into())
    }
}

/// What a proof shows that holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_checked {
    /// Whether the tree is signed by the key that was given: otherwise anybody could have made the proof.
    pub anchored: bool,
    /// Entries that it discloses.
    pub entries: u64,
    /// Of these, the ones whose personal fields are withheld.
    pub withheld: u64,
    /// Frames of the tree that it is a proof of.
    pub tree_size: u64,
}

/// Checks a proof of entries, as text or as a receipt in COSE, with the log's public key alone, Ed25519 or ML-DSA-44 (null: it can only be told to agree with itself), offline. `each`, unless it is null, gets
/// what it discloses, of a proof that holds alone. Returns `BULLA_TAMPERED` where it does not hold, and `BULLA_INVALID` where it cannot be read as
/// a proof, as one may be of which a byte was changed: neither holds.
///
/// # Safety
/// `proof` has its size, `key` ends with a zero, `each` may be called with `context` and an entry, `checked` is null or a place for what it shows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_check(
    proof: bulla_bytes,
    key: *const c_char,
    each: bulla_each_entry,
    context: *mut c_void,
    checked: *mut bulla_checked,
) -> bulla_status {
    // SAFETY: by this function's contract.
    guarded(|| unsafe {
        clear(checked);
        check(proof, Trust { key: self::key(key)?, ..Trust::default() }, (each, context), checked)
    })
}

/// The same by a key, a policy, or both, of `trust` (null: neither): with a policy the proof's checkpoint has to be cosigned as that asks for, which it is where
/// it was made once that was so (`bulla prove --policy`). Returns `BULLA_INVALID` besides for a `trust` with a pin, which a proof is not compared with, for a
/// policy without a log beside no key, and for a receipt in COSE with a policy that asks for witnesses: no witness cosigns one.
///
/// # Safety
/// As `bulla_check`; what `trust` points to is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_check_by(
    proof: bulla_bytes,
    trust: *const bulla_trust,
    each: bulla_each_entry,
    context: *mut c_void,
    checked: *mut bulla_checked,
) -> bulla_status {
    // SAFETY: by this function's contract.
    guarded(|| unsafe {
        clear(checked);
        check(proof, bulla_trust::get(trust)?, (each, context), checked)
    })
}

/// # Safety
/// As `bulla_check`.
unsafe fn check(
    proof: bulla_bytes,
    trust: Trust,
    (each, context): (bulla_each_entry, *mut c_void),
    checked: *mut bulla_checked,
) -> Outcome<()> {
    if trust.pin.is_some() {
        return Err(Error::invalid("a proof is compared with no pin: verify the log with it").into());
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { proof.get("proof")?.unwrap_or_default() };
    let (mut subjects, mut stopped) = (Vec::new(), false);
    let holds =
        check_proof(bytes, trust.policy()?.as_ref(), |Disclosed { number, entry, withheld, .. }| {
            let Some(each) = each else { return Ok(()) };
            // What a proof does not open may have been erased, which it does not tell.
            let entry = bulla_entry::of(entry, withheld.then_some(Redaction::NotGiven), &mut subjects);
            // SAFETY: as above.
            stopped = unsafe { each(context, *number, &raw const entry) } != 0;
            if stopped { Err(stop()) } else { Ok(()) }
        });
    let CheckedProof { anchored, tree_size, opened: Opened { entries, withheld }, .. } =
        holds.map_err(ended(stopped))?;
    if !checked.is_null() {
        // SAFETY: it is a place for this.
        unsafe { checked.write(bulla_checked { anchored, entries, withheld, tree_size }) };
    }
    Ok(())
}

/// What a verification found.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_report {
    /// Whether nothing that was signed is missing or altered.
    pub ok: bool,
    /// Whether the log is that of the key that was given.
    pub anchored: bool,
    /// Entries that its checkpoint covers.
    pub entries: u64,
    /// Blocks that it covers.
    pub blocks: u64,
    /// Frames that it covers.
    pub tree_size: u64,
    /// Frames behind it that are not signed yet.
    pub pending: u64,
}

/// What a verification by more than a key found.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_verified {
    /// The same as without.
    pub report: bulla_report,
    /// Frames that are witnessed as the policy asks for; 0 where none was given, it asks for no witness, or it is not met.
    pub witnessed: u64,
    /// Frames that the pin covered before; 0 where there was none.
    pub pinned_before: u64,
    /// Frames that it covers now; 0 where none was given, or made.
    pub pinned: u64,
    /// Whether the pin was made now: whoever expected one to be there knows that it was not.
    pub pin_made: bool,
    /// Whether the log was verified and the pin could not be made or advanced: the call returns why.
    pub pin_failed: bool,
}

/// Verifies the log in `directory` with public data alone, as `bulla verify --public` does: `report` gets what it came to, and `each`, unless it is null, a
/// line of text for each finding. Where its key directory, `directory` with `.keys` behind it (`bulla_verify_with_keys` names another), is there and may be listed, that tells on which paths the log lies
/// besides, and how far it had come. Returns `BULLA_OK` where the log could be looked at, whether or not it is what was written: `report->ok` says that.
///
/// `key` is the public key that the log must be of, Ed25519 or ML-DSA-44 (null: it can only be told to agree with itself). What takes keys, the command `bulla verify` does.
///
/// # Safety
/// Texts end with a zero, `each` may be called with `context` and bytes, `report` is a place for a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_verify(
    directory: *const c_char,
    key: *const c_char,
    each: bulla_each_bytes,
    context: *mut c_void,
    report: *mut bulla_report,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        let (directory, key) = unsafe {
            clear(report);
            (path(directory, "directory")?, self::key(key)?)
        };
        if report.is_null() {
            return Err(Error::invalid("`report` is null").into());
        }
        let found = verify(&directory, None, Trust { key, ..Trust::default() })?;
        // SAFETY: as above.
        unsafe {
            give(report, report_of(&found), "report")?;
            tell(&found.findings, each, context)
        }
    })
}

/// The same by a key, a policy, a pin, or several of them, of `trust` (null: none). With a policy the log has to be witnessed as that asks for; with a pin it has to
/// go on from that, which is advanced where no violation is found, and made where there is none: `verified` says so.
///
/// Where the log was verified and its pin could not be advanced, this returns why once `verified`, whose `pin_failed` says it, and `each` got everything. `BULLA_REFUSED` where there is a file that is no pin, or
/// it lies in the log's directory; `BULLA_INVALID` for a policy that is none, or names no log beside no key, and for a pin that is not there yet of a log of which it is not
/// said whose it is.
///
/// # Safety
/// Texts end with a zero, what `trust` points to is there, `each` may be called with `context` and bytes, `verified` is a place for what was found.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_verify_by(
    directory: *const c_char,
    trust: *const bulla_trust,
    each: bulla_each_bytes,
    context: *mut c_void,
    verified: *mut bulla_verified,
) -> bulla_status {
    // SAFETY: by this function's contract, which is the same.
    unsafe { bulla_verify_with_keys(directory, std::ptr::null(), trust, each, context, verified) }
}

/// The same of a log whose keys are in `keys` (null: the directory's name and `.keys`): they tell on which paths the log lies besides, and how far it had come.
/// No secret of them is read. Returns `BULLA_REFUSED` besides where `keys` is named and is not there.
///
/// # Safety
/// As `bulla_verify_by`; `keys` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_verify_with_keys(
    directory: *const c_char,
    keys: *const c_char,
    trust: *const bulla_trust,
    each: bulla_each_bytes,
    context: *mut c_void,
    verified: *mut bulla_verified,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        let (directory, keys, trust) = unsafe {
            clear(verified);
            (path(directory, "directory")?, optional_path(keys), bulla_trust::get(trust)?)
        };
        if verified.is_null() {
            return Err(Error::invalid("`verified` is null").into());
        }
        let found = verify(&directory, keys, trust)?;
        let witnessed = found.witnessed.as_ref().and_then(|witnessed| witnessed.frames);
        let pin = found.pin.as_ref();
        let (before, now) = (pin.and_then(|pin| pin.before), pin.and_then(|pin| pin.frames));
        let shown = bulla_verified {
            report: report_of(&found),
            witnessed: witnessed.unwrap_or(0),
            pinned_before: before.unwrap_or(0),
            pinned: now.unwrap_or(0),
            pin_made: before.is_none() && now.is_some(),
            pin_failed: pin.is_some_and(|pin| pin.failure.is_some()),
        };
        // SAFETY: as above.
        unsafe {
            give(verified, shown, "verified")?;
            tell(&found.findings, each, context)?;
        }
        match pin.and_then(|pin| pin.failure.as_ref()) {
            Some(failure) => {
                let message = format!("the log was verified, and its pin was not advanced: {failure}");
                Err(Error::new(ErrorKind::Unavailable, message).into())
            }
            None => Ok(()),
        }
    })
}

fn verify(directory: &Path, keys: Option<PathBuf>, trust: Trust) -> Outcome<Report> {
    let keys = named_keys(directory, keys)?;
    let mut verify = Verify::open_store(open_log(directory, Some(&keys), &[])?)?;
    verify = match trust {
        Trust { key: Some(key), policy: None, .. } => verify.key(key),
        ref trust => match trust.policy()? {
            Some(policy) => verify.policy(policy),
            None => verify,
        },
    };
    if let Some(pin) = trust.pin {
        verify = verify.pin(pin);
    }
    Ok(verify.run()?)
}

fn report_of(found: &Report) -> bulla_report {
    let Report { ok, anchored, entries, blocks, tree_size, pending, .. } = *found;
    bulla_report { ok, anchored, entries, blocks, tree_size, pending }
}

#[cfg(test)]
mod tests;
