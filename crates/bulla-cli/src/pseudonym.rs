//! `bulla pseudonym`.

use crate::exit::{Exit, Failure};
use crate::log_paths::LogPaths;
use crate::output::{on_line, print, print_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulla::Pseudonyms;
use bulla::text::LineReader;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Print the pseudonyms that names have in a field, or find the name behind one.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "bulla pseudonym DIR FIELD NAME...\n       \
                      bulla pseudonym DIR FIELD --resolve PSEUDONYM [FILE]",
    after_help = "\
It takes the vault (of a log without erasure, pseudonym.key): nobody else can tell. A pseudonym
cannot be undone, only guessed: --resolve tries the candidates, and exits with 5 where it is of none
of them. Filters take the pseudonym that a name has, as no other value is in the log.

Examples:
  bulla pseudonym audit actor alice bob
  bulla export audit --processor \"$(bulla pseudonym audit processor 'Example Ltd' | cut -c -34)\"
  bulla pseudonym audit actor --resolve p-4c75c78bd0a93d68e641ad76bf0246d7 employees.txt"
)]
pub(crate) struct Pseudonym {
    #[command(flatten)]
    place: LogPaths,

    /// The field, which has the rule `pseudonymise`
    #[arg(value_name = "FIELD")]
    field: String,

    /// Names as they are appended; with --resolve, a file of them [default: standard input]
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// Print the one of the candidates, one a line, whose pseudonym this is
    #[arg(long, value_name = "PSEUDONYM")]
    resolve: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Pseudonym {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match &self.resolve {
            Some(pseudonym) => self.find(pseudonym),
            None => self.make(),
        }
    }

    fn open(&self) -> Result<Pseudonyms, Failure> {
        Ok(Pseudonyms::open(self.place.directory(), self.place.keys(), &self.field)?)
    }

    fn make(&self) -> Result<Exit, Failure> {
        if self.names.is_empty() {
            return Err(Failure::usage("name whose pseudonyms to print, or one to find with --resolve"));
        }
        let pseudonyms = self.open()?;
        let made = self.names.iter().map(|name| Made::new(&pseudonyms, name.as_bytes())).collect::<Vec<_>>();
        match self.json {
            true => print_json(&serde_json::json!({ "field": self.field, "pseudonyms": made })),
            false => print(&made.iter().map(Made::line).collect::<String>()),
        }?;
        Ok(Exit::Done)
    }

    fn find(&self, pseudonym: &str) -> Result<Exit, Failure> {
        let wanted = bulla::Pseudonym::parse(pseudonym)
            .map_err(|error| Failure::usage(format!("--resolve {pseudonym}: {error}")))?;
        let path = match &self.names[..] {
            [] => Path::new("-"),
            [path] => Path::new(path),
            _ => return Err(Failure::usage("--resolve takes one file of names, or standard input")),
        };
        let pseudonyms = self.open()?;
        let source: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(io::stdin()),
            _ => Box::new(File::open(path).map_err(|error| Failure::io(path.display(), &error))?),
        };
        let found = first(source, |name| pseudonyms.of(name) == wanted);
        let found = found.map_err(|error| Failure::io(format!("reading {}", path.display()), &error))?;
        let Some(name) = found else {
            let message = format!("{pseudonym} in `{}` is of none of these names", self.field);
            return Err(Failure::new(Exit::Refused, message));
        };
        let made = Made::new(&pseudonyms, &name);
        match self.json {
            true => print_json(&serde_json::json!({ "field": self.field, "pseudonyms": [made] })),
            false => print(&format!("{}\n", made.name())),
        }?;
        Ok(Exit::Done)
    }
}

/// The longest value that a field can have, and the `\r` of a line end of Windows.
const LONGEST: usize = (64 << 10) + 1;

/// The first of the names, one a line, that is the one. A line that is longer than any value is none.
fn first(names: impl Read, is: impl Fn(&[u8]) -> bool) -> io::Result<Option<Vec<u8>>> {
    let mut lines = LineReader::with_limit(names, LONGEST);
    loop {
        match lines.next_line() {
            Ok(Some(line)) => {
                let name = line.text.map(|text| text.strip_suffix(b"\r").unwrap_or(text));
                if let Some(found) = name.ok().filter(|name| is(name)) {
                    return Ok(Some(found.to_vec()));
                }
            }
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A name and its pseudonym. A name that is not UTF-8, as a location may be, stands in base64.
#[derive(Serialize)]
struct Made {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_base64: Option<String>,
    pseudonym: String,
}

impl Made {
    fn new(pseudonyms: &Pseudonyms, name: &[u8]) -> Self {
        let text = std::str::from_utf8(name).ok().map(str::to_owned);
        let name_base64 = text.is_none().then(|| STANDARD.encode(name));
        Made { name: text, name_base64, pseudonym: pseudonyms.of(name).to_string() }
    }

    fn name(&self) -> String {
        on_line(self.name.as_ref().or(self.name_base64.as_ref()).map_or("", String::as_str))
    }

    fn line(&self) -> String {
        format!("{}  {}\n", self.pseudonym, self.name())
    }
}
