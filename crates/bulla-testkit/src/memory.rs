//! A store in memory: for tests, and for a log that need not outlive its process.
//!
//! Everything is durable at once, for as long as one clone lives.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::content;
use bulla_store::path::{ancestors, check, check_below_root, parent, split};
use bulla_store::{Item, Lock, Store, StoreFile};

/// Files in memory. Clones share them. The root always exists.
#[derive(Clone, Default)]
pub struct Memory {
    tree: Arc<Mutex<Tree>>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Memory {
        Memory::default()
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Memory").field("nodes", &self.tree().nodes.len()).finish()
    }
}

impl Store for Memory {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        check_below_root(path)?;
        let content = self.tree().create(path)?;
        Ok(Box::new(MemoryFile { content, writable: true }))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        check_below_root(path)?;
        let content = self.tree().file(path)?;
        Ok(Box::new(MemoryFile { content, writable: false }))
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        check_below_root(path)?;
        let content = self.tree().file(path)?;
        Ok(Box::new(MemoryFile { content, writable: true }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_below_root(from)?;
        check_below_root(to)?;
        let mut tree = self.tree();
        let file = tree.file(from)?;
        tree.directory(parent(to))?;
        if let Some(Node::Directory) = tree.nodes.get(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        tree.nodes.remove(from);
        tree.nodes.insert(to.to_owned(), Node::File(file));
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        check_below_root(path)?;
        let mut tree = self.tree();
        tree.file(path)?;
        tree.nodes.remove(path);
        Ok(())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        check(directory)?;
        let tree = self.tree();
        tree.directory(directory)?;
        let item = |(path, node): (&str, &Node)| Item {
            name: split(path).1.to_owned(),
            directory: matches!(node, Node::Directory),
        };
        Ok(tree.below(directory).filter(|(path, _)| parent(path) == directory).map(item).collect())
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        check(path)?;
        let mut tree = self.tree();
        for path in ancestors(path) {
            match tree.nodes.get(path) {
                Some(Node::Directory) => {}
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => {
                    tree.nodes.insert(path.to_owned(), Node::Directory);
                }
            }
        }
        Ok(())
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        check_below_root(path)?;
        let mut tree = self.tree();
        tree.directory(path)?;
        if tree.below(path).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        tree.nodes.remove(path);
        Ok(())
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        check(path)?;
        self.tree().directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        check_below_root(path)?;
        let mut tree = self.tree();
        match tree.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => drop(tree.create(path)?),
            other => drop(other?),
        }
        match tree.locks.insert(path.to_owned()) {
            true => Ok(Box::new(Guard { store: self.clone(), path: path.to_owned() })),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        check_below_root(path)?;
        Ok(self.tree().locks.contains(path))
    }

    fn describe(&self, path: &str) -> String {
        format!("memory:{path}")
    }
}

type Content = Arc<RwLock<Vec<u8>>>;

#[derive(Default)]
struct Tree {
    /// By path; the root is not in it.
    nodes: BTreeMap<String, Node>,
    locks: BTreeSet<String>,
}

enum Node {
    File(Content),
    Directory,
}

impl Tree {
    fn create(&mut self, path: &str) -> io::Result<Content> {
        self.directory(parent(path))?;
        if self.nodes.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Content::default();
        self.nodes.insert(path.to_owned(), Node::File(content.clone()));
        Ok(content)
    }

    fn file(&self, path: &str) -> io::Result<Content> {
        self.directory(parent(path))?;
        match self.nodes.get(path) {
            Some(Node::File(content)) => Ok(content.clone()),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Succeeds where `path` is a directory.
    fn directory(&self, path: &str) -> io::Result<()> {
        for path in ancestors(path) {
            match self.nodes.get(path) {
                Some(Node::Directory) => {}
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(())
    }

    /// Everything below a directory, at any depth. The names of one directory come sorted.
    fn below(&self, directory: &str) -> impl Iterator<Item = (&str, &Node)> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let nodes = self.nodes.range(prefix.clone()..).map(|(path, node)| (path.as_str(), node));
        nodes.take_while(move |(path, _)| path.starts_with(&prefix))
    }
}

struct MemoryFile {
    content: Content,
    writable: bool,
}

impl MemoryFile {
    fn change(&self, change: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        match self.writable {
            true => change(&mut self.content.write().unwrap_or_else(PoisonError::into_inner)),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

impl Debug for MemoryFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryFile").field("writable", &self.writable).finish_non_exhaustive()
    }
}

impl StoreFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.content.read().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        Ok(content::read(&content, buffer, offset))
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        self.change(|content| {
            for buffer in buffers.iter() {
                content::write(content, offset, buffer)?;
                offset = content::end(offset, buffer.len())?;
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.change(|content| content::set_length(content, length))
    }
}

struct Guard {
    store: Memory,
    path: String,
}

impl Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guard").field("path", &self.path).finish()
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
        self.store.tree().locks.remove(&self.path);
    }
}
