//! Settings by their names, as text: what `[settings]` says, and what stands where it says nothing.

use super::{
    Durability, LEAST_BLOCK_SIZE, MOST_MEMORY, OnFailure, Options, Profile, Tuning, default, parse_duration,
    parse_size,
};
use crate::format::toml_value::quote;
use bulla_crypto::plugin;
use bulla_store::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A setting as it counts for whoever opens the log next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name in `[settings]`.
    pub name: &'static str,
    /// Its value, as it is written there.
    pub value: String,
    /// Where the value comes from.
    pub source: SettingSource,
    /// Where it is kept.
    pub place: SettingPlace,
}

/// Where a setting is kept, and may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingPlace {
    /// `[settings]` of `bulla.toml`, in the log's directory: what costs time or space within bounds that are fixed elsewhere.
    Log,
    /// `settings.toml` of the key directory: what names a path, or what a promise of the host rests on.
    Keys,
}

/// Where a setting's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// The file in which it is kept.
    File,
    /// The default.
    Default,
}

/// What a value is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Size,
    Number,
    Duration,
    Durability,
    Profile,
    Places,
    Pin,
    OnFailure,
}

/// All settings. Why each is kept where it is, decision 31 says.
const FORMS: [(&str, Form, SettingPlace); 19] = [
    ("memory", Form::Size, SettingPlace::Keys),
    ("block_size", Form::Size, SettingPlace::Log),
    ("segment_size", Form::Size, SettingPlace::Keys),
    ("writers", Form::Number, SettingPlace::Log),
    ("profile", Form::Profile, SettingPlace::Log),
    ("compression", Form::Number, SettingPlace::Log),
    ("linger", Form::Duration, SettingPlace::Keys),
    ("append_timeout", Form::Duration, SettingPlace::Keys),
    ("checkpoint_interval", Form::Duration, SettingPlace::Keys),
    ("retries", Form::Number, SettingPlace::Log),
    ("retry_delay", Form::Duration, SettingPlace::Log),
    ("plugin_timeout", Form::Duration, SettingPlace::Keys),
    ("durability", Form::Durability, SettingPlace::Keys),
    ("vault_replicas", Form::Places, SettingPlace::Keys),
    ("pin", Form::Pin, SettingPlace::Keys),
    ("backup_paths", Form::Places, SettingPlace::Keys),
    ("on_failure", Form::OnFailure, SettingPlace::Keys),
    ("error_path", Form::Pin, SettingPlace::Keys),
    ("error_path_size", Form::Size, SettingPlace::Keys),
];

/// The names of all settings, in the order of [`Options::settings`].
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(name, ..)| *name)
}

/// Where the setting of this name is kept; `None` where there is none.
pub(crate) fn place_of(name: &str) -> Option<SettingPlace> {
    FORMS.iter().find(|(known, ..)| *known == name).map(|(_, _, place)| *place)
}

impl Options {
    /// All settings: those that these options choose, and the defaults.
    pub fn settings(&self) -> Vec<Setting> {
        // As many writers as the memory allows, where nobody says how many.
        let writers = || Tuning::try_from(self.clone()).map_or_else(|_| default::writers(), |it| it.writers);
        let profile = self.profile.unwrap_or_default();
        let values = [
            value(self.memory, || profile.memory(), size),
            value(self.block_size, || profile.block_size(), size),
            value(self.segment_size, || default::SEGMENT_SIZE, size),
            value(self.writers, writers, |number| number.to_string()),
            value(self.profile, Profile::default, |profile| profile.name().to_owned()),
            value(self.compression, || profile.compression(), |level| level.to_string()),
            value(self.linger, || default::LINGER, duration),
            value(self.append_timeout, || default::APPEND_TIMEOUT, duration),
            value(self.checkpoint_interval, || default::CHECKPOINT_INTERVAL, duration),
            value(self.retries, || default::RETRIES, |number| number.to_string()),
            value(self.retry_delay, || default::RETRY_DELAY, duration),
            value(self.plugin_timeout, || plugin::DEFAULT_TIMEOUT, duration),
            value(self.durability, Durability::default, durability),
            value(self.vault_replicas.as_deref(), || &[], places),
            value(self.pin.as_deref(), || Path::new(""), |path| path.display().to_string()),
            value(self.backup_paths.as_deref(), || &[], places),
            value(self.on_failure, OnFailure::default, |on_failure| on_failure.name().to_owned()),
            value(self.error_path.as_deref(), || Path::new(""), |path| path.display().to_string()),
            value(self.error_path_size, || default::ERROR_PATH_SIZE, size),
        ];
        let settings = FORMS.iter().zip(values);
        settings
            .map(|((name, _, place), (value, source))| Setting { name, value, source, place: *place })
            .collect()
    }

