//! The same seed gives the same bytes, in every version and on every platform.

use crate::rows;
use bulla_proof::sha256;
use bulla_workload::Workload;
use std::collections::HashSet;

/// The hash of the first thousand rows of seed 1, and of producer 7 of seed 42.
const ANSWERS: [(&str, &str, &str); 9] = [
    (
        "gdpr",
        "b07bd9d18ff3ce50ff0215cf8f3d47e993de403d56d475fa7d1b1a3cfbbc3d4a",
        "43484119e3f736c0546b744688809f251e15cc12a57afaff08ecb239ea974a57",
    ),
    (
        "gdpr-50",
        "244cfec279d261112e96ec3af2a399d1600ba9d637a2d78425e1474c3e0bfe99",
        "905ed2ffb70ec2b7b9d8dd0db46f960245858fe792b34de35688038761acefed",
    ),
    (
        "json",
        "5befff20f0ff1106936bed835388eaf4e6bd2cab3114b38798168133cfbae524",
        "adf12197c3243f632d90b4aa8518903217a0978d4e1395cf66563332884d296e",
    ),
    (
        "web",
        "2eebe1ab1b5ed82ebd25bf9e3c167d392e83a3d48d76d71aae4387e2714cd302",
        "19d3cffae4b1132c9bcf696e9a342c2d1b52040f8a0f537bc36b7aaa194f23c3",
    ),
    (
        "web-subjects",
        "3874afc128912136dd6de95632175e1ad6ff72858525ccf762ff1617d8788b32",
        "36c53137efb0f88fda15f9e5c3a8938d9c32b2a11fc1a2426c6a47a1cb07cfc6",
    ),
    (
        "web-adversarial",
        "2830ebd31832c779a8f93d0505f29740c7122ab1b23a8d8de0149eaf3e2a0630",
        "f4d5254e16cf5ac7e89ad17beb282a8c3b2dff24466a9b6889a3f09c4de3312d",
    ),
    (
        "integrity",
        "ee34b2f01dcd4d834e1fcf7d59e868685b6d1b9f95a99d3e65cfd38bdf8d83c1",
        "bd1e4b91ca2774bb9f814d72afa7138958bed48a2b16fc264aa1550f60e02239",
    ),
    (
        "slow",
        "2e14dd1a688385677c858bec2a987afe96f970f633279df3c59b4f95cad8f88b",
        "cbfae6cef3f772ffb84bd41212df0c2b0d33f6685dc88c4152b17c5b409d0d4c",
    ),
    (
        "tenants",
        "d0b3b8846f404f3084713312ed28f74984c4617e5d77f43c50ab543d40ec9627",
        "b489b7e0db00b0edb8b38d679282e2c4058634f6ae06f193836791758f968549",
    ),
];

#[test]
fn the_first_thousand_rows_are_those_of_version_1() {
    let hash = |workload: Workload, seed, producer| {
        sha256(&[&rows(&mut workload.generator(seed, producer), 1000)]).to_string()
    };
    let found = Workload::ALL.map(|workload| (workload.name(), hash(workload, 1, 0), hash(workload, 42, 7)));
    let found = found.each_ref().map(|(name, first, second)| (*name, first.as_str(), second.as_str()));
    assert_eq!(found, ANSWERS, "{found:#?}");
}

#[test]
fn seeds_and_producers_have_streams_of_their_own() {
    for workload in Workload::ALL {
        let starts = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (u64::MAX, 0)]
            .map(|(seed, producer)| rows(&mut workload.generator(seed, producer), 20));
        assert_eq!(starts.iter().collect::<HashSet<_>>().len(), starts.len(), "{workload}");
    }
}
