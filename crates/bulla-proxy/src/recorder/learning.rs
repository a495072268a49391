//! What becomes of what was learned, as commands are carried out.

use crate::command::{Access, Databases};
use crate::session::CarriedOut;
use crate::subject::{Answer, Learned, Rules, says_gone};

/// Has `learned` know what a command that was carried out says of the keys that it wrote, before it is recorded: its entries are of those
/// whose data the keys are by then.
pub(crate) fn learn(rules: &Rules, learned: &Learned, carried_out: &CarriedOut<'_>) {
    let CarriedOut { command, arguments, effect, database, answer, created, came, answered, .. } =
        *carried_out;
    if let Some(moved) = Moved::of(carried_out) {
        learned.copy(moved.from, moved.to);
    }
    let mut last = 0;
    for used in &effect.keys {
        let writes = matches!(used.access, Access::Create | Access::Write | Access::Update);
        if !writes || used.argument == last {
            continue;
        }
        last = used.argument;
        let database = used.database.unwrap_or(database);
        // One of that name has gone without a command, and what was known of it holds no more.
        if created && let Some(key) = whole(carried_out, used.argument) {
            learned.forget_gone(database, key, came);
        }
        rules.learn(database, (command, used.argument, arguments as &_), answer, (learned, answered));
    }
}

/// Has `learned` forget the keys that a command took away which was carried out, once it is recorded.
pub(crate) fn forget(learned: &Learned, carried_out: &CarriedOut<'_>) {
    let CarriedOut { command, effect, database, answer, leaves_none, came, .. } = *carried_out;
    match (command, effect.databases) {
        ("flushall", _) => return learned.forget_all(),
        ("flushdb", _) => return learned.forget_database(database),
        ("swapdb", Databases::Swap(one, other)) => return learned.swap_databases(one, other),
        _ if moves(command) => {
            let gone = Moved::of(carried_out).filter(|moved| !moved.stays && moved.from != moved.to);
            return gone.map_or((), |moved| learned.forget_key(moved.from.0, moved.from.1));
        }
        _ => {}
    }
    if let Some(first) = effect.keys.first()
        && effect.keys.iter().all(|used| used.argument == first.argument)
        && says_gone(command, answer)
    {
        let key = whole(carried_out, first.argument);
        key.into_iter().for_each(|key| learned.forget_gone(database, key, came));
    }
    let deleted = effect.keys.iter().filter(|used| leaves_none && used.access == Access::Delete);
    let deleted = deleted.filter_map(|used| whole(carried_out, used.argument));
    deleted.for_each(|key| learned.forget_key(database, key));
}

/// What a key had, which has another one now.
struct Moved<'a> {
    /// In which database.
    from: (u32, &'a [u8]),
    to: (u32, &'a [u8]),
    /// Whether the first one has it, too.
    stays: bool,
}

impl<'a> Moved<'a> {
    /// What a command moved that was carried out, if anything.
    fn of(carried_out: &CarriedOut<'a>) -> Option<Self> {
        let CarriedOut { command, effect, database, answer, .. } = *carried_out;
        if !moves(command) || command != "rename" && answer != Answer::Integer(1) {
            return None;
        }
        let to = if command == "move" { 1 } else { 2 };
        let other = if let Databases::Named(other) = effect.databases { other } else { database };
        let (from, to) = (whole(carried_out, 1)?, whole(carried_out, to)?);
        Some(Moved { from: (database, from), to: (other, to), stays: command == "copy" })
    }
}

fn moves(command: &str) -> bool {
    matches!(command, "rename" | "renamenx" | "copy" | "move")
}

/// An argument of which all is kept.
fn whole<'a>(carried_out: &CarriedOut<'a>, index: u64) -> Option<&'a [u8]> {
    let arguments = carried_out.arguments;
    arguments.get(index).filter(|_| arguments.is_whole(index))
}