    /// The names of the settings in here that are kept elsewhere than in `place`.
    pub fn misplaced(&self, place: SettingPlace) -> Vec<&'static str> {
        let here = |setting: &Setting| setting.source == SettingSource::File && setting.place != place;
        self.settings().iter().filter(|setting| here(setting)).map(|setting| setting.name).collect()
    }

    /// What `[settings]` of `bulla.toml` says together with what the key directory says, each of what is kept in it.
    pub fn with_host(self, host: Options) -> Options {
        self.only(SettingPlace::Log).or(host.only(SettingPlace::Keys))
    }

    /// Whether each setting that is kept in `place` is within its bounds. Whether they fit together with the others is not asked:
    /// the most memory has room for any block, and the smallest blocks fit any memory.
    pub(crate) fn check_bounds(self, place: SettingPlace) -> Result<()> {
        let settings = self.only(place);
        let settings = match place {
            SettingPlace::Log => settings.memory(MOST_MEMORY),
            SettingPlace::Keys => settings.block_size(LEAST_BLOCK_SIZE).compression(0).writers(1),
        };
        Tuning::try_from(settings).map(drop)
    }

    fn only(self, place: SettingPlace) -> Options {
        match place {
            SettingPlace::Log => Options {
                memory: None,
                segment_size: None,
                linger: None,
                append_timeout: None,
                checkpoint_interval: None,
                plugin_timeout: None,
                durability: None,
                vault_replicas: None,
                pin: None,
                backup_paths: None,
                on_failure: None,
                error_path: None,
                error_path_size: None,
                ..self
            },
            SettingPlace::Keys => Options {
                block_size: None,
                writers: None,
                profile: None,
                compression: None,
                retries: None,
                retry_delay: None,
                ..self
            },
        }
    }
}

fn value<T>(
    given: Option<T>,
    default: impl Fn() -> T,
    text: impl Fn(T) -> String,
) -> (String, SettingSource) {
    match given {
        Some(given) => (text(given), SettingSource::File),
        None => (text(default()), SettingSource::Default),
    }
}

/// In the largest unit that it is a whole number of.
fn size(bytes: usize) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

pub(crate) fn duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    match units.iter().find(|(_, unit)| nanos.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", nanos / unit),
        None => format!("{nanos} ns"),
    }
}

fn durability(durability: Durability) -> String {
    match durability {
        Durability::Group => "group".to_owned(),
        Durability::Interval(time) => format!("interval {}", duration(time)),
        Durability::Os => "os".to_owned(),
    }
}

fn places(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(",")
}

fn split(places: &str) -> impl Iterator<Item = &str> {
    places.split(',').map(str::trim).filter(|place| !place.is_empty())
}

