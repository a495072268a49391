//! Replies as trees.

use crate::resp::{Kind, Reply};

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Text(String),
    Error(String),
    Number(i64),
    List(Vec<Tree>),
    Null,
}

impl Tree {
    pub(super) fn of(reply: &Reply) -> Tree {
        Tree::at(reply, 0)
    }

    fn at(reply: &Reply, index: usize) -> Tree {
        let node = &reply.nodes()[index];
        let text = || String::from_utf8_lossy(reply.text(node)).into_owned();
        match node.kind {
            Kind::Null => Tree::Null,
            Kind::Error => Tree::Error(text()),
            Kind::Integer => Tree::Number(reply.integer(node).unwrap()),
            _ if node.is_aggregate() => {
                Tree::List(reply.children(index).map(|(child, _)| Tree::at(reply, child)).collect())
            }
            _ => Tree::Text(text()),
        }
    }

    pub(super) fn list(&self) -> &[Tree] {
        match self {
            Tree::List(list) => list,
            other => panic!("{other:?} is no list"),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Tree::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }
}
