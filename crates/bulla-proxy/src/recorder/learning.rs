//! What becomes of what was learned, as commands are carried out.

use crate::command::{Access, Databases};
use crate::session::CarriedOut;
use crate::subject::{Answer, Learned, Rules, Said, says_gone};

/// Has `learned` know what a command that was carried out says of the keys that it wrote, before it is recorded: its entries are of those
/// whose data the keys are by then. Where others did something else at the same time, [`forget`] is to know that it is contested.
pub(crate) fn learn<'a>(rules: &Rules, learned: &Learned, carried_out: &CarriedOut<'a>) -> Said<'a> {
    let CarriedOut { command, arguments, answer, created, span, .. } = *carried_out;
    let moved = Moved::of(carried_out);
    let mut said = Said::default();
    said.contested = moved.is_some_and(|moved| learned.copy(moved.from, moved.to, span));
    for (database, argument) in written(carried_out) {
        // One of that name has gone without a command, and what was known of it holds no more.
        if created && let Some(key) = whole(carried_out, argument) {
            learned.forget_gone(database, key, span);
        }
        let words = (command, argument, arguments as &_);
        rules.learn(database, words, answer, (learned, span), &mut said);
    }
    said
}

/// The keys that a command wrote: in which database, and which of its arguments.
fn written<'a>(carried_out: &CarriedOut<'a>) -> impl Iterator<Item = (u32, u64)> + use<'a> {
    let CarriedOut { effect, database, .. } = *carried_out;
    let mut last = 0;
    effect.keys.iter().filter_map(move |used| {
        let writes = matches!(used.access, Access::Create | Access::Write | Access::Update);
        // The uses of one key stand side by side.
        (writes && std::mem::replace(&mut last, used.argument) != used.argument)
            .then(|| (used.database.unwrap_or(database), used.argument))
    })
}

/// Has `learned` forget the keys that a command took away which was carried out, once it is recorded, and those that are contested.
pub(crate) fn forget(learned: &Learned, carried_out: &CarriedOut<'_>, contested: bool) {
    let CarriedOut { command, effect, database, answer, leaves_none, span, .. } = *carried_out;
    if contested {
        let keys =
            written(carried_out).filter_map(|(at, argument)| Some((at, whole(carried_out, argument)?)));
        keys.for_each(|(database, key)| learned.forget_contested(database, key, span));
    }
    match (command, effect.databases) {
        ("flushall", _) => return learned.forget_all(span),
        ("flushdb", _) => return learned.forget_database(database, span),
        ("swapdb", Databases::Swap(one, other)) => return learned.swap_databases(one, other, span),
        _ if moves(command) => {
            if let Some(moved) = Moved::of(carried_out).filter(|moved| moved.from != moved.to) {
                if contested {
                    learned.forget_contested(moved.to.0, moved.to.1, span);
                }
                if !moved.stays {
                    learned.forget_key(moved.from.0, moved.from.1, span);
                }
            }
            return;
        }
        _ => {}
    }
    if let Some(first) = effect.keys.first()
        && effect.keys.iter().all(|used| used.argument == first.argument)
        && says_gone(command, answer)
    {
        let key = whole(carried_out, first.argument);
        key.into_iter().for_each(|key| learned.forget_gone(database, key, span));
    }
    let deleted = effect.keys.iter().filter(|used| leaves_none && used.access == Access::Delete);
    let deleted = deleted.filter_map(|used| whole(carried_out, used.argument));
    deleted.for_each(|key| learned.forget_key(database, key, span));
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
