//! Rules, in their order.

use crate::subject::Match;
use crate::subject::{
    Answer, JsonPath, Key, Learned, Lesson, Rule, Rules, Said, Span, Template, Whose, form,
};
use bulla_proof::entry::MAX_STRING;
use proptest::prelude::*;

const KEY: [u8; 32] = [7; 32];

fn rule(template: &str, databases: &[u32], lesson: Option<Lesson>) -> Rule {
    Rule { template: Template::parse(template, ':').unwrap(), databases: databases.to_vec(), lesson }
}

fn hash_field() -> Option<Lesson> {
    Some(Lesson::HashField("USR".to_owned()))
}

fn whose<'a>(rules: &'a Rules, database: u32, key: &'a str, learned: &Learned) -> Whose<'a> {
    rules.whose(database, Key { bytes: key.as_bytes(), whole: true }, learned)
}

fn subject(text: &str) -> Whose<'_> {
    Whose::Subject(text.into())
}

/// What one client does alone.
const ALONE: Span = Span { came: 1, answered: 1, connection: 1 };

#[test]
fn the_first_rule_that_is_about_a_key_says_whose_it_is() {
    let learned = Learned::new(1 << 20);
    let rules = vec![
        rule("user:{}:by:{subject}", &[], None),
        rule("user:{subject}*", &[0, 3], None),
        rule("{}:{subject}*", &[1], None),
    ];
    let unmapped = Rules::new(rules.clone(), None, KEY);
    assert_eq!(whose(&unmapped, 0, "user:1:by:2", &learned), subject("2"));
    assert_eq!(whose(&unmapped, 0, "user:1:of:2", &learned), subject("1"));
    assert_eq!(whose(&unmapped, 3, "user:1", &learned), subject("1"));
    assert_eq!(whose(&unmapped, 2, "user:1", &learned), Whose::Unmapped);
    assert_eq!(whose(&unmapped, 1, "order:9", &learned), subject("9"));
    let default = Rules::new(rules, Some("somebody".to_owned()), KEY);
    assert_eq!(whose(&default, 0, "order:9", &learned), Whose::Default("somebody"));
    assert!(!default.learns() && !default.is_empty());
    assert!(!format!("{default:?}").contains("7, 7"), "the key of the digests is not shown");
}

