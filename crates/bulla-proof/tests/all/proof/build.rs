use super::world::{WITNESS, World, entry, entry_mut};
use bulla_proof::commitment::Commitment;
use bulla_proof::consistency::prove_consistency;
use bulla_proof::proof::{FrameProblem, UnitProblem};
use bulla_proof::tree::{LogNodes, leaf_hash, node_hash};
use bulla_proof::{
    ConsistencyProof, DisclosedFrame, Hash, HashId, Proof, ProofError, ProofFile, TreeProofError, multiproof,
};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;

/// Picks, by frame, positions of units of the frames that are blocks.
fn chosen(blocks: &[u64], picks: &[(Index, Index)]) -> Vec<(usize, Vec<usize>)> {
    let frames: Vec<usize> = (1..=blocks.len()).filter(|frame| blocks[frame - 1] > 0).collect();
    let mut chosen = BTreeMap::<usize, Vec<usize>>::new();
    for (frame, unit) in picks {
        let frame = frames[frame.index(frames.len())];
        chosen.entry(frame).or_default().push(unit.index(usize::try_from(blocks[frame - 1]).unwrap()));
    }
    chosen.values_mut().for_each(|positions| {
        positions.sort_unstable();
        positions.dedup();
    });
    chosen.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_entries_of_any_log_are_proven(
        blocks in prop::collection::vec(0..60_u64, 1..24), last in 1..600_u64, sha3 in any::<bool>(),
        picks in prop::collection::vec(any::<(Index, Index)>(), 1..30),
    ) {
        let blocks = [&blocks[..], &[last]].concat();
        let world = World::new(HashId::ALL[usize::from(sha3)], &blocks);
        let chosen = chosen(&blocks, &picks);
        let list: Vec<(usize, &[usize])> = chosen.iter().map(|(frame, at)| (*frame, &at[..])).collect();
        let proof = world.proof(&list);
        let file = proof.render();
        prop_assert_eq!(ProofFile::parse(file.as_bytes()), Ok(ProofFile::Entries(proof.clone())));
        prop_assert_eq!(file.starts_with("c2sp.org/tlog-proof@v1\n"), chosen.len() == 1);
        let checked = proof.verify(Some(&world.key)).unwrap();
        let expected: Vec<(u64, &[u8])> = chosen
            .iter()
            .flat_map(|(frame, at)| at.iter().map(|&at| &world.frames[*frame].units[at]))
            .map(|unit| (entry(unit).number, &entry(unit).row[..]))
            .collect();
        let found: Vec<(u64, Vec<u8>)> =
            checked.entries().map(|(number, entry)| (number, super::world::encode(&entry))).collect();
        prop_assert!(found.iter().map(|(number, row)| (*number, &row[..])).eq(expected));
        prop_assert!(checked.commitments().eq(chosen.iter().map(|(frame, _)| &world.frames[*frame].commitment)));
    }

    #[test]
    fn any_growth_is_proven(old in 0..80_usize, more in 0..80_usize) {
        let world = World::new(HashId::Sha256, &vec![1; old + more]);
        let proof = world.growth(old, old + more);
        let file = proof.render();
        prop_assert_eq!(ProofFile::parse(file.as_bytes()), Ok(ProofFile::Consistency(proof.clone())));
        let held = proof.verify(Some(&world.key)).unwrap();
        prop_assert_eq!((held.old, held.new), (&world.checkpoint(old), &world.checkpoint(old + more)));
    }
}

