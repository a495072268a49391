//! Changes of the configuration: who may, what the log says of it, and what else is refused.

mod changed_back;
mod effect;

use bulla::config::{self, LogConfig};
use bulla::environment::{Clock, Environment, Interrupt, SystemClock};
use bulla::event::Event;
use bulla::keys::recipients::IdentityFile;
use bulla::segment::SegmentName;
use bulla::{
    Configure, Configured, Entry, ErrorKind, Export, Finding, FindingKind, Init, Log, Options, Query, Reader,
    Report, Result, SettingSource, Unopened, Verify,
};
use bulla_proof::Commitment;
use bulla_proof::hash::{Hash, sha256};
use bulla_testkit::fault::Faults;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The real time, in which waiting takes none.
struct Hasty;

impl Clock for Hasty {
    fn now(&self) -> i64 {
        SystemClock.now()
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

fn environment() -> Environment {
    Environment { clock: Arc::new(Hasty), ..Environment::default() }
}

/// Somebody who reads logs.
struct Person {
    identity: String,
    recipient: String,
}

fn person() -> Person {
    let machine = Faults::new();
    let (log, keys) = (machine.store("audit"), machine.store("audit.keys"));
    Init::default().erasure(false).create_in(&log, &keys, &environment()).unwrap();
    let (config, _) = config::load(&log).unwrap();
    let identity = String::from_utf8(machine.read("audit.keys/identity.age").unwrap()).unwrap();
    Person { identity, recipient: config.recipients[0].clone() }
}

/// A log on a machine of its own.
struct Made {
    machine: Faults,
    owner: Person,
}

impl Made {
    fn new() -> Self {
        let (machine, owner) = (Faults::new(), person());
        let init = Init::default().erasure(false).origin("example.com/audit").recipient(&owner.recipient);
        let (log, keys) = (machine.store("audit"), machine.store("audit.keys"));
        init.create_in(&log, &keys, &environment()).unwrap();
        Made { machine, owner }
    }

    /// With some entries.
    fn filled() -> Self {
        let made = Made::new();
        made.append(20).unwrap();
        made
    }

    /// What is left of it when its process dies.
    fn killed(&self) -> Made {
        let Person { identity, recipient } = &self.owner;
        let owner = Person { identity: identity.clone(), recipient: recipient.clone() };
        Made { machine: self.machine.kill(), owner }
    }

    fn open(&self) -> Result<Log> {
        let (log, keys) = (self.machine.store("audit"), self.machine.store("audit.keys"));
        Log::open_stepped(Arc::new(log), Arc::new(keys), Options::default(), environment())
    }

    /// Entries in a session of their own.
    fn append(&self, entries: u32) -> Result<()> {
        let log = self.open()?;
        let mut producer = log.producer()?;
        for number in 0..entries {
            producer.append(&Entry::new("read", &format!("key/{number}")))?;
        }
        drop(producer);
        log.close()
    }

    fn apply(&self, configure: &Configure) -> Result<Configured> {
        let (log, keys) = (self.machine.store("audit"), self.machine.store("audit.keys"));
        configure.apply_in(Arc::new(log), Arc::new(keys), &environment())
    }

    fn change(&self, to: &[&Person]) -> Result<Configured> {
        let recipients = to.iter().map(|person| person.recipient.clone());
        self.apply(&Configure::default().recipients(recipients).unwrap())
    }

    /// A change to `to` that is cut short at the rename of the file: before it, or once it is durable.
    fn cut_short(&self, to: &[&Person], renamed: bool) -> Made {
        let whole = self.killed();
        whole.change(to).unwrap();
        let trace = whole.machine.trace();
        let rename = trace.iter().find(|line| line.contains("Rename") && line.contains("bulla.toml"));
        let rename = rename.and_then(|line| line.split(' ').next()?.parse::<u64>().ok()).unwrap();
        let stopped = self.killed();
        stopped.machine.stop_at(rename + if renamed { 2 } else { 0 });
        assert_eq!(stopped.change(to).unwrap_err().kind(), ErrorKind::Unavailable);
        stopped.killed()
    }

    /// Of each change that the log tells of, whether it is said to have been carried out.
    fn done(&self) -> Vec<Option<bool>> {
        let mut done = Vec::new();
        let reader = Reader::open_store(Arc::new(self.machine.store("audit"))).unwrap();
        let listed = reader.events(|logged| {
            done.extend(matches!(logged.event, Ok(Event::Configured { .. })).then_some(logged.done));
            Ok(())
        });
        listed.unwrap();
        done
    }

    fn text(&self) -> String {
        String::from_utf8(self.machine.read("audit/bulla.toml").unwrap()).unwrap()
    }

    fn write(&self, text: &str) {
        self.machine.overwrite("audit/bulla.toml", text.as_bytes());
    }

    fn config(&self) -> LogConfig {
        config::load(&self.machine.store("audit")).unwrap().0
    }

    fn verification(&self) -> Verify {
        let seal_key = String::from_utf8(self.machine.read("audit.keys/seal.key").unwrap()).unwrap();
        let verify = Verify::open_store(Arc::new(self.machine.store("audit"))).unwrap();
        verify.key(self.config().verifier_key).seal_key(&seal_key).unwrap()
    }

    fn verify(&self) -> Report {
        self.verification().run().unwrap()
    }

    /// What is wrong, and in which frame.
    fn findings(&self) -> Vec<(FindingKind, Option<u64>)> {
        let place = |finding: &Finding| (finding.kind, finding.frame);
        let findings = self.verify().findings.iter().map(place).collect::<Vec<_>>();
        let sound = findings.iter().all(|(kind, _)| *kind == FindingKind::UnknownFile);
        let (agrees, told) = self.second_reader();
        assert_eq!(agrees, sound, "the second reader: {told}; {findings:?}");
        findings
    }

    /// Whether `interop/bulla_reader` has no objection, and what it says.
    fn second_reader(&self) -> (bool, String) {
        let place = tempfile::tempdir().unwrap();
        for path in self.machine.files() {
            let to = place.path().join(&path);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, self.machine.read(&path).unwrap()).unwrap();
        }
        let mut command = bulla_testkit::second_reader("verify");
        command.arg(place.path().join("audit"));
        command.arg("--seal-key").arg(place.path().join("audit.keys/seal.key"));
        let output = command.output().expect("python3 is there");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Entries that an identity reads.
    fn read(&self, identity: &str, query: Query) -> Result<u64> {
        let export = Export::open_store(Arc::new(self.machine.store("audit")))?.query(query);
        let identity = Arc::new(IdentityFile::parse(identity)?);
        Ok(export.identity(identity).run(&mut Vec::new())?.entries)
    }

    /// The last segment's path and content.
    fn segment(&self) -> (String, Vec<u8>) {
        let name = |path: &String| SegmentName::parse(path.strip_prefix("audit/segments/")?);
        let files = self.machine.files().into_iter().filter(|path| name(path).is_some());
        let path = files.max_by_key(name).unwrap();
        let content = self.machine.read(&path).unwrap();
        (path, content)
    }

    /// The frames of that segment: where they are, and what they are.
    fn frames(&self) -> Vec<(usize, Commitment)> {
        let (_, content) = self.segment();
        let mut frames = Vec::new();
        let mut at = 0;
        while at < content.len() {
            let commitment = Commitment::decode(&content[at + 24..at + 176]).unwrap();
            frames.push((at, commitment.clone()));
            at += 24 + 152 + commitment.body_length as usize + 32;
        }
        frames
    }

    /// The frames that tell of changes: their numbers, where their bodies are, and what they say.
    fn events(&self) -> Vec<(u64, usize, Event)> {
        let (_, content) = self.segment();
        let body =
            |at: usize, commitment: &Commitment| &content[at + 176..][..commitment.body_length as usize];
        let frames = self.frames().into_iter().filter_map(|(at, commitment)| {
            let event = Event::decode(body(at, &commitment)).ok()?;
            matches!(event, Event::Configured { .. }).then_some((commitment.frame, at + 176, event))
        });
        frames.collect()
    }

    /// The host lies: it takes this for the configuration of its last epoch, and for the one that may follow.
    fn believe(&self, current: Hash, next: Hash) {
        let mut state = self.machine.read("audit.keys/seal.state").unwrap();
        state[24..56].copy_from_slice(&current.0);
        state[160..192].copy_from_slice(&next.0);
        let end = state.len() - 32;
        let (content, check) = state.split_at_mut(end);
        check.copy_from_slice(&sha256(&[content]).0);
        self.machine.overwrite("audit.keys/seal.state", &state);
    }
}

fn edited(text: &str) -> String {
    text.replacen("[log]", "# edited\n[log]", 1)
}

fn digest(text: &str) -> Hash {
    config::parse(text.as_bytes()).unwrap().0.digest
}

#[test]
fn a_change_is_in_the_log_and_the_log_stays_sound() {
    let made = Made::filled();
    let (before, other) = (made.config(), person());
    let text = made.text();
    let size = made.verify().tree_size;
    let changed = made.change(&[&other, &made.owner]).unwrap();
    let after = made.config();
    assert_eq!((changed.changed, changed.log), (true, Some((before.digest, after.digest))));
    assert_eq!(after.recipients, [other.recipient.clone(), made.owner.recipient.clone()]);
    let old = format!("[\n  \"{}\",\n]", made.owner.recipient);
    let new = format!("[\n  \"{}\",\n  \"{}\",\n]", other.recipient, made.owner.recipient);
    assert_eq!(made.text(), text.replacen(&old, &new, 1), "nothing else of the file is touched");
    let report = made.verify();
    assert_eq!((report.ok, report.findings, report.tree_size), (true, Vec::new(), size + 3));
    let said = Event::Configured {
        before: before.digest.to_string(),
        after: after.digest.to_string(),
        changed: vec!["recipients".to_owned()],
    };
    let events = made.events();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].0, &events[0].2), (size + 1, &said), "after an epoch of the old one");

    // Nothing is recorded of what changes nothing.
    let again = made.change(&[&other, &made.owner]).unwrap();
    assert_eq!((again.changed, again.log), (false, None));
    assert_eq!(made.verify().tree_size, size + 3);
    // And back, and on, in one log.
    made.append(10).unwrap();
    made.change(&[&made.owner]).unwrap();
    made.append(10).unwrap();
    made.change(&[&other]).unwrap();
    made.append(10).unwrap();
    assert_eq!(made.events().len(), 3);
    assert_eq!(made.findings(), []);
}

