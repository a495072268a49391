//! `bulla proxy CONFIG --dry-run FILE`: what would be recorded of a capture of `MONITOR`.

use crate::exit::{Exit, Failure};
use crate::output::{on_line, print, print_json};
use bulla::text::spelling::{agreeing, counted};
use bulla_proxy::config::Config;
use bulla_proxy::dry_run::{DryRun, Row, table};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// So many rows are in one table: memory does not grow with the capture.
const ROWS: usize = 1000;

/// Shows it, of a file or with `-` of standard input: a table, or with `json` an object a row.
pub(super) fn show(config: &Config, capture: &Path, json: bool) -> Result<Exit, Failure> {
    let failed = |error| Failure::io(format!("reading {}", capture.display()), &error);
    let mut input: Box<dyn BufRead> = match capture.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(capture).map_err(failed)?)),
    };
    let mut run = DryRun::new(config, &mut *input);
    let mut rows: Vec<Row> = Vec::new();
    while let Some(row) = run.next_row().map_err(failed)? {
        match row {
            Ok(row) if json => print_json(&row)?,
            Ok(row) => rows.push(row),
            Err(error) => note!("{}: {}", capture.display(), on_line(&error.to_string())),
        }
        if rows.len() == ROWS {
            print(&table(&rows))?;
            rows.clear();
        }
    }
    if !rows.is_empty() {
        print(&table(&rows))?;
    }
    let tally = run.tally();
    note!(
        "{}: {}, {} of them unmapped; {} refused, {} without data; {} more {} called by scripts",
        counted(tally.commands, "command"),
        counted(tally.entries, "entry"),
        tally.unmapped,
        tally.refused,
        tally.without_data,
        tally.unseen,
        agreeing(tally.unseen, "was", "were")
    );
    match tally.unreadable {
        0 => Ok(Exit::Done),
        count => {
            note!("{} {} no command", counted(count, "line"), agreeing(count, "says", "say"));
            Ok(Exit::SomeRefused)
        }
    }
}