#[test]
fn what_a_command_teaches_is_known_from_then_on() {
    let learned = Learned::new(1 << 20);
    let path = Some(Lesson::Json(JsonPath::parse("$.user.id").unwrap()));
    let rules = vec![rule("own:{subject}", &[], None), rule("*", &[], hash_field()), rule("*", &[0], path)];
    let rules = Rules::new(rules, None, KEY);
    let learn = |database, command: &str, answer| {
        let words = command.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let name = command.split(' ').next().unwrap().to_ascii_lowercase();
        let mut said = Said::default();
        rules.learn(database, (&name, 1, &words), answer, (&learned, ALONE), &mut said);
        assert!(!said.contested);
    };
    assert!(rules.learns());
    assert_eq!(whose(&rules, 0, "key1", &learned), Whose::Unmapped);
    learn(0, "HSET key1 USR 100%", Answer::Integer(1));
    assert_eq!(whose(&rules, 0, "key1", &learned), subject("100%25"), "in the form of all subjects");
    learn(0, "HSETNX key1 USR bob", Answer::Integer(0));
    learn(0, "HSET key1 A b", Answer::Integer(1));
    assert_eq!(whose(&rules, 0, "key1", &learned), subject("100%25"), "it was set already");
    learn(0, r#"SET key1 {"user":{"id":"cleo"}}"#, Answer::Other);
    assert_eq!(whose(&rules, 0, "key1", &learned), subject("cleo"));
    learn(0, r#"SET key1 {"user":{"id":"dan"}} NX"#, Answer::Null);
    learn(0, "SET key1 x XX", Answer::Null);
    assert_eq!(whose(&rules, 0, "key1", &learned), subject("cleo"));
    learn(0, r#"SET key1 {"user":{"id":"dan"}} IFEQ x GET"#, Answer::Other);
    assert_eq!(whose(&rules, 0, "key1", &learned), Whose::Unmapped, "nobody can tell");
    learn(1, r#"SET key1 {"user":{"id":"cleo"}}"#, Answer::Other);
    learn(0, "HSET key1 USR ada", Answer::Integer(1));
    learn(0, "SET key1 x", Answer::Other);
    assert_eq!(whose(&rules, 0, "key1", &learned), Whose::Unmapped, "what says so is written over");
    learn(0, "HSET own:1 USR ada", Answer::Integer(1));
    assert_eq!(whose(&rules, 0, "own:1", &learned), subject("1"), "an earlier rule says so");
}

#[test]
fn a_rule_that_has_not_learned_is_passed_by() {
    let learned = Learned::new(1 << 20);
    let rules = vec![rule("*", &[], hash_field()), rule("user:{subject}", &[], None)];
    let rules = Rules::new(rules, None, KEY);
    assert_eq!(whose(&rules, 0, "user:1", &learned), subject("1"));
    learned.teach(0, b"user:1", "ada", ALONE);
    assert_eq!(whose(&rules, 0, "user:1", &learned), subject("ada"));
}

#[test]
fn of_a_key_that_is_not_kept_as_a_whole_no_later_rule_is_taken() {
    let learned = Learned::new(1 << 20);
    let rules = ["user:{subject}:*", "{}:{}:{subject}", "*:{}"].map(|it| rule(it, &[], None));
    let rules = Rules::new(rules.to_vec(), Some("somebody".to_owned()), KEY);
    let beginning = |key: &'static str| rules.whose(0, Key { bytes: key.as_bytes(), whole: false }, &learned);
    assert_eq!(beginning("user:1:aaaa"), subject("1"));
    assert_eq!(beginning("order:1:aaaa"), Whose::Undecided);
    assert_eq!(beginning("user:1111"), Whose::Undecided);
}

#[test]
fn subjects_and_locations_are_in_one_form() {
    let learned = Learned::new(1 << 20);
    let rules = Rules::new(vec![rule("user:{subject}", &[], None)], None, KEY);
    let key = [b"user:", vec![0xff; MAX_STRING].as_slice()].concat();
    let Whose::Subject(found) = rules.whose(0, Key { bytes: &key, whole: true }, &learned) else {
        panic!("it has a subject")
    };
    assert_eq!(found, form::encode(&key[5..], &KEY));
    assert!(found.len() <= MAX_STRING && found.starts_with("%FF%FF"));
    assert_eq!(rules.location(&key, key.len() as u64, None), form::encode(&key, &KEY));
    let digest = form::digest(&KEY, &key);
    let of_beginning = rules.location(&key[..100], key.len() as u64, Some(&digest));
    assert_eq!(of_beginning, form::cut(&key[..100], 65541, &digest));
    assert_eq!(rules.location(b"user:1", 6, None), "user:1");
}

proptest! {
    /// What is passed by after a look at the first bytes of a key is of another template.
    #[test]
    fn the_rule_that_is_taken_is_the_first_whose_template_matches(
        templates in proptest::collection::vec("(a|b|\\\\x00){0,10}[{]subject[}]", 1..6),
        key in "[ab\0]{0,14}",
        whole: bool,
    ) {
        let learned = Learned::new(1 << 20);
        let key = Key { bytes: key.as_bytes(), whole };
        let matched = templates.iter().map(|it| Template::parse(it, ':').unwrap().find(key)).find(|it| *it != Match::No);
        let expected = match matched {
            Some(Match::Yes(Some(range))) => Whose::Subject(form::encode(&key.bytes[range], &KEY)),
            Some(_) => Whose::Undecided,
            None => Whose::Unmapped,
        };
        let rules = Rules::new(templates.iter().map(|it| rule(it, &[], None)).collect(), None, KEY);
        prop_assert_eq!(rules.whose(0, key, &learned), expected);
    }
}
