//! The secrets of groups.

use super::{Place, append, plain};
use bulla::control::Client;
use bulla::keys::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing};
use bulla::{ErrorKind, Init, Log, Query, Result, Standing};
use bulla_proof::LogId;
use bulla_vault::{Access, Settings, Vault};
use std::sync::Arc;

fn vault(place: &Place) -> Vault {
    let id = bulla::info(place.audit()).unwrap().id;
    Vault::open(&place.keys(), id, Access::Read, &Settings::default()).unwrap()
}

#[test]
fn they_are_those_of_the_vault() {
    let place = Place::new(Init::default().erasure(true));
    let log = place.open();
    append(&log, 200);
    log.flush().unwrap();
    let (client, vault) = (place.client(), vault(&place));
    for subject in ["user_0", "user_49", "nobody", ""] {
        assert_eq!(client.number(subject).unwrap(), vault.number(subject).unwrap(), "{subject}");
    }
    assert_eq!(client.is_complete(), vault.is_complete());
    let followed = client.erased_up_to().unwrap();
    assert!(followed == vault.erased_up_to().unwrap() && followed.root.is_some());
    assert_eq!(client.missing(0).unwrap(), vault.missing(0).unwrap());

    // More than one message takes.
    let names = ["user_0", "user_49", "nobody"].into_iter().cycle().take(9000);
    let asked = names.map(|name| (&[0, 49, 7][..], name)).collect::<Vec<_>>();
    let whose = client.whose(&asked).unwrap();
    assert_eq!(whose, GroupKeys::whose(&vault, &asked).unwrap());
    assert_eq!(whose.map(|whose| whose.len()), Some(9000));

    // Some of subjects that nobody is.
    let groups = (0..9000).map(|at| vec![at % 60, 60 + at % 3]).chain((0..50).map(|at| vec![at]));
    let groups = groups.collect::<Vec<Vec<u64>>>();
    let groups = groups.iter().map(Vec::as_slice).collect::<Vec<_>>();
    let block = BlockContext { log: client.status().log, epoch_random: &[5; 32], frame: 7 };
    let (asked, known) = (client.secrets(block, &groups).unwrap(), vault.secrets(block, &groups).unwrap());
    assert!(asked == known);
    assert!(asked.iter().any(Option::is_none) && asked.iter().any(Option::is_some));
    assert!(client.secrets(BlockContext { frame: 8, ..block }, &groups).unwrap() != known);

    let error = client.secrets(BlockContext { log: LogId([1; 16]), ..block }, &groups[..1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(
        client.secrets(block, &[&[]]).unwrap_err().kind(),
        vault.secrets(block, &[&[]]).unwrap_err().kind()
    );
}

#[test]
fn with_them_everything_is_read_beside_the_writer() {
    let place = Place::new(Init::default().erasure(true));
    let log = place.open();
    append(&log, 2000);
    log.flush().unwrap();
    let client = Arc::new(place.client());
    let reader = || place.reader(&place.owner()).group_keys(client.clone());
    let mut count = 0;
    let report = reader().for_each(&Query::new(), |number, entry| {
        assert_eq!(entry.location, Some(format!("place {number}").as_bytes()));
        count += 1;
        Ok(())
    });
    assert_eq!((count, report.unwrap().withheld.total()), (2000, 0));
    let found = reader().for_each(&Query::new().subject("user_7"), |_, _| Ok(())).unwrap();
    assert_eq!(found.entries, 40);
    log.close().unwrap();
    let error = reader().for_each(&Query::new(), |_, _| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "the writer is gone: {error}");
}

/// The keys of a log whose writer signs more whenever it is asked how far they follow it.
struct Growing(Log, Client);

impl GroupKeys for Growing {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.1.number(subject)
    }

    fn secrets(&self, block: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        self.1.secrets(block, groups)
    }

    fn is_complete(&self) -> bool {
        self.1.is_complete()
    }

    fn erased_up_to(&self) -> Result<Followed> {
        append(&self.0, 1);
        self.0.flush()?;
        self.1.erased_up_to()
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        self.1.missing(from)
    }
}

/// The checkpoint that the writer signed meanwhile is what its keys are compared with: without it nobody could say that no key is lost.
#[test]
fn who_reads_beside_a_writer_that_signs_more_meanwhile_believes_what_was_signed_then() {
    let place = Place::new(Init::default().erasure(true));
    let log = place.open();
    append(&log, 200);
    log.flush().unwrap();
    let keys = Growing(log, place.client());
    let reader = place.reader(&place.owner()).group_keys(Arc::new(keys));
    let asked = reader.numbers_of(&["nobody", "user_7"]).unwrap();
    assert!(!asked.keys_lost, "{asked:?}");
    let standing = asked.subjects.iter().map(|asked| asked.standing).collect::<Vec<_>>();
    assert_eq!(standing, [Standing::NotKnown, Standing::Known]);
    let read = reader.for_each(&Query::new().subject("nobody"), |_, _| Ok(())).unwrap();
    assert_eq!((read.entries, read.undecided), (0, 0));
}

#[test]
fn a_log_without_a_vault_has_none() {
    let place = Place::new(plain());
    let _log = place.open();
    let error = place.client().number("user_1").unwrap_err();
    assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("erasure"), "{error}");
}