#[test]
fn each_epoch_is_read_by_those_whom_it_was_begun_for() {
    let made = Made::filled();
    let other = person();
    let first = made.frames().len() as u64;
    made.change(&[&other]).unwrap();
    made.append(7).unwrap();
    let both = made.owner.identity.clone() + &other.identity;
    assert_eq!(made.read(&both, Query::default()).unwrap(), 27);

    let refused = |identity: &str, epoch: u64| {
        let error = made.read(identity, Query::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoKey);
        assert!(error.to_string().contains(&format!("does not open epoch {epoch} of")), "{error}");
    };
    refused(&other.identity, 0);
    // An epoch to record the change in, the event, one to begin with, and the one that was appended in.
    refused(&made.owner.identity, first + 3);
    assert_eq!(made.read(&made.owner.identity, Query::default().entries(0..=19)).unwrap(), 20);
    assert_eq!(made.read(&other.identity, Query::default().entries(20..=26)).unwrap(), 7);

    for (identity, readable, unread) in [(&made.owner.identity, 20, 7), (&other.identity, 7, 20)] {
        let identity = Arc::new(IdentityFile::parse(identity).unwrap());
        let report = made.verification().identity(identity.clone()).run().unwrap();
        let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert_eq!(kinds, [FindingKind::NotOpened], "what was not checked does not pass for checked");
        let export = Export::open_store(Arc::new(made.machine.store("audit"))).unwrap();
        let exported = export.identity(identity).salvage(true).run(&mut Vec::new()).unwrap();
        let unopened = exported.unopened.iter().map(Unopened::count).sum::<u64>();
        assert_eq!((exported.entries, exported.left_out, unopened), (readable, 0, unread));
        assert_eq!(exported.findings, [], "a key that is missing is no damage");
    }
}

