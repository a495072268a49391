//! Which entries a command is about: the same arguments wherever entries are chosen.

use crate::exit::Failure;
use crate::times::Times;
use bulla::{FieldFilters, NumberField, Query, TextField, TextFilter};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const HEADING: &str = "Only entries that meet all of these, and of a field that is given again either";

/// The arguments that choose entries, for others that do not go with them.
pub(crate) const ARGUMENTS: [&str; 5] = [Fields::GROUP, "from", "to", "entries", "entry"];

#[derive(clap::Args, Debug)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Filter {
    #[command(flatten)]
    fields: Fields,

    #[command(flatten)]
    times: Times,

    /// With these numbers, both ends included, either left out; or --entry N
    #[arg(long, value_name = "FIRST..LAST", value_parser = parse_entries)]
    entries: Option<Numbers>,

    /// With this number
    #[arg(long, value_name = "N", conflicts_with = "entries", hide = true)]
    entry: Option<u64>,
}

impl Filter {
    /// What it asks for.
    ///
    /// # Errors
    /// Where a time is none.
    pub(crate) fn query(self) -> Result<Query, Failure> {
        let (from, to) = self.times.span()?;
        let one = self.entry.map(|number| Numbers { first: Some(number), last: Some(number) });
        let numbers = self.entries.or(one);
        Ok(Query {
            fields: self.fields.0,
            from,
            to,
            first_entry: numbers.and_then(|numbers| numbers.first),
            last_entry: numbers.and_then(|numbers| numbers.last),
        })
    }
}

/// An option for each field, from the library's table of them.
#[derive(Clone, Debug, Default)]
struct Fields(FieldFilters);

impl Fields {
    const GROUP: &str = "Fields";
    const PREFIX: &str = "prefix";
}

/// What stands for a field's value in the help, and what is said of the entries. In the help on a screen, which has to fit on one,
/// the others are named with the first of their kind; manual pages and completions have them all.
fn text_help(field: TextField) -> (&'static str, &'static str) {
    match field {
        TextField::Subject => ("S", "That concern this data subject"),
        TextField::Stream => ("S", "Of this stream (entries that name none are of `default`)"),
        TextField::Operation => ("OP", "Of this operation"),
        TextField::Processor => ("P", "Of this processor; of a field that is pseudonymised, its pseudonym"),
        TextField::Controller => ("C", "Of this controller"),
        TextField::Purpose => ("P", "For this purpose"),
        TextField::Actor => (
            "A",
            "By this actor; so --client, --controller, --location, --operation, --processor, --purpose, --stream",
        ),
        TextField::Client => ("C", "From this client"),
        TextField::Location => ("L", "At this location"),
    }
}

fn number_help(field: NumberField) -> &'static str {
    match field {
        NumberField::Status => "With this status: 404, 4xx, 400..499; so --duration, --size, --flags",
        NumberField::Duration => "That took so many nanoseconds: a number, or FIRST..LAST",
        NumberField::Size => "Of so many bytes: a number, or FIRST..LAST",
        NumberField::Flags => "With these flags: a number, or FIRST..LAST",
    }
}

impl clap::Args for Fields {
    fn group_id() -> Option<clap::Id> {
        Some(Fields::GROUP.into())
    }

