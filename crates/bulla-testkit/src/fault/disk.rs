//! The disk of a simulated machine: what is cached, what is durable, and what lies between.
//!
//! What holds:
//! - cached names = durable names + the pending changes of names, in order;
//! - cached content = durable content + the pending changes, unless a failed sync gave changes up;
//! - a file has one cached name at most, and is never reused once it lost it.

use std::collections::BTreeMap;
use std::io;

use crate::content;
use bulla_store::Item;
use bulla_store::path::{ancestors, check_below_root, parent, split};

/// The file numbers and directory numbers index the two vectors.
#[derive(Clone)]
pub(super) struct Disk {
    pub(super) files: Vec<File>,
    pub(super) directories: Vec<Directory>,
    /// The changes of names that are not durable, oldest first.
    pub(super) pending: Vec<NameChange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File(usize),
    Directory(usize),
}

#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) cached: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// The changes that are not durable, oldest first.
    pub(super) pending: Vec<Change>,
    /// Whether it has a name, and so counts for the space used.
    linked: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, data: Vec<u8> },
    SetLength(u64),
}

pub(super) type Names = BTreeMap<String, Node>;

#[derive(Clone, Default)]
pub(super) struct Directory {
    pub(super) cached: Names,
    pub(super) durable: Names,
}

/// A change of names. The halves that are durable already are `None`.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    pub(super) node: Node,
    pub(super) add: Option<DirectoryEntry>,
    pub(super) remove: Option<DirectoryEntry>,
    /// Whether the name that is added may be taken: a rename.
    pub(super) replaces: bool,
}

#[derive(Clone, Debug)]
pub(super) struct DirectoryEntry {
    pub(super) directory: usize,
    pub(super) name: String,
}

pub(super) const ROOT: usize = 0;

impl Default for Disk {
    fn default() -> Disk {
        Disk { files: Vec::new(), directories: vec![Directory::default()], pending: Vec::new() }
    }
}

