//! Attacks on a real log: what finds each of them, at which level, and what nothing finds. The table in docs/threat-model.md is made of
//! this one.

mod document;
mod files;
mod histories;
mod keys;
mod scene;
mod segments;
mod tails;
mod watched;

use bulla::{ErrorKind, Finding, Log, Report, Result, Severity, Verify};
use scene::{Scene, State, Template};
use std::fs;

/// What an attacker controls. Whatever it is, what the owner keeps elsewhere is not part of it: the public key, the seal key, the identity and the
/// pin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Controls {
    /// The log's directory.
    Storage,
    /// The key directory, or a copy of it from some time on.
    Keys,
    Both,
}

impl Controls {
    fn name(self) -> &'static str {
        match self {
            Controls::Storage => "storage",
            Controls::Keys => "keys",
            Controls::Both => "both",
        }
    }
}

/// What is at hand for a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The log's directory alone: `verify --public`.
    Public,
    /// And the log's public key: `--public --key`.
    Key,
    /// And the seal key: `--seal-key`.
    Seal,
    /// And the state of the seal chain, as the key directory has it after the attack: `verify` on the writing host.
    Host,
    /// The public key, and a pin of the log before the attack: `--public --key --pin`.
    Pin,
    /// The public key, an identity, and the vault as the key directory has it after the attack: `--key --identity`.
    Identity,
}

impl Level {
    const ALL: [Level; 6] =
        [Level::Public, Level::Key, Level::Seal, Level::Host, Level::Pin, Level::Identity];

    /// The level with less at hand whose findings this one has too, unless it is said otherwise.
    fn below(self) -> Option<Level> {
        match self {
            Level::Public => None,
            Level::Key => Some(Level::Public),
            Level::Seal | Level::Pin | Level::Identity => Some(Level::Key),
            Level::Host => Some(Level::Seal),
        }
    }
}

/// What becomes of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Opens,
    /// It refuses to open the log, or fails where it had it open.
    Fails(ErrorKind),
}

/// An attack, and all that finds it.
struct Attack {
    name: &'static str,
    controls: Controls,
    /// What the log is like before.
    state: State,
    carry_out: fn(&mut Scene),
    /// What is found at each level, as [`told`] has it. A level that is not named finds what the one below it does.
    found: &'static [(Level, &'static [&'static str])],
    /// What becomes of the writer that has the log open, or else of one that opens it.
    writer: Writer,
    /// The same of one that has a pin.
    pinned: Writer,
    /// What else finds it, or why nothing has to.
    elsewhere: &'static str,
}

/// What the table leaves out of an attack.
const NOTHING: Attack = Attack {
    name: "",
    controls: Controls::Storage,
    state: State::Closed,
    carry_out: |_| (),
    found: &[],
    writer: Writer::Opens,
    pinned: Writer::Opens,
    elsewhere: "",
};

impl Attack {
    fn found_at(&self, level: Level) -> &'static [&'static str] {
        let named = self.found.iter().find(|(at, _)| *at == level).map(|(_, found)| *found);
        named.or_else(|| level.below().map(|below| self.found_at(below))).unwrap_or_default()
    }
}

/// All of them, in the order of the document.
fn attacks() -> Vec<&'static Attack> {
    let parts = [segments::ATTACKS, files::ATTACKS, tails::ATTACKS, histories::ATTACKS, keys::ATTACKS];
    parts.into_iter().flatten().collect()
}

/// A finding: `kind segment frames entries`, as far as it has them; a notice begins with `told:`.
fn told(finding: &Finding) -> String {
    let mut text = match finding.severity {
        Severity::Violation => String::new(),
        _ => "told: ".to_owned(),
    };
    text += finding.kind.name();
    if let Some(segment) = &finding.segment {
        // Its number alone says which it is.
        let short = segment.trim_start_matches('0');
        text += &format!(" {}{short}", if short.starts_with('.') { "0" } else { "" });
    }
    if let (Some(first), Some(last)) = (finding.frame, finding.last_frame) {
        text += &format!(" f{first}-{last}");
    }
    if let Some((first, last)) = finding.entries {
        text += &format!(" e{first}-{last}");
    }
    text
}

