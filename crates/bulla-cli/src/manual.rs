//! `bulla completions` and `bulla man`: made from the command's own definitions.

use crate::exit::{Exit, Failure};
use crate::output::print;
use clap::Command;
use clap::builder::Resettable;
use clap_complete::Shell;
use roff::{Roff, bold, roman};
use std::io;
use std::path::{Path, PathBuf};

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

/// The variables that commands look at.
const ENVIRONMENT: [(&str, &str); 3] = [
    (
        "BULLA_PASSPHRASE_FILE",
        "A file that holds the passphrase of an identity, and nothing else, in place of --passphrase-file.",
    ),
    ("BULLA_PLUGIN_TIMEOUT", "How long an age plugin may take when a log is read, such as 2 min."),
    ("PATH", "Where age plugins are looked for."),
];

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
        if !self.directory.is_dir() {
            let directory = self.directory.display();
            let message = format!(
                "{directory} is no directory: make it (`mkdir -p {directory}`), or name one that is there"
            );
            return Err(Failure::new(Exit::Environment, message));
        }
        let failed = |error: io::Error| Failure::io(format!("writing {}", self.directory.display()), &error);
        let mut command = whole(command).disable_help_subcommand(true);
        command.build();
        write_pages(command, &self.directory).map_err(failed)?;
        Ok(Exit::Done)
    }
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: Command, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        write_pages(below, directory)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = notes_and_examples(&after);
    let page = clap_mangen::Man::new(command.after_help(Resettable::Reset));
    let mut text = Vec::new();
    page.render(&mut text)?;
    let mut sections = Roff::new();
    let mut section = |heading, lines: &str| {
        sections.control("SH", [heading]).control("nf", []);
        for line in lines.lines() {
            sections.text([roman(line)]);
        }
        sections.control("fi", []);
    };
    if !notes.is_empty() {
        section("NOTES", notes);
    }
    if !examples.is_empty() {
        section("EXAMPLES", examples);
    }
    sections.control("SH", ["EXIT STATUS"]);
    for (exit, meaning) in Exit::ALL {
        sections.control("TP", []).text([bold((exit as u8).to_string())]).text([roman(meaning)]);
    }
    sections.control("SH", ["ENVIRONMENT"]);
    for (name, meaning) in ENVIRONMENT {
        sections.control("TP", []).text([bold(name)]).text([roman(meaning)]);
    }
    text.extend(sections.to_roff().into_bytes());
    std::fs::write(directory.join(page.get_filename()), text)
}

/// What is said below the help, without the examples that end it, and these.
fn notes_and_examples(after: &str) -> (&str, &str) {
    for heading in ["Examples:\n", "Example:\n"] {
        if let Some((notes, examples)) = after.split_once(heading) {
            return (notes.trim_end(), examples);
        }
    }
    (after, "")
}
