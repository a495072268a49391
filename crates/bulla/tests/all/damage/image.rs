//! A log's files as they lie, to be damaged and read: cheap to clone, never written through the store.

use crate::helpers::refuse_writes;
use bulla::store::{Item, Store, StoreFile};
use bulla_testkit::fault::Faults;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(crate) struct Image(BTreeMap<String, Arc<Vec<u8>>>);

impl Image {
    /// The files of a machine below `prefix`.
    pub(crate) fn of(machine: &Faults, prefix: &str) -> Image {
        let files = machine.files().into_iter().filter_map(|path| {
            let name = path.strip_prefix(prefix)?.strip_prefix('/')?.to_owned();
            Some((name, Arc::new(machine.read(&path)?)))
        });
        Image(files.collect())
    }

    /// The files of a store in memory.
    pub(crate) fn of_store(store: &dyn Store) -> Image {
        let mut image = Image::default();
        let mut directories = vec![String::new()];
        while let Some(directory) = directories.pop() {
            for item in store.list(&directory).unwrap() {
                let path =
                    if directory.is_empty() { item.name } else { format!("{directory}/{}", item.name) };
                if item.directory {
                    directories.push(path);
                    continue;
                }
                let file = store.open(&path).unwrap();
                let mut content = vec![0; usize::try_from(file.length().unwrap()).unwrap()];
                file.read_exact_at(&mut content, 0).unwrap();
                image.put(&path, content);
            }
        }
        image
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn get(&self, path: &str) -> &[u8] {
        &self.0[path]
    }

    pub(crate) fn put(&mut self, path: &str, content: Vec<u8>) {
        self.0.insert(path.to_owned(), Arc::new(content));
    }

    pub(crate) fn with(&self, path: &str, content: Vec<u8>) -> Image {
        let mut image = self.clone();
        image.put(path, content);
        image
    }

    pub(crate) fn without(&self, path: &str) -> Image {
        let mut image = self.clone();
        image.0.remove(path);
        image
    }

    /// With one byte of one file changed.
    pub(crate) fn flipped(&self, path: &str, at: usize, change: impl Fn(u8) -> u8) -> Image {
        let mut content = self.get(path).to_vec();
        content[at] = change(content[at]);
        self.with(path, content)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.values().map(|content| content.len()).sum()
    }

    /// Writes the files into a directory of the file system.
    pub(crate) fn write_to(&self, directory: &Path) {
        for (path, content) in &self.0 {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &**content).unwrap();
        }
    }
}

#[derive(Debug)]
struct Content(Arc<Vec<u8>>);

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Store for Image {
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let content = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Content(content.clone())))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let below = self.0.range(prefix.clone()..).map_while(|(path, _)| path.strip_prefix(&prefix));
        let items = below.map(|rest| match rest.split_once('/') {
            Some((name, _)) => Item { name: name.to_owned(), directory: true },
            None => Item { name: rest.to_owned(), directory: false },
        });
        let items = items.collect::<BTreeSet<_>>();
        match items.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(items.into_iter().collect()),
        }
    }

    fn is_locked(&self, _: &str) -> io::Result<bool> {
        Ok(false)
    }

    fn describe(&self, path: &str) -> String {
        path.to_owned()
    }

    refuse_writes!();
}

impl StoreFile for Content {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, _: &mut [IoSlice<'_>], _: u64) -> io::Result<()> {
        refused()
    }

    fn sync(&self) -> io::Result<()> {
        refused()
    }

    fn set_length(&self, _: u64) -> io::Result<()> {
        refused()
    }
}
