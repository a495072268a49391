#![allow(clippy::disallowed_methods, reason = "tests read the key that orders erasures")]

use super::*;
use crate::entry::bulla_withheld;
use bulla::keys::{files, signing::SigningKey};
use bulla::{Entry, ErasureOrder, Init, Log, Options, environment::Environment};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A log with an entry about ada, who is erased, and one about bob.
fn log(directory: &Path) {
    Init::default().create(directory).unwrap();
    let log = Log::open(directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    for subject in ["ada", "bob"] {
        producer.append(&Entry::new("read", "email").subject(subject)).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
    let key = std::fs::read_to_string(default_keys(directory).join(files::ERASURE_KEY)).unwrap();
    let key = SigningKey::parse(&key).unwrap();
    let id = bulla::info(directory).unwrap().id;
    log.erase(&ErasureOrder::give(&key, id, &["ada"], None, &Environment::default()).unwrap()).unwrap();
    log.close().unwrap();
}

unsafe extern "C" fn keep_withheld(kept: *mut c_void, _: u64, entry: *const bulla_entry) -> i32 {
    // SAFETY: the test gives a vector, and the library an entry.
    unsafe { (*kept.cast::<Vec<u32>>()).push((*entry).withheld) };
    0
}

unsafe extern "C" fn keep_bytes(kept: *mut c_void, bytes: bulla_bytes) -> i32 {
    // SAFETY: the test gives a vector, and the library bytes.
    unsafe { (*kept.cast::<Vec<u8>>()).extend(bytes.get("bytes").ok().flatten().unwrap_or_default()) };
    0
}

#[test]
fn what_is_missing_is_said_of_entries_and_of_people() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    log(&directory);
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap();
    let mut reader = std::ptr::null_mut();
    let (mut withheld, mut lines, mut said) = (Vec::<u32>::new(), Vec::<u8>::new(), Vec::<u8>::new());
    let (none, ada) = (std::ptr::null(), CString::new("subject").unwrap());
    let condition = bulla_condition {
        field: ada.as_ptr(),
        comparison: 0,
        value: bulla_bytes::of(Some(b"ada")),
        first: 0,
        last: 0,
    };
    let query = bulla_query { conditions: &raw const condition, condition_count: 1, from: 0, to: 0, has: 0 };
    let mut count = 0;
    // SAFETY: texts end with a zero, places are places, and callbacks get what they are for.
    unsafe {
        let opened = bulla_reader_open(crate::BULLA_ABI_VERSION, path.as_ptr(), none, none, &raw mut reader);
        assert_eq!(opened, bulla_status::BULLA_OK);
        let read = bulla_read(
            reader,
            std::ptr::null(),
            Some(keep_withheld),
            (&raw mut withheld).cast(),
            &raw mut count,
        );
        assert_eq!((read, count), (bulla_status::BULLA_OK, 2));
        let written = bulla_export(reader, std::ptr::null(), Some(keep_bytes), (&raw mut lines).cast());
        assert_eq!(written, bulla_status::BULLA_OK);
        let read = bulla_read(
            reader,
            &raw const query,
            Some(keep_withheld),
            (&raw mut withheld).cast(),
            &raw mut count,
        );
        assert_eq!((read, count), (bulla_status::BULLA_OK, 0));
        let told = bulla_not_found(reader, &raw const query, Some(keep_bytes), (&raw mut said).cast());
        assert_eq!(told, bulla_status::BULLA_OK);
    }
    assert_eq!(
        withheld,
        [bulla_withheld::BULLA_WITHHELD_ERASED as u32, bulla_withheld::BULLA_NOT_WITHHELD as u32]
    );
    assert_eq!(String::from_utf8(lines).unwrap().matches("\"withheld\":\"erased\"").count(), 1);
    assert!(String::from_utf8(said).unwrap().starts_with("data subject `ada` "));

    assert_eq!(bulla_reader_close(reader), bulla_status::BULLA_OK);
}

#[test]
fn a_query_for_what_a_rule_leaves_of_no_value_is_told_of() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().field("client", "truncate-ip:24/48").create(&directory).unwrap();
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap();
    let (none, client) = (std::ptr::null(), CString::new("client").unwrap());
    let asked = |address: &'static str| bulla_condition {
        field: client.as_ptr(),
        comparison: 0,
        value: bulla_bytes::of(Some(address.as_bytes())),
        first: 0,
        last: 0,
    };
    let mut reader = std::ptr::null_mut();
    // SAFETY: texts end with a zero, places are places.
    let opened =
        unsafe { bulla_reader_open(crate::BULLA_ABI_VERSION, path.as_ptr(), none, none, &raw mut reader) };
    assert_eq!(opened, bulla_status::BULLA_OK);
    for (address, told) in
        [("141.180.188.158", "is an address's network: filter for 141.180.188.0"), ("141.180.188.0", "")]
    {
        let (condition, mut said) = (asked(address), Vec::<u8>::new());
        let query =
            bulla_query { conditions: &raw const condition, condition_count: 1, from: 0, to: 0, has: 0 };
        // SAFETY: what the query points to is there, and the callback gets what it is for.
        let status = unsafe {
            bulla_not_as_logged(reader, &raw const query, Some(keep_bytes), (&raw mut said).cast())
        };
        assert_eq!(status, bulla_status::BULLA_OK);
        let said = String::from_utf8(said).unwrap();
        assert!(said.ends_with(told) && said.is_empty() == told.is_empty(), "{address}: {said}");
        // SAFETY: as above.
        let status = unsafe { bulla_not_as_logged(reader, &raw const query, None, std::ptr::null_mut()) };
        assert_eq!(status, bulla_status::BULLA_INVALID);
    }
    assert_eq!(bulla_reader_close(reader), bulla_status::BULLA_OK);
}