/// The `age` command opens the epochs after the change with the new identity, and with the old one those before it.
/// That of the event itself, in which nothing is but that, is for the new one already.
#[test]
fn the_age_command_unwraps_the_keys_that_are_its_own() {
    let made = Made::filled();
    let other = person();
    made.change(&[&other]).unwrap();
    let (_, content) = made.segment();
    let place = tempfile::tempdir().unwrap();
    let epochs = made.frames().into_iter().filter(|(_, commitment)| commitment.epoch == commitment.frame);
    let mut opened = Vec::new();
    for (at, commitment) in epochs {
        let body = &content[at + 176..][..commitment.body_length as usize];
        std::fs::write(place.path().join("key.age"), &body[136..]).unwrap();
        let opens = |person: &Person| {
            std::fs::write(place.path().join("identity"), &person.identity).unwrap();
            let mut age = Command::new("age");
            age.current_dir(place.path()).args(["--decrypt", "--identity", "identity", "key.age"]);
            age.output().expect("the `age` command is there").status.success()
        };
        opened.push((opens(&made.owner), opens(&other)));
    }
    assert_eq!(opened, [(true, false), (false, true), (false, true)]);
}

#[test]
fn what_is_edited_behind_its_back_is_refused_after_a_change_too() {
    let made = Made::filled();
    let (old, other) = (made.text(), person());
    made.change(&[&other]).unwrap();
    made.append(5).unwrap();
    let since = made.events()[0].0 + 1;
    let new = made.text();
    let mine = person();
    let hash = new.replacen("\"sha256\"", "\"sha3-256\"", 1);
    for text in [edited(&new), old, new.replacen(&other.recipient, &mine.recipient, 1), hash] {
        let made = made.killed();
        made.write(&text);
        assert_eq!(made.open().unwrap_err().kind(), ErrorKind::Refused);
        assert_eq!(made.change(&[&person()]).unwrap_err().kind(), ErrorKind::Refused, "nor is it changed");
        assert_eq!(made.text(), text);
        assert_eq!(made.findings(), [(FindingKind::ConfigMismatch, Some(since))]);
    }
    made.open().unwrap().close().unwrap();
}