/// The value of a setting in TOML, from what a person writes.
///
/// # Errors
/// `Invalid` where there is no such setting, or the value is of another form; whether it is within its limits is
/// known once it is put together with the others.
pub(crate) fn to_toml(name: &str, text: &str) -> Result<String> {
    let text = text.trim();
    let form = FORMS.iter().find(|(known, ..)| *known == name);
    let Some((_, form, _)) = form else { return Err(Error::invalid(format!("`{name}` is not a setting"))) };
    let (fits, wanted) = match form {
        Form::Size => (parse_size(text).is_some(), "a size such as \"64 MiB\""),
        Form::Number => (text.parse::<u32>().is_ok(), "a whole number"),
        Form::Duration => (parse_duration(text).is_some(), super::DURATION),
        Form::Profile => (Profile::parse(text).is_some(), "one of \"fast\", \"balanced\", \"max\""),
        Form::Durability => {
            (super::parse_durability(text).is_some(), "one of \"group\", \"interval 100 ms\", \"os\"")
        }
        Form::Places => (
            split(text).all(|place| super::is_place(Path::new(place))),
            "a list of absolute paths with commas between them",
        ),
        Form::OnFailure => (OnFailure::parse(text).is_some(), "one of \"refuse\", \"block\", \"drop\""),
        Form::Pin => (text.is_empty() || super::is_pin(Path::new(text)), "an absolute path"),
    };
    if !fits {
        return Err(Error::invalid(format!("`{name}`: `{text}` is not {wanted}")));
    }
    Ok(match text.parse::<u32>() {
        Ok(number) if matches!(form, Form::Size | Form::Number) => number.to_string(),
        _ if *form == Form::Places => format!("[{}]", split(text).map(quote).collect::<Vec<_>>().join(", ")),
        _ => quote(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown can be set, and comes to the same.
    #[test]
    fn every_setting_reads_back_as_it_is_shown() {
        let options = [
            Options::default(),
            Options::default()
                .memory(3 << 30)
                .block_size(5000)
                .segment_size(1 << 40)
                .writers(3)
                .compression(0)
                .linger(Duration::ZERO)
                .append_timeout(Duration::from_secs(120))
                .checkpoint_interval(Duration::from_micros(1500))
                .retries(0)
                .retry_delay(Duration::from_nanos(1_000_001))
                .plugin_timeout(Duration::from_secs(90))
                .durability(Durability::Interval(Duration::from_millis(100))),
            Options::default().durability(Durability::Os).memory(64 << 20),
            Options::default().profile(Profile::Fast),
            Options::default().profile(Profile::Max),
            Options::default().vault_replicas(["/mnt/a", "/mnt/b \"c\""]),
            Options::default().vault_replicas([""; 0]),
            Options::default().pin("/mnt/a, b/audit \"c\".pin"),
            Options::default().backup_paths(["/mnt/a", "/mnt/b \"c\""]),
            Options::default().on_failure(OnFailure::Block),
            toml::from_str("on_failure = \"drop\"\nerror_path = \"/mnt/a, b\"\nerror_path_size = \"5 MiB\"")
                .unwrap(),
        ];
        for options in options {
            let settings = options.settings();
            assert_eq!(
                settings.iter().map(|setting| setting.name).collect::<Vec<_>>(),
                names().collect::<Vec<_>>()
            );
            let lines = settings
                .iter()
                .map(|Setting { name, value, .. }| format!("{name} = {}\n", to_toml(name, value).unwrap()));
            let read = toml::from_str::<Options>(&lines.collect::<String>()).unwrap();
            assert_eq!(Tuning::try_from(read).unwrap(), Tuning::try_from(options).unwrap());
        }
    }

    /// A setting is in one of the two files or in the other, and never lost on the way from there.
    #[test]
    fn every_setting_has_one_place() {
        for name in names() {
            let text = match name {
                "profile" => "profile = \"fast\"".to_owned(),
                "durability" => "durability = \"os\"".to_owned(),
                "vault_replicas" => "vault_replicas = [\"/mnt/a\"]".to_owned(),
                "pin" | "error_path" => format!("{name} = \"/mnt/a\""),
                "on_failure" => "on_failure = \"block\"".to_owned(),
                "backup_paths" => "backup_paths = [\"/mnt/a\"]".to_owned(),
                "linger" | "append_timeout" | "checkpoint_interval" | "retry_delay" | "plugin_timeout" => {
                    format!("{name} = \"7 s\"")
                }
                _ => format!("{name} = 7"),
            };
            let given = toml::from_str::<Options>(&text).unwrap();
            let (place, other) = match place_of(name).unwrap() {
                SettingPlace::Log => (SettingPlace::Log, SettingPlace::Keys),
                SettingPlace::Keys => (SettingPlace::Keys, SettingPlace::Log),
            };
            assert_eq!((given.misplaced(place), given.misplaced(other)), (vec![], vec![name]));
            let (in_place, elsewhere) = match place {
                SettingPlace::Log => {
                    (given.clone().with_host(Options::default()), Options::default().with_host(given.clone()))
                }
                SettingPlace::Keys => {
                    (Options::default().with_host(given.clone()), given.clone().with_host(Options::default()))
                }
            };
            assert_eq!((in_place, elsewhere), (given, Options::default()), "{name}");
        }
    }

    #[test]
    fn the_source_is_told() {
        let settings = Options::default().retries(3).settings();
        let from_file = settings.iter().filter(|setting| setting.source == SettingSource::File);
        assert_eq!(from_file.map(|setting| setting.name).collect::<Vec<_>>(), ["retries"]);
        let writers = |options: Options| options.settings()[3].value.parse::<usize>().unwrap();
        assert_eq!(writers(Options::default().memory(96 << 20).block_size(4 << 20)), 1, "what memory allows");
    }

    #[test]
    fn a_value_of_another_form_is_refused() {
        for (name, text) in [
            ("memory", "much"),
            ("memory", "-1"),
            ("memory", "5 ms"),
            ("writers", "four"),
            ("writers", "\"4\""),
            ("compression", "-3"),
            ("retries", "4294967296"),
            ("linger", "5"),
            ("durability", "interval"),
            ("durability", "Group"),
            ("profile", "Max"),
            ("memory", "1\" # \""),
            ("memories", "64 MiB"),
            ("vault_replicas", "replica"),
            ("vault_replicas", "/mnt/a,../b"),
            ("pin", "audit.pin"),
            ("backup_paths", "../audit"),
            ("on_failure", "lose"),
            ("error_path", "errors"),
            ("error_path_size", "5 s"),
        ] {
            assert!(to_toml(name, text).is_err(), "{name} {text}");
        }
        assert_eq!(to_toml("writers", " 04 ").unwrap(), "4", "TOML knows no leading zeros");
        assert_eq!(to_toml("vault_replicas", " /a , /b c,").unwrap(), "[\"/a\", \"/b c\"]");
        assert_eq!(to_toml("memory", "67108864").unwrap(), "67108864");
        assert_eq!(to_toml("memory", "6871947673600").unwrap(), "\"6871947673600\"");
    }
}
