//! `bulla erase --again`: orders that were carried out before a backup of the log and its keys was put back.

use crate::support::{Place, Ran, bulla, command, command_under, copy, eventually, exit, finish};
use bulla::environment::{Clock, Environment, Interrupt};
use bulla::keys::signing::SigningKey;
use bulla::store::FileSystem;
use bulla::{Entry, ErasureOrder, HoldOrder, Log, Options, ReleaseOrder};
use bulla_proof::hash::sha256;
use bulla_vault::{Access, Settings, Vault};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// A host whose clock stands still, so many seconds after the beginning of time.
struct At(i64);

impl Clock for At {
    fn now(&self) -> i64 {
        self.0 * 1_000_000_000
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

fn at(seconds: i64) -> Environment {
    Environment { clock: Arc::new(At(seconds)), ..Environment::default() }
}

fn opened(place: &Place, seconds: i64) -> Log {
    let [log, keys] = [place.audit(), place.path("audit.keys")].map(|path| Arc::new(FileSystem::new(path)));
    Log::open_stores(log, keys, Options::default(), at(seconds)).unwrap()
}

/// An epoch that begins then, with an entry for each of these.
fn append(place: &Place, seconds: i64, subjects: &[&str]) {
    let log = opened(place, seconds);
    let mut producer = log.producer().unwrap();
    for &subject in subjects {
        producer.append(&Entry::new("read", "place").subject(subject)).unwrap();
    }
    drop(producer);
    log.close().unwrap();
}

fn path(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

fn given(place: &Place, seconds: i64, names: &[&str]) -> ErasureOrder {
    let key = SigningKey::parse(&fs::read_to_string(place.keys("erasure.key")).unwrap()).unwrap();
    let id = bulla::info(place.audit()).unwrap().id;
    ErasureOrder::give(&key, id, names, None, &at(seconds)).unwrap()
}

/// The file of an order that was given then.
fn order(place: &Place, name: &str, seconds: i64, names: &[&str]) -> String {
    place.write(name, given(place, seconds, names).render().as_bytes())
}

/// Carries an order out then, and gives its certificate.
fn carry_out(place: &Place, seconds: i64, file: &str) -> String {
    let log = opened(place, seconds);
    let erasure = log.erase(&ErasureOrder::parse(&fs::read_to_string(file).unwrap()).unwrap()).unwrap();
    log.close().unwrap();
    let certificate = file.replace(".json", ".cert");
    place.run("prove", &["--event", &erasure.frame.to_string(), "-o", &certificate]).exits(exit::DONE);
    certificate
}

/// Ada and bob are met in 1000, ada again and carl in 2000; and there is a backup of that.
fn backed_up() -> Place {
    let place = Place::new();
    append(&place, 1000, &["ada", "bob"]);
    append(&place, 2000, &["ada", "carl"]);
    back_up(&place);
    place
}

fn back_up(place: &Place) {
    for name in ["audit", "audit.keys"] {
        copy(&place.path(name), &place.path(&format!("{name}.backup")));
    }
}

fn put_back(place: &Place) {
    for name in ["audit", "audit.keys"] {
        fs::remove_dir_all(place.path(name)).unwrap();
        copy(&place.path(&format!("{name}.backup")), &place.path(name));
    }
}

fn again(place: &Place, words: &[&str]) -> Ran {
    place.run("erase", &[&["--again"], words].concat())
}

fn outcomes(ran: Ran) -> Vec<Value> {
    ran.json()["orders"].as_array().unwrap().iter().map(|order| order["outcome"].clone()).collect()
}

/// How many entries of somebody can be read.
fn left(place: &Place, name: &str) -> usize {
    place.run("export", &["--subject", name]).exits(exit::DONE).out.lines().count()
}

#[test]
fn an_order_is_carried_out_again_on_whom_it_named_once() {
    let place = backed_up();
    let ada = order(&place, "ada.json", 2500, &["ada"]);
    carry_out(&place, 3000, &ada);
    assert_eq!(left(&place, "ada"), 0);
    put_back(&place);
    assert_eq!((left(&place, "ada"), left(&place, "bob")), (2, 1));

    let size = place.info("tree_size");
    let dry = again(&place, &[&ada, "--dry-run"]).exits(exit::DONE);
    assert!(dry.out.starts_with(&format!("{ada}: would be erased: data subject ")), "{dry:?}");
    assert!(dry.err.contains("ada: data subject ") && dry.err.contains("2 entries in all"), "{dry:?}");
    assert_eq!(
        outcomes(again(&place, &[&ada, "--dry-run", "--json"]).exits(exit::DONE)),
        ["would-be-erased"]
    );
    assert_eq!((place.info("tree_size"), left(&place, "ada")), (size, 2));

    let done = again(&place, &[&ada]).exits(exit::DONE);
    assert!(done.out.starts_with(&format!("{ada}: erased: data subject ")), "{done:?}");
    assert!(done.out.contains("; the log tells of it in frame "), "{done:?}");
    assert_eq!((left(&place, "ada"), left(&place, "bob")), (0, 1));
    let json = again(&place, &[&ada, "--json"]).exits(exit::DONE).json();
    assert_eq!(
        (&json["orders"][0]["outcome"], &json["orders"][0]["order"]),
        (&json!("erased-already"), &json!(ada))
    );
    assert!(again(&place, &[&ada]).exits(exit::DONE).out.contains(": erased already: data subject "));
    place.run("verify", &["--strict"]).exits(exit::DONE);
}

#[test]
fn whoever_came_back_since_is_left_out_loudly_and_with_them_their_order() {
    let place = backed_up();
    let (ada, eve) = (order(&place, "ada.json", 2500, &["ada"]), order(&place, "eve.json", 2500, &["eve"]));
    let both = order(&place, "both.json", 2500, &["bob", "eve"]);
    append(&place, 2600, &["eve"]);
    carry_out(&place, 3000, &eve);
    put_back(&place);
    // She is somebody else now, and is met before the orders are carried out again.
    append(&place, 4000, &["ada", "eve"]);
    let ran = again(&place, &[&eve, &both]).exits(exit::REFUSED);
    assert!(ran.out.contains(&format!("{eve}: left out: came back since: data subject ")), "{ran:?}");
    assert!(ran.out.contains("whom the order does not mean; the others of it take a new order\n"), "{ran:?}");
    let some = again(&place, &[&both, &ada, &eve, "--json"]).exits(exit::SOME_REFUSED);
    assert_eq!(outcomes(some), ["left-out", "erased", "left-out"]);
    assert_eq!(["ada", "bob", "eve"].map(|name| left(&place, name)), [0, 1, 1]);
}

#[test]
fn nobody_is_erased_again_before_whoever_was_held_since_the_backup_is_held_again() {
    let place = backed_up();
    let [ada, bob] = ["ada", "bob"].map(|name| order(&place, &format!("{name}.json"), 2500, &[name]));
    let key = SigningKey::parse(&fs::read_to_string(place.keys("erasure.key")).unwrap()).unwrap();
    let (id, because) = (bulla::info(place.audit()).unwrap().id, ("legal", "case 4711"));
    let held = HoldOrder::give(&key, id, "ada", because, &at(2600)).unwrap();
    let hold = place.write("hold.json", held.render().as_bytes());
    let released = ReleaseOrder::give(&key, id, held.note(), because, &at(2700)).unwrap();
    let release = place.write("release.json", released.render().as_bytes());
    let size = place.info("tree_size");

    for words in [&["--dry-run"][..], &[]] {
        let ran = again(&place, &[&[&hold[..], &ada, &bob], words].concat()).exits(exit::REFUSED);
        assert!(ran.out.starts_with(&format!("{hold}: refused: it is an order to hold, ")), "{ran:?}");
        assert!(ran.out.contains("`bulla hold DIR add --authority FILE`"), "{ran:?}");
        assert!(ran.out.contains(&format!("\n{ada}: not tried\n")), "{ran:?}");
    }
    let ran = again(&place, &[&ada, &hold, "--json"]).exits(exit::REFUSED);
    assert!(ran.json()["error"].as_str().unwrap().contains("nobody was erased"), "{ran:?}");
    assert_eq!(outcomes(ran), ["not-tried", "refused"]);
    // What cannot be read may be such an order, too.
    let text = held.render();
    let mut salted = serde_json::from_str::<Value>(&text).unwrap();
    salted.as_object_mut().unwrap().remove("salts").unwrap();
    let files = [
        place.write("cut.json", &text.as_bytes()[..text.len() - 3]),
        place.write("unsalted.json", salted.to_string().as_bytes()),
        place.write("note.txt", held.note().as_bytes()),
        place.write("none.json", b"{}"),
        path(&place, "missing.json"),
    ];
    for (file, words) in files.iter().flat_map(|file| [(file, &["--dry-run"][..]), (file, &[])]) {
        let ran = again(&place, &[&[&ada[..], file, &bob], words].concat()).exits(exit::REFUSED);
        assert!(ran.out.contains(&format!("{file}: refused: ")) && ran.err.contains(file), "{ran:?}");
        assert!(ran.out.contains("it may be an order to hold somebody"), "{ran:?}");
        assert!(
            [&ada, &bob].iter().all(|order| ran.out.contains(&format!("{order}: not tried\n"))),
            "{ran:?}"
        );
    }
    assert_eq!((place.info("tree_size"), left(&place, "ada")), (size, 2));

    place.run("hold", &["add", "--authority", &hold]).exits(exit::DONE);
    assert_eq!(outcomes(again(&place, &[&hold, "--json"]).exits(exit::DONE)), ["given-already"]);
    let ran = again(&place, &[&hold, &ada]).exits(exit::REFUSED);
    assert!(ran.out.contains(&format!("{hold}: given already: ")), "{ran:?}");
    assert!(ran.out.contains(&format!("{ada}: left out: held by legal: case 4711")), "{ran:?}");
    let ran = again(&place, &[&release, &hold, &ada]).exits(exit::REFUSED);
    assert!(ran.out.contains("`bulla hold DIR release --authority FILE`"), "{ran:?}");

    place.run("hold", &["release", "--authority", &release]).exits(exit::DONE);
    let ran = again(&place, &[&release, &hold, &ada, "--json"]).exits(exit::DONE);
    assert_eq!(outcomes(ran), ["given-already", "given-already", "erased"]);
    assert_eq!(left(&place, "ada"), 0);
}

/// Between two frames that have the host's time nobody can tell, but by the certificate.
#[test]
fn what_the_clock_does_not_tell_the_certificate_does() {
    let place = backed_up();
    let carl = order(&place, "carl.json", 2500, &["carl"]);
    let certificate = carry_out(&place, 3000, &carl);
    put_back(&place);
    let refused = again(&place, &[&carl]).exits(exit::REFUSED);
    assert!(refused.out.contains(": refused: whether data subject "), "{refused:?}");
    assert!(
        refused.out.contains("came back since cannot be told") && refused.out.contains("--certificate"),
        "{refused:?}"
    );
    assert_eq!(left(&place, "carl"), 1);
    // Another order's says nothing of this one.
    let ada = order(&place, "ada.json", 2500, &["ada"]);
    let of_another = carry_out(&place, 3000, &ada);
    put_back(&place);
    again(&place, &[&carl, "--certificate", &of_another]).exits(exit::REFUSED);
    // Nor does one of another log, or what is none.
    for none in [&carl, &path(&place, "nowhere")] {
        let ran = again(&place, &[&carl, "--certificate", none]);
        assert!([exit::REFUSED, exit::ENVIRONMENT].contains(&ran.code) && ran.err.contains(none), "{ran:?}");
    }
    let other = backed_up();
    let of_other = carry_out(&other, 3000, &order(&other, "carl.json", 2500, &["carl"]));
    let ran = again(&place, &[&carl, "--certificate", &of_other]).exits(exit::REFUSED);
    assert!(ran.err.contains("it is no certificate of an erasure of this log"), "{ran:?}");
    assert_eq!(left(&place, "carl"), 1);
    let both = ["--certificate", &of_another, &certificate];
    let done = again(&place, &[&[&carl[..]], &both[..]].concat()).exits(exit::DONE);
    assert!(done.out.contains(": erased: data subject "), "{done:?}");
    assert_eq!(left(&place, "carl"), 0);

    // Who has the name after that is another person, by number or by the time at which they came.
    put_back(&place);
    place.run("erase", &["--subject", "carl"]).exits(exit::DONE);
    append(&place, 4000, &["carl"]);
    let ran = again(&place, &[&[&carl[..]], &both[..]].concat()).exits(exit::REFUSED);
    assert!(ran.out.contains(": left out: came back since: data subject 3,"), "{ran:?}");
    assert_eq!(left(&place, "carl"), 1);
}

/// The certificate is a path in the tree: the frames that it shows to be older than the erasure are, in whatever second they were made.
#[test]
fn what_the_certificate_shows_takes_no_clock() {
    let place = Place::new();
    append(&place, 1000, &["ada"]);
    back_up(&place);
    let ada = order(&place, "ada.json", 1000, &["ada"]);
    let certificate = carry_out(&place, 1000, &ada);
    put_back(&place);
    append(&place, 1000, &["bob"]);
    again(&place, &[&ada]).exits(exit::REFUSED);
    again(&place, &[&ada, "--certificate", &certificate]).exits(exit::DONE);
    assert_eq!((left(&place, "ada"), left(&place, "bob")), (0, 1));

    // Another log history, in which she has the same number, and was met after the erasure.
    let place = Place::new();
    append(&place, 1000, &["bob"]);
    back_up(&place);
    append(&place, 1000, &["ada"]);
    let ada = order(&place, "ada.json", 1000, &["ada"]);
    let certificate = carry_out(&place, 1000, &ada);
    put_back(&place);
    append(&place, 1000, &["ada"]);
    let ran = again(&place, &[&ada, "--certificate", &certificate]).exits(exit::REFUSED);
    assert!(ran.out.contains("came back since cannot be told"), "{ran:?}");
    put_back(&place);
    append(&place, 1001, &["ada"]);
    let ran = again(&place, &[&ada, "--certificate", &certificate]).exits(exit::REFUSED);
    assert!(ran.out.contains(": left out: came back since: data subject 1,"), "{ran:?}");
    assert_eq!(left(&place, "ada"), 1);
}

/// Bob was erased by one order, so that the certificate of the other lacks his number. That does not make him somebody who came since.
#[test]
fn who_was_erased_by_another_order_is_erased_again_whichever_comes_first() {
    let place = Place::new();
    append(&place, 1000, &["ada", "bob", "cid"]);
    append(&place, 2000, &["old", "carl"]);
    back_up(&place);
    let orders = |seconds, [one, two]: [&str; 2]| {
        [order(&place, "one.json", seconds, &[one]), order(&place, "all.json", seconds, &[one, two])]
    };
    let of_time = orders(2500, ["bob", "cid"]);
    let certificates = of_time.each_ref().map(|order| carry_out(&place, 3000, order));
    let [one, all] = of_time.each_ref().map(String::as_str);
    // By the clock, and the certificate of the order alone.
    put_back(&place);
    let done = again(&place, &[all, "--certificate", &certificates[1]]).exits(exit::DONE);
    assert!(done.out.contains(": erased: data subjects "), "{done:?}");
    // In either order of the files the same people are erased.
    for files in [[one, all], [all, one]] {
        put_back(&place);
        again(&place, &[&files[..], &["--certificate", &certificates[0], &certificates[1]]].concat())
            .exits(exit::SOME_REFUSED);
        assert_eq!(["ada", "bob", "cid"].map(|name| left(&place, name)), [1, 0, 0]);
    }

    // Where no clock tells, the certificate of the other order does.
    put_back(&place);
    let of_time = orders(2500, ["old", "carl"]);
    let certificates = of_time.each_ref().map(|order| carry_out(&place, 3000, order));
    let all = of_time[1].as_str();
    put_back(&place);
    let refused = again(&place, &[all, "--certificate", &certificates[1]]).exits(exit::REFUSED);
    assert!(refused.out.contains("its certificate does not name them"), "{refused:?}");
    again(&place, &[all, "--certificate", &certificates[1], &certificates[0]]).exits(exit::DONE);
    assert_eq!(["old", "carl"].map(|name| left(&place, name)), [0, 0]);
    // Somebody else who has the name, and came since, is nobody's whom a certificate names.
    put_back(&place);
    place.run("erase", &["--subject", "old"]).exits(exit::DONE);
    append(&place, 4000, &["old"]);
    let ran = again(&place, &[all, "--certificate", &certificates[0], &certificates[1]]).exits(exit::REFUSED);
    assert!(ran.out.contains(": left out: came back since: data subject "), "{ran:?}");
}

#[test]
fn whoever_is_held_is_left_out() {
    let place = backed_up();
    let orders =
        [order(&place, "ada.json", 2500, &["ada", "bob"]), order(&place, "bob.json", 2500, &["bob"])];
    place
        .run("hold", &["add", "--subject", "ada", "--by", "legal", "--reason", "case 4711"])
        .exits(exit::DONE);
    let ran = again(&place, &[&orders[0], &orders[1]]).exits(exit::SOME_REFUSED);
    assert!(ran.out.contains(": left out: held by legal: case 4711 (data subject "), "{ran:?}");
    assert!(ran.out.contains(&format!("{}: erased: data subject ", orders[1])), "{ran:?}");
    assert_eq!(["ada", "bob"].map(|name| left(&place, name)), [2, 0]);
    // Of the other order only the one who is left is erased, once that is allowed.
    place
        .run("hold", &["release", "--subject", "ada", "--by", "legal", "--reason", "closed"])
        .exits(exit::DONE);
    let ran = again(&place, &[&orders[0]]).exits(exit::SOME_REFUSED);
    assert!(ran.out.contains(": not known: bob"), "{ran:?}");
    assert_eq!(left(&place, "ada"), 0);
}

#[test]
fn what_cannot_be_told_or_is_an_order_for_another_log_is_refused_and_the_others_are_carried_out() {
    let place = backed_up();
    let other = backed_up();
    let ada = order(&place, "ada.json", 2500, &["ada"]);
    let bob = order(&place, "bob.json", 2500, &["bob", "nobody"]);
    let nobody = order(&place, "nobody.json", 2500, &["nobody"]);
    let of_other = order(&other, "other.json", 2500, &["ada"]);
    let forged = place
        .write("forged.json", fs::read_to_string(&ada).unwrap().replace("\"ada\"", "\"bob\"").as_bytes());
    let nowhere = path(&place, "nowhere.json");
    // Without an identity the first entries cannot be found.
    let identity = path(&place, "officer.age");
    fs::rename(place.keys("identity.age"), &identity).unwrap();
    let ran = again(&place, &[&ada]).exits(exit::REFUSED);
    assert!(
        ran.out.contains(": refused: whether its data subjects came back since cannot be told: no identity"),
        "{ran:?}"
    );
    let files = [&nobody, &of_other, &forged];
    let ran = again(&place, &[&files.map(String::as_str)[..], &["--identity", &identity]].concat())
        .exits(exit::REFUSED);
    assert_eq!(ran.out.lines().filter(|line| line.contains(": refused: ")).count(), files.len(), "{ran:?}");
    let all = [&files.map(String::as_str)[..], &[&ada, &bob, "--identity", &identity]].concat();
    let ran = again(&place, &all).exits(exit::SOME_REFUSED);
    assert!(
        ran.out.contains(&format!("{bob}: erased: "))
            && ran.out.contains(&format!("{bob}: not known: nobody")),
        "{ran:?}"
    );
    fs::rename(&identity, place.keys("identity.age")).unwrap();
    assert_eq!(["ada", "bob", "carl"].map(|name| left(&place, name)), [0, 0, 1]);
    // These say already whom, and why.
    for words in [["--subject", "ada"], ["--reason", "why"], ["--keep-order", &nowhere], ["-o", &nowhere]] {
        place.run("erase", &[&words[..], &["--again", &ada]].concat()).exits(exit::USAGE);
    }
    place.run("erase", &["--certificate", &nowhere, "--subject", "carl"]).exits(exit::USAGE);
}

#[test]
fn where_keys_are_lost_an_order_with_an_unknown_name_is_refused() {
    let place = backed_up();
    append(&place, 2600, &["eve"]);
    let (eve, bob) =
        (order(&place, "eve.json", 3500, &["eve", "bob"]), order(&place, "bob.json", 2500, &["bob"]));
    fs::remove_dir_all(place.path("audit.keys")).unwrap();
    copy(&place.path("audit.keys.backup"), &place.path("audit.keys"));
    place.run("restore", &[]).exits(exit::DONE);
    let ran = again(&place, &[&eve, &bob]).exits(exit::SOME_REFUSED);
    assert!(
        ran.out
            .contains(&format!("{eve}: refused: 1 of its names may be known or not, which cannot be told")),
        "{ran:?}"
    );
    assert!(ran.out.contains(&format!("{bob}: erased: ")), "{ran:?}");
}

#[test]
fn a_writer_carries_them_out_and_the_same_person_is_erased_once() {
    let place = backed_up();
    let files = [("ada.json", &["ada"][..]), ("both.json", &["ada", "bob"]), ("twice.json", &["bob"])];
    let files = files.map(|(name, names)| order(&place, name, 2500, names));
    let mut child = command(place.arguments("append", &[])).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    eventually("it has the log open", || !place.info("writer").is_null());
    let orders = [&files[0][..], &files[1], &files[2], "--json"];
    let dry = again(&place, &[&orders[..], &["--dry-run"]].concat()).exits(exit::SOME_REFUSED).json();
    let ran = again(&place, &orders).exits(exit::SOME_REFUSED).json();
    let told = |told: &Value, member: &str| -> Vec<Value> {
        told["orders"].as_array().unwrap().iter().map(|order| order[member].clone()).collect()
    };
    assert_eq!(told(&dry, "outcome"), ["would-be-erased", "would-be-erased", "left-out"]);
    assert_eq!(told(&ran, "outcome"), ["erased", "erased", "left-out"]);
    // What would be erased is what is: the second order is judged as things are once the first is carried out.
    for member in ["numbers", "unknown", "detail"] {
        assert_eq!(told(&dry, member), told(&ran, member), "{member}");
    }
    assert_eq!(dry["orders"][1]["unknown"], json!(["ada"]));
    assert_eq!([&dry, &ran].map(|it| it["orders"][1]["preview"]["entries"].clone()), [1, 1]);
    drop(stdin);
    finish(child).exits(exit::DONE);
    assert_eq!(["ada", "bob"].map(|name| left(&place, name)), [0, 0]);
    let report = bulla(["verify", place.audit().to_str().unwrap(), "--json"]).exits(exit::DONE).json();
    assert_eq!(report["erased"], 3);
}

/// In the middle of an order, whichever of these states that left: the command itself says that it can be given again.
#[test]
fn cut_short_it_is_given_again_and_says_of_each_order_what_became_of_it() {
    for (is_committed, how) in [(false, "begun"), (true, "committed")] {
        let place = backed_up();
        let [ada, bob] = ["ada", "bob"].map(|name| order(&place, &format!("{name}.json"), 2500, &[name]));
        let note = ErasureOrder::parse(&fs::read_to_string(&ada).unwrap()).unwrap().note().to_owned();
        let pending = json!({ "numbers": [0], "carried_out": [0], "order": note }).to_string();
        fs::write(place.keys("erasure.pending"), &pending).unwrap();
        let id = bulla::info(place.audit()).unwrap().id;
        let vault = Vault::open(&place.path("audit.keys"), id, Access::Write, &Settings::default()).unwrap();
        let written = sha256(&[pending.as_bytes()]);
        let begun = vault.begin_written_erasure(&[0], written).unwrap().unwrap();
        if is_committed {
            drop(begun.commit().unwrap());
        }
        drop(vault);
        let size = place.info("tree_size");
        let dry = again(&place, &[&ada, &bob, "--dry-run"]);
        assert!(dry.err.contains("an erasure was cut short: opening the log"), "{how}: {dry:?}");
        assert_eq!(place.info("tree_size"), size, "{how}");
        let ran = again(&place, &[&ada, &bob]).exits(exit::DONE);
        assert!(ran.err.contains("is finished"), "{how}: {ran:?}");
        assert!(ran.out.contains(&format!("{ada}: erased already: data subject 0 of ")), "{how}: {ran:?}");
        assert!(ran.out.contains(&format!("{bob}: erased: data subject 1 of ")), "{how}: {ran:?}");
        assert_eq!(["ada", "bob"].map(|name| left(&place, name)), [0, 0], "{how}");
        place.run("verify", &["--strict"]).exits(exit::DONE);
    }
}

/// It says nothing of the order, which the next time is another.
#[test]
fn a_medium_that_fails_while_orders_are_looked_up_ends_the_command() {
    let place = backed_up();
    let ada = order(&place, "ada.json", 2500, &["ada"]);
    let segment = place.segment();
    let arguments = place.arguments("erase", &["--again", &ada, "--dry-run"]);
    let mut ended = 0;
    // Frames are looked at for the order first, and then for entries.
    for read in 1..=6 {
        let fails = format!("inject=pread64:error=EIO:when={read}");
        let strace =
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &fails, "-P", segment.to_str().unwrap()];
        let child = command_under(&strace, &arguments).spawn();
        let ran = finish(child.expect("this test needs strace: `apt-get install strace`"));
        if ran.code != exit::DONE {
            assert!(
                ran.err.contains("Input/output error") && !ran.out.contains("refused"),
                "{read}: {ran:?}"
            );
            ran.exits(exit::ENVIRONMENT);
            ended += 1;
        }
    }
    assert!(ended > 3, "{ended}");
    again(&place, &[&ada]).exits(exit::DONE);
    assert_eq!(left(&place, "ada"), 0);
}

#[test]
fn each_thing_is_said_once_and_of_the_order_that_it_is_about() {
    let place = backed_up();
    let files = [
        ("ada.json", &["ada"][..]),
        ("both.json", &["ada", "bob", "nobody"]),
        ("twice.json", &["bob"]),
        ("none.json", &["nobody"]),
    ];
    let files = files.map(|(name, names)| order(&place, name, 2500, names));
    let files = files.each_ref().map(String::as_str);
    let [_, both, twice, none] = files;
    for words in [&["--dry-run"][..], &[]] {
        let ran = again(&place, &[&files[..], words].concat()).exits(exit::SOME_REFUSED);
        let said = |text: &str| -> usize {
            [&ran.out, &ran.err]
                .map(|told| told.lines().filter(|line| line.contains(text)).count())
                .iter()
                .sum()
        };
        assert_eq!(said(&format!("{none}: refused: ")), 1, "{ran:?}");
        assert_eq!(
            said(&format!("{twice}: left out: whom it names is to be erased by an order before it")),
            1
        );
        assert_eq!(
            (said("  bob: data subject 1, 1 entry"), said("  ada: data subject 0, 2 entries")),
            (1, 1)
        );
        assert_eq!(said("  nobody: "), 0, "{ran:?}");
        for line in ["an order before it erases: ada", "not known: nobody"] {
            assert!(ran.out.contains(&format!("{both}: {line}\n")), "{ran:?}");
        }
    }
    // Nothing is left to be done: a program is told that this failed, and why.
    let ran = again(&place, &[twice, none, "--json"]).exits(exit::REFUSED);
    assert_eq!(ran.json()["orders"].as_array().map(Vec::len), Some(2));
    assert!(ran.json()["error"].as_str().unwrap().contains("none of the orders is carried out"), "{ran:?}");
}

#[test]
fn at_a_terminal_it_asks_once() {
    let place = backed_up();
    let files = ["ada", "bob"].map(|name| order(&place, &format!("{name}.json"), 2500, &[name]));
    let words = place.arguments("erase", &["--again", &files[0], &files[1]]);
    let prompt = "To go on, type yes: ";
    let (ran, _) = crate::keys::at_a_terminal(&[], &words, &[(prompt, "no\n")]);
    assert!(ran.exits(exit::REFUSED).out.contains("nothing was done"));
    assert_eq!(["ada", "bob"].map(|name| left(&place, name)), [2, 1]);
    let (ran, _) = crate::keys::at_a_terminal(&[], &words, &[(prompt, "yes\n")]);
    ran.exits(exit::DONE);
    assert_eq!(["ada", "bob"].map(|name| left(&place, name)), [0, 0]);
    let (ran, _) = crate::keys::at_a_terminal(&[], &words, &[]);
    assert!(!ran.exits(exit::DONE).out.contains(prompt));
}

/// Whoever orders erasures now: what was carried out before stays so, and its certificate is one.
#[test]
fn an_order_of_a_key_that_was_replaced_is_erased_already_and_its_certificate_counts() {
    let place = backed_up();
    let (first, second) = (path(&place, "first.json"), path(&place, "second.json"));
    let erased = place.run("erase", &["--subject", "ada", "--keep-order", &first]).exits(exit::DONE);
    assert!(erased.out.contains("erased: data subject "), "{erased:?}");
    let frame =
        place.run("events", &["--kind", "erased", "--json"]).exits(exit::DONE).json()["frame"].clone();
    let certificate = path(&place, "first.cert");
    place.run("prove", &["--event", &frame.to_string(), "-o", &certificate]).exits(exit::DONE);

    let key = path(&place, "second.key");
    let vkey = place.run("keys", &["new-erasure-key", "-o", &key]).exits(exit::DONE).out.trim().to_owned();
    place.run("config", &["set", "log.erasure_key", &vkey]).exits(exit::DONE);
    for name in ["audit.backup", "audit.keys.backup"] {
        fs::remove_dir_all(place.path(name)).unwrap();
    }
    back_up(&place);
    let bob = ["--subject", "bob", "--authority", &key, "--keep-order", &second];
    place.run("erase", &bob).exits(exit::DONE);

    // Given in any way, it is known again.
    for words in [&["--again", &first][..], &["--authority", &first]] {
        let ran = place.run("erase", words).exits(exit::DONE);
        assert!(ran.out.contains("erased already"), "{ran:?}");
    }
    let kept = ["--subject", "ada", "--authority", &key, "--keep-order", &first];
    assert!(place.run("erase", &kept).exits(exit::DONE).out.contains("erased already"));

    put_back(&place);
    let ran = again(&place, &[&first, &second, "--certificate", &certificate, "--json"]);
    let outcomes = outcomes(ran);
    assert_eq!(outcomes[0], "erased-already");
    // When bob was met no clock tells here: he is not judged by another's certificate.
    assert!(["erased", "refused"].iter().any(|outcome| outcomes[1] == *outcome), "{outcomes:?}");
}
