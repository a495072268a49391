use crate::cosignature::Witness;
use bulla_proof::policy::{MAX_POLICY, PolicyProblem};
use bulla_proof::{
    Checkpoint, Hash, LogKey, NoteError, Policy, PolicyRefusal, SignedNote, VerifierKey, sign_checkpoint,
};
use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;

/// The example of C2SP tlog-policy, with an indentation, a comment and addresses.
fn example() -> String {
    let [x1, x2, x3, y1, y2, y3] = witnesses().map(|witness| witness.key.to_string());
    format!(
        "# Two organisations.\n \t\nlog {}\nlog {}\thttps://log.example/\n\nwitness X1 {x1}\n  witness\tX2 {x2} \n\
         witness X3 {x3} https://x3.example/w\ngroup X-witnesses 2 X1 X2 X3\n\
         witness Y1 {y1}\nwitness Y2 {y2}\nwitness Y3 {y3}\ngroup Y-witnesses any Y1 Y2 Y3\n\n\
         group X-and-Y all X-witnesses Y-witnesses\nquorum X-and-Y\n",
        log().1,
        Witness::ml_dsa_44("example.com/log", 9).key
    )
}

fn witnesses() -> [Witness; 6] {
    let [x1, x2, x3] = [1, 2, 3].map(|seed| Witness::ed25519("x.example", seed));
    let [y1, y2, y3] = [4, 5, 6].map(|seed| Witness::ml_dsa_44("y.example", seed));
    [x1, x2, x3, y1, y2, y3]
}

fn log() -> (SigningKey, VerifierKey) {
    let secret = SigningKey::from_bytes(&[9; 32]);
    let key = VerifierKey::new("example.com/log", secret.verifying_key().to_bytes()).unwrap();
    (secret, key)
}

/// A checkpoint of the log, cosigned by those of the six.
fn note(of: &[usize]) -> String {
    let (secret, key) = log();
    let checkpoint = Checkpoint::new("example.com/log", 7, Hash([7; 32]));
    let note = sign_checkpoint(&checkpoint, &key, |text| secret.sign(text).to_bytes());
    let lines = of.iter().map(|index| witnesses()[*index].cosign(&checkpoint.body(), 100 + *index as u64));
    note + &lines.collect::<String>()
}

#[test]
fn the_example_of_c2sp_is_read() {
    let policy: Policy = example().parse().unwrap();
    let names: Vec<_> = policy.witnesses().iter().map(|witness| &witness.name[..]).collect();
    assert_eq!(names, ["X1", "X2", "X3", "Y1", "Y2", "Y3"]);
    let urls: Vec<_> = policy.witnesses().iter().map(|witness| witness.url.as_deref()).collect();
    assert_eq!(urls, [None, None, Some("https://x3.example/w"), None, None, None]);
    assert_eq!(policy.witnesses()[3].key, witnesses()[3].key);
    assert_eq!(policy.logs().len(), 2);
    assert_eq!(policy.logs()[0].key, LogKey::from(log().1));
    assert_eq!(policy.logs()[1].url.as_deref(), Some("https://log.example/"));
}

