//! Queries: which blocks they read, what they answer, and what they rest on.

mod answers;
mod blocks;
mod damaged;
mod edited;
mod erased;
mod faults;
mod grants;
mod groups;
mod live;
mod memory;
mod passes;
mod proofs;
mod rebuilt;
mod salvage;
mod twofold;
mod world;
