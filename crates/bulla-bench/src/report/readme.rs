//! The table in the README: some of the cases, in Markdown.

use super::format::{short, whole};
use super::table::cell;
use crate::contest::Case;
use crate::measure::figure;
use crate::outcome::Failure;
use crate::published::PUBLISHED;
use crate::results::Results;
use crate::suite::{BULLA, CONVENTIONAL, name};

/// How the table begins, by which it is found.
const HEAD: &str = "| workload | entries/s | bytes an entry (entropy) | vault, bytes a person | conventional: entries/s | bytes | published (other machines) |\n\
                    |---|---|---|---|---|---|---|\n";

/// Of each row the case, what it is called, and who published a figure for it.
const ROWS: [(&str, &str, &str); 9] = [
    (name::GDPR_OS, "`gdpr` (two words), erasure off, mode `os`", "thesis, 16+16 threads"),
    ("gdpr", "`gdpr` (two words)", ""),
    ("gdpr-50", "`gdpr-50` (fifty words)", ""),
    ("json", "`json`", ""),
    ("tenants", "`tenants`", ""),
    (name::TENANTS_COMMAND, "`tenants`, 100,000 entries, by the command", ""),
    (name::WEB_ONE, "`web`, one producer", "Loggr, 1 caller"),
    ("web-subjects", "`web-subjects`", ""),
    ("web-adversarial", "`web-adversarial`", "Loggr, 6 callers"),
];

/// The table of those cases that were measured.
pub(crate) fn table(results: &Results) -> String {
    let rows = ROWS.iter().filter_map(|&(name, about, by)| {
        let case = results.cases.iter().find(|case| case.name == name)?;
        row(case, about, by)
    });
    HEAD.to_owned() + &rows.collect::<String>()
}

/// Puts the table in the place of the one that a text has.
pub(crate) fn replace(text: &str, results: &Results) -> Result<String, Failure> {
    let (head, _) = HEAD.split_once('\n').ok_or("the table has no head")?;
    let start = text.find(head).ok_or_else(|| format!("there is no table that begins `{head}`"))?;
    let length = text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len);
    let end = start + length.sum::<usize>();
    Ok([&text[..start], &table(results), &text[end..]].concat())
}

fn row(case: &Case, about: &str, by: &str) -> Option<String> {
    let bulla = case.contender(BULLA)?;
    let of = |figure: &str| bulla.median(figure);
    let conventional = |figure: &str| case.contender(CONVENTIONAL).and_then(|run| run.median(figure));
    let other = match of(figure::GZIP) {
        Some(gzip) => format!("`gzip -1`: {}", short(gzip)),
        None => cell(conventional(figure::DISK), short),
    };
    let published = PUBLISHED
        .iter()
        .find(|published| published.by == by && about.contains(&format!("`{}`", published.workload)));
    let published = published.map_or(String::new(), |published| {
        let ratio = published.ratio_to_text.zip(of(figure::TEXT)).zip(of(figure::DISK));
        let ratio = ratio
            .map(|((theirs, text), disk)| format!(", ratio {} (here {})", short(theirs), short(text / disk)));
        format!("{by}: {}/s{}", whole(published.entries_per_second), ratio.unwrap_or_default())
    });
    Some(format!(
        "| {about} | {} | {}{} | {} | {} | {other} | {published} |\n",
        cell(of(figure::RATE), whole),
        cell(of(figure::DISK), short),
        cell(of(figure::BOUND), |bound| format!(" ({})", short(bound))),
        cell(of(figure::VAULT), short),
        cell(conventional(figure::RATE), whole),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The results that are committed.
    fn committed() -> Results {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/two-cores.json");
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    #[test]
    fn the_readme_has_the_table_of_what_is_committed() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            text.contains(&table(&committed())),
            "bulla-bench report benchmarks/two-cores.json --readme README.md"
        );
    }

    #[test]
    fn a_table_takes_the_place_of_another_and_nothing_else_changes() {
        let results = committed();
        let old = format!("before\n\n{HEAD}| old | 1 |\n| older | 2 |\n\nafter | with a bar\n");
        let new = replace(&old, &results).unwrap();
        assert_eq!(new, format!("before\n\n{}\nafter | with a bar\n", table(&results)));
        assert_eq!(replace(&new, &results).unwrap(), new);
        assert!(replace("no table", &results).is_err());
    }
}