fn verify(scene: &Scene, level: Level) -> Result<Report> {
    let mut verify = Verify::open(&scene.directory)?;
    if level != Level::Public {
        verify = verify.key(scene.key.clone());
    }
    if matches!(level, Level::Seal | Level::Host) {
        verify = verify.seal_key(&scene.seal_key)?;
    }
    if level == Level::Host
        && let Ok(state) = fs::read(scene.keys().join("seal.state"))
    {
        verify = verify.seal_state(&state)?;
    }
    if level == Level::Pin {
        verify = verify.pin(&scene.pin);
    }
    if level == Level::Identity {
        verify = verify.identity(scene.identity.clone()).group_keys(scene.vault()?);
    }
    verify.run()
}

/// What is found at a level, in order; of a verification that cannot be done, the error's kind.
fn findings(scene: &Scene, level: Level) -> Vec<String> {
    match verify(scene, level) {
        Ok(report) => {
            let violations = report.findings.iter().any(|finding| finding.severity == Severity::Violation);
            assert_eq!(report.ok, !violations, "{level:?}: {:#?}", report.findings);
            report.findings.iter().map(told).collect()
        }
        Err(error) => vec![format!("error: {:?}", error.kind())],
    }
}

/// What becomes of a writer that opens the log.
fn opening(scene: &Scene, pinned: bool) -> Writer {
    let options = if pinned { scene.options().pin(&scene.pin) } else { scene.options() };
    match Log::open(&scene.directory, options) {
        Ok(log) => {
            log.close().unwrap();
            Writer::Opens
        }
        Err(error) => Writer::Fails(error.kind()),
    }
}

/// Carries the attacks out, each on a log of its own, and holds all that is found against what has to be.
fn hold(attacks: &[Attack]) {
    let template = Template::new();
    let mut wrong = String::new();
    for attack in attacks {
        let mut scene = template.scene(attack.state);
        (attack.carry_out)(&mut scene);
        let writer = scene.fails();
        for level in Level::ALL {
            let found = findings(&scene, level);
            if found != attack.found_at(level) {
                wrong +=
                    &format!("{}: {level:?}: {found:?}, and not {:?}\n", attack.name, attack.found_at(level));
            }
        }
        // Opening may change what is there.
        let pinned = writer.unwrap_or_else(|| opening(&scene.copied(), true));
        let writers = (writer.unwrap_or_else(|| opening(&scene, false)), pinned);
        if writers != (attack.writer, attack.pinned) {
            wrong += &format!("{}: writers: {writers:?}\n", attack.name);
        }
        let after = findings(&scene, Level::Key);
        let hidden = attack.found_at(Level::Key).iter().filter(|found| !found.starts_with("told: "));
        let hidden = hidden.filter(|found| !after.iter().any(|one| one == *found)).collect::<Vec<_>>();
        if !hidden.is_empty() {
            wrong += &format!("{}: a writer has hidden {hidden:?} and left {after:?}\n", attack.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Else an attack could seem to be found where something else is.
#[test]
fn nothing_is_found_where_nobody_attacks() {
    let template = Template::new();
    for (state, expected) in
        [(State::Closed, &[][..]), (State::Killed, &["told: unsigned-tail 8.seg f11-13"])]
    {
        let scene = template.scene(state);
        for level in Level::ALL {
            assert_eq!(findings(&scene, level), expected, "{level:?}");
        }
        for pinned in [false, true] {
            assert_eq!(opening(&scene.copied(), pinned), Writer::Opens);
        }
    }
}

#[test]
fn attacks_on_segments() {
    hold(segments::ATTACKS);
}

#[test]
fn attacks_on_other_files_of_the_log() {
    hold(files::ATTACKS);
}

#[test]
fn attacks_on_what_is_not_signed_yet() {
    hold(tails::ATTACKS);
}

#[test]
fn other_histories_than_the_log_s() {
    hold(histories::ATTACKS);
}

#[test]
fn attacks_on_keys() {
    hold(keys::ATTACKS);
}
