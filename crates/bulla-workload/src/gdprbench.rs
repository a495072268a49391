//! GDPRbench: what controllers, customers, processors and regulators ask of a store of personal data, as operations that a client
//! of any store can carry out.
//!
//! After Shastri, Banakar, Wasserman, Kumar and Chidambaram, *Understanding and Benchmarking the Impact of GDPR on Database Systems*,
//! PVLDB 13(7), 2020, and the workload files of <https://github.com/GDPRbench/GDPRbench>. The weights are those of its files, which
//! need not sum to one; of the regulator the files have the first alone, and the other two were chosen here, as the paper was not at hand:
//!
//! | Role | Operations and their weights | Records are chosen |
//! |---|---|---|
//! | controller | create a record 250, delete records by purpose, time to live or user 25, change metadata by purpose, user or third party 500 | uniformly |
//! | customer | read all data of a user, read metadata by key, change data by key, change metadata by key, delete by key, 200 each | by Zipf's law |
//! | processor | read data by key 200, by purpose, objection or decision 800 | uniformly |
//! | regulator | read metadata of a user 460, read the system's logs 310, verify that a key is deleted 230 | by Zipf's law |
//!
//! A record has the key `key<N>`, a field of 100 bytes of data and the published fields of metadata, the data subject in `USR`. Each
//! value of metadata is one of a tenth as many as there are records, so that a condition selects about ten. What is published has four
//! purposes, of which each selects a quarter of all records, and times to live of 30 s, which end while it runs; here the shortest is a day.

use crate::random::{Random, index_below, upper};

/// The fields of a record that say something of its data, as they are published.
pub const METADATA: [&str; 9] = ["USR", "PUR", "TTL", "OBJ", "DEC", "ACL", "SHR", "SRC", "CAT"];
/// The field that is the data.
pub const DATA: &str = "DATA";

/// Bytes of a record's data.
const DATA_BYTES: usize = 100;
/// Records that have one value of metadata, on average.
const ALIKE: u32 = 10;
/// The shortest time to live, in seconds.
const DAY: u32 = 86_400;
/// The metadata that changes. Whose data a record is does not.
const CHANGED: [&str; 4] = ["PUR", "OBJ", "DEC", "SHR"];

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    Controller,
    Customer,
    Processor,
    Regulator,
}

#[derive(Clone, Copy)]
enum Kind {
    Create,
    DeleteBy(&'static [&'static str]),
    ChangeBy(&'static [&'static str]),
    ReadBy(&'static [&'static str]),
    ReadData,
    ReadMetadata,
    ChangeData,
    ChangeMetadata,
    Delete,
    ReadLogs,
    VerifyDeletion,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Controller, Role::Customer, Role::Processor, Role::Regulator];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Controller => "controller",
            Role::Customer => "customer",
            Role::Processor => "processor",
            Role::Regulator => "regulator",
        }
    }

    const fn weights(self) -> &'static [(Kind, u32)] {
        match self {
            Role::Controller => &[
                (Kind::Create, 250),
                (Kind::DeleteBy(&["PUR", "TTL", "USR"]), 25),
                (Kind::ChangeBy(&["PUR", "USR", "SHR"]), 500),
            ],
            Role::Customer => &[
                (Kind::ReadBy(&["USR"]), 200),
                (Kind::ReadMetadata, 200),
                (Kind::ChangeData, 200),
                (Kind::ChangeMetadata, 200),
                (Kind::Delete, 200),
            ],
            Role::Processor => &[(Kind::ReadData, 200), (Kind::ReadBy(&["PUR", "OBJ", "DEC"]), 800)],
            Role::Regulator => {
                &[(Kind::ReadBy(&["USR"]), 460), (Kind::ReadLogs, 310), (Kind::VerifyDeletion, 230)]
            }
        }
    }

    const fn is_skewed(self) -> bool {
        matches!(self, Role::Customer | Role::Regulator)
    }
}

/// Personal data and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key in the store.
    pub key: String,
    /// Every field of [`METADATA`], and [`DATA`].
    pub fields: Vec<(&'static str, String)>,
    /// After how many seconds it is to be gone: what `TTL` says, too.
    pub time_to_live: u32,
}

/// That a field of metadata has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
}

