//! A vault that was put back, and has other keys under the same numbers: as it would be, were it made anew for the same people.

use super::restored::put_back;
use super::world::World;
use bulla::control::Client;
use bulla::keys::group::GroupKeys;
use bulla::{ErrorKind, FindingKind, Log, Options, Query, Reader, Verify};
use bulla_vault::Access;
use std::sync::Arc;

const ENTRIES: u64 = 200;

/// A log, beside whose keys another vault was put in place of its own: it has everybody under the number that they have there, and says that it
/// follows the same log.
fn with_another_vault() -> World {
    let world = World::new();
    let twin = world.copied();
    world.append(0..ENTRIES);
    let (own, other) = (world.vault(Access::Read), twin.vault(Access::Write));
    let names = (0..50).map(|number| format!("user_{number}")).collect::<Vec<_>>();
    let mut names = names.iter().map(String::as_str).collect::<Vec<_>>();
    names.sort_by_key(|name| own.find(name).unwrap().unwrap().number);
    for (name, subject) in names.iter().zip(other.resolve(&names).unwrap()) {
        assert_eq!(own.find(name).unwrap().unwrap().number, subject.number);
    }
    other.follow(own.follows().unwrap()).unwrap();
    drop((own, other));
    put_back(&twin.keys(), &world.keys(), &["vault", "roots"]);
    world
}

#[test]
fn a_vault_that_was_put_back_with_other_keys_opens_nothing() {
    let world = with_another_vault();
    let mut given = 0;
    let error = world.reader().for_each(&Query::new(), |_, _| {
        given += 1;
        Ok(())
    });
    let error = error.unwrap_err();
    assert_eq!((error.kind(), given), (ErrorKind::Tampered, 0), "{error}");
    assert!(error.to_string().contains("is not under the key that it commits to"), "{error}");
    let report = world.verified();
    let finding = report.findings.iter().find(|finding| finding.kind == FindingKind::BlockInvalid).unwrap();
    assert!(finding.frame.is_some() && finding.detail.contains("commits to"), "{finding}");
    assert!(!report.ok);
}

#[test]
fn a_writer_that_has_another_vault_gives_out_secrets_that_open_nothing() {
    let world = with_another_vault();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert!(log.control_failure().is_none());
    let client: Arc<dyn GroupKeys> = Arc::new(Client::connect(world.keys()).unwrap().unwrap());
    let open = Reader::open(&world.directory).unwrap().key(world.key.clone()).identity(world.identity());
    let mut given = 0;
    let error = open.group_keys(client.clone()).for_each(&Query::new(), |_, _| {
        given += 1;
        Ok(())
    });
    let error = error.unwrap_err();
    assert_eq!((error.kind(), given), (ErrorKind::Tampered, 0), "{error}");
    assert!(error.to_string().contains("is not under the key that it commits to"), "{error}");
    let verify = Verify::open(&world.directory).unwrap().key(world.key.clone()).identity(world.identity());
    let report = verify.group_keys(client).run().unwrap();
    let kinds = report.findings.iter().map(|finding| (finding.kind, finding.frame.is_some()));
    assert!(kinds.eq([(FindingKind::BlockInvalid, true)]), "{:?}", report.findings);
    log.close().unwrap();
}
