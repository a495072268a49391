//! Which name was meant where there is none of a spelling; and counts of things, as a person writes them.

/// No name is longer than this, in bytes.
const LONGEST: usize = 128;

/// The name of those known that was probably meant: of what is spelled nearly so, what it stands for. Small and capital letters are the
/// same, and so are `-` and `_`.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    if wrong.len() > LONGEST {
        return None;
    }
    let spelled = wrong.replace('-', "_").to_ascii_lowercase();
    let near = known.map(|(spelling, name)| (distance(&spelled, spelling), name)).min()?;
    (near.0 <= 1 + wrong.len() / 4).then_some(near.1)
}

/// So many things, of which one is called `noun`: `1 entry`, `2 entries`.
///
/// ```
/// use bulla_text::spelling::counted;
/// assert_eq!([counted(0, "frame"), counted(1, "entry"), counted(2, "entry")], ["0 frames", "1 entry", "2 entries"]);
/// ```
pub fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// `one` of one thing, `more` of none or several.
///
/// ```
/// use bulla_text::spelling::agreeing;
/// assert_eq!([agreeing(1, "was", "were"), agreeing(2, "was", "were")], ["was", "were"]);
/// ```
pub fn agreeing<'w>(count: u64, one: &'w str, more: &'w str) -> &'w str {
    if count == 1 { one } else { more }
}

/// How many characters have to be put in, taken out or replaced to make one of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other = other.chars().collect::<Vec<_>>();
    let mut row = (0..=other.len()).collect::<Vec<_>>();
    for (index, c) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, d) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(c != *d);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant_and_none_where_all_are_far() {
        let known = ["mode", "metrics", "default_subject"];
        let meant = |wrong: &str| nearest(wrong, known.into_iter().map(|name| (name, name)));
        for (wrong, expected) in [
            ("mod", Some("mode")),
            ("mdoe", Some("mode")),
            ("Default-Subjekt", Some("default_subject")),
            ("metric", Some("metrics")),
            ("", None),
            ("colour", None),
            (&"mode".repeat(100), None),
        ] {
            assert_eq!(meant(wrong), expected, "{wrong}");
        }
    }
}
