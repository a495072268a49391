//! A mirror over a line that is cut or damaged anywhere, and senders and receivers that are not what they should be.

use super::{Source, files, is_sound};
use crate::helpers::in_full;
use crate::policy::witness;
use bulla::environment::Environment;
use bulla::mirror::Shipped;
use bulla::mirror::wire::{Remote, Sending, receive, serve};
use bulla::store::{Store, read_small};
use bulla::{ErrorKind, VerifierKey, Verify};
use bulla_testkit::Memory;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// What becomes of the bytes that the receiver reads.
#[derive(Clone, Copy, Debug)]
enum Line {
    Sound,
    /// It ends before this byte.
    Cut(u64),
    /// A bit of this byte is another one.
    Damaged(u64),
}

struct Reading {
    stream: UnixStream,
    line: Line,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = buffer;
        if let Line::Cut(end) = self.line {
            let left = usize::try_from(end - self.at).unwrap();
            let length = buffer.len().min(left);
            buffer = &mut buffer[..length];
        }
        let read = self.stream.read(buffer)?;
        let place = match self.line {
            Line::Damaged(place) => place.checked_sub(self.at).filter(|place| *place < read as u64),
            _ => None,
        };
        if let Some(place) = place {
            buffer[usize::try_from(place).unwrap()] ^= 1 << (self.at % 8);
        }
        self.at += read as u64;
        Ok(read)
    }
}

/// How both sides ended that mirror `from` into `to`, and what the sender was told last.
struct Ended {
    sender: bulla::Result<()>,
    receiver: bulla::Result<()>,
    told: Option<Shipped>,
}

fn mirrored(
    from: &Path,
    to: &Arc<dyn Store>,
    line: Line,
    keys: (Option<&VerifierKey>, Option<VerifierKey>),
) -> Ended {
    let (sender, receiver) = UnixStream::pair().unwrap();
    let source = files(from);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut told = None;
            let (mut input, mut output) = (sender.try_clone().unwrap(), sender);
            let mut sending = Sending {
                once: true,
                key: keys.0,
                wait: &mut |_| true,
                told: &mut |shipped| told = Some(*shipped),
            };
            let ended = serve(&*source, &mut input, &mut output, &mut sending);
            (ended, told)
        });
        let reading = Reading { stream: receiver.try_clone().unwrap(), line, at: 0 };
        let clock = Environment::default().clock;
        let received = Remote::connect(Box::new(reading), Box::new(receiver))
            .and_then(|remote| receive(&remote, to.clone(), keys.1, &*clock));
        let (sender, told) = sending.join().unwrap();
        Ended { sender, receiver: received, told }
    })
}

fn verify(source: &Source, to: &Arc<dyn Store>) -> bulla::Result<bulla::Report> {
    Verify::open_store(to.clone())?.key(source.key.clone()).run()
}

