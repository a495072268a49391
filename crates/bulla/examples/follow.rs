//! Follows the log in `./audit` and prints who reads what, until a second passes in which nothing was.
//!
//! `cargo run -p bulla --example follow`, after (or beside) the example `append`.
#![allow(clippy::disallowed_methods, reason = "a program of its own")]

use bulla::{Query, Reader, default_keys};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = Path::new("audit");
    let reader = Reader::open_with_keys(directory, default_keys(directory))?;
    let mut follow = reader.follow(&Query::new().operation("read"))?;
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_secs(1) {
        let polled = follow.poll(|followed| {
            let (entry, pending) = (&followed.entry, if followed.pending { " (not signed yet)" } else { "" });
            let location = String::from_utf8_lossy(entry.location.unwrap_or_default());
            println!("{}: {} by {}{pending}", followed.number, location, entry.actor.unwrap_or("nobody"));
            last = Instant::now();
            Ok(())
        })?;
        if let Some(number) = polled.lost_from {
            println!("a crash took what was shown as pending from {number} on");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
