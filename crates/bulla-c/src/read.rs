//! Reading a log: queries, exports, proofs.

use crate::entry::{bulla_bytes, bulla_entry, list};
use crate::handles::{Table, number, to_handle};
use crate::log::{check_abi, optional_path, optional_text, path};
use crate::status::{Failed, Outcome, bulla_status, give, guarded};
use bulla::text::jsonl;
use bulla::{
    AskedSubject, Delivery, Error, ErrorKind, LogKey, Matches, NumberField, Query, Reader, Redaction,
    TextField, default_keys,
};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// What reads a log. Any thread may use it, and a writer may be at work meanwhile.
pub struct bulla_reader {
    _opaque: [u8; 0],
}

static READERS: Table<Arc<Reader>> = Table::new("reader", 4);

/// How a condition compares.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum bulla_comparison {
    /// The field is `value`.
    BULLA_IS = 0,
    /// The field begins with `value`.
    BULLA_BEGINS_WITH = 1,
    /// The number is from `first` to `last`.
    BULLA_FROM_TO = 2,
}

/// A condition on a field. Of several on one field an entry meets one, of several fields all.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_condition {
    /// The field's name: `subject`, `actor`, `location`, `status` and so on.
    pub field: *const c_char,
    /// How it compares: a `bulla_comparison`.
    pub comparison: u32,
    /// Of texts: with what.
    pub value: bulla_bytes,
    /// Of numbers: the least.
    pub first: u64,
    /// Of numbers: the greatest.
    pub last: u64,
}

/// Which entries are asked for: those that meet everything that is said. Begin with `{0}`, which asks for all.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_query {
    /// So many conditions.
    pub conditions: *const bulla_condition,
    /// How many.
    pub condition_count: usize,
    /// Not before this time, in nanoseconds since the Unix epoch; with `BULLA_HAS_FROM`.
    pub from: i64,
    /// Before this time; with `BULLA_HAS_TO`.
    pub to: i64,
    /// `BULLA_HAS_FROM` and `BULLA_HAS_TO`.
    pub has: u32,
}

/// `from` is given.
pub const BULLA_HAS_FROM: u32 = 1;
/// `to` is given.
pub const BULLA_HAS_TO: u32 = 2;

impl bulla_query {
    /// # Safety
    /// What it points to is there, texts end with a zero.
    unsafe fn get(query: *const bulla_query) -> Outcome<Query> {
        let mut asked = Query::new();
        // SAFETY: it is null, or a query.
        let Some(query) = (unsafe { query.as_ref() }) else { return Ok(asked) };
        if query.has & !(BULLA_HAS_FROM | BULLA_HAS_TO) != 0 {
            return Err(Error::invalid("`has` has bits that mean nothing: begin a query with {0}").into());
        }
        // SAFETY: there are so many.
        let conditions = unsafe { list(query.conditions, query.condition_count, "conditions")? };
        for condition in conditions {
            // SAFETY: the name ends with a zero, the value has its size.
            let (name, value) =
                unsafe { (optional_text(condition.field, "field")?, condition.value.get("value")?) };
            let name = name.ok_or_else(|| Error::invalid("the field of a condition is null"))?;
            let value = || value.ok_or_else(|| Error::invalid(format!("the value for `{name}` is null")));
            let text = TextField::named(name).ok_or_else(|| {
                Error::invalid(format!("`{name}` is no field with texts that entries are asked for by"))
            });
            asked = match condition.comparison {
                0 => asked.is(text?, value()?),
                1 => asked.begins_with(text?, value()?),
                2 => {
                    let field = NumberField::all().find(|field| field.name() == name);
                    let field =
                        field.ok_or_else(|| Error::invalid(format!("`{name}` is no field with numbers")))?;
                    asked.numbers(field, condition.first..=condition.last)
                }
                other => return Err(Error::invalid(format!("{other} is no comparison")).into()),
            };
        }
        if query.has & BULLA_HAS_FROM != 0 {
            asked = asked.from(query.from);
        }
        if query.has & BULLA_HAS_TO != 0 {
            asked = asked.to(query.to);
        }
        Ok(asked)
    }
}

/// Gets an entry and its number in the log; what it returns other than 0 ends the call, which then returns `BULLA_STOPPED`.
pub type bulla_each_entry =
    Option<unsafe extern "C" fn(context: *mut c_void, number: u64, entry: *const bulla_entry) -> i32>;

/// Gets bytes, which are gone when it returns; what it returns other than 0 ends the call, which then returns `BULLA_STOPPED`.
pub type bulla_each_bytes = Option<unsafe extern "C" fn(context: *mut c_void, bytes: bulla_bytes) -> i32>;