#[test]
fn between_the_event_and_the_next_epoch_either_will_do() {
    let made = Made::filled();
    let (old, other) = (made.text(), person());
    for renamed in [false, true] {
        let cut = made.cut_short(&[&other], renamed);
        assert_eq!(cut.text() != old, renamed);
        let left = [(FindingKind::UnknownFile, None)];
        let expected = if renamed { &[][..] } else { &left[..] };
        assert_eq!(cut.findings(), expected, "it was not yet said which one it is");
        assert_eq!(cut.events().len(), 1);
        assert_eq!(cut.done(), [None]);
        let mine = cut.killed();
        mine.write(&edited(&old));
        assert_eq!(mine.open().unwrap_err().kind(), ErrorKind::Refused, "but no third one");
        assert_eq!(mine.findings()[..1], [(FindingKind::ConfigMismatch, Some(0))]);
        cut.append(3).unwrap();
        assert_eq!(cut.findings(), []);
        assert_eq!(cut.done(), [Some(renamed)]);
    }
}

#[test]
fn an_older_seal_state_learns_of_a_change_from_the_log() {
    let made = Made::filled();
    let other = person();
    let older = made.machine.read("audit.keys/seal.state").unwrap();
    // From the event alone, or from an epoch that was begun with it: their seals hold.
    let event = made.cut_short(&[&other], true);
    let epoch = made.killed();
    epoch.change(&[&other]).unwrap();
    for log in [event, epoch] {
        log.machine.overwrite("audit.keys/seal.state", &older);
        let edit = log.killed();
        edit.write(&edited(&edit.text()));
        assert_eq!(edit.open().unwrap_err().kind(), ErrorKind::Refused);
        log.append(3).unwrap();
        assert_eq!(log.findings(), []);
    }
}

