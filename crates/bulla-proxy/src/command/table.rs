//! [`CommandTable`]

use super::description::{Description, NOT_KEY};
use super::effect::{Class, Command, Effect, Telling, Unknowable};
use super::keys::Place;
use super::own::Own;
use super::pinned::COMMANDS;
use super::read::{self, NoTable};
use super::rules;
use super::words::{Words, until_zero};
use crate::resp::{Arguments, Limits, Reply};
use bulla_proof::entry::MAX_STRING;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The commands that a server has.
#[derive(Clone, Debug, Default)]
pub struct CommandTable {
    commands: Vec<Known>,
    names: Names,
    /// The names of those that the server has under other names.
    renamed: Vec<String>,
}

/// All that is known of a command before its arguments are.
#[derive(Clone, Debug)]
struct Known {
    name: Cow<'static, str>,
    places: SmallVec<[Place; 1]>,
    own: Own,
    class: Class,
    administrative: bool,
    unknowable: Option<Unknowable>,
    telling: Telling,
    subcommands: Names,
}

impl CommandTable {
    /// What of a server's reply to `COMMAND` has to be kept for [`CommandTable::from_reply`].
    pub const REPLY: Limits = Limits { bytes: 16 << 20, items: 1 << 20, text: 16 << 10 };

    /// So many bytes of every argument have to be kept, whether it may be a key or not, for names, words and numbers to be known.
    pub const WORD: usize = 64;

    /// What a server says of its commands, in its reply to `COMMAND`.
    ///
    /// # Errors
    /// It is no such reply, or of a server before Redis 7, or was not kept whole.
    pub fn from_reply(reply: &Reply) -> Result<CommandTable, NoTable> {
        Ok(CommandTable::of(read::commands(reply)?))
    }

    /// The commands of Redis 7.0, for servers before it, and users that may not call `COMMAND`. What the server has besides is
    /// [`Unknowable::Undescribed`].
    pub fn pinned() -> CommandTable {
        CommandTable::of(COMMANDS.iter().cloned())
    }

    /// A container comes before its subcommands.
    fn of(descriptions: impl IntoIterator<Item = Description>) -> CommandTable {
        let mut table = CommandTable::default();
        for description in descriptions {
            // One more than there are numbers for is not described.
            let Ok(number) = u16::try_from(table.commands.len()) else { break };
            let (names, name) = match description.name.split_once('|') {
                None => (&mut table.names, description.name.as_ref()),
                Some((container, name)) => {
                    let container = Name::of(container.as_bytes()).and_then(|name| table.names.0.get(&name));
                    let Some(container) = container else { continue };
                    (&mut table.commands[usize::from(*container)].subcommands, name)
                }
            };
            if let (Some(name), true) = (Name::of(name.as_bytes()), Command(number) != Command::UNKNOWN) {
                names.0.insert(name, number);
                table.commands.push(Known::of(description));
            }
        }
        table
    }

