//! A span of time: the same arguments wherever something is chosen by its time.

use crate::exit::Failure;
use bulla::environment::Environment;
use bulla::text::zone::{Zone, parse_moment};

#[derive(clap::Args, Debug)]
pub(crate) struct Times {
    /// At this time or later: 2026-11-03, 2026-11-03T14:00, yesterday, today
    #[arg(long, value_name = "T")]
    from: Option<String>,

    /// Before this time
    #[arg(long, value_name = "T")]
    to: Option<String>,

    /// Of times without an offset: +01:00, Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = Zone::parse, allow_hyphen_values = true)]
    zone: Option<Zone>,
}

impl Times {
    /// Both ends, in nanoseconds since the Unix epoch. What is relative is so to one moment.
    pub(crate) fn span(&self) -> Result<(Option<i64>, Option<i64>), Failure> {
        let now = Environment::default().clock.now();
        let zone = self.zone.clone().unwrap_or(Zone::UTC);
        let read = |option: &str, text: &Option<String>| match text.as_deref() {
            None => Ok(None),
            Some(text) => parse_moment(text, &zone, now)
                .map(Some)
                .map_err(|error| Failure::usage(format!("{option} {text}: {error}"))),
        };
        let (from, to) = (read("--from", &self.from)?, read("--to", &self.to)?);
        match from.zip(to).is_some_and(|(from, to)| from >= to) {
            true => Err(Failure::usage("--to is not after --from: no time lies between them")),
            false => Ok((from, to)),
        }
    }
}
