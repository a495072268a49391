//! SQLite must not be used in a forked child, and a vault is not.
#![allow(unsafe_code)]

use super::{LOG, assert_sound, create, erase, open, resolve, settings};
use bulla_store::{ErrorKind, Result};
use bulla_testkit::{alone, is_alone};
use bulla_vault::{Access, Vault};
use std::path::Path;
use std::process::Command;

/// Forks in a process of its own, where no other test has a thread.
#[test]
fn in_a_child_every_handle_refuses() {
    if is_alone() {
        return fork_and_compare();
    }
    let command = Command::new("env");
    let output = alone(command, "fork::in_a_child_every_handle_refuses").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

fn fork_and_compare() {
    let place = tempfile::tempdir().unwrap();
    create(place.path());
    let mut handle = Some(open(place.path(), Access::Write));
    let numbers = resolve(handle.as_ref().unwrap(), "s", 0..10);

    // SAFETY: the child uses its own memory and the allocator, which `fork` of the C library keeps usable; no other
    // thread of this process is at work, and it ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let failed = use_in_child(handle.take().unwrap(), place.path());
        // SAFETY: ends the child without running what the parent has registered.
        unsafe { libc::_exit(failed) }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child crashed: {status}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "the number of the check that failed in the child");

    // The parent goes on as if nothing had been.
    let vault = handle.unwrap();
    assert_eq!(resolve(&vault, "s", 0..10), numbers);
    assert_eq!(resolve(&vault, "t", 0..3), [10, 11, 12]);
    erase(&vault, &[1]);
    assert_sound(&vault);
}

/// 0, or the number of the first check that fails.
fn use_in_child(vault: Vault, keys: &Path) -> i32 {
    let checks = [
        refuses(vault.resolve(&["s1"])),
        refuses(vault.resolve(&["new"])),
        refuses(vault.find("s1")),
        refuses(vault.key(0)),
        refuses(vault.next_number()),
        refuses(vault.generation()),
        refuses(vault.begin_erasure(&["s1"])),
        refuses(vault.resume_erasure()),
        refuses(vault.unconfirmed()),
        refuses(vault.confirm(&[0])),
        refuses(vault.check(&|_| true, &|_| ())),
        refuses(Vault::open(keys, LOG, Access::Read, &settings())),
    ];
    // Nor does closing it touch what the parent has open.
    drop(vault);
    checks.iter().position(|&passed| !passed).map_or(0, |index| index as i32 + 1)
}

fn refuses<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Closed)
}
