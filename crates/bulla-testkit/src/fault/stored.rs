//! The store of a simulated machine.

use std::fmt::{self, Debug};
use std::io::{self, IoSlice};

use super::Faults;
use super::disk::Disk;
use super::machine::Operation;
use crate::content;
use bulla_store::path::{check, check_below_root, join};
use bulla_store::{Item, Lock, Store, StoreFile};

/// The store in one directory of a simulated machine. Clones are handles on the same store.
#[derive(Clone, Debug)]
pub struct FaultStore {
    faults: Faults,
    prefix: String,
}

impl FaultStore {
    pub(super) fn new(faults: Faults, prefix: &str) -> FaultStore {
        FaultStore { faults, prefix: prefix.to_owned() }
    }

    /// The path on the machine.
    fn full(&self, path: &str) -> io::Result<String> {
        check(path)?;
        let full = join(&self.prefix, path);
        check(&full)?;
        Ok(full)
    }

    fn full_below_root(&self, path: &str) -> io::Result<String> {
        check_below_root(path)?;
        self.full(path)
    }

    fn opened(&self, path: &str, writable: bool) -> io::Result<Box<dyn StoreFile>> {
        let path = self.full_below_root(path)?;
        let machine = self.faults.machine();
        machine.running()?;
        let file = machine.disk.file(&path)?;
        Ok(Box::new(FaultFile { faults: self.faults.clone(), path, file, writable }))
    }
}

impl Store for FaultStore {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let path = self.full_below_root(path)?;
        let file =
            self.faults.machine().name_operation(Operation::Create, &path, "", |disk| disk.create(&path))?;
        Ok(Box::new(FaultFile { faults: self.faults.clone(), path, file, writable: true }))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.opened(path, false)
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.opened(path, true)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.full_below_root(from)?, self.full_below_root(to)?);
        let detail = format_args!(" to {to}");
        self.faults.machine().name_operation(Operation::Rename, &from, detail, |disk| disk.rename(&from, &to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.full_below_root(path)?;
        self.faults.machine().name_operation(Operation::Remove, &path, "", |disk| disk.remove(&path))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        let path = self.full(directory)?;
        let machine = self.faults.machine();
        machine.running()?;
        machine.disk.list(&path)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        let path = self.full(path)?;
        let create = |disk: &mut Disk| disk.create_directory(&path, &self.prefix);
        self.faults.machine().name_operation(Operation::CreateDirectory, &path, "", create)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        let path = self.full_below_root(path)?;
        let remove = |disk: &mut Disk| disk.remove_directory(&path);
        self.faults.machine().name_operation(Operation::RemoveDirectory, &path, "", remove)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        let path = self.full(path)?;
        self.faults.machine().sync_directory(&path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        let path = self.full_below_root(path)?;
        let mut machine = self.faults.machine();
        machine.running()?;
        match machine.disk.file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                machine.name_operation(Operation::Create, &path, " to lock", |disk| disk.create(&path))?
            }
            other => other?,
        };
        match machine.locks.insert(path.clone()) {
            true => Ok(Box::new(Guard { faults: self.faults.clone(), path })),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        let path = self.full_below_root(path)?;
        let machine = self.faults.machine();
        machine.running()?;
        Ok(machine.locks.contains(&path))
    }

    fn describe(&self, path: &str) -> String {
        join(&self.prefix, path)
    }
}

struct FaultFile {
    faults: Faults,
    path: String,
    file: usize,
    writable: bool,
}

impl FaultFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl Debug for FaultFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FaultFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StoreFile for FaultFile {
    fn length(&self) -> io::Result<u64> {
        let machine = self.faults.machine();
        machine.running()?;
        Ok(machine.disk.files[self.file].cached.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let machine = self.faults.machine();
        machine.running()?;
        Ok(content::read(&machine.disk.files[self.file].cached, buffer, offset))
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        let data = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
        self.faults.machine().write(&self.path, self.file, offset, data)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.machine().sync(&self.path, self.file)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        self.faults.machine().set_length(&self.path, self.file, length)
    }
}

/// Releases the lock of its own machine; those made from it by a crash or a kill have none.
struct Guard {
    faults: Faults,
    path: String,
}

impl Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guard").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Lock for Guard {
    /// Nobody moves a store that has no path.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.faults.machine().locks.remove(&self.path);
    }
}
