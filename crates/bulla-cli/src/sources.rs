//! `bulla sources`.

use crate::append::{InputLabel, known};
use crate::exit::{Exit, Failure};
use crate::log_paths::LogPaths;
use crate::lost_frames::LostFramesJson;
use crate::output::{on_line, print, print_json, time};
use bulla::SourceState;
use bulla::text::spelling::counted;
use bulla_ingest::follow::{Label, Located, locate};
use bulla_ingest::journal::JournalLabel;
use serde::Serialize;

/// Say of each file that was followed into a log how far it is in there, and how far behind.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Told is what a signed checkpoint covers, and whoever writes the log is not kept from anything.
Up to its place all of a source is in the log, or was refused or is no record; what is beyond came
after something that was lost, or not committed yet. Files are found by their content, under whatever name they have by now.

Example:
  bulla sources audit")]
pub(crate) struct Sources {
    #[command(flatten)]
    place: LogPaths,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Sources {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let states = bulla::sources(self.place.directory(), self.place.keys())?;
        let mut sources: Vec<_> = states.into_iter().map(Source::new).collect();
        sources
            .sort_by(|one, other| (&one.name, &one.met, &one.id).cmp(&(&other.name, &other.met, &other.id)));
        let lost = bulla::lost_frames_of(self.place.log()?)?;
        let listed =
            Listed { sources, unread: lost.unread_sources(), lost_with_path: LostFramesJson::of(&lost) };
        if self.json { print_json(&listed) } else { print(&listed.to_text()) }?;
        Ok(Exit::Done)
    }
}

#[derive(Serialize)]
struct Listed {
    sources: Vec<Source>,
    #[serde(skip)]
    unread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_with_path: Option<LostFramesJson>,
}

#[derive(Serialize)]
struct Source {
    id: String,
    kind: Kind,
    /// The path by which a file is followed, or the name of an input.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Up to here all is in the log or became no entry: bytes of a file, numbers of entries, or lines.
    place: u64,
    /// So much before the place, behind the last entry, became none.
    passed: u64,
    /// What is missing between ranges that are in the log.
    missing: u64,
    /// What is in the log beyond the place.
    beyond: u64,
    /// What the file has that is not in the log; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File>,
    /// Where a file is that has another name by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Journal,
    Input,
    Unknown,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum File {
    Current,
    Rotated,
    /// It was read to its end, and nothing more is expected.
    Done,
    Gone,
}

impl Source {
    fn new(state: SourceState) -> Self {
        let first = state.ranges.first().or(state.passed.as_ref().map(|(range, _)| range));
        let first = first.map_or(0, |first| first.start);
        // A file is read from its beginning; an input may begin with any line, and a journal with any entry.
        let file = Label::parse(&state.label);
        let (kind, name, begin) = if let Some(label) = &file {
            (Kind::File, Some(label.path.display().to_string()), 0)
        } else if let Some(label) = JournalLabel::parse(&state.label) {
            (Kind::Journal, Some(label.journal), label.first)
        } else if let Some(label) = InputLabel::parse(&state.label) {
            (Kind::Input, Some(label.input), first)
        } else {
            (Kind::Unknown, None, first)
        };
        let (end, _) = state.resume(begin);
        let place = state.passed_from(end).map_or(end, |(passed, _)| passed);
        let passed = place - end;
        let beyond = state.ranges.iter().filter(|range| range.start >= place);
        let held: u64 = beyond.clone().map(|range| range.end - range.start).sum();
        let end = beyond.map(|range| range.end).max().unwrap_or(place);
        let mut source = Source {
            id: state.id.to_string(),
            kind,
            name,
            place,
            passed,
            missing: end - place - held,
            beyond: held,
            lag: None,
            file: None,
            at: None,
            met: None,
        };
        if let Some(label) = file {
            source.met = Some(time(label.met.div_euclid(1_000_000_000)));
            source.look_for(&label, state);
        }
        source
    }

    fn look_for(&mut self, label: &Label, state: SourceState) {
        let file = match locate(&known(state)) {
            Located::At { path, lag } => {
                self.lag = lag;
                let is_current = path == label.path;
                self.at = (!is_current).then(|| path.display().to_string());
                if is_current { File::Current } else { File::Rotated }
            }
            Located::Done => {
                self.lag = Some(0);
                File::Done
            }
            Located::Gone => File::Gone,
        };
        self.file = Some(file);
    }
}

impl Listed {
    fn to_text(&self) -> String {
        if self.sources.is_empty() {
            let nothing = "the log has nothing of any source: nothing was followed into it yet\n";
            return nothing.to_owned()
                + &self.unread.iter().map(|unread| format!("{unread}\n")).collect::<String>();
        }
        let heading = ["up to", "behind", "file", "source"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(heading).chain(self.sources.iter().map(Source::to_row)).collect();
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let [place, lag, file] = [0, 1, 2].map(width);
        let line = |[of_place, of_lag, of_file, name]: &[String; 4]| {
            format!("{of_place:>place$}  {of_lag:>lag$}  {of_file:<file$}  {name}\n")
        };
        let mut text: String = rows.iter().map(line).collect();
        for source in self.sources.iter().filter(|source| source.missing > 0) {
            let Source { missing, beyond, place, .. } = source;
            let again = match source.kind {
                Kind::Input => format!("send them again with --from {}", place + 1),
                _ => "they are read again when it is followed".to_owned(),
            };
            text += &format!(
                "{}: behind {} the log lacks {}, and has {} behind those: {again}\n",
                source.shown(),
                source.reached(),
                source.counted(*missing),
                source.counted(*beyond),
            );
        }
        text.extend(self.unread.iter().map(|unread| format!("{unread}\n")));
        let lag = self.sources.iter().filter_map(|source| source.lag).sum::<u64>();
        text + &format!("{}, {} behind\n", counted(self.sources.len() as u64, "source"), counted(lag, "byte"))
    }
}

impl Source {
    fn shown(&self) -> String {
        self.name.as_deref().map_or_else(|| format!("? ({})", self.id), on_line)
    }

    fn counted(&self, count: u64) -> String {
        let noun = match self.kind {
            Kind::File | Kind::Unknown => "byte",
            Kind::Journal => "entry",
            Kind::Input => "line",
        };
        counted(count, noun)
    }

    /// Up to where all is in the log or became no entry.
    fn reached(&self) -> String {
        match self.kind {
            Kind::File | Kind::Unknown => self.counted(self.place),
            Kind::Journal => format!("entry {}", self.place.saturating_sub(1)),
            Kind::Input => format!("line {}", self.place),
        }
    }

    fn to_row(&self) -> [String; 4] {
        let file = match self.file {
            Some(File::Current) => "current",
            Some(File::Rotated) => "rotated",
            Some(File::Done) => "done",
            Some(File::Gone) => "gone",
            None => "-",
        };
        let mut name = self.shown();
        if let Some(at) = &self.at {
            name += &format!(", now {}", on_line(at));
        }
        let lag = self.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string());
        [self.reached(), lag, file.to_owned(), name]
    }
}
