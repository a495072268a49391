//! Results for people: tables and plots.

mod format;
mod plots;
mod proxied;
mod svg;
mod table;
mod tables;

pub(crate) use plots::plot;
pub(crate) use tables::text;