#[test]
fn a_change_that_was_not_carried_out_allows_nothing_later() {
    let made = Made::filled();
    let (old, other) = (made.text(), person());
    let new = made.cut_short(&[&other], true).text();
    let cut = made.cut_short(&[&other], false);
    cut.append(3).unwrap();
    assert_eq!(cut.text(), old);
    cut.write(&new);
    assert_eq!(cut.open().unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(cut.findings(), [(FindingKind::ConfigMismatch, Some(0))]);
}

#[test]
fn an_event_that_nobody_sealed_allows_nothing() {
    let made = Made::filled();
    let (old, other) = (made.text(), person());
    let new = old.replacen(&made.owner.recipient, &other.recipient, 1);
    // The true one, from another future of the log, with its seal and what follows; then made to fit this one.
    let donor = made.killed();
    donor.change(&[&other]).unwrap();
    assert_eq!(donor.text(), new);
    let (path, content) = made.segment();
    let (_, longer) = donor.segment();
    let frames = donor.frames();
    let event = frames.iter().position(|(_, it)| it.frame == donor.events()[0].0).unwrap();
    let bytes = |index: usize| {
        let end = frames.get(index + 1).map_or(longer.len(), |(at, _)| *at);
        longer[frames[index].0..end].to_vec()
    };
    let mut renumbered = bytes(event);
    let mut commitment = frames[event].1.clone();
    (commitment.frame, commitment.epoch) = (commitment.frame - 1, 0);
    renumbered[24..176].copy_from_slice(&commitment.encode());
    for (tail, what) in
        [(renumbered, "an event right behind the log"), (bytes(event), "one out of its place")]
    {
        let forged = made.killed();
        forged.machine.overwrite(&path, &[&content[..], &tail].concat());
        forged.write(&new);
        let kind = forged.open().unwrap_err().kind();
        assert!([ErrorKind::Refused, ErrorKind::Tampered].contains(&kind), "{what}: {kind:?}");
        let findings = forged.findings();
        assert!(findings.contains(&(FindingKind::ConfigMismatch, Some(0))), "{what}: {findings:?}");
        // Without it, the log opens: a forged tail is a torn one.
        forged.write(&old);
        let _ = forged.open();
    }
}

#[test]
fn a_host_that_changes_it_without_an_event_is_found_out() {
    let made = Made::filled();
    let (old, other) = (made.text(), person());
    let (third, next) = (edited(&old), made.frames().len() as u64);
    // It believes that it always was this one.
    let lying = made.killed();
    lying.write(&third);
    lying.believe(digest(&third), digest(&third));
    lying.append(4).unwrap();
    assert_eq!(lying.findings(), [(FindingKind::ConfigMismatch, Some(next))]);
    // And back again: both steps are told.
    lying.write(&old);
    lying.believe(digest(&old), digest(&old));
    lying.append(4).unwrap();
    assert_eq!(
        lying.findings(),
        [(FindingKind::ConfigMismatch, Some(next)), (FindingKind::ConfigMismatch, Some(next + 2))]
    );

    // An event of another change.
    let lying = made.cut_short(&[&other], false);
    let next = lying.frames().len() as u64;
    lying.write(&third);
    lying.believe(digest(&third), digest(&third));
    lying.append(4).unwrap();
    assert_eq!(lying.findings(), [(FindingKind::ConfigMismatch, Some(next))]);
    // An event that speaks of a configuration that the log does not have.
    let lying = made.killed();
    lying.believe(digest(&old), digest(&third));
    lying.write(&third);
    let next = lying.frames().len() as u64;
    lying.change(&[&other]).unwrap();
    assert_eq!(lying.findings(), [(FindingKind::ConfigMismatch, Some(next))]);
}

#[test]
fn where_an_event_is_damaged_the_damage_is_told_and_nothing_else() {
    let made = Made::filled();
    let other = person();
    made.change(&[&other]).unwrap();
    made.append(4).unwrap();
    let (path, content) = made.segment();
    let (frame, at, _) = made.events().remove(0);
    let flipped = |at: usize| {
        let damaged = made.killed();
        let mut content = content.clone();
        content[at] ^= 1;
        damaged.machine.overwrite(&path, &content);
        damaged
    };
    assert_eq!(flipped(at + 30).findings(), [(FindingKind::BodyDamaged, Some(frame))]);
    // The epoch after it, which would have had to be allowed.
    let epoch = made.frames().into_iter().find(|(_, it)| it.frame == frame + 1).unwrap().0;
    let kinds = flipped(epoch + 176 + 150).findings();
    assert_eq!(kinds, [(FindingKind::BodyDamaged, Some(frame + 1))]);
    // Both, and the file edited: it is none of those that the log knows.
    let both = flipped(at + 30);
    both.write(&edited(&both.text()));
    assert!(both.findings().iter().any(|(kind, _)| *kind == FindingKind::ConfigMismatch));
}

#[test]
fn a_verification_that_began_before_a_change_ends_well_after_it() {
    let made = Made::filled();
    let other = person();
    let verification = made.verification();
    made.change(&[&other]).unwrap();
    made.append(4).unwrap();
    let report = verification.run().unwrap();
    assert_eq!((report.ok, report.findings, report.entries), (true, Vec::new(), 24));
}

#[test]
fn settings_change_beside_a_writer_and_nothing_else_does() {
    let made = Made::filled();
    let (text, host) = (made.text() + "writers = 2 # why\n", "[settings]\nlinger = \"7 ms\" # why\n");
    made.write(&text);
    made.machine.overwrite("audit.keys/settings.toml", host.as_bytes());
    let of_host = || String::from_utf8(made.machine.read("audit.keys/settings.toml").unwrap()).unwrap();
    let set = |one: [&str; 2], other: [&str; 2]| {
        Configure::default().set(one[0], one[1]).unwrap().set(other[0], other[1]).unwrap()
    };
    let both = [set(["linger", "20 ms"], ["memory", "128 MiB"]), set(["writers", "3"], ["retries", "4"])];
    let log = made.open().unwrap();
    for configure in &both {
        let done = made.apply(configure).unwrap();
        assert!(done.changed && done.live && done.log.is_none());
    }
    assert_eq!(made.text(), text.replace("= 2 # why", "= 3 # why") + "retries = 4\n");
    assert_eq!(of_host(), host.replace("\"7 ms\"", "\"20 ms\"") + "memory = \"128 MiB\"\n");
    let error = made.change(&[&person()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "[log] is the writer's");
    log.close().unwrap();

    for configure in &both {
        let done = made.apply(configure).unwrap();
        assert!(!done.changed && !done.live);
    }
    for [one, other] in [["linger", "memory"], ["writers", "retries"]] {
        made.apply(&Configure::default().unset(one).unwrap().unset(other).unwrap()).unwrap();
    }
    assert_eq!(
        (made.text(), of_host()),
        (text.replace("writers = 2 # why\n", ""), "[settings]\n".to_owned())
    );
    assert_eq!(made.findings(), []);
}

#[test]
fn settings_and_log_change_together() {
    let made = Made::filled();
    let other = person();
    let configure = Configure::default().set("retries", "9").unwrap();
    made.apply(&configure.set("log.recipients", &format!("{}, ", other.recipient)).unwrap()).unwrap();
    assert_eq!(made.config().recipients, [other.recipient]);
    assert!(made.text().ends_with("\nretries = 9\n"));
    assert_eq!(made.findings(), []);
}

#[test]
fn settings_that_a_log_could_not_be_opened_with_are_refused() {
    let made = Made::filled();
    let text = made.text();
    for settings in [
        &[("memory", "1 MiB")][..],
        &[("writers", "8"), ("block_size", "16 MiB")],
        &[("durability", "interval 61 min")],
        &[("compression", "20")],
    ] {
        let configure =
            settings.iter().try_fold(Configure::default(), |all, (name, value)| all.set(name, value));
        let error = made.apply(&configure.unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{settings:?}");
        assert_eq!(made.text(), text);
    }
    // One that is wrong already is in the way of nothing but itself.
    made.write(&format!("{text}writers = 0\n"));
    assert!(made.apply(&Configure::default().set("retries", "1").unwrap()).is_err());
    made.apply(&Configure::default().unset("writers").unwrap()).unwrap();
    assert_eq!(made.text(), text);
    made.write("[log]\n");
    let error = made.apply(&Configure::default().set("retries", "1").unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered, "as whoever reads the log calls it");
    assert_eq!(made.text(), "[log]\n");
}

#[test]
fn one_at_a_time_changes_the_configuration() {
    use bulla::store::Store;
    let made = Made::filled();
    let lock = made.machine.store("audit").lock("bulla.toml.lock").unwrap();
    let configure = Configure::default().set("retries", "1").unwrap();
    for error in [made.apply(&configure), made.change(&[&person()])] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Locked);
    }
    drop(lock);
    made.apply(&configure).unwrap();
    assert_eq!(made.findings(), [], "the lock's file belongs to a log");
    let settings = config::load(&made.machine.store("audit")).unwrap().1.settings();
    let retries = settings.iter().find(|setting| setting.name == "retries").unwrap();
    assert_eq!((retries.value.as_str(), retries.source), ("1", SettingSource::File));
}

#[test]
fn recipients_that_are_none_are_refused_before_anything_is_said() {
    let made = Made::filled();
    let (text, size) = (made.text(), made.verify().tree_size);
    for wrong in ["", " , ", "age1nobody"] {
        let error = Configure::default().set("log.recipients", wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
    }
    let many = (0..800).map(|_| person().recipient).collect::<Vec<_>>();
    let error = made.apply(&Configure::default().recipients(many).unwrap()).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("too many"), "{error}");
    assert_eq!((made.text(), made.verify().tree_size), (text, size));
}

#[test]
fn rules_for_fields_are_recorded_and_hold_from_the_next_epoch_on() {
    let made = Made::filled();
    let before = made.text();
    let rules = |rules: &[(&str, &str)]| {
        let configure =
            rules.iter().try_fold(Configure::default(), |all, (field, rule)| all.field(field, rule));
        made.apply(&configure.unwrap()).unwrap()
    };
    let twice = Configure::default().field("location", "drop").unwrap().field("location", "strip-query");
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Invalid);
    let changed = rules(&[("payload", "cap:9"), ("location", "strip-query")]);
    assert_eq!(changed.keys, ["fields.location", "fields.payload"]);
    assert_eq!(changed.log.unwrap().1, made.config().digest);
    let table = "\n[log.fields]\nlocation = \"strip-query\"\npayload = \"cap:9\"\n\n[settings]";
    assert_eq!(made.text(), before.replacen("\n[settings]", table, 1), "nothing else of the file is touched");
    let said = Event::Configured {
        before: digest(&before).to_string(),
        after: made.config().digest.to_string(),
        changed: vec!["fields.location".to_owned(), "fields.payload".to_owned()],
    };
    assert_eq!(made.events().remove(0).2, said);
    made.append(4).unwrap();
    assert_eq!(made.findings(), []);

    // With recipients, and with settings, in one change; and away again.
    let other = person();
    let all = Configure::default().field("actor", "drop").unwrap().set("retries", "9").unwrap();
    let all = all.recipients([&other.recipient, &made.owner.recipient]).unwrap();
    assert_eq!(made.apply(&all).unwrap().keys, ["recipients", "fields.actor"]);
    made.append(4).unwrap();
    let none = rules(&[("actor", "keep"), ("location", "keep"), ("payload", "keep"), ("client", "keep")]);
    assert_eq!(none.keys, ["fields.location", "fields.actor", "fields.payload"]);
    made.change(&[&made.owner]).unwrap();
    assert_eq!(made.text(), before.clone() + "retries = 9\n", "no trace is left");
    let same = rules(&[("client", "keep")]);
    assert!(!same.changed && same.keys.is_empty() && same.log.is_none());
    assert_eq!(made.events().len(), 4);
    assert_eq!(made.findings(), []);

    // By hand it is an edit like any other.
    let edit = made.text().replacen("\n[settings]", "\n[log.fields]\nclient = \"drop\"\n\n[settings]", 1);
    made.write(&edit);
    assert_eq!(made.open().unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn a_file_with_a_rule_that_makes_no_sense_is_no_configuration() {
    let made = Made::new();
    let with = |table: &str| made.text().replacen("\n[settings]", &format!("\n{table}\n[settings]"), 1);
    for (table, said) in [
        ("[log.fields]\nclient = \"truncate\"\n", "`[log.fields]`: `truncate` is no rule for `client`"),
        ("[log.fields]\noperation = \"drop\"\n", "`operation` is always kept"),
        ("[log.fields]\nnobody = \"drop\"\n", "an entry has no field `nobody`"),
        ("[log.fields]\nclient = 24\n", "client"),
        ("[log.fields]\nclient = \"drop\"\nclient = \"keep\"\n", "duplicate key"),
        ("[log.field]\nclient = \"drop\"\n", "unknown field `field`"),
    ] {
        let error = config::parse(with(table).as_bytes()).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(said), "{table}: {error}");
    }
    assert!(config::parse(with("[log.fields]\n").as_bytes()).unwrap().0.fields.is_empty());
}

/// Stopped at any operation, the first rule for pseudonyms is there with its key or not at all.
#[test]
fn no_crash_leaves_a_rule_for_pseudonyms_without_their_key() {
    let made = Made::filled();
    let rule = Configure::default().field("location", "pseudonymise").unwrap();
    let whole = made.killed();
    whole.apply(&rule).unwrap();
    let (mut old, mut new) = (0, 0);
    for stop in 0..whole.machine.operations() {
        let stopped = made.killed();
        stopped.machine.stop_at(stop);
        assert_eq!(stopped.apply(&rule).unwrap_err().kind(), ErrorKind::Unavailable, "{stop}");
        for machine in [stopped.machine.kill(), stopped.machine.crash(stop)] {
            let left = Made { machine, owner: made.killed().owner };
            match left.config().fields.is_empty() {
                true => old += 1,
                false => new += 1,
            }
            left.append(2).unwrap();
            left.apply(&rule).unwrap();
            left.append(2).unwrap();
            assert!(left.verify().ok, "{stop}");
        }
    }
    assert!(old > 0 && new > 0, "{old} {new}");
}
