//! Plugins, by one of the tests' own: working, and in every way that one can misbehave.

use super::at_a_terminal;
use crate::support::{Place, Ran, arguments, command, eventually, exit, finish, incompressible, lines};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const NAME: &str = "age-plugin-bullatest";

fn recipient() -> String {
    let hrp = bech32::Hrp::parse("age1bullatest").unwrap();
    bech32::encode::<bech32::Bech32>(hrp, b"whoever").unwrap()
}

fn identity() -> String {
    let hrp = bech32::Hrp::parse("age-plugin-bullatest-").unwrap();
    bech32::encode::<bech32::Bech32>(hrp, b"whoever").unwrap().to_uppercase()
}

/// How long the plugin may take: what hangs is not waited for, and what does not has whatever time it takes.
fn limit(mode: &str) -> &'static str {
    match mode {
        "hang" | "offspring" => "1 s",
        _ => "1 h",
    }
}

/// A place with the plugin in it, and a log whose only recipient is the plugin's.
struct World {
    place: Place,
    identity: String,
}

impl World {
    fn new() -> Self {
        let place = Place::empty();
        std::fs::create_dir(place.path("bin")).unwrap();
        let plugin = place.path("bin").join(NAME);
        std::fs::write(&plugin, include_str!("plugin.sh")).unwrap();
        std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
        let identity = place.write("plugin.age", format!("# a plugin's\n{}\n", identity()).as_bytes());
        let world = World { place, identity };
        let init = arguments!["init", world.place.audit(), "--recipient", recipient()];
        world.bulla("ok", &init, b"").exits(exit::DONE);
        world.place.run("config", &["set", "retries", "0"]).exits(exit::DONE);
        world
    }

    fn with_entries() -> Self {
        let world = World::new();
        world.append("ok", &lines(0..10)).exits(exit::DONE);
        world
    }

    fn command(&self, mode: &str, arguments: &[OsString]) -> Command {
        let mut command = command(arguments);
        let path = format!("{}:{}", self.place.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("BULLATEST_MODE", mode).env("BULLATEST_NOTES", self.place.path(""));
        command.env("BULLA_PLUGIN_TIMEOUT", limit(mode)).stdin(Stdio::piped());
        command
    }

    fn bulla(&self, mode: &str, arguments: &[OsString], input: &[u8]) -> Ran {
        let mut child = self.command(mode, arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(stdin.write_all(input)));
            finish(child)
        })
    }

    fn append(&self, mode: &str, input: &[u8]) -> Ran {
        self.place.run("config", &["set", "plugin_timeout", limit(mode)]).exits(exit::DONE);
        self.bulla(mode, &self.place.arguments("append", &[]), input)
    }

    fn export(&self, mode: &str) -> Ran {
        self.bulla(mode, &self.place.arguments("export", &["--identity", &self.identity]), b"")
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.place.path("runs")).unwrap_or_default().lines().count()
    }
}

/// It wraps for the check that it can, and for the epoch in which the change is recorded, and then not for the one after it.
#[test]
fn a_plugin_that_fails_after_the_change_does_not_make_it_undone() {
    let (_, other) = bulla::keys::identities::generate();
    for (subcommand, words) in [
        ("keys", &["add-recipient", &other, "--json"][..]),
        ("config", &["set", "log.heartbeat", "1 h", "--json"]),
    ] {
        let world = World::with_entries();
        std::fs::remove_file(world.place.path("runs")).unwrap();
        let ran = world.bulla("later", &world.place.arguments(subcommand, words), b"");
        let ran = ran.exits(exit::ENVIRONMENT);
        let told = "it is done: the configuration is changed, and that is recorded in the log; what failed after that: ";
        assert!(ran.err.contains(told) && ran.err.contains("no such key"), "{ran:?}");
        let json = ran.json();
        assert!(json["error"].as_str().unwrap().contains(told), "{json}");
        assert_eq!((&json["changed"], &json["recorded"]), (&true.into(), &true.into()), "{json}");
        assert_eq!(world.runs(), 3);
        // So it is.
        let again = world.bulla("ok", &world.place.arguments(subcommand, words), b"");
        assert_eq!(again.exits(exit::DONE).json()["changed"], false);
        let events = world.place.run("events", &["--kind", "configured", "--json"]).exits(exit::DONE);
        assert_eq!(crate::support::parse_lines(&events.out).len(), 1);
    }
}

