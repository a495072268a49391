//! A log: one that this process has open, or one that another has.

use crate::BULLA_ABI_VERSION;
use crate::entry::{bulla_bytes, list};
use crate::handles::{Table, number, to_handle};
use crate::producer::{self, bulla_producer};
use crate::status::{Outcome, bulla_status, give, guarded};
use bulla::config::wrong_toml;
use bulla::socket::{Connection, Listen, Listening};
use bulla::{Error, Init, Log, Options, default_keys};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// A log that is open for appending: by this process, or by another to which it is connected. Any thread may use it.
pub struct bulla_log {
    _opaque: [u8; 0],
}

/// What a handle of a log stands for. Whoever uses it has it locked for reading, whoever closes it for writing; nobody waits for the log while it is
/// locked, because what is told of a receipt, which the log waits for, may close it.
#[derive(Clone)]
struct Shared(Arc<RwLock<Option<Opened>>>);

enum Opened {
    Here(Log, Option<Listening>),
    Elsewhere(Connection),
}

static LOGS: Table<Shared> = Table::new("log", 1);

/// A path that C gives.
///
/// # Safety
/// It is null, or ends with a zero.
pub(crate) unsafe fn path(text: *const c_char, name: &str) -> Outcome<PathBuf> {
    // SAFETY: by this function's contract.
    match unsafe { optional_path(text) } {
        Some(path) => Ok(path),
        None => Err(Error::invalid(format!("`{name}` is null")).into()),
    }
}

/// A path that C may give.
///
/// # Safety
/// As [`path`].
pub(crate) unsafe fn optional_path(text: *const c_char) -> Option<PathBuf> {
    // SAFETY: it ends with a zero.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    text.map(|text| Path::new(OsStr::from_bytes(text.to_bytes())).to_owned())
}

/// A text that C may give.
///
/// # Safety
/// As [`path`].
pub(crate) unsafe fn optional_text<'a>(text: *const c_char, name: &str) -> Outcome<Option<&'a str>> {
    // SAFETY: it ends with a zero.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let text = text.map(CStr::to_str).transpose();
    text.map_err(|_| Error::invalid(format!("`{name}` is not UTF-8")).into())
}

pub(crate) fn check_abi(abi: u32) -> Outcome {
    match abi == BULLA_ABI_VERSION {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the program was compiled for version {abi} of the interface, and the library has {BULLA_ABI_VERSION}: compile it anew"
        ))
        .into()),
    }
}

fn add<T>(opened: Opened) -> *mut T {
    to_handle(LOGS.add(Shared(Arc::new(RwLock::new(Some(opened))))))
}

fn with<T>(log: *const bulla_log, call: impl FnOnce(&Opened) -> Outcome<T>) -> Outcome<T> {
    let shared = LOGS.copy(number(log))?;
    let opened = shared.0.read().unwrap_or_else(PoisonError::into_inner);
    match &*opened {
        Some(opened) => call(opened),
        None => Err(Error::invalid("the log was closed").into()),
    }
}

/// The most bytes that a public key has, the zero at its end counted.
pub const BULLA_KEY_SIZE: usize = 1024;