    fn augment_args(command: Command) -> Command {
        let option = |name| {
            let named = [TextField::Subject.name(), TextField::Actor.name(), NumberField::Status.name()];
            let hidden = name != Fields::PREFIX && !named.contains(&name);
            Arg::new(name).long(name).action(ArgAction::Append).hide(hidden)
        };
        let mut arguments = Vec::new();
        for field in TextField::all() {
            let (value, help) = text_help(field);
            let parse = OsStringValueParser::new().try_map(move |text| parse_text(field, text));
            arguments.push(option(field.name()).value_name(value).help(help).value_parser(parse));
        }
        for field in NumberField::all() {
            let parse = |text: &str| parse_field_numbers(text);
            arguments.push(option(field.name()).value_name("N").help(number_help(field)).value_parser(parse));
        }
        let help = "Of which this field of text begins so: location=user_42/";
        let parse = OsStringValueParser::new().try_map(parse_prefix);
        arguments.push(option(Fields::PREFIX).value_name("FIELD=TEXT").help(help).value_parser(parse));
        let names = arguments.iter().map(|argument| argument.get_id().clone()).collect::<Vec<_>>();
        command.args(arguments).group(ArgGroup::new(Fields::GROUP).multiple(true).args(names))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Fields {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut fields = Fields::default();
        fields.update_from_arg_matches(matches)?;
        Ok(fields)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for field in TextField::all() {
            for value in matches.get_many::<Vec<u8>>(field.name()).into_iter().flatten() {
                self.0.add_text(field, TextFilter::Is(value.clone()));
            }
        }
        for field in NumberField::all() {
            for numbers in matches.get_many::<RangeInclusive<u64>>(field.name()).into_iter().flatten() {
                self.0.add_numbers(field, numbers.clone());
            }
        }
        for (field, prefix) in matches.get_many::<Prefix>(Fields::PREFIX).into_iter().flatten() {
            self.0.add_text(*field, TextFilter::BeginsWith(prefix.clone()));
        }
        Ok(())
    }
}

/// A field, and what it begins with.
type Prefix = (TextField, Vec<u8>);

/// A value that the field can have: but for locations, text.
fn parse_text(field: TextField, text: OsString) -> Result<Vec<u8>, String> {
    match (field, text.to_str()) {
        (TextField::Location, _) | (_, Some(_)) => Ok(text.into_vec()),
        (_, None) => Err(format!("it is not UTF-8, as every `{}` is", field.name())),
    }
}

fn parse_prefix(text: OsString) -> Result<Prefix, String> {
    let bytes = text.as_bytes();
    let names = || TextField::all().map(TextField::name).collect::<Vec<_>>().join(", ");
    let Some(end) = bytes.iter().position(|byte| *byte == b'=') else {
        return Err(format!("it is no FIELD=TEXT; the fields are {}", names()));
    };
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let Some(field) = TextField::named(&name) else {
        return Err(format!("`{name}` is no field of text; those are {}", names()));
    };
    Ok((field, parse_text(field, OsStr::from_bytes(&bytes[end + 1..]).to_owned())?))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    first: Option<u64>,
    last: Option<u64>,
}

fn parse_entries(text: &str) -> Result<Numbers, String> {
    parse_numbers(text, "the number of an entry")
}

/// A number, a range of them, or `4xx`, as the classes of statuses are called.
fn parse_field_numbers(text: &str) -> Result<RangeInclusive<u64>, String> {
    if let Some(class) =
        text.strip_suffix("xx").filter(|class| class.len() == 1).and_then(|class| class.parse::<u64>().ok())
    {
        return Ok(class * 100..=class * 100 + 99);
    }
    let Numbers { first, last } = parse_numbers(text, "a number")?;
    Ok(first.unwrap_or(0)..=last.unwrap_or(u64::MAX))
}

fn parse_numbers(text: &str, what: &str) -> Result<Numbers, String> {
    let number = |text: &str| match text.parse::<u64>() {
        Ok(number) if !text.starts_with('+') => Ok(Some(number)),
        _ => Err(format!("`{text}` is not {what}")),
    };
    let end = |text: &str| if text.is_empty() { Ok(None) } else { number(text) };
    let (first, last) = match text.split_once("..") {
        None => (number(text)?, number(text)?),
        Some(("", "")) => return Err("it names no number".to_owned()),
        Some((first, last)) => (end(first)?, end(last)?),
    };
    if first.zip(last).is_some_and(|(first, last)| first > last) {
        return Err("the first comes after the last".to_owned());
    }
    Ok(Numbers { first, last })
}
