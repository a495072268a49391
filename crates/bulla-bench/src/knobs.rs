//! What a run can be told: the same for Bulla and for what it is compared with, as far as it concerns them.

use bulla::{Durability, Init, Options, Profile};
use bulla_proof::hash::HashId;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a run is long, unless told otherwise, in seconds.
const SECONDS: f64 = 20.0;
const MIB: usize = 1 << 20;

#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Knobs {
    /// Threads that append
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=28))]
    pub(crate) producers: u32,

    /// Threads that seal blocks, or compress and encrypt batches [default: the processors]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) writers: Option<usize>,

    /// How long entries are appended [default: 20]
    #[arg(long, value_name = "SECONDS", conflicts_with = "entries", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,

    /// How many entries are appended, by all producers together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) entries: Option<u64>,

    /// What entries are drawn from
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// When Bulla syncs
    #[arg(long, value_name = "MODE", default_value = "group")]
    pub(crate) durability: Mode,

    /// Whether data subjects have keys
    #[arg(long, value_name = "WHETHER", default_value = "on")]
    pub(crate) erasure: Switch,

    /// The hash of units and blocks
    #[arg(long, value_name = "HASH", default_value = "sha256")]
    pub(crate) hash: Hash,

    /// What Bulla takes more care of: speed or size
    #[arg(long, value_enum, default_value = "balanced")]
    pub(crate) profile: Effort,

    /// Bulla's compression level [default: the profile's]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) compression: Option<i32>,

    /// Mebibytes of memory that Bulla may take [default: Bulla's own]
    #[arg(long, value_name = "MIB")]
    pub(crate) memory: Option<usize>,

    /// Mebibytes after which a file is closed and the next begun
    #[arg(long, value_name = "MIB", default_value_t = 128)]
    pub(crate) segment_size: usize,

    /// Make entries while they are appended, not before
    #[arg(long)]
    pub(crate) in_flight: bool,

    /// Entries a second, for `latency` [default: half of what it can] and `slow` [default: 1000]
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub(crate) rate: Option<f64>,
}

/// What a producer appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Entries(u64),
    Time(Duration),
}

impl Amount {
    pub(crate) fn entries(self) -> Option<u64> {
        match self {
            Amount::Entries(entries) => Some(entries),
            Amount::Time(_) => None,
        }
    }
}

impl Knobs {
    /// What all producers append together.
    pub(crate) fn amount(&self) -> Amount {
        match self.entries {
            Some(entries) => Amount::Entries(entries),
            None => Amount::Time(Duration::from_secs_f64(self.seconds.unwrap_or(SECONDS))),
        }
    }

    /// What one of the producers appends.
    pub(crate) fn share(&self) -> Amount {
        match self.amount() {
            Amount::Entries(entries) => Amount::Entries(entries.div_ceil(self.producers.into())),
            time @ Amount::Time(_) => time,
        }
    }

    pub(crate) fn writer_threads(&self) -> usize {
        self.writers.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from).min(16))
    }

    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment_size.saturating_mul(MIB)
    }

    pub(crate) fn init(&self) -> Init {
        let hash = match self.hash {
            Hash::Sha256 => HashId::Sha256,
            Hash::Sha3 => HashId::Sha3_256,
        };
        Init::default().erasure(self.erasure == Switch::On).hash(hash)
    }

    pub(crate) fn options(&self) -> Options {
        let durability = match self.durability {
            Mode::Group => Durability::Group,
            Mode::Interval => Durability::Interval(Duration::from_millis(100)),
            Mode::Os => Durability::Os,
        };
        let mut options = Options::default()
            .durability(durability)
            .segment_size(self.segment_bytes())
            // A medium that stalls makes a run slow, not void.
            .append_timeout(Duration::from_secs(120));
        if let Some(writers) = self.writers {
            options = options.writers(writers);
        }
        options = options.profile(match self.profile {
            Effort::Fast => Profile::Fast,
            Effort::Balanced => Profile::Balanced,
            Effort::Max => Profile::Max,
        });
        if let Some(level) = self.compression {
            options = options.compression(level);
        }
        if let Some(memory) = self.memory {
            options = options.memory(memory.saturating_mul(MIB));
        }
        options
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Before entries are acknowledged
    Group,
    /// Every 100 ms
    Interval,
    /// At rotation and at close
    Os,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effort {
    Fast,
    Balanced,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Hash {
    #[value(name = "sha256")]
    #[serde(rename = "sha256")]
    Sha256,
    #[value(name = "sha3-256")]
    #[serde(rename = "sha3-256")]
    Sha3,
}

fn threads(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|threads| (1..=256).contains(threads)).ok_or("from 1 to 256".to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| (0.001..=1e9).contains(number)).ok_or("from 0.001 to 1e9".to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        knobs: Knobs,
    }

    /// The defaults, for so many entries.
    pub(crate) fn knobs(entries: u64) -> Knobs {
        parse(&["--entries", &entries.to_string()])
    }

    fn parse(arguments: &[&str]) -> Knobs {
        Arguments::try_parse_from([&["test"], arguments].concat())
            .unwrap_or_else(|error| panic!("{error}"))
            .knobs
    }

    #[test]
    fn producers_share_the_entries() {
        let three = parse(&["--entries", "10", "--producers", "3"]);
        assert_eq!((three.amount(), three.share()), (Amount::Entries(10), Amount::Entries(4)));
        assert_eq!(parse(&["--seconds", "0.5"]).share(), Amount::Time(Duration::from_millis(500)));
        assert_eq!(parse(&[]).share(), Amount::Time(Duration::from_secs(20)));
    }
}