/// Makes an empty log in `directory`, with its keys in `keys` (null: the directory's name and `.keys`).
///
/// `origin` is the log's name in its signatures (null: a random one). `recipients` are so many age recipients who can read the log;
/// with none a local identity is made, in the key directory. `key`, unless it is null, gets the log's public key and a zero, and has room for `BULLA_KEY_SIZE` bytes:
/// keep it where the log is not.
///
/// # Safety
/// Texts end with a zero, `recipients` has `recipient_count` of them, `key` is null or has room for `key_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_create(
    directory: *const c_char,
    keys: *const c_char,
    origin: *const c_char,
    recipients: *const *const c_char,
    recipient_count: usize,
    key: *mut c_char,
    key_size: usize,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe {
            if !key.is_null() && key_size < BULLA_KEY_SIZE {
                let message =
                    format!("`key` has room for {key_size} bytes, and is to have BULLA_KEY_SIZE of them");
                return Err(Error::invalid(message).into());
            }
            if !key.is_null() {
                key.write(0);
            }
            let directory = path(directory, "directory")?;
            let keys = optional_path(keys).unwrap_or_else(|| default_keys(&directory));
            let mut init = Init::default();
            if let Some(origin) = optional_text(origin, "origin")? {
                init = init.origin(origin);
            }
            for recipient in list(recipients, recipient_count, "recipients")? {
                let recipient = optional_text(*recipient, "recipients")?;
                init = init.recipient(recipient.ok_or_else(|| Error::invalid("a recipient is null"))?);
            }
            let created = init.create_with_keys(&directory, &keys)?;
            let text = created.verifier_key.to_string();
            if !key.is_null() {
                // There is room: an origin has fewer bytes than this.
                assert!(text.len() < key_size, "a public key of {} bytes", text.len());
                key.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
                key.add(text.len()).write(0);
            }
        }
        Ok(())
    })
}

/// Opens the log in `directory` for appending, with its keys in `keys` (null: the directory's name and `.keys`). One process at a time
/// has it open; others connect to it (`bulla_connect`).
///
/// `abi` is `BULLA_ABI_VERSION`. `settings` are settings in TOML, as `bulla config` names them, which count for this process alone (null: those of the log):
/// `"memory = \"128 MiB\"\nlinger = \"20 ms\""`.
///
/// # Safety
/// Texts end with a zero; `log` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_open(
    abi: u32,
    directory: *const c_char,
    keys: *const c_char,
    settings: *const c_char,
    log: *mut *mut bulla_log,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe {
            give(log, std::ptr::null_mut(), "log")?;
            check_abi(abi)?;
            let directory = path(directory, "directory")?;
            let keys = optional_path(keys).unwrap_or_else(|| default_keys(&directory));
            let settings = optional_text(settings, "settings")?.unwrap_or_default();
            let wrong = |error| wrong_toml(("", settings), &error).after("`settings`");
            if toml::from_str::<toml::Table>(settings).map_err(wrong)?.contains_key("backup_paths") {
                let message = "`settings`: `backup_paths` is set for all that open the log: `bulla config DIR set backup_paths PATHS`";
                return Err(Error::invalid(message).into());
            }
            let options = toml::from_str::<Options>(settings).map_err(wrong)?;
            let opened = Log::open_with_keys(&directory, &keys, options)?;
            give(log, add(Opened::Here(opened, None)), "log")
        }
    })
}

/// Connects to a log that another process has open and listens for at the socket `path` (`bulla append --listen`, `bulla_listen`).
/// Producers and receipts of it are used as those of a log that is open here. Each producer has a connection of its own, and counts as one of
/// the clients that may be connected there; so does a connection that has none yet.
///
/// `abi` is `BULLA_ABI_VERSION`.
///
/// # Safety
/// `path` ends with a zero; `log` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_connect(
    abi: u32,
    path: *const c_char,
    log: *mut *mut bulla_log,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe {
            give(log, std::ptr::null_mut(), "log")?;
            check_abi(abi)?;
            let connection = Connection::open(self::path(path, "path")?)?;
            give(log, add(Opened::Elsewhere(connection)), "log")
        }
    })
}

/// Listens for entries of other processes at the socket `path`, until the log is closed. Its mode is 0600: processes of the same user may
/// connect. `clients` may be connected at once (0: 64), of which each producer of a connection is one.
///
/// # Safety
/// `path` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_listen(
    log: *mut bulla_log,
    path: *const c_char,
    clients: usize,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        let path = unsafe { self::path(path, "path")? };
        let shared = LOGS.copy(number(log))?;
        let mut opened = shared.0.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *opened {
            None => Err(Error::invalid("the log was closed").into()),
            Some(Opened::Elsewhere(_)) => {
                Err(Error::invalid("another process has this log open: that one listens for it").into())
            }
            Some(Opened::Here(_, Some(_))) => Err(Error::invalid("it is listened for already").into()),
            Some(Opened::Here(log, listening)) => {
                let mut listen = Listen::default().stream(path);
                if clients > 0 {
                    listen = listen.clients(clients);
                }
                *listening = Some(listen.start(log)?);
                Ok(())
            }
        }
    })
}

