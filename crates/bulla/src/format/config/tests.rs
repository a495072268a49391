//! What `[log]` may have, where the types of its members do not say it.

use super::*;

#[test]
fn a_heartbeat_has_one_spelling_but_for_its_unit() {
    for text in ["5s", "5 s", "5\t s", "10 min", "24h"] {
        assert!(parse_heartbeat(text).is_ok(), "{text}");
    }
    for text in [" 5s", "5s ", "05s", "0s", "+5s", "5", "s", "", "5 s\n"] {
        assert!(parse_heartbeat(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_version_that_is_no_number_is_named_and_not_called_missing() {
    let told = |log: &str| check_version(log).unwrap_err().to_string();
    assert_eq!(told("[log]\nversion = \"1\"\n"), "`version` is \"1\", and no whole number");
    assert_eq!(told("[log]\nversion = 1.0\n"), "`version` is 1.0, and no whole number");
    assert_eq!(told("[log]\nid = \"0\"\n"), "`[log]` has no `version`");
}
