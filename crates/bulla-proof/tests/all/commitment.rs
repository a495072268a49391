use crate::vectors::{bytes, hash, hash_id, items, number, read, small, text, unhex};
use bulla_proof::commitment::{
    MAX_BODY, MAX_CONTENT_LOG2, MAX_ENTRIES, MAX_SOURCES, MIN_ENTRY_CONTENT, MIN_SOURCES,
};
use bulla_proof::{Commitment, CommitmentError, Entry, FrameKind, Hash, HashId, LogId, sha256};
use proptest::prelude::*;
use serde_json::Value;

const KINDS: [FrameKind; 4] = [FrameKind::Block, FrameKind::Epoch, FrameKind::Event, FrameKind::Gap];

#[test]
fn encodes_as_the_vectors_say() {
    for vector in items(&read("commitments.json")) {
        let name = text(vector, "name");
        let commitment = of_vector(vector);
        let encoding = bytes(vector, "encoding");
        assert_eq!(commitment.check(), Ok(()), "{name}");
        assert_eq!(commitment.encode()[..], encoding, "{name}");
        assert_eq!(commitment.leaf().to_string(), text(vector, "leaf"), "{name}");
        assert_eq!(Commitment::decode(&encoding).as_ref(), Ok(&commitment), "{name}");
        assert_eq!(commitment.additional_data()[..], encoding[..120], "{name}");
    }
}

#[test]
fn refuses_as_the_vectors_say() {
    for vector in items(&read("commitments-refused.json")) {
        let error = Commitment::decode(&bytes(vector, "encoding")).unwrap_err();
        assert_eq!(format!("{error:?}"), text(vector, "error"), "{}", text(vector, "name"));
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_row_is_never_shorter_than_the_least_content() {
    let shortest = Entry { operation: "x", ..Entry::default() };
    assert_eq!(shortest.measure().map(|row| row as u64 + 4), Ok(MIN_ENTRY_CONTENT));
}

#[test]
fn log_ids_are_lowercase_hex() {
    let shown = "000102030405060708090a0b0c0d0e0f";
    let id = LogId::parse(shown).unwrap();
    assert_eq!(id.as_bytes()[..], unhex(shown));
    assert_eq!((id.to_string(), format!("{id:?}")), (shown.to_owned(), shown.to_owned()));
    assert_eq!(shown.parse(), Ok(id));
    for wrong in
        ["", "00", &shown.to_uppercase(), &shown[1..], &format!("{shown}0"), &shown.replace("0f", "0g")]
    {
        assert_eq!(LogId::parse(wrong), None, "{wrong}");
        assert_eq!(wrong.parse::<LogId>(), Err(CommitmentError::LogId), "{wrong}");
    }
    assert_eq!(LogId::parse("\u{e9}0102030405060708090a0b0c0d0e0f"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decodes_what_it_encodes(commitment in any_commitment()) {
        let encoding = commitment.encode();
        prop_assert_eq!(commitment.leaf(), sha256(&[&[0], &encoding]));
        prop_assert_eq!(Commitment::decode(&encoding), Ok(commitment));
    }

    #[test]
    fn has_one_encoding(encoding in prop::collection::vec(any::<u8>(), 0..=160)) {
        assert_canonical(&encoding);
    }

    #[test]
    fn has_one_encoding_near_real_ones(
        commitment in any_commitment(),
        flips in prop::collection::vec((0..Commitment::LENGTH, any::<u8>()), 1..4),
    ) {
        let mut encoding = commitment.encode();
        flips.into_iter().for_each(|(at, mask)| encoding[at] ^= mask);
        assert_canonical(&encoding);
    }

    #[test]
    fn encoding_anything_breaks_a_rule_or_comes_back(
        mut commitment in any_commitment(),
        other in any_commitment(),
        field in 0..9,
    ) {
        match field {
            0 => commitment.kind = other.kind,
            1 => commitment.codec = other.codec,
            2 => commitment.content_log2 = other.content_log2,
            3 => commitment.frame = other.frame,
            4 => commitment.first_entry = other.first_entry,
            5 => commitment.entries = other.entries,
            6 => commitment.units = other.units,
            7 => commitment.sources_length = other.sources_length,
            _ => commitment.root = other.root,
        }
        let decoded = Commitment::decode(&commitment.encode());
        prop_assert_eq!(decoded, commitment.check().map(|()| commitment));
    }
}

fn assert_canonical(encoding: &[u8]) {
    if let Ok(commitment) = Commitment::decode(encoding) {
        assert_eq!(commitment.encode(), encoding);
    }
}

fn of_vector(vector: &Value) -> Commitment {
    let kind = KINDS.into_iter().find(|kind| kind.name() == text(vector, "kind")).unwrap();
    assert_eq!(FrameKind::from_u8(kind as u8), Some(kind));
    Commitment {
        kind,
        codec: small(vector, "codec"),
        hash: hash_id(vector),
        content_log2: small(vector, "content_log2"),
        sources_length: small(vector, "sources_length"),
        log_id: LogId::parse(text(vector, "log_id")).unwrap(),
        frame: number(vector, "frame"),
        first_entry: number(vector, "first_entry"),
        entries: number(vector, "entries"),
        earliest: vector["earliest"].as_i64().unwrap(),
        latest: vector["latest"].as_i64().unwrap(),
        epoch: number(vector, "epoch"),
        units: number(vector, "units"),
        root: hash(text(vector, "root")),
        body_length: number(vector, "body_length"),
        body_digest: hash(text(vector, "body_digest")),
    }
}

/// Any commitment that keeps the rules.
fn any_commitment() -> impl Strategy<Value = Commitment> {
    let place = (any::<[u8; 16]>(), 1..u64::MAX, any::<u64>(), any::<u64>(), 4..=MAX_CONTENT_LOG2);
    let content = (any::<u64>(), any::<u64>(), any::<[u8; 32]>(), any::<[u8; 32]>());
    let rest =
        (prop::sample::select(&KINDS), prop::sample::select(&HashId::ALL), any::<[i64; 2]>(), 0..=MAX_BODY);
    (place, content, rest).prop_map(
        |(
            (log_id, frame, first, epoch, log2),
            (entries, units, root, digest),
            (kind, hash, times, length),
        )| {
            let block = kind == FrameKind::Block;
            let sources = match u32::try_from(length.saturating_sub(1)) {
                Ok(longest) if block && longest >= MIN_SOURCES && epoch % 2 == 0 => {
                    MIN_SOURCES + (units >> 32) as u32 % (longest.min(MAX_SOURCES) - MIN_SOURCES + 1)
                }
                _ => 0,
            };
            let most = if block { (1 << log2) / MIN_ENTRY_CONTENT } else { MAX_ENTRIES };
            let entries = match kind {
                FrameKind::Block | FrameKind::Gap => 1 + entries % most,
                FrameKind::Epoch | FrameKind::Event => 0,
            };
            Commitment {
                kind,
                codec: u8::from(block),
                hash,
                content_log2: if block { log2 } else { 0 },
                sources_length: sources,
                log_id: LogId(log_id),
                frame,
                first_entry: first.min(u64::MAX - entries),
                entries,
                earliest: times[0].min(times[1]),
                latest: if block { times[0].max(times[1]) } else { times[0].min(times[1]) },
                epoch: if kind == FrameKind::Epoch { frame } else { epoch % frame },
                units: if block { 1 + units % entries } else { 0 },
                root: if block { Hash(root) } else { Hash::ZERO },
                body_length: if kind == FrameKind::Gap { 0 } else { length },
                body_digest: Hash(digest),
            }
        },
    )
}
