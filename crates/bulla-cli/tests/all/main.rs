//! The command's tests: the real binary, from outside. One test binary, a module a subcommand.
#![allow(clippy::unwrap_used)]

mod access_log;
mod acks;
mod also;
mod anchor;
mod append;
mod config;
mod console;
mod control;
mod damaged_keys;
mod drills;
#[cfg(feature = "proxy")]
mod embedded;
mod environment;
mod erase;
mod erase_again;
mod erase_kept;
mod erase_preview;
mod erasure;
mod events;
mod export;
mod fields;
mod follow;
mod formats;
mod generate;
mod grant;
mod held;
mod hold;
mod hostile;
mod info;
mod init;
mod input;
mod interrupt;
mod journal;
mod json;
mod json_members;
mod keys;
mod listening;
mod lost_path;
mod manual;
mod memory;
mod mirror;
mod numbered;
mod paths;
mod pin;
mod planted;
mod prove;
#[cfg(feature = "proxy")]
mod proxied;
#[cfg(feature = "proxy")]
mod proxy;
#[cfg(feature = "proxy")]
mod proxy_document;
#[cfg(feature = "proxy")]
mod proxy_families;
#[cfg(feature = "proxy")]
mod proxy_kill;
mod proxy_learned;
#[cfg(feature = "proxy")]
mod proxy_oracle;
#[cfg(feature = "proxy")]
mod proxy_reopened;
#[cfg(feature = "proxy")]
mod proxy_sockets;
#[cfg(feature = "proxy")]
mod proxy_start;
mod pseudonym;
mod rekey;
mod restore;
mod root;
mod second_reader;
mod support;
mod tail;
mod tail_keys;
mod unsynced;
mod verify;
mod walkthrough;
mod ways_in;
mod witness;
mod witness_refuses;
mod word_order;
