//! Proof files: known answers, properties, damage, hostile claims, and another implementation's judgement.

mod anchors;
mod build;
mod damage;
mod groups;
mod hostile;
mod receipt_vectors;
mod receipts;
mod second_reader;
mod vectors;
pub(crate) mod world;
