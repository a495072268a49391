//! Readers in another process, beside a writer that adds, erases, and makes the database larger.

use super::{assert_sound, create, erase, open, resolve};
use bulla_store::ErrorKind;
use bulla_vault::Access;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const DIRECTORY: &str = "BULLA_VAULT_READER";
const ANSWER: &str = "answer: ";

/// Not a test of its own: answers what it is asked for, a line a question.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let vault = open(Path::new(&directory), Access::Read);
    for question in std::io::stdin().lines() {
        let question = question.unwrap();
        let answer = match question.split_once(' ').unwrap() {
            ("find", name) => match vault.find(name) {
                Ok(found) => format!("{:?}", found.map(|subject| (subject.number, *subject.key.bytes()))),
                Err(error) => format!("{:?}", error.kind()),
            },
            ("key", number) => match vault.key(number.parse().unwrap()) {
                Ok(found) => format!("{:?}", found.map(|key| *key.bytes())),
                Err(error) => format!("{:?}", error.kind()),
            },
            ("hammer", times) => hammer(&vault, times.parse().unwrap()),
            (_, _) => format!("{:?}", vault.resolve(&["new"]).err().unwrap().kind()),
        };
        println!("\n{ANSWER}{answer}");
    }
}

/// Looks people up again and again: how often one was there, was gone, was being erased, and what else it was.
fn hammer(vault: &bulla_vault::Vault, times: usize) -> String {
    let (mut found, mut gone, mut erasing, mut failed) = (0, 0, 0, Vec::new());
    for index in 0..times {
        match vault.find(&format!("s{}", index % 200)) {
            Ok(Some(_)) => found += 1,
            Ok(None) => gone += 1,
            Err(error) if error.kind() == ErrorKind::Erased => erasing += 1,
            Err(error) => failed.push(error.to_string()),
        }
    }
    println!("found {found}, gone {gone}, being erased {erasing}");
    format!("{failed:?}")
}

struct Reader {
    child: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Reader {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Reader { child, questions, answers }
    }

    fn ask(&mut self, question: &str) -> String {
        self.say(question);
        self.hear()
    }

    fn say(&mut self, question: &str) {
        self.questions.write_all(format!("{question}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        let mut lines = self.answers.by_ref().map(Result::unwrap);
        let answer = lines.find_map(|line| line.strip_prefix(ANSWER).map(str::to_owned));
        answer.expect("the reader answers")
    }

    fn end(mut self) {
        drop(self.questions);
        for line in self.answers {
            line.unwrap();
        }
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_reader_sees_what_a_writer_does() {
    let place = tempfile::tempdir().unwrap();
    create(place.path());
    let vault = open(place.path(), Access::Write);
    let mut reader = Reader::start(place.path());
    assert_eq!(reader.ask("find alice"), "None");
    assert_eq!(reader.ask("resolve it"), "Refused");

    let expected = |vault: &bulla_vault::Vault, name: &str| {
        let found = vault.find(name).unwrap();
        format!("{:?}", found.map(|subject| (subject.number, *subject.key.bytes())))
    };
    vault.resolve(&["alice"]).unwrap();
    assert_eq!(reader.ask("find alice"), expected(&vault, "alice"));
    // Far beyond the reader's keys, and the index that it knew.
    resolve(&vault, "s", 0..30_000);
    let last = (bulla_rows() + 5) as u64;
    vault.skip_to(last).unwrap();
    vault.resolve(&["bob"]).unwrap();
    for name in ["alice", "bob", "s0", "s29999"] {
        assert_eq!(reader.ask(&format!("find {name}")), expected(&vault, name), "{name}");
    }

    let erasure = vault.begin_erasure(&["alice"]).unwrap().unwrap();
    assert_eq!([reader.ask("find alice"), reader.ask("key 0")], ["Erased", "Erased"]);
    let committed = erasure.commit().unwrap();
    assert_eq!([reader.ask("find alice"), reader.ask("key 0")], ["None", "None"]);
    vault.confirm(committed.destroy().unwrap().numbers()).unwrap();
    for name in ["alice", "bob", "s0", "s29999"] {
        assert_eq!(reader.ask(&format!("find {name}")), expected(&vault, name), "{name}");
    }
    // The writer is opened anew, and has other spare keys from then on.
    drop(vault);
    let vault = open(place.path(), Access::Write);
    vault.skip_to(last + 4096).unwrap();
    vault.resolve(&["carol"]).unwrap();
    assert_eq!(reader.ask("find carol"), expected(&vault, "carol"));
    reader.end();
}

/// More rows than the first keys are for.
fn bulla_rows() -> usize {
    64 << 12
}

#[test]
fn a_reader_is_not_disturbed_by_erasures() {
    let place = tempfile::tempdir().unwrap();
    create(place.path());
    let vault = open(place.path(), Access::Write);
    resolve(&vault, "s", 0..200);
    let mut readers = (0..2).map(|_| Reader::start(place.path())).collect::<Vec<_>>();
    readers.iter_mut().for_each(|reader| reader.say("hammer 20000"));
    for number in 0..60 {
        erase(&vault, &[number * 3]);
        resolve(&vault, "t", number as usize * 50..number as usize * 50 + 50);
    }
    for mut reader in readers {
        assert_eq!(reader.hear(), "[]");
        reader.end();
    }
    assert_sound(&vault);
}