    /// The names that a server told, without subcommands: what [`CommandTable::settle_names`] has to ask it for with `COMMAND INFO`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(|command| command.name.as_ref()).filter(|name| !name.contains('|'))
    }

    /// Takes out the names by which the server does not have the command that it told by them. It tells its commands by the names
    /// that they were made with, whatever `rename-command` made of these; but it finds them by the names that they have.
    ///
    /// # Errors
    /// It is no reply to `COMMAND INFO` with [`CommandTable::names`].
    pub fn settle_names(&mut self, reply: &Reply) -> Result<(), NoTable> {
        let found = read::names(reply)?;
        let mut renamed = Vec::new();
        for (at, name) in self.names().enumerate() {
            if !found.get(at).copied().flatten().is_some_and(|found| found.eq_ignore_ascii_case(name)) {
                renamed.push(name.to_owned());
            }
        }
        renamed.sort_unstable();
        for name in &renamed {
            Name::of(name.as_bytes()).map(|name| self.names.0.remove(&name));
        }
        self.renamed = renamed;
        Ok(())
    }

    /// The commands that the server has under other names, which it does not tell, by those that they were made with.
    pub fn renamed(&self) -> &[String] {
        &self.renamed
    }

    /// What a command does.
    pub fn effect(&self, arguments: &Arguments) -> Effect {
        let mut effect = Effect::default();
        let (number, described) = self.find(arguments);
        if !described {
            effect.unknowable = Some(Unknowable::Undescribed);
        }
        let Some(command) = number.and_then(|number| self.commands.get(usize::from(number))) else {
            return effect;
        };
        effect.command = number.map_or(Command::UNKNOWN, Command);
        effect.class = command.class;
        effect.administrative = command.administrative;
        effect.telling = command.telling;
        effect.unknowable = effect.unknowable.or(command.unknowable);
        let mut words = Words::new(arguments);
        if !command.own.has_keys() {
            for place in &command.places {
                place.keys(&mut words, &mut effect.keys);
            }
        }
        command.own.tell(&mut words, &mut effect);
        if command.places.len() > 1 {
            effect.keys.sort_unstable();
            effect.keys.dedup();
        }
        // Whose a key is of which less is kept than an entry can have, nobody knows.
        let is_lost = |argument| {
            let kept = arguments.get(argument).map_or(0, <[u8]>::len);
            (kept as u64) < words.length(argument).min(MAX_STRING as u64)
        };
        if words.uncertain || effect.keys.iter().any(|key| is_lost(key.argument)) {
            effect.unknowable = effect.unknowable.or(Some(Unknowable::TooMany));
        }
        effect
    }

    /// Whether argument `index` may be a key, known only the arguments before it. It may be none: later arguments can tell.
    pub fn may_be_key(&self, so_far: &Arguments, index: u64) -> bool {
        let Some(command) = self.find(so_far).0.and_then(|number| self.commands.get(usize::from(number)))
        else {
            return false;
        };
        let mut before = Words::new(so_far);
        if index == 0 {
            false
        } else if command.own.has_keys() {
            command.own.may_be_key(&mut before, index)
        } else {
            command.places.iter().any(|place| place.may_be(&mut before, index))
        }
    }

    /// The name of a command in small letters, with its subcommand where it has some: `config|get`. `None` where the table does not
    /// have it: the name is then what the client says, or a container whose subcommand is not there.
    pub fn name(&self, command: Command) -> Option<&str> {
        self.commands.get(usize::from(command.0)).map(|command| command.name.as_ref())
    }

    /// The command, and whether it is described: of a container whose subcommand is not, the container.
    fn find(&self, arguments: &Arguments) -> (Option<u16>, bool) {
        let Some(number) = self.names.argument(arguments, 0) else {
            return (None, false);
        };
        let subcommands = &self.commands[usize::from(number)].subcommands;
        if subcommands.0.is_empty() || arguments.count() < 2 {
            return (Some(number), true);
        }
        match subcommands.argument(arguments, 1) {
            Some(subcommand) => (Some(subcommand), true),
            None => (Some(number), false),
        }
    }
}

impl Known {
    fn of(description: Description) -> Known {
        let own = rules::own(&description.name);
        let mut places: SmallVec<[Place; 1]> =
            description.specs.iter().filter(|spec| spec.flags & NOT_KEY == 0).map(Place::of).collect();
        rules::correct(&description.name, &mut places);
        Known {
            places,
            own,
            class: rules::class(&description.name, description.flags),
            administrative: rules::administrative(&description.name, description.flags),
            unknowable: rules::unknowable(&description, own),
            telling: rules::telling(&description.name),
            subcommands: Names::default(),
            name: description.name,
        }
    }
}

/// Numbers of commands by their names.
#[derive(Clone, Debug, Default)]
struct Names(HashMap<Name, u16, BuildHasherDefault<Folded>>);

impl Names {
    /// The one that argument `index` names, in any case of its letters.
    fn argument(&self, arguments: &Arguments, index: u64) -> Option<u16> {
        self.0.get(&Name::of(until_zero(arguments, index)?)?).copied()
    }
}

/// A name in small letters. No name has a zero inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name(u64, u64, u64, u64);

impl Name {
    /// `None` where it is longer than any command's.
    fn of(name: &[u8]) -> Option<Name> {
        let word = |at: usize| {
            let bytes = name.get(at..).unwrap_or_default().iter().take(8);
            bytes.fold(0, |word, byte| word << 8 | u64::from(byte.to_ascii_lowercase()))
        };
        (name.len() <= 32).then(|| Name(word(0), word(8), word(16), word(24)))
    }
}

impl Hash for Name {
    /// Nobody can make this slow: what is in a table comes from the server alone.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Name(one, two, three, four) = self;
        let folded = one.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ two.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
            ^ (*three ^ four.rotate_left(29)).wrapping_mul(0x1656_67b1_9e37_79f9);
        state.write_u64(folded ^ folded >> 32);
    }
}

/// The hash of a [`Name`], as it is.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, folded: u64) {
        self.0 = folded;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
