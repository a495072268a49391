//! What the fuzz targets `resp` and `proxy_header` run, and what tests of the parsers share. Not part of a library: there are no entry points but
//! in tests and under a fuzzer.

use crate::proxy_header::{Expected, MOST};
use crate::resp::SHORT;
use crate::resp::{
    Digest, Kind, Limits, Node, Part, Progress, Replies, Reply, Requests, Violation, write_command,
};
use redis_protocol::{resp2, resp3};

/// Limits that keep all of what a test has.
pub(crate) const ALL: Limits = Limits { bytes: usize::MAX, items: usize::MAX, text: usize::MAX };
/// Limits that keep little of it.
pub(crate) const LITTLE: Limits = Limits { bytes: 20, items: 4, text: 6 };

/// Bytes as what a client sends, and as what a server does: in whatever pieces they come they are the same commands and replies,
/// and those that `redis-protocol` reads.
pub fn resp(bytes: &[u8]) {
    for limits in [ALL, LITTLE] {
        let whole = commands(bytes, limits, usize::MAX);
        let replies_whole = replies(bytes, limits, usize::MAX);
        for piece in [1, 2, 7, usize::from(bytes.first().copied().unwrap_or(0)).max(1)] {
            assert_eq!(commands(bytes, limits, piece), whole, "in pieces of {piece}");
            assert_eq!(replies(bytes, limits, piece), replies_whole, "in pieces of {piece}");
        }
    }
    let whole = replies(bytes, ALL, usize::MAX).0;
    for piece in [1, 5, usize::MAX] {
        hold_parts_against_the_whole(bytes, piece, &whole);
    }
    // It recurses as deep as values lie in one another.
    if bytes.len() <= 1024 {
        hold_commands_against_another_parser(bytes);
        hold_replies_against_another_parser(bytes);
    }
}

/// Bytes as the beginning of a connection: a header says the same from the byte on that it ends with, and nothing before.
pub fn proxy_header(bytes: &[u8]) {
    for expected in [Expected::Required, Expected::Refused] {
        let whole = expected.read(bytes);
        for cut in 0..bytes.len().min(400) {
            match (expected.read(&bytes[..cut]), &whole) {
                (Ok(None), Ok(Some(header))) => assert!(cut < header.length.max(12), "{cut}"),
                (Ok(None), _) => {}
                (told, whole) => assert_eq!(told, *whole, "{cut}"),
            }
        }
        if let Ok(Some(header)) = whole {
            assert!(
                header.length <= bytes.len().min(MOST)
                    && (header.length > 0) == (expected == Expected::Required)
            );
        }
    }
}

/// What is told of one command: where it ended, its arguments, bytes on the wire, and of each argument what is kept, its length and
/// digest.
pub(crate) type Told = (usize, u64, u64, Vec<(Vec<u8>, u64, Option<[u8; 32]>)>);

/// The commands in `bytes`, which come in pieces: those that are complete, what has come of the last one, and why no more are read.
pub(crate) fn commands(bytes: &[u8], limits: Limits, piece: usize) -> (Vec<Told>, Option<Violation>) {
    let mut requests = Requests::new(limits, [7; 32]);
    let mut told = Vec::new();
    let told_so_far = |requests: &Requests, end| {
        let arguments = requests.arguments();
        let of = |index| {
            let argument = arguments.argument(index)?;
            Some((arguments.get(index)?.to_vec(), argument.length, argument.digest))
        };
        let kept = (0..).map_while(of).collect::<Vec<_>>();
        assert!(kept.len() <= limits.items);
        let long = kept.iter().filter(|(_, length, _)| *length > SHORT);
        assert!(long.map(|(kept, ..)| kept.len()).sum::<usize>() <= limits.bytes);
        (end, arguments.count(), arguments.wire(), kept)
    };
    let outcome = in_pieces(bytes, piece, |bytes, at| {
        let progress = requests.next(bytes, |_, _, _| (8.max(limits.bytes / 2), Digest::OfCut))?;
        if progress.complete {
            assert_eq!(requests.arguments().arrived(), requests.arguments().count());
            assert!(requests.arguments().count() > 0, "a command has a name");
            told.push(told_so_far(&requests, at + progress.consumed));
        }
        Ok(progress)
    });
    if outcome.is_none() {
        told.push(told_so_far(&requests, bytes.len()));
    }
    (told, outcome)
}

