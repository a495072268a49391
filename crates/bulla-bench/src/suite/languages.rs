//! The cases of languages: appending from C and from Python, the thesis's interface, calls of `logging`, queries, and several processes.

use crate::command;
use crate::contest::{Case, Contender};
use crate::languages::{Appender, Extent, Handler, Interface, Part, Reading, Run, Way, library, python};
use crate::load::Load;
use crate::outcome::Failure;
use crate::trial::{Task, Trial};
use bulla_workload::Workload;

/// Names of cases.
pub(crate) mod name {
    pub(crate) const WEB: &str = "append, web";
    pub(crate) const GDPR: &str = "append, gdpr";
    pub(crate) const THESIS: [&str; 3] = ["thesis, 1 producer", "thesis, 2 producers", "thesis, 4 producers"];
    pub(crate) const LOGGING: &str = "logging";
    pub(crate) const QUERY: &str = "query";
    pub(crate) const SOCKET: &str = "socket";
}

/// Names of contenders. The first of a case is what the others are held against.
pub(crate) const RUST: &str = "Rust";
pub(crate) const C: &str = "C";
pub(crate) const DICTS: &str = "Python, dicts";
pub(crate) const ARROW: &str = "Python, Arrow table";
pub(crate) const THESIS: &str = "C++, thesis's interface";
pub(crate) const FILE: &str = "FileHandler";
pub(crate) const HANDLER: &str = "Bulla's handler";
pub(crate) const PARQUET: &str = "export to Parquet";
pub(crate) const TABLE: &str = "Python, to an Arrow table";
pub(crate) const PIPE: &str = "one process, a pipe";
pub(crate) const WINDOW: &str = "four, 64 batches under way";
pub(crate) const ONE_BY_ONE: &str = "four, one batch under way";

/// Which cases are measured, and for how long.
#[derive(clap::Args)]
pub(crate) struct Chosen {
    #[command(flatten)]
    extent: Extent,

    /// Only the cases whose names begin with one of these: append, thesis, logging, query, socket
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
}

impl Chosen {
    /// The cases, and what of them cannot be measured, which is said at once.
    pub(crate) fn cases(&self) -> Result<(Vec<Case>, Vec<String>), Failure> {
        let mut cases = self.all();
        if !self.only.is_empty() {
            cases.retain(|case| self.only.iter().any(|name| case.name.starts_with(name.as_str())));
            if cases.is_empty() {
                return Err(format!("--only {}: no case begins so", self.only.join(",")).into());
            }
        }
        let mut not_measured = Vec::new();
        if let Err(missing) = self.python() {
            for case in &mut cases {
                case.contenders.retain(|run| {
                    let is_missing = part(run).is_some_and(needs_python);
                    if is_missing {
                        not_measured.push(format!("{}, {}: {missing}", case.name, run.name));
                    }
                    !is_missing
                });
            }
            // What there is nothing to hold against.
            cases.retain(|case| case.contenders.len() > 1);
        }
        not_measured.iter().for_each(|what| eprintln!("not measured: {what}"));
        // So is a program or a library that is missing found out.
        let needs = |needs: fn(&Part) -> bool| {
            cases.iter().flat_map(|case| &case.contenders).filter_map(part).any(needs)
        };
        if needs(|part| matches!(part, Part::Append(Appender::C, _) | Part::Batches(Interface::Thesis, _))) {
            library()?;
        }
        if needs(|part| matches!(part, Part::Socket(_) | Part::Query(Reading::Parquet))) {
            command::program()?;
        }
        Ok((cases, not_measured))
    }

    /// Why Python cannot be measured, if so.
    fn python(&self) -> Result<(), String> {
        let Some(package) = &self.extent.python_path else {
            return Err("--python-path does not say where the Python package is".to_owned());
        };
        if !package.join("bulla_audit/__init__.py").is_file() {
            return Err(format!("there is no bulla_audit in {}", package.display()));
        }
        match python().is_file() {
            true => Ok(()),
            false => Err("there is no .venv/bin/python: `make setup` makes it".to_owned()),
        }
    }

    fn all(&self) -> Vec<Case> {
        let case = |name: &str, contenders: &[(&str, Part)]| {
            let contenders = contenders.iter().map(|(name, part)| {
                let run = Run { part: part.clone(), extent: self.extent.clone() };
                Contender::new(*name, Trial { task: Task::Language(run), knobs: None })
            });
            Case { name: name.to_owned(), contenders: contenders.collect() }
        };
        let [web, gdpr] = [Workload::Web, Workload::Gdpr]
            .map(|workload| move |appender| Part::Append(appender, Load(workload)));
        let mut cases = vec![
            case(
                name::WEB,
                &[
                    (RUST, web(Appender::Rust)),
                    (C, web(Appender::C)),
                    (DICTS, web(Appender::Dicts)),
                    (ARROW, web(Appender::Arrow)),
                ],
            ),
            case(name::GDPR, &[(RUST, gdpr(Appender::Rust)), (C, gdpr(Appender::C))]),
        ];
        for (name, producers) in name::THESIS.into_iter().zip([1, 2, 4]) {
            let by = |interface| Part::Batches(interface, producers);
            cases.push(case(name, &[(RUST, by(Interface::Rust)), (THESIS, by(Interface::Thesis))]));
        }
        cases.extend([
            case(
                name::LOGGING,
                &[(FILE, Part::Calls(Handler::File)), (HANDLER, Part::Calls(Handler::Bulla))],
            ),
            case(
                name::QUERY,
                &[(PARQUET, Part::Query(Reading::Parquet)), (TABLE, Part::Query(Reading::Arrow))],
            ),
            case(
                name::SOCKET,
                &[
                    (PIPE, Part::Socket(Way::Pipe)),
                    (WINDOW, Part::Socket(Way::Window)),
                    (ONE_BY_ONE, Part::Socket(Way::OneByOne)),
                ],
            ),
        ]);
        cases
    }
}

/// What a contender of these cases does.
pub(crate) fn part(run: &Contender) -> Option<&Part> {
    match &run.trial.task {
        Task::Language(run) => Some(&run.part),
        _ => None,
    }
}

fn needs_python(part: &Part) -> bool {
    matches!(
        part,
        Part::Append(Appender::Dicts | Appender::Arrow, _) | Part::Calls(_) | Part::Query(Reading::Arrow)
    )
}
