//! `bulla completions` and `bulla man`: made from the command's own definitions.

use crate::exit::{Exit, Failure};
use crate::output::print;
use clap::Command;
use clap_complete::Shell;
use std::io;
use std::path::PathBuf;

/// Print completions for a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  bulla completions bash > /etc/bash_completion.d/bulla")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write manual pages, one a command.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  bulla man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// An existing directory to write them to
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// The command with those options shown that the help on a screen names with others of their kind.
fn whole(command: Command) -> Command {
    command.mut_subcommands(|subcommand| subcommand.mut_args(|argument| argument.hide(false)))
}

impl Completions {
    pub(crate) fn run(self, command: Command) -> Result<Exit, Failure> {
        let mut command = whole(command);
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "bulla", &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Result<Exit, Failure> {
        let failed = |error: io::Error| Failure::io(format!("writing {}", self.directory.display()), &error);
        clap_mangen::generate_to(whole(command), &self.directory).map_err(failed)?;
        Ok(Exit::Done)
    }
}