/// What is told of one reply: where it ended, its bytes on the wire, its values, and those that are kept with their texts.
pub(crate) type ToldReply = (usize, u64, u64, Vec<(Node, Vec<u8>)>);

/// The replies in `bytes`, as [`commands`].
pub(crate) fn replies(bytes: &[u8], limits: Limits, piece: usize) -> (Vec<ToldReply>, Option<Violation>) {
    let mut replies = Replies::new(limits);
    let mut told = Vec::new();
    let told_so_far = |reply: &Reply, end| {
        let texts = reply.nodes().iter().map(|node| (*node, reply.text(node).to_vec())).collect::<Vec<_>>();
        assert!(texts.len() <= limits.items.max(1) && texts.len() as u64 <= reply.count());
        assert!(texts.iter().all(|(_, text)| text.len() <= limits.text));
        assert!(texts.iter().map(|(_, text)| text.len()).sum::<usize>() <= limits.bytes);
        (end, reply.wire(), reply.count(), texts)
    };
    let outcome = in_pieces(bytes, piece, |bytes, at| {
        let progress = go_on(&mut replies, bytes)?;
        if progress.complete {
            told.push(told_so_far(replies.reply(), at + progress.consumed));
        }
        Ok(progress)
    });
    if outcome.is_none() {
        told.push(told_so_far(replies.reply(), bytes.len()));
    }
    (told, outcome)
}

/// Goes on with a reply as far as `bytes` go, past pushes that stand inside it: it stops at both ends of each.
fn go_on(replies: &mut Replies, bytes: &[u8]) -> Result<Progress, Violation> {
    let mut consumed = 0;
    loop {
        let progress = replies.next(&bytes[consumed..])?;
        assert!(progress.consumed > 0 || bytes.is_empty(), "it goes on");
        consumed += progress.consumed;
        if progress.complete || consumed == bytes.len() {
            return Ok(Progress { consumed, ..progress });
        }
        let ends_push = replies.took_push();
        assert!(ends_push || bytes[consumed] == b'>', "nothing is left over");
    }
}

/// Replies that are told in parts are those that they are as a whole, and each part is what lies between its neighbours.
fn hold_parts_against_the_whole(bytes: &[u8], piece: usize, whole: &[ToldReply]) {
    type Plain = (Kind, u16, Vec<u8>);
    let mut parser = Replies::new(ALL);
    let (mut whole, mut at, mut so_far, mut wire) = (whole.iter(), 0, Vec::<Plain>::new(), 0);
    while at < bytes.len() {
        parser.limit(ALL, true);
        let Ok(progress) = parser.next(&bytes[at..at.saturating_add(piece).min(bytes.len())]) else { return };
        at += progress.consumed;
        if parser.part().is_none() && !progress.complete {
            continue;
        }
        let reply = parser.reply();
        let plain = reply.nodes().iter().map(|node| (node.kind, node.depth, reply.text(node).to_vec()));
        so_far.extend(plain.skip(usize::from(!so_far.is_empty())));
        wire += reply.wire();
        if parser.part() == Some(Part::Value) {
            assert_eq!(reply.end_of(1), reply.nodes().len(), "it is one value");
        }
        if progress.complete {
            let (_, wire_of_whole, _, texts) = whole.next().expect("a reply");
            let plain = texts.iter().map(|(node, text)| (node.kind, node.depth, text.clone()));
            assert!(plain.eq(so_far.drain(..)) && *wire_of_whole == wire, "in pieces of {piece}");
            wire = 0;
        }
    }
}

/// Gives a parser `bytes` in pieces, each until it is consumed.
fn in_pieces(
    bytes: &[u8],
    piece: usize,
    mut next: impl FnMut(&[u8], usize) -> Result<Progress, Violation>,
) -> Option<Violation> {
    let mut at = 0;
    while at < bytes.len() {
        let end = at.saturating_add(piece).min(bytes.len());
        while at < end {
            match next(&bytes[at..end], at) {
                Ok(progress) => {
                    assert!((1..=end - at).contains(&progress.consumed), "it goes on");
                    assert!(progress.complete || progress.consumed == end - at, "nothing is left over");
                    at += progress.consumed;
                }
                Err(violation) => {
                    assert_eq!(next(b"PING\r\n", at), Err(violation.clone()), "it stays one");
                    return Some(violation);
                }
            }
        }
    }
    None
}

