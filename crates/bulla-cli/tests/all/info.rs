use crate::support::{Place, exit, lines};

#[test]
fn it_tells_what_the_log_is_and_how_much_is_in_it() {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let info = place.run("info", &["--json"]).exits(exit::DONE).json();
    assert_eq!(info["entries"], 100);
    assert!(info["tree_size"].as_u64().unwrap() >= 2 && info["bytes"].as_u64().unwrap() > 0, "{info}");
    assert!(info["vkey"].as_str().unwrap().starts_with(info["origin"].as_str().unwrap()), "{info}");
    assert_eq!((&info["locked"], &info["segments"]), (&false.into(), &1.into()));

    let text = place.run("info", &[]).exits(exit::DONE).out;
    for name in ["origin", "vkey", "root"] {
        assert!(text.contains(info[name].as_str().unwrap()), "{name}: {text}");
    }
}

#[test]
fn it_sees_a_writer_at_work() {
    let place = Place::new();
    let log = bulla::Log::open(place.audit(), bulla::Options::default()).unwrap();
    assert_eq!(place.info("locked"), true);
    log.close().unwrap();
    assert_eq!(place.info("locked"), false);
}

#[test]
fn where_there_is_no_log_it_says_so() {
    let ran = Place::empty().run("info", &["--json"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("is not a log") && ran.json()["error"].is_string(), "{ran:?}");
}
