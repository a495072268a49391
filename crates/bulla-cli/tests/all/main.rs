//! The command's tests: the real binary, from outside. One test binary, a module a subcommand.
#![allow(clippy::unwrap_used)]

mod access_log;
mod acks;
mod append;
mod config;
mod control;
mod damaged_keys;
mod environment;
mod erase;
mod erasure;
mod events;
mod export;
mod fields;
mod formats;
mod generate;
mod grant;
mod held;
mod hold;
mod hostile;
mod info;
mod init;
mod interrupt;
mod keys;
mod manual;
mod memory;
mod prove;
mod pseudonym;
mod second_reader;
mod support;
mod tail;
mod unsynced;
mod verify;
mod walkthrough;
