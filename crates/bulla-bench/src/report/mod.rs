//! Results for people: tables and plots.

mod format;
mod languages;
mod plots;
mod proxied;
mod readme;
mod svg;
mod table;
mod tables;

pub(crate) use plots::plot;
pub(crate) use readme::replace as replace_in_readme;
pub(crate) use tables::text;
