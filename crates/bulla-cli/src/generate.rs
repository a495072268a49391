//! `bulla generate`.

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{print, print_json};
use bulla::text::jsonl;
use bulla_workload::{Workload, text};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::{Value, json};
use std::io::{self, Write};

/// What is written at once.
const BUFFER: usize = 256 * 1024;

/// Print a workload's entries as JSON lines, as `append` reads them.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "\
bulla generate <WORKLOAD> --entries <N> [--seed <S>]
       bulla generate --describe [--json]",
    after_help = "\
The same workload and seed give the same entries, in every version; times begin with 2026.

Example:
  bulla generate web-subjects --entries 100000 | bulla append audit"
)]
pub(crate) struct Generate {
    /// What kind of entries
    #[arg(value_name = "WORKLOAD", value_enum, required_unless_present = "describe")]
    workload: Option<Choice>,

    /// How many
    #[arg(long, value_name = "N", required_unless_present = "describe")]
    entries: Option<u64>,

    /// What they are drawn from; another number gives other entries [default: 1]
    #[arg(long, value_name = "S", default_value_t = 1, hide_default_value = true)]
    seed: u64,

    /// Print a table of the workloads instead: an entry's entropy, and its length as plain text
    #[arg(long, conflicts_with_all = ["workload", "entries"])]
    describe: bool,

    /// Print the table as one JSON object; entries are one a line in any case
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
struct Choice(Workload);

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const { &choices() }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

const fn choices() -> [Choice; Workload::ALL.len()] {
    let mut choices = [Choice(Workload::Gdpr); Workload::ALL.len()];
    let mut place = 0;
    while place < choices.len() {
        choices[place] = Choice(Workload::ALL[place]);
        place += 1;
    }
    choices
}

impl Generate {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (Some(Choice(workload)), Some(entries)) = (self.workload, self.entries) else {
            if self.json { print_json(&table_json()) } else { print(&table()) }?;
            return Ok(Exit::Done);
        };
        interrupt::exit_at_once()?;
        match write(workload, self.seed, entries, &mut io::stdout().lock()) {
            // Whoever read the output has seen enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::io("writing the entries", &error))
            }
            _ => Ok(Exit::Done),
        }
    }
}

fn write(workload: Workload, seed: u64, entries: u64, out: &mut impl Write) -> io::Result<()> {
    let mut generator = workload.generator(seed, 0);
    let mut lines = Vec::with_capacity(BUFFER + BUFFER / 8);
    for _ in 0..entries {
        jsonl::write_unnumbered(&generator.next_entry(), &mut lines);
        if lines.len() >= BUFFER {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)?;
    out.flush()
}

fn table() -> String {
    let mut table = format!("{:<16} {:>8} {:>8}  what it is\n", "workload", "entropy", "text");
    for workload in Workload::ALL {
        table += &format!(
            "{workload:<16} {:>8.2} {:>8.1}  {}\n",
            workload.entropy_per_entry(),
            mean_text_length(workload),
            workload.about()
        );
    }
    table + "Bytes an entry, on average; text with sequence numbers of nine digits.\n"
}

fn table_json() -> Value {
    let workloads = Workload::ALL.map(|workload| {
        json!({
            "workload": workload.name(),
            "entropy": workload.entropy_per_entry(),
            "text": mean_text_length(workload),
            "about": workload.about(),
        })
    });
    json!({ "workloads": workloads })
}

/// Of ten thousand entries.
fn mean_text_length(workload: Workload) -> f64 {
    let mut generator = workload.generator(1, 0);
    let numbers = 100_000_000..100_010_000;
    let length = numbers.map(|number| text::length(&generator.next_entry(), number)).sum::<usize>();
    length as f64 / 10_000.0
}
