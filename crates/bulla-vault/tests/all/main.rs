//! The vault as other processes see it, and what a look-up costs. What one process sees is tested beside the code.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "tests look at disks and clocks")]

mod cost;
mod fork;
mod kill;
mod processes;

use bulla_proof::commitment::LogId;
use bulla_vault::{Access, Settings, Vault};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;

const LOG: LogId = LogId([0x33; 16]);

fn settings() -> Settings {
    Settings { cache: 1000, ..Settings::default() }
}

fn create(directory: &Path) {
    Vault::create(directory, LOG, &settings()).unwrap();
}

fn open(directory: &Path, access: Access) -> Vault {
    Vault::open(directory, LOG, access, &settings()).unwrap()
}

fn resolve(vault: &Vault, prefix: &str, range: std::ops::Range<usize>) -> Vec<u64> {
    let names = range.map(|index| format!("{prefix}{index}")).collect::<Vec<_>>();
    let names = names.iter().map(String::as_str).collect::<Vec<_>>();
    vault.resolve(&names).unwrap().into_iter().map(|subject| subject.number).collect()
}

/// All steps of an erasure, as the engine takes them.
fn erase(vault: &Vault, numbers: &[u64]) {
    let erasure = vault.begin_erasure_of(numbers).unwrap().unwrap();
    vault.confirm(erasure.commit().unwrap().destroy().unwrap().numbers()).unwrap();
}

fn assert_sound(vault: &Vault) {
    let checked = vault.check(&|_| true, &|_| ()).unwrap();
    assert!(checked.damage.is_empty(), "{:?}", checked.damage);
}
