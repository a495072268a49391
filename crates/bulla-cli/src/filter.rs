//! Which entries a command is about: the same arguments wherever entries are chosen.

use bulla::Query;
use bulla::text::time::parse_time_or_date;

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Only entries")]
pub(crate) struct Filter {
    /// That concern this data subject
    #[arg(long, value_name = "S")]
    subject: Option<String>,

    /// Of this stream (entries that name none are of `default`)
    #[arg(long, value_name = "S")]
    stream: Option<String>,

    /// Of this operation
    #[arg(long, value_name = "OP")]
    operation: Option<String>,

    /// Of this processor; where it is pseudonymised, its pseudonym
    #[arg(long, value_name = "P")]
    processor: Option<String>,

    /// At this time or later
    #[arg(long, value_name = "T", value_parser = parse_time_or_date)]
    from: Option<i64>,

    /// Before this time
    #[arg(long, value_name = "T", value_parser = parse_time_or_date)]
    to: Option<i64>,

    /// With these numbers, both ends included; either may be left out
    #[arg(long, value_name = "FIRST..LAST", value_parser = parse_numbers)]
    entries: Option<Numbers>,

    /// With this number
    #[arg(long, value_name = "N", conflicts_with = "entries")]
    entry: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    first: Option<u64>,
    last: Option<u64>,
}

impl Filter {
    pub(crate) fn query(self) -> Query {
        let one = self.entry.map(|number| Numbers { first: Some(number), last: Some(number) });
        let numbers = self.entries.or(one);
        Query {
            subject: self.subject,
            stream: self.stream,
            operation: self.operation,
            processor: self.processor,
            from: self.from,
            to: self.to,
            first_entry: numbers.and_then(|numbers| numbers.first),
            last_entry: numbers.and_then(|numbers| numbers.last),
        }
    }
}

fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let number = |text: &str| match text.parse::<u64>() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(format!("`{text}` is not the number of an entry")),
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