/// The key of a log that C gives, of Ed25519 or of ML-DSA-44; none where it is null.
///
/// # Safety
/// It is null, or ends with a zero.
pub(crate) unsafe fn key(text: *const c_char) -> Outcome<Option<LogKey>> {
    // SAFETY: by this function's contract.
    let text = unsafe { optional_text(text, "key")? };
    let key = text.map(str::parse::<LogKey>).transpose();
    key.map_err(|_| Error::invalid("`key` is no public key (NAME+ID+KEY)").into())
}

/// Sets the place for what a call shows to zero, so that it tells of nothing where the call fails.
///
/// # Safety
/// It is null or a place for a `T`, of which zeros are one.
pub(crate) unsafe fn clear<T>(place: *mut T) {
    if !place.is_null() {
        // SAFETY: by this function's contract.
        unsafe { place.write_bytes(0, 1) };
    }
}

/// What ended a reading: the callback, or an error.
pub(crate) fn ended(stopped: bool) -> impl FnOnce(Error) -> Failed {
    move |error| if stopped { Failed::Stopped } else { error.into() }
}

pub(crate) fn stop() -> Error {
    Error::new(ErrorKind::Closed, "a callback ended the call")
}

/// Opens the log in `directory` for reading, with its keys in `keys` (null: the directory's name and `.keys`). A reader gives entries that a
/// signed checkpoint covers, and no others: of a log that is open those of which `bulla_receipt_checkpointed` has returned, and, unasked, those that
/// are older than `checkpoint_interval`; of one that was closed all of them.
///
/// `abi` is `BULLA_ABI_VERSION`. `key` is the public key that the log must be of, Ed25519 or ML-DSA-44 (null: whatever it names itself, which anybody could have written).
///
/// # Safety
/// Texts end with a zero; `reader` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_reader_open(
    abi: u32,
    directory: *const c_char,
    keys: *const c_char,
    key: *const c_char,
    reader: *mut *mut bulla_reader,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe {
            give(reader, std::ptr::null_mut(), "reader")?;
            check_abi(abi)?;
            let directory = path(directory, "directory")?;
            let keys = optional_path(keys).unwrap_or_else(|| default_keys(&directory));
            let mut opened = Reader::open_with_keys(&directory, &keys)?;
            if let Some(key) = self::key(key)? {
                opened = opened.key(key);
            }
            give(reader, to_handle(READERS.add(Arc::new(opened))), "reader")
        }
    })
}

/// Calls `each` with every entry that meets `query` (null: all), in the order of their numbers, once everything that the query reads was
/// checked. `count`, unless it is null, gets how many there were.
///
/// Returns `BULLA_TAMPERED`, once all entries were given, where keys are lost that the log does not say were erased: then some came
/// without personal fields (`withheld` says which), or may meet the query and cannot be opened. Of a query for data subjects that
/// finds nothing, `bulla_not_found` says more; of one for a field that has a rule, `bulla_not_as_logged`.
///
/// # Safety
/// What `query` points to is there; `each` may be called with `context` and an entry; `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_read(
    reader: *mut bulla_reader,
    query: *const bulla_query,
    each: bulla_each_entry,
    context: *mut c_void,
    count: *mut u64,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe { clear(count) };
        let each = each.ok_or_else(|| Error::invalid("`each` is null"))?;
        // SAFETY: by this function's contract.
        let query = unsafe { bulla_query::get(query)? };
        let reader = READERS.copy(number(reader))?;
        let (mut subjects, mut stopped) = (Vec::new(), false);
        let read = reader.read(
            &query,
            Delivery::Checked,
            |matches| matches.to_kept(),
            |kept| {
                kept.iter().try_for_each(|kept| {
                    let entry = bulla_entry::of(&kept.entry()?, kept.withheld, &mut subjects);
                    // SAFETY: by this function's contract.
                    stopped = unsafe { each(context, kept.number, &raw const entry) } != 0;
                    if stopped { Err(stop()) } else { Ok(()) }
                })
            },
        );
        let read = read.map_err(ended(stopped))?;
        if !count.is_null() {
            // SAFETY: it is a place for a number.
            unsafe { count.write(read.entries) };
        }
        Ok(read.check_keys()?)
    })
}

/// Of a query that found nothing: calls `each` with a line of text for each data subject that it asks for by name, which says what can be
/// said of it. A misspelt name must not come to "nothing is held on you".
///
/// # Safety
/// What `query` points to is there; `each` may be called with `context` and bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_not_found(
    reader: *mut bulla_reader,
    query: *const bulla_query,
    each: bulla_each_bytes,
    context: *mut c_void,
) -> bulla_status {
    guarded(|| {
        let each = each.ok_or_else(|| Error::invalid("`each` is null"))?;
        // SAFETY: by this function's contract.
        let query = unsafe { bulla_query::get(query)? };
        let subjects = READERS.copy(number(reader))?.subjects_not_found(&query)?;
        let lines = subjects
            .iter()
            .map(|AskedSubject { subject, standing, .. }| format!("data subject `{subject}` {standing}"));
        // SAFETY: by this function's contract.
        unsafe { tell(&lines.collect::<Vec<_>>(), Some(each), context) }
    })
}