/// Makes a producer, for one thread.
///
/// # Safety
/// `producer` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_producer_open(
    log: *mut bulla_log,
    producer: *mut *mut bulla_producer,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe { give(producer, std::ptr::null_mut(), "producer")? };
        let made = with(log, |opened| {
            Ok(match opened {
                Opened::Here(log, _) => producer::Way::Here(log.producer()?),
                Opened::Elsewhere(connection) => producer::Way::Elsewhere(connection.producer()?),
            })
        })?;
        // SAFETY: as above.
        unsafe { give(producer, producer::add(made), "producer") }
    })
}

/// Commits everything that any producer of this process has appended, and signs a checkpoint over it. Of a log that another process
/// has open: flush its producers and wait for their receipts.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_flush(log: *mut bulla_log) -> bulla_status {
    guarded(|| {
        let receipt = with(log, |opened| match opened {
            Opened::Here(log, _) => Ok(log.receipt()?),
            Opened::Elsewhere(_) => Err(Error::invalid(
                "another process has this log open: wait for the receipts of its producers",
            )
            .into()),
        })?;
        Ok(receipt.checkpointed()?)
    })
}

/// What was counted since the log was opened here, as a JSON object (`docs/json.md`, "Counts"), for `each` to copy.
///
/// # Safety
/// `each` may be called with `context` and a text, which is gone when it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_telemetry(
    log: *mut bulla_log,
    each: Option<unsafe extern "C" fn(context: *mut std::ffi::c_void, json: bulla_bytes) -> i32>,
    context: *mut std::ffi::c_void,
) -> bulla_status {
    guarded(|| {
        let each = each.ok_or_else(|| Error::invalid("`each` is null"))?;
        let telemetry = with(log, |opened| match opened {
            Opened::Here(log, _) => Ok(log.telemetry()),
            Opened::Elsewhere(_) => {
                Err(Error::invalid("another process has this log open, and counts what it does").into())
            }
        })?;
        let json = serde_json::to_vec(&telemetry).map_err(|error| Error::invalid(error.to_string()))?;
        // SAFETY: by this function's contract.
        match unsafe { each(context, bulla_bytes::of(Some(&json))) } {
            0 => Ok(()),
            _ => Err(crate::status::Failed::Stopped),
        }
    })
}

/// Closes the log: everything is written, synced and signed, or, of a log that another process has open, acknowledged as durable. Producers
/// that are left can append no more. The handle is gone whatever this returns, but `BULLA_CLOSED` in a forked child, or `BULLA_IN_USE`; what it returns
/// tells whether all of it is durable.
///
/// In what `bulla_receipt_notify` calls it cannot wait: it returns `BULLA_INVALID`, a thread of the library closes the log, whose errors nobody
/// learns, and the exit of the process (`exit`, the end of `main`) waits until it has.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_close(log: *mut bulla_log) -> bulla_status {
    guarded(|| {
        let shared = LOGS.copy(number(log))?;
        let opened = shared.0.write().unwrap_or_else(PoisonError::into_inner).take();
        // Only one of those who close it at once finds it there.
        let _ = LOGS.remove(number(log));
        match opened {
            None => Err(Error::invalid("the log was closed").into()),
            Some(Opened::Here(log, listening)) => {
                drop(listening);
                Ok(log.close()?)
            }
            Some(Opened::Elsewhere(connection)) => Ok(connection.close()?),
        }
    })
}
