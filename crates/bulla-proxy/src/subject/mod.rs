//! Whose data a key is.
//!
//! [`Rules`] are tried in their order. The [`Template`] of a rule says which keys it is about, and where in a key the data subject
//! stands; where none does, a [`Lesson`] says what in a value teaches it, and [`Learned`] knows it from then on. [`form`] is
//! how bytes become the text that an entry has.

pub mod form;
mod learned;
mod lesson;
mod recent;
mod rules;
mod template;
#[cfg(test)]
mod tests;

pub use learned::{KnownKey, Learned, Unkept};
pub use lesson::{Answer, JsonPath, Lesson, Taught, Words, says_gone, was_done};
pub use recent::Span;
pub use rules::{Rule, Rules, Said, Whose};
pub use template::{Key, MAX_TEMPLATE, Match, Template, TemplateError};
