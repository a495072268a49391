//! From a record to an entry, or a reason.

use crate::format::access::{self, Layout};
use crate::format::{Parsed, Parser};
use crate::framing::{Framing, FramingKind, Limits};
use crate::map::{Context, Explanation, Map};
use bulla_text::{ParsedEntry, jsonl};
use std::sync::Arc;

/// What becomes of the records of a source.
#[derive(Debug)]
pub enum Conversion {
    /// Lines of JSON with the names of an entry's fields.
    Entries,
    /// The access log, as it is without a map.
    Combined,
    /// What a map says.
    Mapped(Box<Map>),
}

/// What became of a record.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart as soon as it is made")]
pub enum Converted {
    /// An entry, within every limit.
    Entry(ParsedEntry),
    /// Nothing: it was a header.
    Nothing,
    /// It was refused, for this reason.
    Refused(String),
}

/// What would become of a record, and why.
#[derive(Debug)]
pub enum Explained {
    /// What its map makes of it.
    ByMap(Explanation),
    /// What becomes of it where there is no map, or it is a header.
    Whole(Converted),
}

/// Converts the records of one source.
#[derive(Debug)]
pub struct Converter {
    conversion: Arc<Conversion>,
    parser: Option<Parser>,
}

impl Converter {
    /// A converter that has seen no record yet.
    pub fn new(conversion: &Arc<Conversion>) -> Self {
        let parser = match &**conversion {
            Conversion::Mapped(map) => Some(Parser::new(map.format(), map.format_options())),
            Conversion::Entries | Conversion::Combined => None,
        };
        Converter { conversion: conversion.clone(), parser }
    }

    /// How the records of the source are told apart.
    pub fn framing_kind(&self) -> FramingKind {
        self.parser.as_ref().map_or(FramingKind::Lines, Parser::framing)
    }

    /// What cuts the source into records.
    pub fn framing(&self) -> Framing {
        Framing::new(self.framing_kind(), Limits::default())
    }

    /// Whether the first record says what the others hold.
    pub fn has_header(&self) -> bool {
        self.parser.as_ref().is_some_and(Parser::has_header)
    }

    /// Converts a record, `now`, in nanoseconds since the epoch: times that have no year are near it.
    pub fn convert(&mut self, record: &[u8], now: i64) -> Converted {
        let entry = match (&*self.conversion, &mut self.parser) {
            (Conversion::Mapped(map), Some(parser)) => {
                let context = Context { now };
                match parser.parse(record) {
                    Ok(Parsed::Header) => return Converted::Nothing,
                    Ok(Parsed::Fields(fields)) => {
                        map.apply(record, &fields, &context).map_err(|error| error.to_string())
                    }
                    Err(reason) => map.unparsed(record, &context).ok_or_else(|| reason.to_string()),
                }
            }
            (Conversion::Combined, _) => {
                access::parse_entry(record, Layout::Combined).map_err(|reason| reason.to_string())
            }
            _ => jsonl::parse_line(record).map_err(|reason| reason.to_string()),
        };
        entry.map_or_else(Converted::Refused, Converted::Entry)
    }

    /// What would become of a record; arguments as of [`Converter::convert`].
    pub fn explain(&mut self, record: &[u8], now: i64) -> Explained {
        let (Conversion::Mapped(map), Some(parser)) = (&*self.conversion, &mut self.parser) else {
            return Explained::Whole(self.convert(record, now));
        };
        let context = Context { now };
        match parser.parse(record) {
            Ok(Parsed::Header) => Explained::Whole(Converted::Nothing),
            Ok(Parsed::Fields(fields)) => Explained::ByMap(map.explain(record, &fields, &context)),
            Err(reason) => Explained::ByMap(map.explain_unparsed(record, &reason, &context)),
        }
    }
}