/// What is asked of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    Create(Record),
    /// Deletes all records of which something is so.
    DeleteBy(Condition),
    /// Sets a field of all records of which something is so.
    ChangeBy(Condition, Condition),
    /// Reads all records of which something is so.
    ReadBy(Condition),
    ReadData(String),
    ReadMetadata(String),
    ChangeData(String, String),
    ChangeMetadata(String, Condition),
    Delete(String),
    /// Reads what the store itself logged.
    ReadLogs,
    /// Finds out whether a key is there.
    VerifyDeletion(String),
}

/// What is loaded before a role begins, and what the role asks for then, without end.
#[derive(Debug)]
pub struct Gdprbench {
    random: Random,
    role: Role,
    records: u32,
    next_key: u32,
    /// By Zipf's law, of the records up to each: the sum of their weights.
    sums: Vec<u64>,
}

impl Gdprbench {
    /// For so many records, of which there is at least one.
    pub fn new(role: Role, seed: u64, records: u32) -> Self {
        let records = records.max(1);
        let sums = (1..=u64::from(records)).scan(0_u64, |sum, rank| {
            *sum += (1 << 32) / rank;
            Some(*sum)
        });
        Gdprbench { random: Random::for_pools(seed), role, records, next_key: 0, sums: sums.collect() }
    }

    /// The next record to be loaded.
    pub fn next_record(&mut self) -> Record {
        let key = format!("key{}", self.next_key);
        self.next_key += 1;
        let time_to_live = DAY + self.random.below(self.values());
        let fields = METADATA.iter().map(|&field| match field {
            "TTL" => (field, time_to_live.to_string()),
            _ => self.metadata(field),
        });
        let mut fields = fields.collect::<Vec<_>>();
        fields.push((DATA, self.data()));
        Record { key, fields, time_to_live }
    }

    /// The next operation of the role.
    pub fn next_operation(&mut self) -> Operation {
        let weights = self.role.weights();
        let mut drawn = self.random.below(weights.iter().map(|(_, weight)| weight).sum());
        let (kind, _) = weights
            .iter()
            .find(|(_, weight)| {
                let found = drawn < *weight;
                drawn = drawn.wrapping_sub(*weight);
                found
            })
            .unwrap_or(&weights[0]);
        match *kind {
            Kind::Create => Operation::Create(self.next_record()),
            Kind::DeleteBy(fields) => Operation::DeleteBy(self.one_of(fields)),
            Kind::ChangeBy(fields) => Operation::ChangeBy(self.one_of(fields), self.one_of(&CHANGED)),
            Kind::ReadBy(fields) => Operation::ReadBy(self.one_of(fields)),
            Kind::ReadData => Operation::ReadData(self.key()),
            Kind::ReadMetadata => Operation::ReadMetadata(self.key()),
            Kind::ChangeData => Operation::ChangeData(self.key(), self.data()),
            Kind::ChangeMetadata => Operation::ChangeMetadata(self.key(), self.one_of(&CHANGED)),
            Kind::Delete => Operation::Delete(self.key()),
            Kind::ReadLogs => Operation::ReadLogs,
            Kind::VerifyDeletion => Operation::VerifyDeletion(self.key()),
        }
    }

    /// How many values a field of metadata has.
    fn values(&self) -> u32 {
        (self.records / ALIKE).max(1)
    }