#[test]
fn a_log_whose_only_recipient_is_a_plugins() {
    let world = World::with_entries();
    world.place.run("config", &["set", "segment_size", "64 KiB"]).exits(exit::DONE);
    world.append("ok", &incompressible(40)).exits(exit::DONE);
    assert!(world.runs() >= 4, "an init, two openings, a rotation");
    assert_eq!(world.export("ok").exits(exit::DONE).out.lines().count(), 50);
    let list = world.place.run("keys", &["list", "--json"]).exits(exit::DONE).json();
    let (before, epochs) = (world.runs(), list["epochs"][0]["count"].as_u64().unwrap());
    let verify = world.place.arguments("verify", &["--identity", &world.identity]);
    assert!(world.bulla("ok", &verify, b"").exits(exit::DONE).out.contains("every block"));
    assert_eq!((world.runs() - before) as u64, epochs, "once for each epoch");
    let (before, salvage) = (world.runs(), ["--identity", &world.identity, "--salvage"]);
    world.bulla("ok", &world.place.arguments("export", &salvage), b"").exits(exit::DONE);
    assert_eq!((world.runs() - before) as u64, epochs, "although everything is read twice");
    for mode in ["noise", "strange", "lingering", "talk"] {
        assert_eq!(world.export(mode).exits(exit::DONE).out.lines().count(), 50, "{mode}");
        world.append(mode, &lines(0..0)).exits(exit::DONE);
    }
}

#[test]
fn a_plugin_beside_other_keys_is_asked_last() {
    let world = World::new();
    let (mine, recipient) = super::new_identity(&world.place, "mine.age");
    for change in [&["rotate"][..], &["add-recipient", &recipient]] {
        world.bulla("ok", &world.place.arguments("keys", change), b"").exits(exit::DONE);
    }
    world.append("ok", &lines(0..10)).exits(exit::DONE);
    let both = world.place.write(
        "both.age",
        [world.identity.as_str(), &mine]
            .map(|path| std::fs::read_to_string(path).unwrap())
            .concat()
            .as_bytes(),
    );
    let runs = world.runs();
    let export = world.place.arguments("export", &["--identity", &both]);
    assert_eq!(world.bulla("ok", &export, b"").exits(exit::DONE).out.lines().count(), 10);
    assert_eq!(world.runs() - runs, 0, "all entries are for the key at hand, too");
    let verify = world.place.arguments("verify", &["--identity", &both]);
    world.bulla("ok", &verify, b"").exits(exit::DONE);
    assert_eq!(world.runs() - runs, 1, "it is run for the epoch before that was added");
}

#[test]
fn what_it_says_is_told_with_its_name_and_fit_for_a_terminal() {
    let world = World::with_entries();
    for ran in [world.export("talk"), world.append("talk", b"")] {
        let ran = ran.exits(exit::DONE);
        assert!(ran.err.contains("age-plugin-bullatest: touch the key [2J\n"), "{ran:?}");
        assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
    }
}

/// Each with what the error says.
const FAILURES: [(&str, &str); 9] = [
    ("fail", "failed: no such key [2J"),
    ("silent", "wrapped nothing"),
    ("die", "ended before"),
    ("garbage", "no message of the plugin protocol"),
    ("hang", "did not answer within 1s and was stopped"),
    ("offspring", "did not answer within 1s and was stopped"),
    ("zeros", "wrote a line of over 16384 bytes"),
    ("lines", "no message of the plugin protocol"),
    ("messages", "wrote over 1048576 bytes|sent over 1000 messages"),
];

#[test]
fn whatever_it_does_the_error_names_it_and_the_log_stays() {
    let world = World::with_entries();
    for (mode, said) in FAILURES {
        for (what, ran) in [("append", world.append(mode, &lines(0..5))), ("export", world.export(mode))] {
            if mode == "silent" && what == "export" {
                // It opens nothing, and says so: as an identity that is no recipient.
                assert!(ran.exits(exit::REFUSED).err.contains("does not open epoch"));
                continue;
            }
            let ran = ran.exits(exit::ENVIRONMENT);
            assert!(ran.err.contains(NAME), "{mode} {what}: {ran:?}");
            assert!(said.split('|').any(|said| ran.err.contains(said)), "{mode} {what}: {ran:?}");
            assert!(!ran.err.contains('\u{1b}') && !ran.err.contains("WHOEVER"), "{mode} {what}: {ran:?}");
        }
    }
    let ran = world.append("die", b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("it said: Traceback  [31mboom"), "{ran:?}");
    let ran = world.append("hang", b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("plugin_timeout") && ran.err.contains("BULLA_PLUGIN_TIMEOUT"), "{ran:?}");
    world.append("ok", &lines(0..5)).exits(exit::DONE);
    assert_eq!(world.export("ok").exits(exit::DONE).out.lines().count(), 15);
    world.place.run("verify", &["--public"]).exits(exit::DONE);
}

/// A verification that could not ask the plugin says nothing of the log.
#[test]
fn a_plugin_that_fails_is_no_damage() {
    let world = World::with_entries();
    let verify = world.place.arguments("verify", &["--identity", &world.identity]);
    for mode in ["fail", "die", "hang"] {
        let ran = world.bulla(mode, &verify, b"").exits(exit::ENVIRONMENT);
        assert!(ran.err.contains(NAME) && ran.out.is_empty(), "{ran:?}");
    }
}