/// The first reply in `bytes` with all of it, and where it ended.
pub(crate) fn first_reply(bytes: &[u8]) -> Option<(Tree, usize)> {
    let mut replies = Replies::new(ALL);
    let progress = go_on(&mut replies, bytes).ok()?;
    progress.complete.then(|| (Tree::of_reply(replies.reply(), 0), progress.consumed))
}

/// A reply as a tree, in which what is equal to clients is equal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// What has a text.
    Text(Kind, Vec<u8>),
    /// What has children: of a map, keys and values in turn.
    Aggregate(Kind, Vec<Tree>),
}

impl Tree {
    fn of_reply(reply: &Reply, index: usize) -> Tree {
        let node = &reply.nodes()[index];
        assert!(node.is_whole());
        if node.is_aggregate() {
            let children = reply.children(index).map(|(child, _)| Tree::of_reply(reply, child));
            let children = children.collect::<Vec<_>>();
            assert_eq!(children.len() as u64, node.length);
            return Tree::Aggregate(node.kind, children).sorted();
        }
        if let (Kind::Integer, Some(value)) = (node.kind, reply.integer(node)) {
            return Tree::Text(node.kind, value.to_string().into_bytes());
        }
        Tree::Text(node.kind, reply.text(node).to_vec()).plain()
    }

    /// Numbers in one spelling.
    fn plain(self) -> Tree {
        match self {
            Tree::Text(Kind::Double, text) => {
                let value = String::from_utf8_lossy(&text).parse::<f64>();
                Tree::Text(Kind::Double, value.map_or(text, |value| value.to_string().into_bytes()))
            }
            other => other,
        }
    }

    /// Sets and maps in one order.
    fn sorted(self) -> Tree {
        match self {
            Tree::Aggregate(Kind::Set, mut members) => {
                members.sort_by_key(|member| format!("{member:?}"));
                Tree::Aggregate(Kind::Set, members)
            }
            Tree::Aggregate(Kind::Map, members) => {
                let mut pairs = members.chunks(2).map(<[Tree]>::to_vec).collect::<Vec<_>>();
                pairs.sort_by_key(|pair| format!("{pair:?}"));
                Tree::Aggregate(Kind::Map, pairs.concat())
            }
            other => other,
        }
    }

    /// Whether there is a set or map in it, of which another parser may drop members that are equal.
    fn may_lack_members(&self) -> bool {
        match self {
            Tree::Text(..) => false,
            Tree::Aggregate(Kind::Set | Kind::Map, _) => true,
            Tree::Aggregate(_, members) => members.iter().any(Tree::may_lack_members),
        }
    }

    /// What `redis-protocol` read as RESP3; `None` of what no server sends, and of a push inside something else: it takes that for a value,
    /// which it is not.
    pub(crate) fn of_resp3(frame: &resp3::types::OwnedFrame) -> Option<Tree> {
        use resp3::types::{OwnedFrame as Frame, Resp3Frame as _};
        let inside = |frame: &Frame| match frame {
            Frame::Push { .. } => None,
            _ => Tree::of_resp3(frame),
        };
        for (key, value) in frame.attributes().into_iter().flatten() {
            inside(key).and(inside(value))?;
        }
        let all = |kind, members: &mut dyn Iterator<Item = &Frame>| {
            Some(Tree::Aggregate(kind, members.map(inside).collect::<Option<_>>()?).sorted())
        };
        let (kind, text) = match frame {
            Frame::SimpleString { data, .. } => (Kind::Simple, data.clone()),
            Frame::SimpleError { data, .. } => (Kind::Error, data.clone().into_bytes()),
            Frame::BlobError { data, .. } => (Kind::Error, data.clone()),
            Frame::BlobString { data, .. } | Frame::VerbatimString { data, .. } => (Kind::Bulk, data.clone()),
            Frame::Number { data, .. } => (Kind::Integer, data.to_string().into_bytes()),
            Frame::Double { data, .. } => (Kind::Double, data.to_string().into_bytes()),
            Frame::Boolean { data, .. } => (Kind::Boolean, if *data { b"t".to_vec() } else { b"f".to_vec() }),
            Frame::Null => (Kind::Null, Vec::new()),
            Frame::BigNumber { data, .. } => {
                // It reads anything as one.
                let digits = data.strip_prefix(b"-").or(data.strip_prefix(b"+")).unwrap_or(data);
                let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                (Kind::BigNumber, is_number.then(|| data.clone())?)
            }
            Frame::Array { data, .. } => return all(Kind::Array, &mut data.iter()),
            Frame::Push { data, .. } => return all(Kind::Push, &mut data.iter()),
            Frame::Set { data, .. } => return all(Kind::Set, &mut data.iter()),
            Frame::Map { data, .. } => {
                return all(Kind::Map, &mut data.iter().flat_map(|(key, value)| [key, value]));
            }
            Frame::Hello { .. } | Frame::ChunkedString(_) => return None,
        };
        Some(Tree::Text(kind, text).plain())
    }

