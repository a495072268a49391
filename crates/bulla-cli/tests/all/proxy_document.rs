//! `docs/proxy.md`: its table of entries is what a running redis-server and the proxy before it do, and its configurations are some.

use crate::proxied::Proxied;
use crate::support::{Place, bulla, exit};
use std::fmt::Write as _;

pub(crate) const DOCUMENT: &str = include_str!("../../../../docs/proxy.md");

/// What stands in backquotes.
pub(crate) fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The commands and entries of each row.
pub(crate) fn rows() -> Vec<(Vec<String>, Vec<String>)> {
    let section = DOCUMENT.split("\n## Entries by command\n").nth(1).expect("the document has the section");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|') && line.contains('`'));
    rows.map(|row| {
        let cells = row.trim_matches('|').split(" | ").collect::<Vec<_>>();
        assert_eq!(cells.len(), 3, "{row}");
        (quoted(cells[1]), quoted(cells[2]))
    })
    .collect()
}

#[test]
fn the_entries_of_every_command_family_are_those_of_the_table() {
    let rows = rows();
    assert!(rows.len() > 70, "{}", rows.len());
    let proxied = Proxied::start("", "[policy]\nscripts = \"record\"\npatterns = \"record\"");
    // All of them in one pipeline; the name that the client gives itself says of which row an entry is.
    let mut sent = String::new();
    for (number, (commands, _)) in rows.iter().enumerate() {
        let _ = write!(sent, "CLIENT SETNAME row-{number}\r\n{}\r\n", commands.join("\r\n"));
    }
    proxied.quit_after(&sent);

    let mut found = vec![Vec::new(); rows.len()];
    for (entry, payload) in proxied.entries() {
        let name = payload["claimed_name"].as_str().unwrap();
        let number = name.strip_prefix("row-").unwrap().parse::<usize>().unwrap();
        let words = ["operation", "location"].map(|field| entry[field].as_str().unwrap_or_default());
        let status = entry["status"].as_u64().filter(|status| *status > 0);
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        let words = [words[0], words[1], &status];
        let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        found[number].push(words.join(" "));
    }
    let differs = |((commands, entries), found): (&(Vec<String>, Vec<String>), &Vec<String>)| {
        (entries != found).then(|| format!("{commands:?}: {found:?}, and the document says {entries:?}"))
    };
    let different = rows.iter().zip(&found).filter_map(differs).collect::<Vec<_>>();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn its_configurations_are_some() {
    let place = Place::empty();
    let blocks = DOCUMENT.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for block in blocks {
        let directory = place.path("nowhere");
        // Where it stands in a list, it is indented.
        let block = block.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
        let file =
            place.write("proxy.toml", format!("{block}\n[log]\ndirectory = {directory:?}\n").as_bytes());
        let ran = bulla(["proxy", &file]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("nowhere"), "{block}\n{ran:?}");
        count += 1;
    }
    assert!(count >= 4, "{count}");
}
