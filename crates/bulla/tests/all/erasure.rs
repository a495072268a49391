//! Logs with erasure on the file system: their keys lie in the vault of the key directory.

use crate::damage::image::Image;
use crate::damage::layout::{BLOCK, Layout};
use crate::damage::world::{Mask, RECIPIENT};
use crate::register::ByName;
use bulla::environment::Environment;
use bulla::keys::recipients::IdentityFile;
use bulla::{Entry, ErrorKind, Init, Log, Options, Query, Reader, Step, Verify, default_keys};
use bulla_testkit::Memory;
use bulla_vault::{Access, Settings, Vault};
use std::path::Path;
use std::sync::Arc;

fn append(directory: &Path, range: std::ops::Range<u64>) {
    let log = Log::open(directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    for number in range {
        let (location, subject) = (format!("place {number}"), format!("user_{}", number % 50));
        producer.append(&Entry::new("read", &location).subject(&subject)).unwrap();
    }
    drop(producer);
    log.close().unwrap();
}

fn reader(directory: &Path, vault: &Arc<Vault>) -> Reader {
    let identity = std::fs::read_to_string(default_keys(directory).join("identity.age")).unwrap();
    let identity = Arc::new(IdentityFile::parse(&identity).unwrap());
    Reader::open(directory).unwrap().identity(identity).group_keys(vault.clone())
}

#[test]
fn what_a_log_with_a_vault_took_comes_out() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let created = Init::default().create(&directory).unwrap();
    append(&directory, 0..3000);
    append(&directory, 3000..5000);

    let vault =
        Vault::open(&default_keys(&directory), created.id, Access::Read, &Settings::default()).unwrap();
    assert_eq!(vault.next_number().unwrap(), 50, "nobody got a second number");
    let vault = Arc::new(vault);
    let mut next = 0;
    let read = reader(&directory, &vault).for_each(&Query::new(), |number, entry| {
        assert_eq!(number, next);
        assert_eq!(entry.location, Some(format!("place {number}").as_bytes()));
        assert_eq!(entry.subjects.as_deref(), Some(&[&*format!("user_{}", number % 50)][..]));
        next += 1;
        Ok(())
    });
    assert_eq!((read.unwrap().withheld.total(), next), (0, 5000));
    let report = Verify::open(&directory).unwrap().group_keys(vault.clone()).run().unwrap();
    assert!(report.ok, "{:?}", report.findings);

    let found = reader(&directory, &vault).for_each(&Query::new().subject("user_7"), |_, _| Ok(())).unwrap();
    assert_eq!(found.entries, 100);
}

#[test]
fn a_log_whose_vault_is_gone_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    append(&directory, 0..100);
    std::fs::remove_dir_all(default_keys(&directory).join("vault")).unwrap();
    let error = Log::open(&directory, Options::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoKey, "{error}");
}

#[test]
fn a_vault_that_is_older_than_the_log_is_not_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    let keys = default_keys(&directory);
    append(&directory, 0..10);
    let old = std::fs::read(keys.join("vault/vault.db")).unwrap();
    append(&directory, 10..20);
    std::fs::write(keys.join("vault/vault.db"), old).unwrap();
    let error = Log::open(&directory, Options::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("older than the log"), "{error}");
}

/// The entries of each block, by what was sealed of `subjects`: one entry each.
fn block_sizes(erasure: bool, subjects: impl Iterator<Item = u64>) -> Vec<u64> {
    let (log, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
    let environment =
        Environment { key_wrap: Arc::new(Mask), subjects: Some(Arc::new(ByName)), ..Environment::default() };
    let init = Init::default().recipient(RECIPIENT).erasure(erasure);
    init.create_in(&*log, &*keys, &environment).unwrap();
    let options = Options::default().memory(64 << 20).block_size(4 << 10).writers(1);
    let open = Log::open_stepped(log.clone(), keys, options, environment).unwrap();
    let mut producer = open.producer().unwrap();
    for subject in subjects {
        producer.append(&Entry::new("read", "key").subject(&format!("user_{subject}"))).unwrap();
    }
    while open.step(Step::Seal).unwrap() {
        open.step(Step::Commit).unwrap();
    }
    drop(producer);
    open.close().unwrap();
    let layout = Layout::of(&Image::of_store(&*log));
    layout.counted().filter(|frame| frame.kind == BLOCK).map(|frame| frame.entries).collect()
}

#[test]
fn blocks_grow_while_their_groups_are_small_and_shrink_again() {
    let sizes = block_sizes(true, (0..8000).chain(std::iter::repeat_n(0, 150_000)));
    let (grown, most) = sizes.iter().enumerate().max_by_key(|(_, size)| **size).unwrap();
    // Nobody comes twice at first: eight times as large a block is the least that could do.
    assert!(grown >= 2 && *most > 10 * sizes[0], "{sizes:?}");
    assert!(sizes[..grown].windows(2).all(|pair| pair[1] > pair[0] * 7), "{sizes:?}");
    let last_full = sizes[sizes.len() - 2];
    assert!(last_full < 2 * sizes[0], "{sizes:?}");

    let same = block_sizes(false, 0..8000);
    assert!(same[..same.len() - 1].iter().all(|&size| size < 2 * same[0]), "{same:?}");
}