    /// What `redis-protocol` read as RESP2.
    pub(crate) fn of_resp2(frame: &resp2::types::OwnedFrame) -> Tree {
        use resp2::types::OwnedFrame as Frame;
        match frame {
            Frame::SimpleString(text) => Tree::Text(Kind::Simple, text.clone()),
            Frame::Error(text) => Tree::Text(Kind::Error, text.clone().into_bytes()),
            Frame::Integer(value) => Tree::Text(Kind::Integer, value.to_string().into_bytes()),
            Frame::BulkString(text) => Tree::Text(Kind::Bulk, text.clone()),
            Frame::Array(members) => {
                Tree::Aggregate(Kind::Array, members.iter().map(Tree::of_resp2).collect())
            }
            Frame::Null => Tree::Text(Kind::Null, Vec::new()),
        }
    }
}

/// What it and we read as an array of bulk strings is the same, and what it reads is read as it writes it.
fn hold_commands_against_another_parser(bytes: &[u8]) {
    let Ok(Some((resp2::types::OwnedFrame::Array(members), length))) = resp2::decode::decode(bytes) else {
        return;
    };
    let text = |member| match member {
        resp2::types::OwnedFrame::BulkString(text) => Some(text),
        _ => None,
    };
    let Some(texts) = members.into_iter().map(text).collect::<Option<Vec<_>>>() else { return };
    if texts.is_empty() {
        return;
    }
    let mut written = Vec::new();
    write_command(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut written);
    let parse = |bytes: &[u8]| {
        let first = commands(bytes, ALL, usize::MAX).0.into_iter().next()?;
        let all_whole = first.3.iter().all(|(kept, length, _)| kept.len() as u64 == *length);
        assert!(all_whole && first.3.len() as u64 == first.1);
        Some((first.0, first.3.into_iter().map(|(kept, ..)| kept).collect::<Vec<_>>()))
    };
    assert_eq!(parse(&written), Some((written.len(), texts.clone())));
    // It reads numbers in several spellings, and servers in one.
    if let Some((end, arguments)) = parse(bytes).filter(|(end, _)| *end <= length) {
        assert_eq!((end, arguments), (length, texts));
    }
}

/// What both read is the same, and what it reads is read as it writes it.
fn hold_replies_against_another_parser(bytes: &[u8]) {
    let ours = first_reply(bytes);
    if let (Some((tree, end)), Ok(Some((frame, length)))) = (&ours, resp2::decode::decode(bytes)) {
        assert_eq!((tree, *end), (&Tree::of_resp2(&frame), length));
    }
    let Ok(Some((frame, length))) = resp3::decode::complete::decode(bytes) else { return };
    let Some(theirs) = Tree::of_resp3(&frame) else { return };
    if let Some((tree, end)) = &ours {
        assert_eq!(*end, length);
        assert!(tree.may_lack_members() || *tree == theirs, "{tree:?} {theirs:?}");
    }
    let mut written = vec![0; resp3::types::Resp3Frame::encode_len(&frame, false)];
    let length =
        resp3::encode::complete::encode(&mut written, &frame, false).expect("what was read can be written");
    let (tree, end) = first_reply(&written[..length]).expect("a reply");
    assert_eq!(end, length);
    assert!(tree.may_lack_members() || tree == theirs, "{tree:?} {theirs:?}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_target_holds_on_its_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&[("resp", super::resp), ("proxy_header", super::proxy_header)]);
    }
}