#[test]
fn over_a_line_the_same_arrives() {
    let (source, earlier) = Source::witnessed();
    let to: Arc<dyn Store> = Arc::new(Memory::new());
    for from in [&earlier, &source.directory] {
        let ended = mirrored(from, &to, Line::Sound, (Some(&source.key), Some(source.key.clone())));
        ended.sender.unwrap();
        ended.receiver.unwrap();
        let report = verify(&source, &to).unwrap();
        is_sound(&report, "over a line");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let told = ended.told.unwrap();
        assert_eq!((told.frames, told.entries, told.behind.frames), (report.tree_size, report.entries, 0));
    }
    assert_eq!(verify(&source, &to).unwrap().root, source.verify(&source.directory).run().unwrap().root);
    let cosigned = format!("cosigned/{:08x}", witness(1).1.key_id());
    for name in ["checkpoint", "checkpoint.cose", "checkpoint.witnessed", &cosigned] {
        let there = read_small(&*to, name, 1 << 20).unwrap();
        assert_eq!(there, std::fs::read(source.directory.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_line_that_is_cut_or_damaged_anywhere_harms_no_mirror() {
    let (source, earlier) = Source::witnessed();
    let whole: Arc<dyn Store> = Arc::new(Memory::new());
    mirrored(&earlier, &whole, Line::Sound, (None, None)).receiver.unwrap();
    let old = verify(&source, &whole).unwrap().tree_size;
    let new = source.verify(&source.directory).run().unwrap().tree_size;
    // How many bytes there are, by where a cut is none.
    let (mut cuts, mut failures, mut at) = (0, 0, 3);
    let step = if in_full() { 211 } else { 2909 };
    loop {
        let mut ended = None;
        for line in [Line::Cut(at), Line::Damaged(at)] {
            let to: Arc<dyn Store> = Arc::new(Memory::new());
            mirrored(&earlier, &to, Line::Sound, (None, None)).receiver.unwrap();
            let received = mirrored(&source.directory, &to, line, (None, None)).receiver;
            let report = verify(&source, &to).unwrap();
            is_sound(&report, &format!("{line:?}"));
            assert!([old, new].contains(&report.tree_size), "{line:?}");
            match (&received, line) {
                (Ok(()), _) => assert_eq!(report.tree_size, new, "{line:?}"),
                (Err(error), Line::Cut(_)) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{line:?}: {error}");
                    assert_eq!(report.tree_size, old, "{line:?}");
                    cuts += 1;
                }
                (Err(error), _) => {
                    let kinds = [ErrorKind::Unavailable, ErrorKind::Tampered];
                    assert!(kinds.contains(&error.kind()), "{line:?}: {error}");
                    failures += 1;
                }
            }
            mirrored(&source.directory, &to, Line::Sound, (None, None)).receiver.unwrap();
            is_sound(&verify(&source, &to).unwrap(), &format!("gone on with after {line:?}"));
            ended = ended.or(matches!((received, line), (Ok(()), Line::Cut(_))).then_some(()));
        }
        if ended.is_some() {
            break;
        }
        at += step;
    }
    assert!(cuts > 20 && failures > 20, "{cuts} cuts, {failures} failures");
}

#[test]
fn what_the_receiver_has_against_a_log_the_sender_hears() {
    let (source, earlier) = Source::eventful();
    let to: Arc<dyn Store> = Arc::new(Memory::new());
    mirrored(&source.directory, &to, Line::Sound, (None, None)).sender.unwrap();
    let ended = mirrored(&earlier, &to, Line::Sound, (None, None));
    let (sender, receiver) = (ended.sender.unwrap_err(), ended.receiver.unwrap_err());
    assert_eq!((sender.kind(), receiver.kind()), (ErrorKind::Tampered, ErrorKind::Tampered));
    assert_eq!(sender.to_string(), format!("the receiver: {receiver}"));
    // A receiver that is bound to a key takes no log of another one, whatever the sender says.
    let other = Source::new();
    let empty: Arc<dyn Store> = Arc::new(Memory::new());
    let bound = |named| mirrored(&other.directory, &empty, Line::Sound, (named, Some(source.key.clone())));
    assert_eq!(bound(Some(&other.key)).sender.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(bound(None).sender.unwrap_err().kind(), ErrorKind::Tampered);
    assert!(empty.open("bulla.toml").is_err());
}

/// What a receiver says, in bytes: a message of this kind with these fields.
fn message(kind: u8, fields: &[u8]) -> Vec<u8> {
    let length = u32::try_from(1 + fields.len()).unwrap();
    [&length.to_le_bytes()[..], &[kind], fields].concat()
}

/// That so many frames and entries have arrived, and so many frames, entries and bytes not.
fn state(numbers: [u64; 5]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    message(5, &[&[0; 10][..], &numbers].concat())
}

#[test]
fn a_sender_passes_on_nothing_that_a_receiver_cannot_have() {
    let source = Source::new();
    source.append(6);
    let report = source.verify(&source.directory).run().unwrap();
    let (frames, entries) = (report.tree_size, report.entries);
    let mut bytes = 0;
    let to = tempfile::tempdir().unwrap();
    source
        .mirror(&to.path().join("copy"))
        .unwrap()
        .poll(|told| bytes = bytes.max(told.behind.bytes))
        .unwrap();
    let served = |said: &[Vec<u8>], once| {
        let mut told = Vec::new();
        let (input, mut output) = (said.concat(), Vec::new());
        let mut sending = Sending {
            once,
            key: None,
            wait: &mut |_| true,
            told: &mut |shipped: &Shipped| told.push(shipped.frames),
        };
        let ended = serve(&*files(&source.directory), &mut &input[..], &mut output, &mut sending);
        (ended.map_err(|error| (error.kind(), error.to_string())), told)
    };
    let (none, all, done) =
        (state([0, 0, frames, entries, bytes]), state([frames, entries, 0, 0, 0]), message(6, &[]));
    // What is so.
    assert_eq!(served(&[none.clone(), all.clone(), done.clone()], true), (Ok(()), vec![0, frames]));
    let refused = [&[6][..], b"why"].concat();
    let beyond = |at: usize, by: u64| {
        let mut numbers = [0, 0, frames, entries, bytes];
        numbers[at] = numbers[at].saturating_add(by);
        state(numbers)
    };
    for (at, by) in (0..5).flat_map(|at| [(at, 1), (at, u64::MAX)]) {
        let false_one = beyond(at, by);
        let (ended, told) = served(&[none.clone(), false_one.clone(), all.clone(), done.clone()], true);
        let (kind, why) = ended.unwrap_err();
        assert_eq!((kind, told), (ErrorKind::Unavailable, vec![0]), "{at} by {by}: {why}");
        assert!(why.contains("the receiver says that it has"), "{why}");
        // One that is ahead of a log that was put back begins so, and says what it has against that.
        let (ended, told) = served(&[false_one.clone(), message(7, &refused)], true);
        assert_eq!(ended.unwrap_err(), (ErrorKind::Tampered, "the receiver: why".to_owned()));
        assert!(told.is_empty(), "{told:?}");
        for rest in [vec![done.clone()], vec![false_one.clone(), done.clone()]] {
            let (ended, told) = served(&[vec![false_one.clone()], rest].concat(), true);
            assert_eq!((ended.unwrap_err().0, told), (ErrorKind::Unavailable, vec![]));
        }
    }
    // That all has arrived.
    for said in [
        vec![done.clone()],
        vec![none.clone(), done.clone()],
        vec![state([frames - 1, 0, 0, 0, 0]), done.clone()],
    ] {
        let (kind, why) = served(&said, true).0.unwrap_err();
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(why.contains("the receiver says that all has arrived"), "{why}");
    }
    let (ended, _) = served(&[all, done], false);
    assert!(ended.unwrap_err().1.contains("was to go on"));
}

#[test]
fn what_a_receiver_of_a_damaged_log_says_is_heard() {
    let source = Source::new();
    source.append(6);
    let segment = source.directory.join("segments/00000000000000000000.seg");
    std::fs::write(segment, b"").unwrap();
    let to: Arc<dyn Store> = Arc::new(Memory::new());
    let sender = mirrored(&source.directory, &to, Line::Sound, (None, None)).sender.unwrap_err();
    assert_eq!(sender.kind(), ErrorKind::Tampered, "{sender}");
    assert!(sender.to_string().contains("frames-missing"), "{sender}");
}

/// The sender's end of a line, by which the log is put back once its checkpoint was given out.
struct PutsBack<'a>(&'a Path, &'a Path);

impl io::Write for PutsBack<'_> {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        // Its length is written before.
        if message.first() == Some(&0x81) {
            std::fs::copy(self.1.join("checkpoint"), self.0.join("checkpoint"))?;
        }
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_has_arrived_counts_also_where_the_log_was_put_back_meanwhile() {
    let (source, earlier) = Source::eventful();
    let report = source.verify(&source.directory).run().unwrap();
    let (frames, entries) = (report.tree_size, report.entries);
    let said = [state([0; 5]), message(1, b"checkpoint"), state([frames, entries, 0, 0, 0]), message(6, &[])];
    let mut told = Vec::new();
    let mut sending = Sending {
        once: true,
        key: None,
        wait: &mut |_| true,
        told: &mut |shipped: &Shipped| told.push(shipped.frames),
    };
    let mut output = PutsBack(&source.directory, &earlier);
    serve(&*files(&source.directory), &mut &said.concat()[..], &mut output, &mut sending).unwrap();
    assert_eq!(told, [0, frames]);
}
