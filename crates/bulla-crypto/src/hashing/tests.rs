use super::*;
use bulla_proof::block_root;
use proptest::prelude::*;

/// The lanes that every processor has, and those of this one if there are any.
fn lanes() -> impl Iterator<Item = Parallel> {
    [Some(Parallel::Plain), Parallel::detect()].into_iter().flatten()
}

/// With all lanes, and one after the other.
fn all() -> impl Iterator<Item = BulkHasher> {
    lanes().map(Some).chain([None]).map(BulkHasher::with)
}

fn digests_of(hasher: &mut BulkHasher, hash: HashId, messages: &[Vec<u8>]) -> Vec<Hash> {
    let (mut messages, mut digests) = (messages.iter().enumerate(), Vec::new());
    let next = |beginning: &mut Vec<u8>| {
        let (number, message) = messages.next()?;
        // As much of it in the buffer as comes.
        let (first, rest) = message.split_at((number * 37 % 150).min(message.len()));
        beginning.extend(first);
        Some(rest)
    };
    hasher.each(hash, next, &mut digests);
    digests
}

fn one_by_one(hash: HashId, messages: &[Vec<u8>]) -> Vec<Hash> {
    messages.iter().map(|message| hash.hash(&[message])).collect()
}

fn messages_of(lengths: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    let bytes = |length: usize| (0..length).map(|at| (at * 31 + length).to_le_bytes()[0]).collect();
    lengths.map(bytes).collect()
}

/// `make test` says where there are none.
#[cfg(target_os = "linux")]
#[test]
fn the_lanes_of_a_processor_are_found() {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    assert_eq!(Parallel::detect().is_some(), processors.contains(" avx512bw"));
}

/// Against `sha2`, lane by lane.
#[test]
fn sixteen_blocks_are_compressed_as_each_alone() {
    let blocks: [[u8; BLOCK]; LANES] =
        array::from_fn(|lane| array::from_fn(|at| (lane * BLOCK + at).to_le_bytes()[0] ^ 0xa5));
    let mut expected = States::START;
    (0..LANES).for_each(|lane| expected.compress_one(lane, &[blocks[lane]; 2]));
    for parallel in lanes() {
        let mut states = States::START;
        (0..2).for_each(|_| parallel.compress(&mut states, &blocks.each_ref()));
        assert_eq!(states.0, expected.0);
    }
}

#[test]
fn every_length_around_the_padding_and_the_longest() {
    let lengths = (0..=3 * BLOCK).chain([LONGEST - 1, LONGEST, LONGEST + 1, 1, 2 * LONGEST, 0, 5]);
    let messages = messages_of(lengths);
    for mut hasher in all() {
        for hash in [HashId::Sha256, HashId::Sha3_256, HashId::Sha256] {
            assert_eq!(digests_of(&mut hasher, hash, &messages), one_by_one(hash, &messages));
        }
        assert!(hasher.buffers.iter().all(|buffers| buffers.beginning.capacity() <= 2 * LONGEST));
    }
}

#[test]
fn every_count_of_messages() {
    for mut hasher in all() {
        for count in 0..=4 * LANES + 1 {
            let messages = messages_of((0..count).map(|number| 40 + number * 7 % 300));
            let digests = digests_of(&mut hasher, HashId::Sha256, &messages);
            assert_eq!(digests, one_by_one(HashId::Sha256, &messages), "{count}");
        }
    }
}

/// Against the tree of `bulla-proof`, up to where a level has nodes for all lanes, for some, and a last one of each number of children.
#[test]
fn every_count_of_leaves() {
    let longest = BlockNodes::ARITY * (2 * LANES + WORTHWHILE + 1);
    let leaves = one_by_one(HashId::Sha256, &messages_of(0..longest));
    for mut hasher in all() {
        for (count, hash) in (0..=longest).flat_map(|count| HashId::ALL.map(|hash| (count, hash))) {
            let (mut leaves, items) = (leaves[..count].to_vec(), count / 3);
            let root = block_root(hash, &mut leaves.clone(), items);
            assert_eq!(hasher.block_root(hash, &mut leaves, items), root, "{count}");
            assert!(leaves.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn digests_are_those_of_each_alone(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..80),
        others in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40),
    ) {
        for mut hasher in all() {
            for messages in [&messages, &others] {
                prop_assert_eq!(digests_of(&mut hasher, HashId::Sha256, messages), one_by_one(HashId::Sha256, messages));
            }
        }
    }
}

/// Against the crate `hmac`, for as many messages as lanes and more and fewer, of every length around the padding.
#[test]
fn tags_side_by_side_are_those_of_each_alone() {
    use ::hmac::{Hmac, KeyInit, Mac};
    let byte = |at: usize| (at * 167 + 3).to_le_bytes()[0];
    for parallel in lanes().map(Some).chain([None]) {
        for (count, length) in [0, 1, 6, 7, 16, 17, 40]
            .into_iter()
            .zip([0, 3, 20, 55, 87, 119, 200])
            .chain((0..=140).map(|length| (17, length)))
        {
            let keys =
                (0..count).map(|key| array::from_fn(|at| byte(key * 32 + at))).collect::<Vec<[u8; 32]>>();
            let messages = (0..count * length).map(|at| byte(at * 5)).collect::<Vec<_>>();
            let tags = BulkHmac::with(parallel).tags(keys.iter(), &messages);
            assert_eq!(tags.len(), count);
            for (place, (key, tag)) in keys.iter().zip(tags).enumerate() {
                let mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
                let message = &messages[place * length..][..length];
                assert_eq!(
                    tag[..],
                    mac.chain_update(message).finalize().into_bytes()[..],
                    "{place} of {count}, {length} bytes"
                );
            }
        }
    }
}
