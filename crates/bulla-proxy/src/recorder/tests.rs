//! What an entry says that has no field of its own.

use super::*;
use crate::session::{Stage, Status, Values};

fn operation() -> Operation<'static> {
    Operation {
        target: Target::Server,
        status: Status::Done,
        error: None,
        command: "config|set",
        database: 3,
        size: None,
        duration: None,
        client: "192.0.2.1:1",
        actor: "ada",
        purpose: Some("a \"why\"\n\\"),
        name: Some("w\u{7f}eb"),
        certificate: None,
        stage: Stage::Over,
        values: Values::None,
    }
}

fn described(operation: &Operation<'_>, claims_count: bool) -> serde_json::Value {
    let mut text = String::new();
    payload::describe(operation, claims_count, None, &mut text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_payload_is_json_whatever_clients_say() {
    let claimed = described(&operation(), false);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "claimed_name": "w\u{7f}eb", "claimed_purpose": "a \"why\"\n\\",
    });
    assert_eq!(claimed, expected);
    let counts = described(&Operation { error: Some("OOM"), stage: Stage::Begun, ..operation() }, true);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "error": "OOM", "name": "w\u{7f}eb", "stage": "begun",
    });
    assert_eq!(counts, expected);
    let target = Target::Unknowable(Unknowable::TooMany, Some(b"ab12"));
    let unknowable = described(&Operation { target, purpose: None, name: None, ..operation() }, false);
    let expected = serde_json::json!({
        "command": "config|set", "database": 3, "unknowable": "too_many", "script": "ab12",
    });
    assert_eq!(unknowable, expected);
}
