//! What must hold of whose data a key is.

mod form;
mod learned;
mod lesson;
mod rules;
mod template;
