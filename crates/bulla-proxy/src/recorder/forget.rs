//! What becomes of what was learned of keys, when commands take the keys away or along.

use crate::command::{Access, Databases};
use crate::session::CarriedOut;
use crate::subject::{Answer, Learned, says_gone};

/// Has `learned` follow a command that was carried out.
pub(super) fn follow(learned: &Learned, carried_out: &CarriedOut<'_>) {
    let CarriedOut { command, arguments, effect, database, answer, .. } = carried_out;
    let key = |index: u64| arguments.get(index).filter(|_| arguments.is_whole(index));
    let of = |index: u64| {
        let named = effect.keys.iter().find(|used| used.argument == index);
        named.and_then(|used| used.database).unwrap_or(*database)
    };
    match (*command, effect.databases) {
        ("flushall", _) => return learned.forget_all(),
        ("flushdb", _) => return learned.forget_database(*database),
        ("swapdb", Databases::Swap(one, other)) => return learned.swap_databases(one, other),
        ("move", Databases::Named(other)) => {
            if let (Some(key), Answer::Integer(1)) = (key(1), answer) {
                learned.rename((*database, key), (other, key));
            }
            return;
        }
        ("rename" | "renamenx" | "copy", _) => {
            let done = *command == "rename" || *answer == Answer::Integer(1);
            if let (Some(from), Some(to), true) = (key(1), key(2), done) {
                match *command {
                    "copy" => learned.copy((*database, from), (of(2), to)),
                    _ => learned.rename((*database, from), (*database, to)),
                }
            }
            return;
        }
        _ => {}
    }
    if let Some(first) = effect.keys.first()
        && effect.keys.iter().all(|used| used.argument == first.argument)
        && says_gone(command, *answer)
    {
        key(first.argument).into_iter().for_each(|key| learned.forget_gone(*database, key, carried_out.came));
    }
    let deleted = effect.keys.iter().filter(|used| used.access == Access::Delete);
    deleted.filter_map(|used| key(used.argument)).for_each(|key| learned.forget_key(*database, key));
}
