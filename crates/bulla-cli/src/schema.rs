//! `bulla schema`.

use crate::exit::{Exit, Failure};
use crate::output::print;
use bulla::text::schema;

/// Print a JSON Schema of the lines that `append` reads.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
It is of draft 2020-12, for whoever writes the program whose entries go into a log: names, types,
units and limits of each field. docs/input.md says the same to people.

Example:
  bulla schema > entry.schema.json")]
pub(crate) struct Schema {
    /// The same: it is JSON in any case
    #[arg(long)]
    json: bool,
}

impl Schema {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let Schema { json: _ } = self;
        print(&format!("{:#}\n", schema::of_line()))?;
        Ok(Exit::Done)
    }
}
