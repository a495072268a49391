//! What is said where nothing was found: a slip of the pen must not become "nothing is held on you".

use crate::output::on_line;
use bulla::AskedSubject;
use serde::Serialize;

/// Says that there was nothing, and what can be said of the data subjects that were asked for by name.
pub(crate) fn tell(subjects: &[AskedSubject]) {
    note!("0 entries");
    subjects.iter().for_each(tell_of);
}

/// Says what can be said of a data subject that was asked for by name.
pub(crate) fn tell_of(AskedSubject { subject, standing, .. }: &AskedSubject) {
    note!("data subject `{}` {standing}", on_line(subject));
}

/// The same of one of them, for a program.
#[derive(Serialize)]
pub(crate) struct SubjectJson<'a> {
    subject: &'a str,
    standing: &'static str,
    detail: String,
}

impl<'a> From<&'a AskedSubject> for SubjectJson<'a> {
    fn from(AskedSubject { subject, standing, .. }: &'a AskedSubject) -> Self {
        SubjectJson { subject, standing: standing.name(), detail: standing.to_string() }
    }
}
