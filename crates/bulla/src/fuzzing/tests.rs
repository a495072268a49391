//! The targets on their corpus, and what a hostile part of an index takes.

use super::{TARGETS, index, open_proof};
use bulla_proof::ProofFile;
use bulla_testkit::Rng;
use bulla_testkit::allocator::{Counting, most_held_here};
use bulla_testkit::corpus;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

#[test]
fn every_target_holds_on_its_corpus_and_close_to_it() {
    corpus::check(&TARGETS);
}

/// A part may have a million tokens: whatever one claims, reading it takes no more than a few times their bytes.
#[test]
fn a_part_of_the_index_takes_little_whatever_it_claims() {
    // A million of them, and what follows.
    let claim = [&u64::MAX.to_le_bytes()[..], b"\x80\x80\x40"].concat();
    let mut rng = Rng(52);
    let mut claims = vec![
        // Constant, and both columns by runs in runs, dictionaries in dictionaries.
        [&claim[..], b"\0\x01\0\x01"].concat(),
        [&claim[..], b"\x03\x80\x80\x20\x03\x80\x80\x10\0\x01"].concat(),
        [&claim[..], b"\x04\x80\x80\x20\x04\x80\x80\x10\0\x01"].concat(),
        [&claim[..], b"\x05\0\x01\x08\x02\x10"].concat(),
        [&u64::MAX.to_le_bytes()[..], b"\xff\xff\xff\xff\x0f\0\x01\0\x01"].concat(),
        [&u64::MAX.to_le_bytes()[..], b"\x81\x80\x40\0\x01\0\x01"].concat(),
    ];
    claims.extend((0..300).map(|_| {
        let noise = (0..rng.below(60)).map(|_| (rng.next() & 0x87) as u8);
        claim.iter().copied().chain(noise.collect::<Vec<_>>()).collect()
    }));
    // A head that claims the longest part of all.
    let mut head = b"BulI\x01\0\0\0\x07".to_vec();
    head.resize(100, 0);
    head[96..].copy_from_slice(&(24_u32 << 20).to_le_bytes());
    claims.push(head);
    let mut most = 0;
    for claim in claims {
        let ((), held) = most_held_here(|| index(&claim));
        assert!(held < 48 * MIB, "{} KiB for {claim:?}", held >> 10);
        most = most.max(held);
    }
    assert!(most > 8 * MIB, "no claim was believed: {most}");
}

/// Seeds of a form that is no more lead a fuzzer to nothing but its first refusal.
#[test]
fn proofs_of_the_corpus_are_of_the_form_that_is_read() {
    for (prefix, opens) in [("proofs-", true), ("groups-proofs-", true), ("groups-unopened-", false)] {
        for (name, seed) in corpus::seeds("proof", prefix) {
            let Ok(ProofFile::Entries(proof)) = ProofFile::parse(&seed) else { panic!("{name} is no proof") };
            let checked = proof.verify(None).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(open_proof(&checked, |_| Ok(())).is_ok(), opens, "{name}");
        }
    }
    for (name, seed) in corpus::seeds("proof", "consistency-") {
        let Ok(ProofFile::Consistency(proof)) = ProofFile::parse(&seed) else { panic!("{name} is no proof") };
        assert!(proof.verify(None).is_ok(), "{name}");
    }
}
