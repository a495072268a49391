//! What a plugin asks a person, and who answers.

use zeroize::Zeroizing;

/// Answers what an age plugin asks. Everything that is passed in was made fit for a terminal; it is the plugin's word
/// all the same, so say which one asks.
pub trait Prompt: Send + Sync {
    /// Shows a message: "touch the key".
    fn show(&self, plugin: &str, message: &str);
    /// Whether a person says `yes`; `None` where nobody can be asked.
    fn confirm(&self, plugin: &str, question: &str, yes: &str, no: Option<&str>) -> Option<bool>;
    /// What a person types, where everybody may see it; `None` where nobody can be asked.
    fn ask(&self, plugin: &str, question: &str) -> Option<String>;
    /// What a person types, unseen; `None` where nobody can be asked.
    fn ask_secret(&self, plugin: &str, question: &str) -> Option<Zeroizing<String>>;
}

/// Nobody is there to be asked: messages are dropped, questions refused.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Prompt for Nobody {
    fn show(&self, _: &str, _: &str) {}

    fn confirm(&self, _: &str, _: &str, _: &str, _: Option<&str>) -> Option<bool> {
        None
    }

    fn ask(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn ask_secret(&self, _: &str, _: &str) -> Option<Zeroizing<String>> {
        None
    }
}
