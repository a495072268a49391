//! What it costs to find out whose data a key is: nanoseconds a key, with 20 rules. The best of many short rounds counts: one
//! in which nothing else ran on the processor.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use bulla_proxy::subject::{Key, Learned, Lesson, Rule, Rules, Span, Template};
use std::hint::black_box;
use std::time::Instant;

const KEYS: u32 = 2_000;
const ROUNDS: u32 = 500;

fn main() -> Result<(), String> {
    let mut names = (0..19).map(|index| format!("kind{index}:{{subject}}:*")).collect::<Vec<_>>();
    names.push("session:{}:{subject}".to_owned());
    let rules = |lesson: Option<Lesson>| {
        let mut rules = Vec::new();
        for name in &names {
            let template = Template::parse(name, ':').map_err(|error| error.what)?;
            rules.push(Rule { template, databases: Vec::new(), lesson: None });
        }
        if let Some(lesson) = lesson {
            let template = Template::parse("key*", ':').map_err(|error| error.what)?;
            rules[19] = Rule { template, databases: Vec::new(), lesson: Some(lesson) };
        }
        Ok::<_, String>(Rules::new(rules, None, [0; 32]))
    };
    let (by_key, by_value) = (rules(None)?, rules(Some(Lesson::HashField("USR".to_owned())))?);
    println!("{:<34} {:>7}", "a key", "ns");
    for (what, rules, key) in [
        ("of the first rule", &by_key, "kind0:user"),
        ("of the tenth", &by_key, "kind9:user"),
        ("of the last", &by_key, "session:0123456789abcdef:user"),
        ("of none", &by_key, "something:else:user"),
        ("of none, but for its end", &by_key, "kind18:user"),
        ("that was learned, of the last", &by_value, "key"),
    ] {
        println!("{what:<34} {:>7.1}", measure(rules, key));
    }
    Ok(())
}

/// Keys that begin so, of as many people.
fn measure(rules: &Rules, beginning: &str) -> f64 {
    let end = if beginning.starts_with("kind18") { "" } else { ":email" };
    let end = if beginning.starts_with("session") { "" } else { end };
    let keys = (0..KEYS).map(|index| format!("{beginning}{index:08}{end}")).collect::<Vec<_>>();
    let learned = Learned::new(16 << 20);
    for key in &keys {
        learned.teach(0, key.as_bytes(), "somebody", Span { came: 1, answered: 1, connection: 1 });
    }
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for key in &keys {
            black_box(rules.whose(0, black_box(Key { bytes: key.as_bytes(), whole: true }), &learned));
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(KEYS));
    }
    best
}
