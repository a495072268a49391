//! What a disk could hold after a power cut.

use std::collections::BTreeMap;

use super::disk::{Change, Disk, File, NameChange, Names, Node, ROOT};
use super::random::Random;
use crate::content;

/// Which of the changes of one file, or of the names, survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Survivors {
    Nothing,
    Everything,
    Last,
    /// All up to some point, as after a journal was replayed; a write at that point is torn.
    Prefix,
    /// Any, in any order, whole or torn.
    Subset,
    /// No content, but the lengths: zeros where a file grew.
    Lengths,
    /// Each file has its own.
    Mixed,
}

/// Writes survive or tear by sectors.
const SECTOR: u64 = 512;

impl Disk {
    /// The disk after a power cut, all of it durable, and what style it was. See [`super::Faults::crash`].
    pub(super) fn after_power_cut(&self, seed: u64, operations: u64) -> (Disk, String) {
        use Survivors::{Everything, Last, Lengths, Mixed, Nothing, Prefix, Subset};
        let (names, content) = match seed % 8 {
            0 => (Nothing, Nothing),
            1 => (Everything, Everything),
            2 => (Everything, Nothing),
            3 => (Nothing, Everything),
            4 => (Everything, Lengths),
            5 => (Last, Last),
            6 => (Prefix, Mixed),
            _ => (Subset, Subset),
        };
        // One seed does not make the same choices at every crash point.
        let mut random = Random::new(seed ^ operations.rotate_left(32));
        let contents: Vec<Vec<u8>> =
            self.files.iter().map(|file| surviving(file, content, &mut random)).collect();
        let names_left = self.surviving_names(names, &mut random);
        let mut disk = Disk::default();
        disk.copy(ROOT, ROOT, &names_left, &contents);
        (disk, format!("power cut with seed {seed}: names {names:?}, content {content:?}"))
    }

    /// The names of each directory.
    fn surviving_names(&self, style: Survivors, random: &mut Random) -> Vec<Names> {
        let mut directories: Vec<Names> = self.directories.iter().map(|one| one.durable.clone()).collect();
        let count = self.pending.len();
        let end = if style == Survivors::Prefix { random.below(count + 1) } else { count };
        let kept = 1 + random.below(3);
        for (index, change) in self.pending[..end].iter().enumerate() {
            let survives = match style {
                Survivors::Nothing => false,
                Survivors::Last => index + 1 == count,
                Survivors::Subset => random.below(4) < kept,
                _ => true,
            };
            if survives {
                change.apply(&mut directories);
            }
        }
        directories
    }

    /// Copies a directory and what it holds. Of what has two names each gets its own copy.
    fn copy(&mut self, from: usize, to: usize, directories: &[Names], contents: &[Vec<u8>]) {
        let mut names = BTreeMap::new();
        for (name, node) in &directories[from] {
            let copy = match *node {
                Node::File(file) => Node::File(self.new_file(contents[file].clone())),
                Node::Directory(below) => {
                    let copy = self.new_directory();
                    self.copy(below, copy, directories, contents);
                    Node::Directory(copy)
                }
            };
            names.insert(name.clone(), copy);
        }
        self.directories[to].durable.clone_from(&names);
        self.directories[to].cached = names;
    }
}

impl NameChange {
    /// Applies the change, unless other losses made it impossible.
    fn apply(&self, directories: &mut [Names]) {
        if let Some(place) = &self.add {
            let free = match directories[place.directory].get(&place.name) {
                None => true,
                Some(Node::File(_)) => self.replaces,
                Some(Node::Directory(_)) => false,
            };
            if !free {
                return;
            }
        }
        if let Some(place) = &self.remove {
            let empty = match self.node {
                Node::File(_) => true,
                Node::Directory(below) => directories[below].is_empty(),
            };
            if empty && directories[place.directory].get(&place.name) == Some(&self.node) {
                directories[place.directory].remove(&place.name);
            }
        }
        if let Some(place) = &self.add {
            directories[place.directory].insert(place.name.clone(), self.node);
        }
    }
}

/// The content of a file after the power cut.
fn surviving(file: &File, style: Survivors, random: &mut Random) -> Vec<u8> {
    let mut content = file.durable.clone();
    let mut changes: Vec<&Change> = file.pending.iter().collect();
    match style {
        Survivors::Nothing => {}
        Survivors::Everything => changes.iter().for_each(|change| change.survive(&mut content)),
        Survivors::Last => changes.iter().rev().take(1).for_each(|change| change.survive(&mut content)),
        Survivors::Lengths => changes.iter().for_each(|change| change.survive_as_length(&mut content)),
        Survivors::Prefix => {
            let end = random.below(changes.len() + 1);
            changes[..end].iter().for_each(|change| change.survive(&mut content));
            if let Some(change) = changes.get(end) {
                change.survive_torn(&mut content, random);
            }
        }
        Survivors::Subset => {
            let kept = 1 + random.below(4);
            changes.retain(|_| random.below(4) < kept);
            if random.coin() {
                random.shuffle(&mut changes);
            }
            for change in changes {
                match random.below(3) {
                    0 => change.survive_torn(&mut content, random),
                    _ => change.survive(&mut content),
                }
            }
        }
        Survivors::Mixed => {
            use Survivors::{Everything, Last, Lengths, Nothing, Prefix, Subset};
            let styles = [Nothing, Everything, Last, Lengths, Prefix, Subset];
            content = surviving(file, styles[random.below(styles.len())], random);
        }
    }
    content
}

/// Each change succeeded once on the cache, which was as long: so the errors here cannot happen, and a change that
/// would not fit in memory does not survive.
impl Change {
    fn survive(&self, content: &mut Vec<u8>) {
        let _ = self.apply(content);
    }

    fn survive_as_length(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { offset, data } => grow(content, offset.saturating_add(data.len() as u64)),
            Change::SetLength(_) => self.survive(content),
        }
    }

    fn survive_torn(&self, content: &mut Vec<u8>, random: &mut Random) {
        let Change::Write { offset, data } = self else {
            return;
        };
        if random.coin() {
            let _ = content::write(content, *offset, &data[..random.below(data.len() + 1)]);
        } else {
            for (offset, sector) in sectors(*offset, data) {
                if random.coin() {
                    let _ = content::write(content, offset, sector);
                }
            }
        }
        if random.coin() {
            self.survive_as_length(content);
        }
    }
}

fn grow(content: &mut Vec<u8>, length: u64) {
    if length > content.len() as u64 {
        let _ = content::set_length(content, length);
    }
}

/// The parts of a write, cut at the sectors of the file.
fn sectors(mut offset: u64, mut data: &[u8]) -> Vec<(u64, &[u8])> {
    let mut parts = Vec::new();
    while !data.is_empty() {
        let room = usize::try_from(SECTOR - offset % SECTOR).unwrap_or(usize::MAX);
        let (part, rest) = data.split_at(room.min(data.len()));
        parts.push((offset, part));
        offset += part.len() as u64;
        data = rest;
    }
    parts
}