/// Somebody who knows C2SP tlog-proof and RFC 9162, section 2.1.3.2, and nothing of Bulla.
#[test]
fn a_proof_of_one_frame_is_a_tlog_proof() {
    let world = World::new(HashId::Sha256, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for frame in 1..=10 {
        let file = world.proof(&[(frame, &[0, 2])]).render();
        let (head, checkpoint) = file.split_once("\n\n").unwrap();
        let lines: Vec<&str> = head.split('\n').collect();
        assert_eq!(lines[0], "c2sp.org/tlog-proof@v1");
        assert!(lines[1].starts_with("extra "));
        let index: usize = lines[2].strip_prefix("index ").unwrap().parse().unwrap();
        assert_eq!(index, frame);
        let (mut at, mut last) = (index, world.leaves.len() - 1);
        let mut root = leaf_hash(&world.frames[index].commitment.encode());
        for line in &lines[3..] {
            let sibling = Hash::from_base64(line).unwrap();
            assert_ne!(last, 0);
            if at % 2 == 1 || at == last {
                root = node_hash(&sibling, &root);
                while at.is_multiple_of(2) && at > 0 {
                    (at, last) = (at / 2, last / 2);
                }
            } else {
                root = node_hash(&root, &sibling);
            }
            (at, last) = (at / 2, last / 2);
        }
        assert_eq!(last, 0);
        assert_eq!(checkpoint.split('\n').nth(2), Some(&root.to_base64()[..]));
    }
}

/// What a caller could get wrong is refused before there is a file, and as its reader would refuse it.
#[test]
fn nothing_is_built_that_does_not_verify() {
    let world = World::new(HashId::Sha256, &[5, 6, 7]);
    let note = world.note(4);
    let nodes = |frames: &[usize]| world.tree_nodes(frames);
    let of = |frame, problem| Err(ProofError::Frame { frame, problem });
    let build = |note: &str, nodes, frames| Proof::new(note.as_bytes(), nodes, frames);
    let one = || world.disclosed(1, &[1, 3]);

    assert!(build(&note, nodes(&[1]), vec![one()]).is_ok());
    assert_eq!(build(&note, nodes(&[2]), vec![one()]), Err(ProofError::Tree(TreeProofError::Root)));
    assert_eq!(build(&note, vec![], vec![one()]), Err(ProofError::Tree(TreeProofError::TooFewNodes)));
    assert_eq!(build(&world.note(1), vec![], vec![one()]), of(1, FrameProblem::NotInTree { size: 1 }));
    let wrong = vec![world.disclosed(2, &[0]), one()];
    assert_eq!(build(&note, nodes(&[1, 2]), wrong), of(1, FrameProblem::Order));
    assert!(matches!(build(&note, vec![], vec![]), Err(ProofError::Line { number: 3, .. })));
    assert!(matches!(build("", vec![], vec![one()]), Err(ProofError::Checkpoint(_))));

    let Commitment { frame: number, .. } = world.frames[1].commitment;
    let disclosed = |change: &dyn Fn(&mut Vec<bulla_proof::DisclosedUnit>)| {
        let mut units = world.frames[1].units[1..3].to_vec();
        change(&mut units);
        let frame =
            DisclosedFrame::new(world.frames[1].commitment.clone(), &world.frames[1].hashes, units, vec![])?;
        Ok(build(&note, nodes(&[1]), vec![frame]))
    };
    let of_unit = |unit, problem| Ok(Err(ProofError::Unit { frame: number, unit, problem }));
    assert!(disclosed(&|_| ()).unwrap().is_ok());
    assert_eq!(disclosed(&|units| units.clear()), Err(TreeProofError::NoPosition));
    assert_eq!(disclosed(&|units| units.reverse()), Err(TreeProofError::Order(1)));
    assert_eq!(
        disclosed(&|units| units[1].position = 5),
        Err(TreeProofError::Position { position: 5, size: 5 })
    );
    assert_eq!(disclosed(&|units| entry_mut(&mut units[0]).number = 3), of_unit(1, UnitProblem::Order));
    assert_eq!(disclosed(&|units| entry_mut(&mut units[0]).number = 7), of_unit(0, UnitProblem::Entry));
    assert!(matches!(
        disclosed(&|units| entry_mut(&mut units[0]).row.push(0)),
        Ok(Err(ProofError::Unit { unit: 0, .. }))
    ));
    assert_eq!(disclosed(&|units| units[0].salt[0] ^= 1), Ok(of(1, FrameProblem::Root)));
    // Unit hashes that are not as many as the commitment says.
    let hashes = &world.frames[1].hashes[..4];
    let frame = DisclosedFrame::new(
        world.frames[1].commitment.clone(),
        hashes,
        vec![world.frames[1].units[0].clone()],
        vec![],
    );
    assert!(build(&note, nodes(&[1]), vec![frame.unwrap()]).is_err());
    // A commitment that is none.
    let commitment = Commitment { latest: 0, ..world.frames[1].commitment.clone() };
    let frame =
        DisclosedFrame::new(commitment, &world.frames[1].hashes, world.frames[1].units[..1].to_vec(), vec![]);
    assert!(matches!(
        build(&note, nodes(&[1]), vec![frame.unwrap()]),
        Err(ProofError::Frame { frame: 1, .. })
    ));
}

#[test]
fn no_growth_is_built_that_does_not_verify() {
    let world = World::new(HashId::Sha256, &[1; 9]);
    let nodes = prove_consistency(&world.leaves, 6).unwrap();
    let build = |old: &str, new: &str, nodes: &[Hash]| {
        ConsistencyProof::new(old.as_bytes(), new.as_bytes(), nodes.to_vec())
    };
    let (old, new) = (world.note(6), world.note(10));
    assert!(build(&old, &new, &nodes).is_ok());
    assert_eq!(build(&old, &new, &nodes[1..]), Err(ProofError::Tree(TreeProofError::TooFewNodes)));
    assert_eq!(build(&old, &world.note(9), &nodes), Err(ProofError::Tree(TreeProofError::Root)));
    let shrunk = Err(ProofError::Tree(TreeProofError::Shrunk { old: 10, new: 6 }));
    assert_eq!(build(&new, &old, &nodes), shrunk);
    assert!(matches!(build("", &new, &nodes), Err(ProofError::OldCheckpoint(_))));
    assert!(matches!(build(&old, "", &nodes), Err(ProofError::Checkpoint(_))));
}

/// Other signatures of a checkpoint are carried along.
#[test]
fn a_checkpoint_is_told_verbatim() {
    let world = World::new(HashId::Sha256, &[2]);
    let note = world.note(2) + WITNESS;
    let proof = Proof::new(note.as_bytes(), world.tree_nodes(&[1]), vec![world.disclosed(1, &[0])]).unwrap();
    assert!(proof.render().ends_with(&note));
    assert!(proof.verify(Some(&world.key)).unwrap().anchored());
}

/// Nodes by place, as a reader of tiles finds them, are the nodes that hashing every leaf finds.
#[test]
fn nodes_may_come_from_tiles() {
    let world = World::new(HashId::Sha256, &[1; 20]);
    let node = |place: multiproof::NodePosition| {
        let first = usize::try_from(place.index << place.level).unwrap();
        crate::tree::recursive_root(&world.leaves[first..world.leaves.len().min(first + (1 << place.level))])
    };
    let places = multiproof::places::<LogNodes>(21, &[3, 20]).unwrap();
    let frames = vec![world.disclosed(3, &[0]), world.disclosed(20, &[0])];
    let proof = Proof::new(world.note(21).as_bytes(), places.into_iter().map(node).collect(), frames);
    assert_eq!(proof, Ok(world.proof(&[(3, &[0]), (20, &[0])])));
}
