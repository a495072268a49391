//! Attacks on a real log: what finds each of them, at which level, and what nothing finds. The table in docs/threat-model.md is made of
//! this one.

mod document;
mod files;
mod histories;
mod keys;
mod paths;
mod scene;
mod segments;
mod tails;
mod watched;

use bulla::{ErrorKind, Export, Finding, Log, Query, Report, Result, Severity, Verify};
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

/// What whoever reads on the writing host gets, with its key directory, the public key and an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// All entries that there were before the attack, as they were.
    All,
    /// All of them, some without what is personal, of which it is told that their keys are lost.
    KeysLost,
    /// Those of what was put in the place of the log, and no error.
    Others,
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
    /// What an export of everything gets.
    exported: Read,
    /// What a query for entries by their numbers gets.
    queried: Read,
    /// What becomes of the writer that has the log open, or else of one that opens it.
    writer: Writer,
    /// The same of one that has a pin.
    pinned: Writer,
    /// Whether what was found is damage that a writer mends, and tells of.
    mended: bool,
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
    exported: Read::All,
    queried: Read::All,
    writer: Writer::Opens,
    pinned: Writer::Opens,
    mended: false,
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
    let parts = [
        segments::ATTACKS,
        files::ATTACKS,
        tails::ATTACKS,
        histories::ATTACKS,
        paths::ATTACKS,
        keys::ATTACKS,
    ];
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
    let mut verify = Verify::open_store(scene.log(level == Level::Host)?)?;
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

/// The entries that a query on the writing host gets.
fn entries(scene: &Scene, query: Query) -> Result<Vec<String>> {
    let log = bulla::open_log(&scene.directory, Some(&scene.keys()), &[])?;
    let export = Export::open_store(log)?.key(scene.key.clone()).identity(scene.identity.clone());
    let mut out = Vec::new();
    export.group_keys(scene.vault()?).query(query).run(&mut out)?;
    Ok(String::from_utf8(out).unwrap().lines().map(str::to_owned).collect())
}

/// What an export of everything gets, and a query for more entries by their numbers than there are.
fn read(scene: &Scene) -> [Result<Vec<String>>; 2] {
    [Query::new(), Query::new().entries(0..=1000)].map(|query| entries(scene, query))
}

/// Whether entries are those of before, but for some of which the keys are lost.
fn are_without_keys(entries: &[String], before: &[String]) -> bool {
    let same = |(now, before): (&String, &String)| now == before || now.contains("\"withheld\":\"key-lost\"");
    entries.len() == before.len() && entries.iter().zip(before).all(same)
}

impl Read {
    fn of(read: Result<Vec<String>>, before: &[String]) -> Self {
        match read {
            Ok(entries) if entries.starts_with(before) => Read::All,
            Ok(entries) if are_without_keys(&entries, before) => Read::KeysLost,
            Ok(_) => Read::Others,
            Err(error) => Read::Fails(error.kind()),
        }
    }
}

/// What becomes of a writer that opens the log, and whether it tells that it mends something.
fn opening(scene: &Scene, pinned: bool) -> (Writer, bool) {
    let options = if pinned { scene.options().pin(&scene.pin) } else { scene.options() };
    match Log::open(&scene.directory, options) {
        Ok(log) => {
            let mends = log.recovery().cose_damaged;
            log.close().unwrap();
            (Writer::Opens, mends)
        }
        Err(error) => (Writer::Fails(error.kind()), false),
    }
}

/// Carries the attacks out, each on a log of its own, and holds all that is found against what has to be.
fn hold(attacks: &[Attack]) {
    let template = Template::new();
    let mut wrong = String::new();
    for attack in attacks {
        let mut scene = template.scene(attack.state);
        let before = entries(&scene, Query::new()).unwrap();
        (attack.carry_out)(&mut scene);
        let writer = scene.fails();
        for level in Level::ALL {
            let found = findings(&scene, level);
            if found != attack.found_at(level) {
                wrong +=
                    &format!("{}: {level:?}: {found:?}, and not {:?}\n", attack.name, attack.found_at(level));
            }
        }
        let [exported, queried] = read(&scene).map(|read| Read::of(read, &before));
        if (exported, queried) != (attack.exported, attack.queried) {
            wrong += &format!("{}: readers: {exported:?}, {queried:?}\n", attack.name);
        }
        // Opening may change what is there.
        let open =
            |scene: &Scene, pinned| writer.map_or_else(|| opening(scene, pinned), |ended| (ended, false));
        let (pinned, _) = open(&scene.copied(), true);
        let (alone, mended) = open(&scene, false);
        if (alone, pinned, mended) != (attack.writer, attack.pinned, attack.mended) {
            wrong += &format!("{}: writers: {alone:?}, {pinned:?}, told {mended}\n", attack.name);
        }
        let after = findings(&scene, Level::Key);
        let hidden = attack.found_at(Level::Key).iter().filter(|found| !found.starts_with("told: "));
        let hidden = hidden.filter(|found| !after.iter().any(|one| one == *found)).collect::<Vec<_>>();
        if hidden.is_empty() == attack.mended {
            wrong += &format!("{}: a writer has hidden {hidden:?} and left {after:?}\n", attack.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Else an attack could seem to be found where something else is.
#[test]
fn nothing_is_found_where_nobody_attacks() {
    let template = Template::new();
    for (state, expected) in [
        (State::Closed, &[][..]),
        (State::Paths, &[]),
        (State::Killed, &["told: unsigned-tail 8.seg f11-13"]),
    ] {
        let scene = template.scene(state);
        for level in Level::ALL {
            assert_eq!(findings(&scene, level), expected, "{level:?}");
        }
        for pinned in [false, true] {
            assert_eq!(opening(&scene.copied(), pinned), (Writer::Opens, false));
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
fn attacks_on_one_of_several_paths() {
    hold(paths::ATTACKS);
}

#[test]
fn attacks_on_keys() {
    hold(keys::ATTACKS);
}
