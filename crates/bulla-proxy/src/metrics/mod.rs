//! What the proxy counts, in the text format of Prometheus.
//!
//! Whoever counts says with each number what it is; what is told of numbers that change meanwhile is consistent in each of them: a
//! [`Distribution`] has as many values as are in its buckets.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

#[cfg(test)]
pub(crate) mod format;
#[cfg(test)]
mod tests;

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What [`exposition`] is, as HTTP says it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A number with its name. Several with one name and one kind, and with other values of the same labels, are one family.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Letters, digits and underscores, with its unit (`_seconds`, `_bytes`) and, of a counter, `_total` at the end.
    pub name: &'static str,
    /// What is counted, in one line. The first one of a family counts.
    pub help: &'static str,
    /// Names and values.
    pub labels: &'static [(&'static str, &'static str)],
    /// What it is at present.
    pub value: Value,
}

/// What a metric is at present.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// What never becomes less while the proxy runs.
    Counter(u64),
    /// What may become more and less.
    Gauge(f64),
    /// How long things took.
    Histogram(Distribution),
}

/// The upper bounds of buckets, and as they are written in seconds: 50 us, within which a store answers, to 10 s.
const BOUNDS: [(Duration, &str); 17] = [
    (Duration::from_micros(50), "0.00005"),
    (Duration::from_micros(100), "0.0001"),
    (Duration::from_micros(250), "0.00025"),
    (Duration::from_micros(500), "0.0005"),
    (Duration::from_millis(1), "0.001"),
    (Duration::from_micros(2500), "0.0025"),
    (Duration::from_millis(5), "0.005"),
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(25), "0.025"),
    (Duration::from_millis(50), "0.05"),
    (Duration::from_millis(100), "0.1"),
    (Duration::from_millis(250), "0.25"),
    (Duration::from_millis(500), "0.5"),
    (Duration::from_secs(1), "1"),
    (Duration::from_millis(2500), "2.5"),
    (Duration::from_secs(5), "5"),
    (Duration::from_secs(10), "10"),
];

/// How many buckets there are: one for what is beyond the last bound.
const BUCKETS: usize = BOUNDS.len() + 1;

/// Counts how long things take, without a lock. One for each thread that counts, and nothing is shared: [`Distribution::add`]
/// makes one of them.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// How many things took how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many took at most so long as the bound of this bucket, and longer than that of the one before it.
    buckets: [u64; BUCKETS],
    nanoseconds: u64,
}

impl Histogram {
    /// Counts one thing.
    pub fn observe(&self, took: Duration) {
        let bucket = BOUNDS.partition_point(|(bound, _)| *bound < took);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn distribution(&self) -> Distribution {
        Distribution {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed)),
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
        }
    }
}

impl Distribution {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Distribution) {
        for (own, others) in self.buckets.iter_mut().zip(other.buckets) {
            *own = own.wrapping_add(others);
        }
        self.nanoseconds = self.nanoseconds.wrapping_add(other.nanoseconds);
    }
}

/// All metrics, by family, in the order in which the families come.
pub fn exposition(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for (index, first) in metrics.iter().enumerate() {
        if metrics[..index].iter().any(|earlier| earlier.name == first.name) {
            continue;
        }
        let kind = match first.value {
            Value::Counter(_) => "counter",
            Value::Gauge(_) => "gauge",
            Value::Histogram(_) => "histogram",
        };
        let help = first.help.replace('\\', "\\\\").replace('\n', "\\n");
        put(&mut text, format_args!("# HELP {} {help}\n# TYPE {} {kind}\n", first.name, first.name));
        for metric in metrics[index..].iter().filter(|metric| metric.name == first.name) {
            metric.write(&mut text);
        }
    }
    text
}

impl Metric {
    fn write(&self, text: &mut String) {
        match &self.value {
            Value::Counter(count) => self.sample(text, "", None, count),
            Value::Gauge(value) if value.is_infinite() => {
                self.sample(text, "", None, &if *value > 0.0 { "+Inf" } else { "-Inf" });
            }
            Value::Gauge(value) => self.sample(text, "", None, value),
            Value::Histogram(distribution) => {
                let mut count = 0_u64;
                let bounds = BOUNDS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
                for (bound, within) in bounds.zip(distribution.buckets) {
                    count = count.wrapping_add(within);
                    self.sample(text, "_bucket", Some(bound), &count);
                }
                // As exact as it was counted, which a floating-point number would not be.
                let (seconds, rest) =
                    (distribution.nanoseconds / 1_000_000_000, distribution.nanoseconds % 1_000_000_000);
                self.sample(text, "_sum", None, &format_args!("{seconds}.{rest:09}"));
                self.sample(text, "_count", None, &count);
            }
        }
    }

    /// One line.
    fn sample(&self, text: &mut String, suffix: &str, bound: Option<&str>, value: &dyn Display) {
        put(text, format_args!("{}{suffix}", self.name));
        let labels = self.labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut before = '{';
        for (name, value) in labels {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            put(text, format_args!("{before}{name}=\"{value}\""));
            before = ',';
        }
        put(text, format_args!("{} {value}\n", if before == ',' { "}" } else { "" }));
    }
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = text.write_fmt(what);
}
