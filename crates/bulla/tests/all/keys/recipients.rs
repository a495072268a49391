use bulla::ErrorKind;
use bulla::environment::KeyWrap;
use bulla::keys::identities::generate;
use bulla::keys::recipients::{Age, check_recipient, parse_recipients_file};
use std::time::Duration;

/// Of the age library's own tests: hardware keys that are wrapped to without a plugin.
const TAG: &str = "age1tag1qt8lw0ual6avlwmwatk888yqnmdamm7xfd0wak53ut6elz5c4swx2yqdj4e";

fn wrap(recipients: &[&str]) -> bulla::Result<Vec<u8>> {
    let recipients = recipients.iter().map(|&recipient| recipient.to_owned()).collect::<Vec<_>>();
    Age::default().wrap(&recipients, &[7; 32], Duration::from_secs(1))
}

fn stanzas(wrapped: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(wrapped);
    let lines = text.lines().filter_map(|line| line.strip_prefix("-> "));
    lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn every_kind_is_wrapped_to() {
    let (_, recipient) = generate();
    assert_eq!(stanzas(&wrap(&[&recipient]).unwrap()), ["X25519"]);
    assert_eq!(stanzas(&wrap(&[&recipient, TAG]).unwrap()), ["X25519", "p256tag"]);
    assert_eq!(wrap(&[]).unwrap_err().kind(), ErrorKind::Invalid);
    let plugin =
        bech32::encode::<bech32::Bech32>(bech32::Hrp::parse("age1nosuchplugin").unwrap(), b"x").unwrap();
    check_recipient(&plugin).unwrap();
    let error = wrap(&[&recipient, &plugin]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("no age-plugin-nosuchplugin in PATH"), "{error}");
}

#[test]
fn what_is_none_is_told_and_a_secret_is_not_repeated() {
    let (text, recipient) = generate();
    let secret = text.lines().last().unwrap();
    let broken = recipient.replace("age1", "age1q");
    for (text, said) in [
        (secret, "an identity, which is secret"),
        (&secret.to_lowercase(), "an identity, which is secret"),
        ("AGE-PLUGIN-YUBIKEY-1QQQQ", "an identity, which is secret"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA root@host", "SSH keys are no recipients"),
        ("ecdsa-sha2-nistp256 AAAA", "SSH keys are no recipients"),
        ("age1nobody", "`age1nobody` is not an age recipient"),
        (&broken, "is not an age recipient"),
        ("age1tag1qqqq", "is not an age recipient"),
        ("AGE1TAG1QQQQ", "is not an age recipient"),
        ("", "is not an age recipient"),
    ] {
        let error = check_recipient(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let message = error.to_string();
        assert!(message.contains(said), "{text}: {message}");
        assert!(!message.to_uppercase().contains(&secret[20..40]), "{message}");
    }
}

#[test]
fn a_recipients_file_is_a_line_a_recipient() {
    let (_, recipient) = generate();
    let text = format!("# ours\n\n  {recipient}\r\n{TAG}\n");
    assert_eq!(parse_recipients_file(&text).unwrap(), [recipient.as_str(), TAG]);
    for (text, said) in [
        ("# nobody\n", "holds no age recipient"),
        ("\n# x\nage1nobody\n", "line 3: `age1nobody` is not"),
        ("ssh-rsa AAAA\n", "line 1: SSH keys"),
    ] {
        let error = parse_recipients_file(text).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
