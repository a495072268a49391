//! `--format`, `--map` and `--zone`: what becomes of a record.

use crate::exit::{Exit, Failure};
use bulla::text::spelling::nearest;
use bulla_ingest::convert::Conversion;
use bulla_ingest::format::Format;
use bulla_ingest::map::Map;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A map is read up to so many bytes: more is none that somebody wrote.
const LONGEST_MAP: u64 = 1 << 20;

/// What records are, and which part of one is which field of an entry.
#[derive(clap::Args, Debug)]
pub(super) struct Form {
    /// What the input is: jsonl, or what another program writes (docs/formats.md): raw, json,
    /// combined, common, apache-error, syslog, journal-json, journal-export, logfmt, csv,
    /// redis-monitor, postgres-csv
    #[arg(long, value_enum, hide_possible_values = true, default_value = "jsonl", conflicts_with = "map")]
    format: Input,

    /// Which part of a record is which field: a file (docs/maps.md), or one of `bulla maps`
    #[arg(long, value_name = "FILE|NAME")]
    map: Option<String>,

    /// The zone of a map's `local` clocks [default: this machine's]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    zone: Option<String>,
}

/// The formats that are asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Bulla's own JSON lines.
    Entries,
    Of(Format),
}

impl ValueEnum for Input {
    fn value_variants<'a>() -> &'a [Self] {
        const VARIANTS: [Input; Format::ALL.len() + 1] = {
            let mut variants = [Input::Entries; Format::ALL.len() + 1];
            let mut index = 0;
            while index < Format::ALL.len() {
                variants[index + 1] = Input::Of(Format::ALL[index]);
                index += 1;
            }
            variants
        };
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Input::Entries => {
                PossibleValue::new("jsonl").help("JSON lines with the names of an entry's fields")
            }
            Input::Of(format) => PossibleValue::new(format.name()).help(format.description()),
        })
    }
}

impl Form {
    /// What these say together.
    ///
    /// # Errors
    /// That there is no such map, or what is wrong with it, and where.
    pub(super) fn conversion(&self) -> Result<Arc<Conversion>, Failure> {
        let conversion = match (&self.map, self.format) {
            (Some(map), _) => Conversion::Mapped(Box::new(find(map)?)),
            (None, Input::Entries) => Conversion::Entries,
            (None, Input::Of(Format::Combined)) => Conversion::Combined,
            (None, Input::Of(format)) => Conversion::Mapped(Box::new(Map::for_format(format))),
        };
        self.in_zone(conversion).map(Arc::new)
    }

    /// The same, and `format` where none is named: what a source writes that is of one format.
    pub(super) fn conversion_of(&self, format: Format) -> Result<Arc<Conversion>, Failure> {
        match (&self.map, self.format) {
            (None, Input::Entries) => {
                self.in_zone(Conversion::Mapped(Box::new(Map::for_format(format)))).map(Arc::new)
            }
            _ => self.conversion(),
        }
    }

    fn in_zone(&self, mut conversion: Conversion) -> Result<Conversion, Failure> {
        match (&mut conversion, &self.zone) {
            (Conversion::Mapped(map), zone) if map.has_local_clocks() => {
                let (zone, from) = match zone {
                    Some(zone) => (zone.clone(), "--zone"),
                    None => own_zone(),
                };
                if !map.set_local_zone(&zone) {
                    return Err(Failure::usage(format!(
                        "{zone}, by {from}, is no time zone: give UTC, an offset such as --zone +01:00, or a name such as Europe/Berlin; \
                         nothing was appended"
                    )));
                }
            }
            (_, Some(_)) => {
                return Err(Failure::usage(
                    "--zone is for a map that says `local` of a clock's zone; here no time needs one",
                ));
            }
            (_, None) => {}
        }
        Ok(conversion)
    }
}

/// The map of this name, or in this file.
fn find(name: &str) -> Result<Map, Failure> {
    let is_path =
        name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml");
    if !is_path {
        return Map::ready(name).ok_or_else(|| unknown(name));
    }
    let failed = |error| Failure::io(format!("reading the map {name}"), &error);
    let mut text = String::new();
    let file = File::open(name).map_err(failed)?;
    file.take(LONGEST_MAP + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST_MAP {
        return Err(Failure::usage(format!("{name} has more than {LONGEST_MAP} bytes: it is no map")));
    }
    Map::parse(name, &text).map_err(|error| Failure::usage(error.to_string()))
}

/// That there is no such map.
pub(crate) fn unknown(name: &str) -> Failure {
    let known = Map::list_ready().iter().map(|ready| (ready.name, ready.name));
    let meant = nearest(name, known).map_or(":".to_owned(), |meant| format!("; did you mean `{meant}`?"));
    Failure::new(
        Exit::Usage,
        format!(
            "there is no map `{name}`{meant} `bulla maps` lists those that there are; a file of yours is named with a `/` in its path, or ends in `.toml`"
        ),
    )
}

/// The time zone of this machine, and what says so: UTC where nothing does, as everywhere on such a machine.
fn own_zone() -> (String, &'static str) {
    if let Some(zone) = std::env::var("TZ").ok().filter(|zone| !zone.is_empty()) {
        return (zone.trim_start_matches(':').to_owned(), "TZ");
    }
    let name = fs::read_link("/etc/localtime").ok().and_then(|target| {
        let target = target.to_str()?;
        target.split_once("zoneinfo/").map(|(_, name)| name.to_owned())
    });
    (name.unwrap_or_else(|| "UTC".to_owned()), "/etc/localtime")
}
