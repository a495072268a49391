//! What values taught a proxy, over an erasure from outside, and over a kill.

use crate::proxied::Proxied;
use crate::support::{eventually, exit, parse_lines};

const RULES: &str = "[[rules]]\nkey = \"key*\"\nhash_field = \"USR\"";

/// Of the last entries the key and whose data it is.
fn last(mut proxied: Proxied, count: usize) -> Vec<String> {
    proxied.end();
    let entries = parse_lines(&proxied.place.run("export", &[]).exits(exit::DONE).out);
    let told = entries[entries.len() - count..].iter().map(|entry| {
        let subject = entry["subject"].as_str().unwrap_or("nobody");
        format!("{} {subject}", entry["location"].as_str().unwrap_or("withheld"))
    });
    told.collect()
}

#[test]
fn whoever_is_erased_while_it_runs_is_known_of_no_key_from_then_on() {
    let mut proxied = Proxied::start("workers = 1", RULES);
    proxied.quit_after("HSET key1 USR ada\r\nHSET key2 USR bob\r\n");
    // The log knows them by their entries, which are there when the log says so.
    let erase = || proxied.place.run("erase", &["--subject", "ada", "--yes"]).code == exit::DONE;
    eventually("ada is known to the log, and erased", erase);
    proxied.quit_after("HGET key1 USR\r\nHGET key2 USR\r\n");
    proxied.end();
    proxied.start_again();
    proxied.quit_after("HGET key1 USR\r\nHGET key2 USR\r\n");
    assert_eq!(last(proxied, 4), ["key1 nobody", "key2 bob", "key1 nobody", "key2 bob"]);
}

#[test]
fn it_is_there_after_a_kill_once_it_was_written_and_an_erasure_meanwhile_takes_it() {
    let mut proxied = Proxied::start("workers = 1", RULES);
    proxied.quit_after("HSET key1 USR ada\r\nHSET key2 USR bob\r\n");
    // Both were taught before it is written for the first time, or the second comes with a longer file.
    let file = proxied.place.keys("learned");
    let one = 1536 + 36 + 21 + 8 + "adakey1".len() as u64 + 16;
    let both = || std::fs::metadata(&file).is_ok_and(|file| file.len() > one);
    eventually("both are written", both);
    proxied.kill();
    proxied.start_again();
    proxied.quit_after("HGET key1 USR\r\nHGET key2 USR\r\n");
    proxied.kill();
    proxied.place.run("erase", &["--subject", "bob", "--yes"]).exits(exit::DONE);
    proxied.start_again();
    proxied.quit_after("HGET key1 USR\r\nHGET key2 USR\r\n");
    assert_eq!(last(proxied, 2), ["key1 ada", "key2 nobody"]);
}
