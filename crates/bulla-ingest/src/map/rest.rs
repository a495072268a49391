//! Payloads that are a part of a record, as JSON.

use super::scope::Names;
use crate::Value;
use crate::value::write_json_string;

/// Names of members, as they lie in one another.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    name: String,
    /// The number of the pointer that ends here.
    pointer: Option<usize>,
    below: Vec<Tree>,
}

impl Tree {
    /// The tree of these pointers.
    pub(super) fn new(pointers: impl Iterator<Item = usize>, names: &Names) -> Self {
        let mut root = Tree::default();
        for number in pointers {
            let mut node = &mut root;
            for token in names.pointers[number].tokens() {
                let place = node.below.iter().position(|below| below.name == token.name);
                let place = place.unwrap_or_else(|| {
                    node.below.push(Tree { name: token.name.clone(), ..Tree::default() });
                    node.below.len() - 1
                });
                node = &mut node.below[place];
            }
            node.pointer = Some(number);
        }
        root
    }

    /// Writes the members that are in the tree; whether there is one.
    pub(super) fn write_members(&self, record: &Value<'_>, out: &mut Vec<u8>) -> bool {
        self.write(record, None, out)
    }

    /// Writes the members that are not taken; whether there is one. Of a list nothing is left out.
    pub(super) fn write_rest(&self, record: &Value<'_>, taken: &[bool], out: &mut Vec<u8>) -> bool {
        self.write(record, Some(taken), out)
    }

    /// Writes what is not taken, or, without that, what is in the tree.
    fn write(&self, record: &Value<'_>, taken: Option<&[bool]>, out: &mut Vec<u8>) -> bool {
        let Value::Object(members) = record else {
            record.write_json(out);
            return true;
        };
        let begin = out.len();
        for (name, value) in members {
            let node = self.below.iter().find(|below| below.name == **name);
            let keep = Keep::of(node, value, taken);
            if matches!(keep, Keep::Nothing) {
                continue;
            }
            let before = out.len();
            out.push(if before == begin { b'{' } else { b',' });
            write_json_string(name, out);
            out.push(b':');
            match keep {
                Keep::Part(node) if !node.write(value, taken, out) => out.truncate(before),
                Keep::Part(_) | Keep::Nothing => {}
                Keep::All => value.write_json(out),
            }
        }
        let is_something = out.len() > begin;
        if is_something {
            out.push(b'}');
        }
        is_something
    }
}

/// What is written of a member.
enum Keep<'t> {
    All,
    Nothing,
    /// What is kept of what is in it.
    Part(&'t Tree),
}

impl<'t> Keep<'t> {
    fn of(node: Option<&'t Tree>, value: &Value<'_>, taken: Option<&[bool]>) -> Self {
        let Some(node) = node else { return if taken.is_some() { Keep::All } else { Keep::Nothing } };
        let is_meant = match taken {
            Some(taken) => node.pointer.is_some_and(|pointer| taken[pointer]),
            None => node.pointer.is_some(),
        };
        match (value, taken) {
            (_, Some(_)) if is_meant => Keep::Nothing,
            (_, None) if is_meant => Keep::All,
            (Value::Object(members), _) if !node.below.is_empty() && !members.is_empty() => Keep::Part(node),
            (Value::List(_), _) | (_, Some(_)) => Keep::All,
            (_, None) => Keep::Nothing,
        }
    }
}
