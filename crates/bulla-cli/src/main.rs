//! The `bulla` command: glue over the library, a file a subcommand.

#[macro_use]
mod output;
mod append;
mod authority;
mod check;
mod config;
mod erase;
mod events;
mod exit;
mod export;
mod filter;
mod generate;
mod grant;
mod group_keys;
mod hold;
mod identity;
mod info;
mod init;
mod interrupt;
mod keys;
mod log_paths;
mod manual;
mod missing_keys;
mod nothing_found;
mod order;
mod prove;
mod pseudonym;
mod restore;
mod tail;
mod terminal;
mod times;
mod verify;

use clap::{CommandFactory, Parser, Subcommand};
use exit::{Exit, Failure};
use std::process::ExitCode;

/// A tamper-evident, encrypted, compressed audit log for personal data.
#[derive(Parser)]
#[command(name = "bulla", version, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Init),
    Append(append::Append),
    Verify(verify::Verify),
    Export(export::Export),
    Info(info::Info),
    Events(events::Events),
    Config(config::Config),
    Keys(keys::Keys),
    Prove(prove::Prove),
    Grant(grant::Grant),
    Check(check::Check),
    Tail(tail::Tail),
    Pseudonym(pseudonym::Pseudonym),
    Erase(erase::Erase),
    Order(order::Order),
    Hold(hold::Hold),
    Restore(restore::Restore),
    Completions(manual::Completions),
    Man(manual::Man),
    Generate(generate::Generate),
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 an integrity violation was found, 2 usage, 3 done but some
input was refused, 4 the environment failed, 5 refused, 130 interrupted.

Example:
  bulla init audit
  bulla append audit --format combined --subject-from client access.log
  bulla verify audit";

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to standard output and is no error; whoever closed it does not want it.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.into();
        }
    };
    let json = arguments.command.json();
    match interrupt::outlive_file_size_limit().and_then(|()| arguments.command.run()) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::tell_failure(&failure, json);
            failure.exit.into()
        }
    }
}

impl Command {
    /// Whether one JSON object is asked for.
    fn json(&self) -> bool {
        match self {
            Command::Init(init) => init.json,
            Command::Append(append) => append.json,
            Command::Verify(verify) => verify.json,
            Command::Export(export) => export.json,
            Command::Info(info) => info.json,
            Command::Events(events) => events.json,
            Command::Config(config) => config.json,
            Command::Keys(keys) => keys.json,
            Command::Check(check) => check.json,
            Command::Pseudonym(pseudonym) => pseudonym.json,
            Command::Erase(erase) => erase.json,
            Command::Hold(hold) => hold.json,
            Command::Restore(restore) => restore.json,
            Command::Prove(_)
            | Command::Grant(_)
            | Command::Tail(_)
            | Command::Order(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Generate(_) => false,
        }
    }

    fn run(self) -> Result<Exit, Failure> {
        match self {
            Command::Init(init) => init.run(),
            Command::Append(append) => append.run(),
            Command::Verify(verify) => verify.run(),
            Command::Export(export) => export.run(),
            Command::Info(info) => info.run(),
            Command::Events(events) => events.run(),
            Command::Config(config) => config.run(),
            Command::Keys(keys) => keys.run(),
            Command::Prove(prove) => prove.run(),
            Command::Grant(grant) => grant.run(),
            Command::Check(check) => check.run(),
            Command::Tail(tail) => tail.run(),
            Command::Pseudonym(pseudonym) => pseudonym.run(),
            Command::Erase(erase) => erase.run(),
            Command::Order(order) => order.run(),
            Command::Hold(hold) => hold.run(),
            Command::Restore(restore) => restore.run(),
            Command::Completions(completions) => completions.run(Arguments::command()),
            Command::Man(man) => man.run(Arguments::command()),
            Command::Generate(generate) => generate.run(),
        }
    }
}
