//! The `bulla` command.
fn main() {}