/// Names.
impl Disk {
    pub(super) fn create(&mut self, path: &str) -> io::Result<usize> {
        let place = self.place(path)?;
        if self.named(&place).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = self.new_file(Vec::new());
        self.change_names(Node::File(file), Some(place), None, false);
        Ok(file)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.file(from)?;
        let (from, to) = (self.place(from)?, self.place(to)?);
        match self.named(&to) {
            Some(Node::Directory(_)) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::File(replaced)) if replaced == file => return Ok(()),
            Some(Node::File(replaced)) => self.files[replaced].linked = false,
            None => {}
        }
        self.change_names(Node::File(file), Some(to), Some(from), true);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        let file = self.file(path)?;
        let place = self.place(path)?;
        self.files[file].linked = false;
        self.change_names(Node::File(file), None, Some(place), false);
        Ok(())
    }

    /// Creates a directory and those above it. Those down to `durable` are durable at once.
    pub(super) fn create_directory(&mut self, path: &str, durable: &str) -> io::Result<()> {
        for path in ancestors(path) {
            let place = self.place(path)?;
            let above = place.directory;
            match self.named(&place) {
                Some(Node::Directory(_)) => continue,
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => {}
            }
            let directory = self.new_directory();
            self.change_names(Node::Directory(directory), Some(place), None, false);
            if path.len() <= durable.len() {
                self.sync_directory(above);
            }
        }
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, path: &str) -> io::Result<()> {
        let directory = self.directory(path)?;
        if !self.directories[directory].cached.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let place = self.place(path)?;
        self.change_names(Node::Directory(directory), None, Some(place), false);
        Ok(())
    }

    pub(super) fn sync_directory(&mut self, directory: usize) {
        let names = &mut self.directories[directory];
        names.durable.clone_from(&names.cached);
        for change in &mut self.pending {
            change.add.take_if(|place| place.directory == directory);
            change.remove.take_if(|place| place.directory == directory);
        }
        self.pending.retain(|change| change.add.is_some() || change.remove.is_some());
    }

    pub(super) fn list(&self, path: &str) -> io::Result<Vec<Item>> {
        let names = &self.directories[self.directory(path)?].cached;
        let item = |(name, node): (&String, &Node)| Item {
            name: name.clone(),
            directory: matches!(node, Node::Directory(_)),
        };
        Ok(names.iter().map(item).collect())
    }

    /// The number of the file at `path`.
    pub(super) fn file(&self, path: &str) -> io::Result<usize> {
        match self.named(&self.place(path)?) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The number of the directory at `path`.
    pub(super) fn directory(&self, path: &str) -> io::Result<usize> {
        ancestors(path).try_fold(ROOT, |directory, path| {
            match self.directories[directory].cached.get(split(path).1) {
                Some(Node::Directory(directory)) => Ok(*directory),
                Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
                None => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }

    fn place(&self, path: &str) -> io::Result<DirectoryEntry> {
        let (directory, name) = split(path);
        Ok(DirectoryEntry { directory: self.directory(directory)?, name: name.to_owned() })
    }

    fn named(&self, place: &DirectoryEntry) -> Option<Node> {
        self.directories[place.directory].cached.get(&place.name).copied()
    }

    fn change_names(
        &mut self,
        node: Node,
        add: Option<DirectoryEntry>,
        remove: Option<DirectoryEntry>,
        replaces: bool,
    ) {
        if let Some(place) = &remove {
            self.directories[place.directory].cached.remove(&place.name);
        }
        if let Some(place) = &add {
            self.directories[place.directory].cached.insert(place.name.clone(), node);
        }
        self.pending.push(NameChange { node, add, remove, replaces });
    }

    pub(super) fn new_file(&mut self, content: Vec<u8>) -> usize {
        self.files.push(File {
            cached: content.clone(),
            durable: content,
            pending: Vec::new(),
            linked: true,
        });
        self.files.len() - 1
    }

    pub(super) fn new_directory(&mut self) -> usize {
        self.directories.push(Directory::default());
        self.directories.len() - 1
    }
}

/// Content.
impl Disk {
    pub(super) fn change(&mut self, file: usize, change: Change) -> io::Result<()> {
        let file = &mut self.files[file];
        change.apply(&mut file.cached)?;
        file.pending.push(change);
        Ok(())
    }

    pub(super) fn sync(&mut self, file: usize) -> io::Result<()> {
        let File { durable, pending, .. } = &mut self.files[file];
        pending.drain(..).try_for_each(|change| change.apply(durable))
    }

    /// What a failed sync does: the changes are taken for written, and are not.
    pub(super) fn give_up(&mut self, file: usize) {
        self.files[file].pending.clear();
    }

    /// How far a file may grow so that the disk holds no more than `limit` bytes.
    pub(super) fn longest(&self, file: usize, limit: u64) -> u64 {
        let linked = self.files.iter().filter(|file| file.linked);
        let used: u64 = linked.map(|file| file.cached.len() as u64).sum();
        self.files[file].cached.len() as u64 + limit.saturating_sub(used)
    }
}

impl Change {
    pub(super) fn apply(&self, content: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Change::Write { offset, data } => content::write(content, *offset, data),
            Change::SetLength(length) => content::set_length(content, *length),
        }
    }
}

/// Direct access.
impl Disk {
    pub(super) fn content(&self, path: &str) -> Option<Vec<u8>> {
        Some(self.files[self.file(path).ok()?].cached.clone())
    }

    pub(super) fn overwrite(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        check_below_root(path)?;
        self.create_directory(parent(path), "")?;
        let file = match self.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path)?,
            other => other?,
        };
        self.sync_names_above(path)?;
        let linked = self.files[file].linked;
        let [cached, durable] = [content.to_vec(), content.to_vec()];
        self.files[file] = File { cached, durable, pending: Vec::new(), linked };
        Ok(())
    }

    pub(super) fn destroy(&mut self, path: &str) -> bool {
        self.remove(path).and_then(|()| self.sync_names_above(path)).is_ok()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut directories = vec![(String::new(), ROOT)];
        while let Some((prefix, directory)) = directories.pop() {
            for (name, node) in &self.directories[directory].cached {
                match *node {
                    Node::File(_) => paths.push(format!("{prefix}{name}")),
                    Node::Directory(below) => directories.push((format!("{prefix}{name}/"), below)),
                }
            }
        }
        paths.sort();
        paths
    }

    fn sync_names_above(&mut self, path: &str) -> io::Result<()> {
        self.sync_directory(ROOT);
        for path in ancestors(parent(path)) {
            let directory = self.directory(path)?;
            self.sync_directory(directory);
        }
        Ok(())
    }
}