    fn one_of(&mut self, fields: &[&'static str]) -> Condition {
        let field = fields[index_below(upper(self.random.next()), fields.len())];
        let (field, value) = self.metadata(field);
        Condition { field, value }
    }

    /// A value of a field, such as `usr7`.
    fn metadata(&mut self, field: &'static str) -> (&'static str, String) {
        let number = self.random.below(self.values());
        match field {
            "TTL" => (field, (DAY + number).to_string()),
            _ => (field, format!("{}{number}", field.to_ascii_lowercase())),
        }
    }

    /// The key of a record that was loaded before the role began. It may be deleted by now.
    fn key(&mut self) -> String {
        let number = match self.role.is_skewed() {
            false => self.random.below(self.records) as usize,
            true => {
                let all = self.sums[self.sums.len() - 1];
                // As many bits as the sum of all weights has at most, scaled to it.
                let drawn = (u128::from(self.random.next()) * u128::from(all)) >> 64;
                self.sums.partition_point(|sum| u128::from(*sum) <= drawn)
            }
        };
        format!("key{number}")
    }

    fn data(&mut self) -> String {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";
        (0..DATA_BYTES).map(|_| char::from(LETTERS[self.random.below(32) as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn name(operation: &Operation) -> &'static str {
        match operation {
            Operation::Create(_) => "create",
            Operation::DeleteBy(_) => "delete by",
            Operation::ChangeBy(..) => "change by",
            Operation::ReadBy(_) => "read by",
            Operation::ReadData(_) => "read data",
            Operation::ReadMetadata(_) => "read metadata",
            Operation::ChangeData(..) => "change data",
            Operation::ChangeMetadata(..) => "change metadata",
            Operation::Delete(_) => "delete",
            Operation::ReadLogs => "read logs",
            Operation::VerifyDeletion(_) => "verify deletion",
        }
    }

    #[test]
    fn operations_come_as_often_as_they_are_weighted() {
        const COUNT: u32 = 100_000;
        let shares: [&[(&str, f64)]; 4] = [
            &[("create", 10.0 / 31.0), ("delete by", 1.0 / 31.0), ("change by", 20.0 / 31.0)],
            &[
                ("read by", 0.2),
                ("read metadata", 0.2),
                ("change data", 0.2),
                ("change metadata", 0.2),
                ("delete", 0.2),
            ],
            &[("read data", 0.2), ("read by", 0.8)],
            &[("read by", 0.46), ("read logs", 0.31), ("verify deletion", 0.23)],
        ];
        for (role, shares) in Role::ALL.into_iter().zip(shares) {
            let mut generator = Gdprbench::new(role, 1, 1000);
            let mut counts = BTreeMap::new();
            for _ in 0..COUNT {
                *counts.entry(name(&generator.next_operation())).or_insert(0_u32) += 1;
            }
            assert_eq!(counts.len(), shares.len(), "{counts:?}");
            for (operation, share) in shares {
                let is = f64::from(counts[operation]) / f64::from(COUNT);
                assert!((is - share).abs() < 0.01, "{operation} of a {}: {is}", role.name());
            }
        }
    }

    #[test]
    fn a_value_is_that_of_about_ten_records() {
        let mut generator = Gdprbench::new(Role::Controller, 1, 1000);
        let records = (0..1000).map(|_| generator.next_record()).collect::<Vec<_>>();
        assert_eq!((records[0].key.as_str(), records[999].key.as_str()), ("key0", "key999"));
        for (index, field) in METADATA.into_iter().enumerate() {
            let values = records.iter().map(|record| record.fields[index].1.as_str());
            assert!(records.iter().all(|record| record.fields[index].0 == field));
            let different = values.collect::<std::collections::BTreeSet<_>>().len();
            assert!((90..=100).contains(&different), "{field}: {different}");
        }
        let Operation::Create(created) =
            std::iter::repeat_with(|| generator.next_operation()).find(|one| name(one) == "create").unwrap()
        else {
            unreachable!()
        };
        assert_eq!(created.key, "key1000", "after those that were loaded");
    }

    #[test]
    fn customers_ask_for_the_first_record_most_and_processors_for_all_alike() {
        let most = |role, kind| {
            let mut generator = Gdprbench::new(role, 1, 100);
            let mut counts = BTreeMap::new();
            for _ in 0..100_000 {
                if let Operation::ReadData(key) | Operation::ReadMetadata(key) = generator.next_operation() {
                    *counts.entry(key).or_insert(0_u32) += 1;
                }
            }
            assert_eq!(counts.len(), 100, "{kind}");
            let all = counts.values().sum::<u32>();
            f64::from(counts["key0"]) / f64::from(all)
        };
        // One hundredth, and one over the hundredth harmonic number.
        assert!((most(Role::Processor, "uniform") - 0.01).abs() < 0.003);
        assert!((most(Role::Customer, "skewed") - 1.0 / 5.187_377).abs() < 0.01);
    }

    #[test]
    fn a_seed_gives_the_same_again() {
        let drawn = |seed| {
            let mut generator = Gdprbench::new(Role::Customer, seed, 50);
            (generator.next_record(), (0..100).map(|_| generator.next_operation()).collect::<Vec<_>>())
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }
}