#[test]
fn one_that_is_missing_is_named() {
    let world = World::with_entries();
    std::fs::remove_file(world.place.path("bin").join(NAME)).unwrap();
    for ran in [world.append("ok", b""), world.export("ok")] {
        let ran = ran.exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("there is no age-plugin-bullatest in PATH"), "{ran:?}");
    }
    let place = Place::empty();
    let init = arguments!["init", place.audit(), "--recipient", recipient()];
    let ran = world.bulla("ok", &init, b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains(NAME) && !place.audit().exists(), "{ran:?}");
}

#[test]
fn recipients_that_do_not_go_together_are_refused() {
    let world = World::with_entries();
    let (_, recipient) = super::new_identity(&world.place, "mine.age");
    let add = world.place.arguments("keys", &["add-recipient", &recipient]);
    let ran = world.bulla("labels", &add, b"").exits(exit::USAGE);
    assert!(ran.err.contains("do not go together"), "{ran:?}");
    world.append("labels", &lines(10..20)).exits(exit::DONE);
    assert_eq!(world.export("ok").exits(exit::DONE).out.lines().count(), 20);
}

/// Or else its log could never be written again.
#[test]
fn a_recipient_whose_plugin_is_gone_can_be_removed() {
    let world = World::with_entries();
    let (mine, mine_recipient) = super::new_identity(&world.place, "mine.age");
    std::fs::remove_file(world.place.path("bin").join(NAME)).unwrap();
    let keys = |more: &[&str]| world.bulla("ok", &world.place.arguments("keys", more), b"");
    keys(&["add-recipient", &mine_recipient]).exits(exit::ENVIRONMENT);
    let set = ["set", "log.recipients", &mine_recipient];
    world.bulla("ok", &world.place.arguments("config", &set), b"").exits(exit::DONE);
    world.append("ok", &lines(10..20)).exits(exit::DONE);
    let export = world.place.arguments("export", &["--identity", &mine, "--entries", "10..19"]);
    assert_eq!(world.bulla("ok", &export, b"").exits(exit::DONE).out.lines().count(), 10);
}

/// What hangs is ended with all that it started.
#[test]
fn nothing_of_a_plugin_that_hung_is_left() {
    let world = World::with_entries();
    world.append("offspring", b"").exits(exit::ENVIRONMENT);
    let offspring = std::fs::read_to_string(world.place.path("offspring")).unwrap();
    let process = Path::new("/proc").join(offspring.trim());
    let gone = || {
        let state = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    eventually("the plugin's own child has ended", gone);
}

/// With little memory to be had, a plugin that talks without end is an error as with much.
#[test]
fn what_it_says_does_not_fill_memory() {
    let world = World::with_entries();
    for mode in ["zeros", "messages", "noise"] {
        // The vault takes address space, not memory.
        let options = ["--withhold-personal", "--identity", &world.identity];
        let export = world.place.arguments("export", &options);
        let mut limited = Command::new("prlimit");
        let inner = world.command(mode, &export);
        limited.arg("--as=1000000000").arg(inner.get_program()).args(inner.get_args());
        limited.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let code = if mode == "noise" { exit::DONE } else { exit::ENVIRONMENT };
        Ran::from(limited.output().unwrap()).exits(code);
    }
}

#[test]
fn questions_are_asked_at_the_terminal_and_refused_where_there_is_none() {
    let world = World::with_entries();
    let export = world.place.arguments("export", &["--identity", &world.identity]);
    let path = format!("{}:{}", world.place.path("bin").display(), std::env::var("PATH").unwrap());
    // A person takes longer than a plugin may: that time is not the plugin's.
    let run = |mode: &str, answers: &[(&str, &str)]| {
        let (ran, echo) = at_a_terminal(
            &[
                ("PATH", &path),
                ("BULLATEST_MODE", mode),
                ("BULLA_PLUGIN_TIMEOUT", "1 s"),
                ("ANSWER_AFTER", "1.5"),
            ],
            &export,
            answers,
        );
        assert!(echo);
        ran
    };
    let ran = run("secret", &[("age-plugin-bullatest: PIN: ", "1234\n")]);
    assert!(ran.code == exit::DONE && !ran.out.contains("1234"), "{ran:?}");
    let ran = run("secret", &[("PIN: ", "4321\n")]);
    assert!(ran.code == exit::ENVIRONMENT && ran.out.contains("wrong PIN"), "{ran:?}");
    let question = "age-plugin-bullatest: really? (y: of course, n: never): ";
    let ran = run("confirm", &[(question, "perhaps\n"), (question, "y\n")]);
    assert_eq!(ran.code, exit::DONE, "{ran:?}");
    let ran = run("confirm", &[(question, "n\n")]);
    assert_eq!(ran.code, exit::ENVIRONMENT, "{ran:?}");

    // A writer asks nobody, wherever it runs.
    let ran = world.append("secret", b"").exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("wrong PIN"), "{ran:?}");
}
