//! The `bulla` command: glue over the library, a file a subcommand.

#[macro_use]
mod output;
mod anchor;
mod append;
mod as_logged;
mod authority;
mod check;
mod config;
mod confirm;
mod erase;
mod escaped;
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
mod lost_frames;
mod manual;
mod maps;
mod mirror;
mod missing_keys;
mod new_file;
mod nothing_found;
mod order;
mod path_states;
mod prove;
#[cfg(feature = "proxy")]
mod proxy;
mod pseudonym;
mod public_key;
mod restore;
mod schema;
mod secret_words;
mod sources;
mod tail;
mod teller;
mod terminal;
mod times;
mod verify;
mod whose;
mod witness;
mod witness_policy;
mod word_order;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::{Exit, Failure};
use log_paths::LogPaths;
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
    Sources(sources::Sources),
    Maps(maps::Maps),
    Schema(schema::Schema),
    Verify(verify::Verify),
    Export(export::Export),
    Info(info::Info),
    Events(events::Events),
    Config(config::Config),
    Keys(keys::Keys),
    Prove(prove::Prove),
    Grant(grant::Grant),
    Check(check::Check),
    Anchor(anchor::Anchor),
    Tail(tail::Tail),
    Witness(witness::Witness),
    Mirror(mirror::Mirror),
    #[cfg(feature = "proxy")]
    Proxy(proxy::Proxy),
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

/// The option of every command that says something which a program may read.
const JSON: &str = "json";

fn main() -> ExitCode {
    let words = std::env::args_os().collect::<Vec<_>>();
    if let Err(failure) = secret_words::refuse(&words) {
        output::tell_failure(&failure, is_json_written());
        return Exit::Usage.into();
    }
    let command = Arguments::command();
    let parsed = command.clone().try_get_matches().and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches);
        let arguments = arguments.map_err(|error| error.format(&mut Arguments::command()))?;
        Ok((arguments, matches))
    });
    if let Err(help) = parsed.as_ref()
        && !help.use_stderr()
    {
        // It goes to standard output and is no error; whoever closed that does not want it.
        let _ = help.print();
        return Exit::Done.into();
    }
    if let Some(line) = word_order::put_right(&command, words) {
        output::tell_failure(&Failure::usage(line), is_json_written());
        return Exit::Usage.into();
    }
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            let text = error.render().to_string();
            output::tell_in_json(text.trim_start_matches("error: ").trim_end(), is_json_written());
            return Exit::Usage.into();
        }
    };
    let ready = interrupt::outlive_file_size_limit().and_then(|()| check_named_keys(&matches));
    match ready.and_then(|()| arguments.command.run()) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::tell_failure(&failure, asks_for_json(&matches));
            failure.exit.into()
        }
    }
}

/// That the key directory is there which was named, to any command about a log but the one that makes it.
fn check_named_keys(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some((name, of_command)) if name != "init" => {
            LogPaths::from_arg_matches(of_command).map_or(Ok(()), |place| place.check_named_keys())
        }
        _ => Ok(()),
    }
}

/// Whether what the command has to say is asked for in JSON.
fn asks_for_json(matches: &ArgMatches) -> bool {
    let told =
        |(_, of_command): (&str, &ArgMatches)| of_command.try_get_one::<bool>(JSON).ok().flatten().copied();
    matches.subcommand().and_then(told).unwrap_or_default()
}

/// The same of a command line that is none.
fn is_json_written() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

impl Command {
    fn run(self) -> Result<Exit, Failure> {
        match self {
            Command::Init(init) => init.run(),
            Command::Append(append) => append.run(),
            Command::Sources(sources) => sources.run(),
            Command::Maps(maps) => maps.run(),
            Command::Schema(schema) => schema.run(),
            Command::Verify(verify) => verify.run(),
            Command::Export(export) => export.run(),
            Command::Info(info) => info.run(),
            Command::Events(events) => events.run(),
            Command::Config(config) => config.run(),
            Command::Keys(keys) => keys.run(),
            Command::Prove(prove) => prove.run(),
            Command::Grant(grant) => grant.run(),
            Command::Check(check) => check.run(),
            Command::Anchor(anchor) => anchor.run(),
            Command::Tail(tail) => tail.run(),
            Command::Witness(witness) => witness.run(),
            Command::Mirror(mirror) => mirror.run(),
            #[cfg(feature = "proxy")]
            Command::Proxy(proxy) => proxy.run(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that have nothing to say in JSON, and why.
    const WITHOUT_JSON: [(&str, &str); 2] =
        [("completions", "it prints a script, for a shell"), ("man", "it writes manual pages, for people")];

    #[test]
    fn every_command_takes_json_or_has_a_reason_not_to() {
        for command in Arguments::command().get_subcommands() {
            let takes = command.get_arguments().any(|argument| argument.get_long() == Some(JSON));
            let excused = WITHOUT_JSON.iter().any(|(name, _)| *name == command.get_name());
            assert_ne!(takes, excused, "{}", command.get_name());
        }
    }
}
