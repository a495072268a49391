//! `bulla hold`: who is held, by name.

use crate::support::{Place, exit, lines};
use serde_json::json;
use std::fs;

/// A log of ten people, of whom one is held.
fn held() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let add = ["add", "--subject", "s7", "--by", "legal", "--reason", "case 4711"];
    place.run("hold", &add).exits(exit::DONE);
    place
}

#[test]
fn who_is_asked_for_by_name_is_held_or_not_or_nobody_of_that_name_is_known() {
    let place = held();
    let list = |names: &[&str], code| place.run("hold", &[&["list"], names].concat()).exits(code);
    let theirs = list(&["--subject", "s7"], exit::DONE);
    assert!(theirs.out.contains("case 4711") && theirs.err.is_empty(), "{theirs:?}");
    let none = list(&["--subject", "s8"], exit::DONE);
    assert_eq!((&*none.out, &*none.err), ("", "0 holds\n"));
    // As any other query says it.
    let unknown = list(&["--subject", "S7"], exit::DONE);
    let queried = place.run("export", &["--subject", "S7"]).exits(exit::DONE).err;
    let said = queried.lines().find(|line| line.starts_with("data subject `S7` ")).unwrap();
    assert_eq!((&*unknown.out, unknown.err), ("", format!("0 holds\n{said}\n")));
    let both = list(&["--subject", "s7", "--subject", "S7"], exit::DONE);
    assert!(both.out.contains("case 4711") && both.err == format!("{said}\n"), "{both:?}");

    let json = list(&["--subject", "s7", "--subject", "S7", "--subject", "s8", "--json"], exit::DONE).json();
    let number = &json["holds"][0]["number"];
    assert_eq!(json["holds"].as_array().unwrap().len(), 1);
    let of = |place: usize| {
        let subject = &json["subjects"][place];
        (&subject["subject"], &subject["standing"], &subject["number"])
    };
    assert_eq!(of(0), (&json!("s7"), &json!("known"), number));
    assert_eq!(of(1), (&json!("S7"), &json!("not-known"), &json!(null)));
    assert_eq!((of(2).1, of(2).2.is_u64()), (&json!("known"), true));
    assert!(said.ends_with(json["subjects"][1]["detail"].as_str().unwrap()), "{json}");
    list(&["--by", "legal"], exit::USAGE);
}

#[test]
fn where_it_cannot_be_told_whose_a_hold_is_nobody_is_said_to_be_free() {
    let place = held();
    crate::support::copy(&place.path("audit.keys"), &place.path("backup"));
    place.append(&[], br#"{"operation":"read","location":"x","subject":"somebody new"}"#).exits(exit::DONE);
    let add = ["add", "--subject", "somebody new", "--by", "legal", "--reason", "case 2"];
    place.run("hold", &add).exits(exit::DONE);
    fs::remove_dir_all(place.path("audit.keys")).unwrap();
    crate::support::copy(&place.path("backup"), &place.path("audit.keys"));
    place.run("restore", &[]).exits(exit::DONE);
    let list = |name: &str| place.run("hold", &["list", "--subject", name]).exits(exit::VIOLATION);
    let unknown = list("somebody new");
    let queried = place.run("export", &["--subject", "somebody new"]).exits(exit::VIOLATION).err;
    let said = queried.lines().find(|line| line.starts_with("data subject `somebody new` ")).unwrap();
    assert!(said.contains("cannot be told: keys are lost"), "{said}");
    assert!(unknown.err.starts_with(&format!("0 holds\n{said}\n")), "{unknown:?}");
    // Whoever has a number may have had another one, too.
    let known = list("s8");
    assert!(known.err.contains("may be on any of these data subjects"), "{known:?}");

    fs::rename(place.keys("vault"), place.path("vault")).unwrap();
    let without = place.run("hold", &["list", "--subject", "s7"]).exits(exit::REFUSED);
    assert!(without.err.contains("there is no vault in "), "{without:?}");
    let off = Place::empty();
    off.run("init", &["--erasure", "off"]).exits(exit::DONE);
    off.append(&[], &lines(0..10)).exits(exit::DONE);
    off.run("hold", &["list", "--subject", "s7"]).exits(exit::REFUSED);
    off.run("hold", &["list"]).exits(exit::DONE);
}