/// Against the quorum said in words, for each set of witnesses.
#[test]
fn the_quorum_of_the_example_is_two_of_x_and_one_of_y() {
    let policy: Policy = example().parse().unwrap();
    for set in 0..64_u32 {
        let of: Vec<usize> = (0..6).filter(|index| set >> index & 1 == 1).collect();
        let note = note(&of);
        let judgement = policy.judge(&SignedNote::parse(note.as_bytes()).unwrap()).unwrap();
        let (x, y) = ((set & 7).count_ones(), (set >> 3).count_ones());
        assert_eq!(judgement.is_met(), x >= 2 && y >= 1, "{set:06b}");
        assert_eq!(judgement.missing().is_empty(), judgement.is_met());
        for (index, witness) in judgement.witnesses.iter().enumerate() {
            let timestamp = witness.cosignature.map(|cosignature| cosignature.timestamp);
            assert_eq!(timestamp, of.contains(&index).then_some(100 + index as u64));
        }
        let opened = policy.open(note.as_bytes());
        assert_eq!(opened.is_ok(), judgement.is_met());
        if let Err(error) = opened {
            assert_eq!(error, PolicyRefusal::Quorum(judgement));
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let policy: Policy = example().parse().unwrap();
    let missing = |of: &[usize]| {
        let note = note(of);
        policy.judge(&SignedNote::parse(note.as_bytes()).unwrap()).unwrap().missing()
    };
    assert_eq!(
        missing(&[1, 4]),
        "2 of the 2 of `X-and-Y` have to have cosigned, and 1 has, without X-witnesses; \
         2 of the 3 of `X-witnesses` have to have cosigned, and 1 has, without X1, X3"
    );
    assert!(
        missing(&[0, 1]).ends_with(
            "; 1 of the 3 of `Y-witnesses` has to have cosigned, and none has, without Y1, Y2, Y3"
        )
    );
    let one: Policy = format!("witness W {}\nquorum W\n", witnesses()[0].key).parse().unwrap();
    let unsigned = note(&[]);
    let judgement = one.judge(&SignedNote::parse(unsigned.as_bytes()).unwrap()).unwrap();
    assert_eq!(judgement.missing(), "the witness `W` has not cosigned");
}

#[test]
fn a_witness_that_lies_makes_the_note_suspect_whatever_the_others_say() {
    let policy: Policy = example().parse().unwrap();
    let of_others = note(&[0, 1, 2, 3, 4]);
    assert!(policy.open(of_others.as_bytes()).is_ok());
    let lie = format!(
        "{of_others}{}",
        witnesses()[5].cosign("example.com/log\n7\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwg=\n", 1)
    );
    assert_eq!(
        policy.open(lie.as_bytes()),
        Err(PolicyRefusal::Witness("Y3".to_owned(), NoteError::BadSignature))
    );
    // One that nobody knows says nothing.
    let stranger = Witness::ed25519("x.example", 77)
        .cosign("example.com/log\n7\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwg=\n", 1);
    assert!(policy.open(format!("{of_others}{stranger}").as_bytes()).is_ok());
}

#[test]
fn only_logs_of_the_policy_are_believed() {
    let (secret, key) = log();
    let ml_dsa = Witness::ml_dsa_44("example.com/log", 9);
    let other = Witness::ml_dsa_44("example.com/log", 10);
    let text = "example.com/log\n7\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n";
    let of_ed25519 = note(&[]);
    let of_ml_dsa = format!("{text}\n{}", ml_dsa.cosign(text, 0));
    let open = |lines: &str, note: &str| {
        let policy: Policy = format!("{lines}quorum none\n").parse().unwrap();
        policy.open(note.as_bytes()).map(|(checkpoint, _)| checkpoint.size)
    };
    let [a, b, c] = [format!("log {key}\n"), format!("log {}\n", ml_dsa.key), format!("log {}\n", other.key)];
    for (lines, note, expected) in [
        (a.clone(), &of_ed25519, Ok(7)),
        (b.clone(), &of_ml_dsa, Ok(7)),
        (format!("{a}{b}{c}"), &of_ed25519, Ok(7)),
        (format!("{c}{b}{a}"), &of_ml_dsa, Ok(7)),
        (a.clone(), &of_ml_dsa, Err(NoteError::NotSigned)),
        (b.clone(), &of_ed25519, Err(NoteError::NotSigned)),
        (c, &of_ml_dsa, Err(NoteError::NotSigned)),
        (String::new(), &of_ed25519, Err(NoteError::Origin)),
    ] {
        assert_eq!(open(&lines, note), expected.map_err(PolicyRefusal::Log), "{lines}");
    }
    // One key of the log that signed holds; another's signature that does not is not passed over.
    let bad = format!(
        "{of_ed25519}{}",
        ml_dsa.cosign("example.com/log\n8\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n", 0)
    );
    assert_eq!(open(&a, &bad), Ok(7));
    assert_eq!(open(&format!("{a}{b}"), &bad), Err(PolicyRefusal::Log(NoteError::BadSignature)));
    // The origin is the key's name.
    let foreign = Checkpoint::new("example.com/log", 7, Hash([7; 32])).body().replace("log", "fog");
    let signature = VerifierKey::new("example.com/log", *key.public_key()).unwrap();
    let line = sign_checkpoint(&Checkpoint::new("example.com/log", 1, Hash([7; 32])), &signature, |_| {
        secret.sign(foreign.as_bytes()).to_bytes()
    });
    let line = line.rsplit_once("\n\n").unwrap().1;
    assert_eq!(open(&a, &format!("{foreign}\n{line}")), Err(PolicyRefusal::Log(NoteError::Origin)));
    assert_eq!(open(&a, "no note"), Err(PolicyRefusal::Log(NoteError::NoSignatures)));
}

/// A key that somebody names beside a policy has to have signed, and so has a log that the policy names.
#[test]
fn a_key_beside_a_policy_takes_nothing_from_its_logs() {
    let (ed25519, text) =
        (LogKey::from(log().1), "example.com/log\n7\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n");
    let ml_dsa = Witness::ml_dsa_44("example.com/log", 9);
    let (beside, foreign) =
        (LogKey::MlDsa44(ml_dsa.key.clone()), Witness::ml_dsa_44("example.com/fog", 11).key);
    let by_ed25519 = note(&[]);
    let by_both = format!("{by_ed25519}{}", ml_dsa.cosign(text, 0));
    let bad = ml_dsa.cosign(&text.replace("\n7\n", "\n8\n"), 0);
    let open = |logs: &[&LogKey], key: &LogKey, note: &str| {
        let lines: String = logs.iter().map(|log| format!("log {log}\n")).collect();
        let policy: Policy = format!("{lines}quorum none\n").parse().unwrap();
        policy.with_log(key.clone()).open(note.as_bytes()).map(|(checkpoint, _)| checkpoint.size)
    };
    let foreign = LogKey::MlDsa44(foreign);
    for logs in [&[][..], &[&ed25519], &[&beside], &[&ed25519, &beside]] {
        assert_eq!(open(logs, &ed25519, &by_both), Ok(7));
        assert_eq!(open(logs, &beside, &by_both), Ok(7));
        let refused = |error| Err(PolicyRefusal::Key(Box::new(foreign.clone()), error));
        assert_eq!(open(logs, &foreign, &by_both), refused(NoteError::Origin), "whatever the policy names");
    }
    assert_eq!(open(&[&beside], &ed25519, &by_ed25519), Err(PolicyRefusal::Log(NoteError::NotSigned)));
    assert_eq!(open(&[&foreign], &ed25519, &by_both), Err(PolicyRefusal::Log(NoteError::Origin)));
    let suspect = format!("{by_ed25519}{bad}");
    assert_eq!(
        open(&[&ed25519, &beside], &ed25519, &suspect),
        Err(PolicyRefusal::Log(NoteError::BadSignature)),
        "what another key of the log signed counts, too"
    );
    let refused = open(&[], &beside, &by_ed25519).unwrap_err();
    assert_eq!(refused, PolicyRefusal::Key(Box::new(beside.clone()), NoteError::NotSigned));
    assert!(refused.to_string().contains(&format!("by the key that was given, {beside}")), "{refused}");
    let alone = Policy::of_log(foreign.clone());
    assert_eq!(
        alone.log_of(&SignedNote::parse(by_both.as_bytes()).unwrap()).unwrap_err().to_string(),
        format!("it is not signed by the key that was given, {foreign}")
    );
}

/// With ML-DSA-44 a log's own signature has the form of a witness's: it is none, whatever the policy calls it.
#[test]
fn a_log_is_no_witness_of_itself() {
    let own = Witness::ml_dsa_44("example.com/log", 9);
    let text = "example.com/log\n7\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n";
    let signed = format!("{}{}", note(&[0]), own.cosign(text, 0));
    let [w, own] = [&witnesses()[0].key, &own.key];
    for lines in ["log LOG\n", ""] {
        let lines = lines.replace("LOG", &log().1.to_string());
        let policy: Policy =
            format!("{lines}witness W {w}\nwitness Own {own}\ngroup G any W Own\nquorum G\n")
                .parse()
                .unwrap();
        let judged = policy.judge(&SignedNote::parse(signed.as_bytes()).unwrap());
        assert_eq!(judged, Err(PolicyRefusal::OwnWitness("Own".to_owned())));
        assert!(judged.unwrap_err().to_string().contains("the log's own name"));
    }
}

/// The quorum is as old as the newest cosignatures of as many as it needs.
#[test]
fn the_time_of_a_quorum_is_that_of_the_last_one_that_it_needs() {
    let policy: Policy = example().parse().unwrap();
    let time = |policy: &Policy, of: &[usize]| {
        let note = note(of);
        policy.judge(&SignedNote::parse(note.as_bytes()).unwrap()).unwrap().time
    };
    // Each of the six cosigns at 100 and its place.
    assert_eq!(time(&policy, &[0, 1, 2, 3, 4, 5]), Some(101), "two of X have cosigned at 101 and 102");
    assert_eq!(time(&policy, &[0, 2, 5]), Some(100));
    assert_eq!(time(&policy, &[1, 2, 3]), Some(101));
    assert_eq!(time(&policy, &[0, 3]), None);
    let none: Policy = "quorum none\n".parse().unwrap();
    assert_eq!(time(&none, &[0, 1]), None);
    let [w, v] = [0, 1].map(|index| witnesses()[index].key.to_string());
    // C2SP tlog-policy asks for decimal numbers, and says nothing of zeros before them.
    let two: Policy = format!("witness W {w}\nwitness V {v}\ngroup G 02 W V\nquorum G\n").parse().unwrap();
    assert_eq!((time(&two, &[0]), time(&two, &[0, 1])), (None, Some(100)));
}

#[test]
fn other_files_are_refused_with_the_line() {
    let [w, v, u] = [1, 2, 4].map(|index| witnesses()[index].key.to_string());
    let key = log().1.to_string();
    let two = format!("witness W {w}\nwitness V {v}\n");
    let form = |problem: &PolicyProblem| matches!(problem, PolicyProblem::Form(_));
    let cases: Vec<(String, usize, PolicyProblem)> = vec![
        (String::new(), 0, PolicyProblem::NoQuorum),
        ("# nothing\n".to_owned(), 0, PolicyProblem::NoQuorum),
        ("quorum none".to_owned(), 0, PolicyProblem::NoNewline),
        ("quorum none\nquorum none\n".to_owned(), 2, PolicyProblem::SecondQuorum),
        ("quorum none\r\n".to_owned(), 1, PolicyProblem::Control),
        ("# \0\nquorum none\n".to_owned(), 1, PolicyProblem::Control),
        ("# \x7f\nquorum none\n".to_owned(), 1, PolicyProblem::Control),
        ("Quorum none\n".to_owned(), 1, PolicyProblem::Word("Quorum".to_owned())),
        ("quorum\u{a0}none\n".to_owned(), 1, PolicyProblem::Word("quorum\u{a0}none".to_owned())),
        ("quorum none # all\n".to_owned(), 1, PolicyProblem::Form("")),
        ("quorum\n".to_owned(), 1, PolicyProblem::Form("")),
        ("log\n".to_owned(), 1, PolicyProblem::Form("")),
        (format!("log {key} https://a b\n"), 1, PolicyProblem::Form("")),
        (format!("witness W {w} https://a b\n"), 1, PolicyProblem::Form("")),
        (format!("witness {w}\n"), 1, PolicyProblem::Form("")),
        (format!("{two}group G any\n"), 3, PolicyProblem::Form("")),
        (format!("{two}group G\n"), 3, PolicyProblem::Form("")),
        (format!("log {w}\n"), 1, PolicyProblem::Key(NoteError::VerifierKey)),
        (format!("witness W {key}\n"), 1, PolicyProblem::Key(NoteError::VerifierKey)),
        (format!("log {key}\nlog {key}\n"), 2, PolicyProblem::SameLog),
        (format!("log {u}\nlog {u} https://other\n"), 2, PolicyProblem::SameLog),
        (format!("{two}witness U {w}\n"), 3, PolicyProblem::SameWitness("W".to_owned())),
        (format!("{two}witness W {u}\n"), 3, PolicyProblem::Name("W".to_owned())),
        (format!("witness none {w}\n"), 1, PolicyProblem::Name("none".to_owned())),
        (format!("{two}group none any W\n"), 3, PolicyProblem::Name("none".to_owned())),
        (format!("{two}group W any V\n"), 3, PolicyProblem::Name("W".to_owned())),
        (format!("{two}group G any G\n"), 3, PolicyProblem::Unknown("G".to_owned())),
        (format!("{two}group G any none\n"), 3, PolicyProblem::Unknown("none".to_owned())),
        (format!("group G any W\n{two}"), 1, PolicyProblem::Unknown("W".to_owned())),
        (format!("quorum W\n{two}"), 1, PolicyProblem::Unknown("W".to_owned())),
        (format!("{two}group G any W W\n"), 3, PolicyProblem::SecondGroup("W".to_owned())),
        (format!("{two}group G any W\ngroup H any W\n"), 4, PolicyProblem::SecondGroup("W".to_owned())),
        (
            format!("{two}group G any W\ngroup H any G\ngroup I any G\n"),
            5,
            PolicyProblem::SecondGroup("G".to_owned()),
        ),
        (format!("log {u}\n{two}witness U {u}\n"), 4, PolicyProblem::OwnWitness("U".to_owned())),
        (format!("{two}witness U {u}\nlog {u}\n"), 4, PolicyProblem::OwnWitness("U".to_owned())),
        (format!("{two}group G 0 W V\n"), 3, PolicyProblem::Threshold(2)),
        (format!("{two}group G 3 W V\n"), 3, PolicyProblem::Threshold(2)),
        (format!("{two}group G +1 W V\n"), 3, PolicyProblem::Threshold(2)),
        (format!("{two}group G most W V\n"), 3, PolicyProblem::Threshold(2)),
        (format!("{two}group G 99999999999999999999 W V\n"), 3, PolicyProblem::Threshold(2)),
        (format!("#{}\nquorum none\n", "x".repeat(MAX_POLICY)), 0, PolicyProblem::TooLong),
    ];
    for (text, line, problem) in cases {
        let error = text.parse::<Policy>().unwrap_err();
        let same = error.problem == problem || (form(&error.problem) && form(&problem));
        assert!(same && error.line == line, "{text}: {error:?}");
        assert!(error.to_string().starts_with("line ") == (line > 0) && error.to_string().len() > 10);
    }
    let error = Policy::parse(b"quorum \xff\n").unwrap_err();
    assert_eq!((error.line, error.problem), (1, PolicyProblem::NotText));
    assert!(Policy::parse(b"# \xff\nquorum none\n").is_ok());
}

#[test]
fn a_policy_has_at_most_a_hundred_of_each() {
    let text = |witnesses: u32| {
        let lines = (0..witnesses).map(|number| {
            let mut seed = [0; 32];
            seed[..4].copy_from_slice(&number.to_le_bytes());
            let key = SigningKey::from_bytes(&seed).verifying_key().to_bytes();
            format!("witness W{number} {}\n", bulla_proof::CosignerKey::ed25519("w", key).unwrap())
        });
        lines.collect::<String>() + "quorum none\n"
    };
    assert_eq!(text(100).parse::<Policy>().unwrap().witnesses().len(), 100);
    let error = text(101).parse::<Policy>().unwrap_err();
    assert_eq!((error.line, error.problem), (101, PolicyProblem::TooMany));
}

proptest! {
    #[test]
    fn no_policy_panics(text in "((log|witness|group|quorum|#|none|any|all|[0-9]|A|B| |\t|\n|\\PC){0,12}\n){0,8}") {
        let _ = text.parse::<Policy>();
    }
}
