//! `bulla maps`.

use crate::append::unknown_map;
use crate::exit::{Exit, Failure};
use crate::output::{print, print_json};
use bulla_ingest::map::{Map, Ready};
use serde::Serialize;

/// List the maps of other programs' logs that come with Bulla, or print one.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
`bulla append DIR --map NAME` reads what a map is for. One that does not fit is printed into a file,
changed there (docs/maps.md) and named by its path; `--try` shows what it makes of a log.

Examples:
  bulla maps
  bulla maps sshd > my-sshd.toml")]
pub(crate) struct Maps {
    /// Print this one, as it is
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Maps {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let all = Map::list_ready();
        match self.name {
            Some(name) => {
                let ready = all.iter().find(|ready| ready.name == name).ok_or_else(|| unknown_map(&name))?;
                if self.json { print_json(&Told::new(ready).with(ready.toml)) } else { print(ready.toml) }?;
            }
            None if self.json => print_json(&Listed { maps: all.iter().map(Told::new).collect() })?,
            None => print(&to_text(&all.iter().map(Told::new).collect::<Vec<_>>()))?,
        }
        Ok(Exit::Done)
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    maps: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    format: &'a str,
    about: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    toml: Option<&'a str>,
}

impl<'a> Told<'a> {
    fn new(ready: &'a Ready) -> Self {
        let format = Map::ready(ready.name).map_or("", |map| map.format().name());
        Told { name: ready.name, format, about: ready.description, toml: None }
    }

    fn with(self, toml: &'a str) -> Self {
        Told { toml: Some(toml), ..self }
    }
}

fn to_text(maps: &[Told<'_>]) -> String {
    let width = |of: fn(&Told<'_>) -> usize| maps.iter().map(of).max().unwrap_or_default();
    let (name, format) = (width(|map| map.name.len()), width(|map| map.format.len()));
    let line = |map: &Told<'_>| format!("{:<name$}  {:<format$}  {}\n", map.name, map.format, map.about);
    maps.iter().map(line).collect()
}
