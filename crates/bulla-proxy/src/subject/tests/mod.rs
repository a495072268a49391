//! What must hold of whose data a key is.

mod form;
mod learned;
mod lesson;
mod recent;
mod rules;
mod template;