/// Of a query, whatever it finds: calls `each` with a line of text for each field that it asks for in a form that the rules of the log (`[log.fields]`) leave of
/// no value, as for a whole address where the log keeps networks: it finds nothing that was logged under them, and the line says what to ask for instead.
/// "Nothing is there" is no answer to such a query, and `bulla_read`, `bulla_export` and `bulla_prove` do not say so.
///
/// # Safety
/// What `query` points to is there; `each` may be called with `context` and bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_not_as_logged(
    reader: *mut bulla_reader,
    query: *const bulla_query,
    each: bulla_each_bytes,
    context: *mut c_void,
) -> bulla_status {
    guarded(|| {
        let each = each.ok_or_else(|| Error::invalid("`each` is null"))?;
        // SAFETY: by this function's contract.
        let query = unsafe { bulla_query::get(query)? };
        let fields = READERS.copy(number(reader))?.not_as_logged(&query);
        // SAFETY: by this function's contract.
        unsafe { tell(&fields, Some(each), context) }
    })
}

/// Writes every entry that meets `query` (null: all) as a line of JSON, as `bulla export` does, through `write`, which gets whole lines.
/// Returns `BULLA_TAMPERED` as `bulla_read` does.
///
/// # Safety
/// What `query` points to is there; `write` may be called with `context` and bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_export(
    reader: *mut bulla_reader,
    query: *const bulla_query,
    write: bulla_each_bytes,
    context: *mut c_void,
) -> bulla_status {
    guarded(|| {
        let write = write.ok_or_else(|| Error::invalid("`write` is null"))?;
        // SAFETY: by this function's contract.
        let query = unsafe { bulla_query::get(query)? };
        let reader = READERS.copy(number(reader))?;
        let mut stopped = false;
        let read = reader.read(&query, Delivery::Checked, lines, |lines| {
            // SAFETY: by this function's contract.
            stopped = unsafe { write(context, bulla_bytes::of(Some(&lines))) } != 0;
            if stopped { Err(stop()) } else { Ok(()) }
        });
        Ok(read.map_err(ended(stopped))?.check_keys()?)
    })
}

/// Tells each of these in a line, where somebody listens, and until no more are wanted.
///
/// # Safety
/// `each` may be called with `context` and bytes.
pub(crate) unsafe fn tell<T: ToString>(those: &[T], each: bulla_each_bytes, context: *mut c_void) -> Outcome {
    let Some(each) = each else { return Ok(()) };
    for one in those {
        let line = one.to_string();
        // SAFETY: by this function's contract.
        if unsafe { each(context, bulla_bytes::of(Some(line.as_bytes()))) } != 0 {
            return Err(Failed::Stopped);
        }
    }
    Ok(())
}

/// Entries as lines of JSON.
fn lines(matches: &Matches<'_>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (number, entry) in matches.iter() {
        jsonl::write_read(&entry, number, matches.withheld(number).map(Redaction::name), &mut lines);
    }
    lines
}

/// Proves that the log holds the entries that meet `query`, to whoever has its public key and the proof alone, as `bulla prove` does; the
/// proof goes to `write` at once. It discloses the other entries of the same people in the same blocks, too.
///
/// # Safety
/// As `bulla_export`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_prove(
    reader: *mut bulla_reader,
    query: *const bulla_query,
    write: bulla_each_bytes,
    context: *mut c_void,
) -> bulla_status {
    guarded(|| {
        let write = write.ok_or_else(|| Error::invalid("`write` is null"))?;
        // SAFETY: by this function's contract.
        let query = unsafe { bulla_query::get(query)? };
        let proven = READERS.copy(number(reader))?.prove(&query)?;
        // SAFETY: as above.
        match unsafe { write(context, bulla_bytes::of(Some(&proven.file))) } {
            0 => Ok(()),
            _ => Err(Failed::Stopped),
        }
    })
}

/// Closes a reader; what others read by it just now they read to the end. The handle is gone whatever this returns, but `BULLA_CLOSED` in a forked child,
/// or `BULLA_IN_USE`, which is tried for a moment first: then it is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_reader_close(reader: *mut bulla_reader) -> bulla_status {
    guarded(|| {
        drop(READERS.remove(number(reader))?);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
