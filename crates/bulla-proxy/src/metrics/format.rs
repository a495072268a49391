//! A strict reader of the text format: it takes what every reader of the format has to take, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

/// What a text says: each sample's value, by its name and labels as they are written.
pub(crate) type Samples = BTreeMap<String, f64>;

/// The samples of a text.
///
/// # Errors
/// The first line that breaks a rule, and which rule.
pub(crate) fn read(text: &str) -> Result<Samples, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    let mut families = BTreeSet::new();
    let mut samples = Samples::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let wrong = |what: &str| format!("{what}: {line}");
        let help = line.strip_prefix("# HELP ").ok_or_else(|| wrong("a family begins with HELP"))?;
        let (family, help) = help.split_once(' ').ok_or_else(|| wrong("HELP says nothing"))?;
        if !is_name(family) || help.is_empty() || unescape(help, "\\n").is_none() {
            return Err(wrong("a name or a help that is none"));
        }
        if !families.insert(family) {
            return Err(wrong("a family comes twice"));
        }
        let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
        let kind = kind.and_then(|line| line.strip_prefix(family)?.strip_prefix(' '));
        let kind = kind.ok_or_else(|| wrong("TYPE comes behind HELP"))?;
        if !["counter", "gauge", "histogram"].contains(&kind) {
            return Err(wrong("a type that is none"));
        }
        if kind == "counter" && !family.ends_with("_total") {
            return Err(wrong("a counter's name ends with _total"));
        }
        let mut histograms: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
        let before = samples.len();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let wrong = |what: &str| format!("{what}: {line}");
            let (series, value) = line.rsplit_once(' ').ok_or_else(|| wrong("a sample has a value"))?;
            let (name, labels) = match series.split_once('{') {
                None => (series, Vec::new()),
                Some((name, labels)) => {
                    (name, read_labels(labels).ok_or_else(|| wrong("labels that are none"))?)
                }
            };
            let value = number(value).ok_or_else(|| wrong("a value that is none"))?;
            let suffix = name.strip_prefix(family).ok_or_else(|| wrong("a sample of another family"))?;
            let expected: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            if !expected.contains(&suffix) || kind == "counter" && (value < 0.0 || value.is_nan()) {
                return Err(wrong("a sample that its type has not"));
            }
            let names: BTreeSet<&str> = labels.iter().map(|(name, _)| *name).collect();
            if names.len() != labels.len() || (names.contains("le") != (suffix == "_bucket")) {
                return Err(wrong("a label twice, or `le` where it does not belong"));
            }
            if kind == "histogram" {
                let own =
                    labels.iter().filter(|(name, _)| *name != "le").map(|it| format!("{it:?}")).collect();
                let which = labels
                    .iter()
                    .find(|(name, _)| *name == "le")
                    .map_or(suffix, |(_, bound)| bound)
                    .to_owned();
                histograms.entry(own).or_default().push((which, value));
            }
            if samples.insert(series.to_owned(), value).is_some() {
                return Err(wrong("a sample comes twice"));
            }
        }
        if samples.len() == before {
            return Err(wrong("a family without samples"));
        }
        for histogram in histograms.values() {
            consistent(histogram).map_err(wrong)?;
        }
    }
    Ok(samples)
}

/// Bounds that grow, up to infinity; counts that do not shrink; their sum, and as many as are in the last bucket.
fn consistent(histogram: &[(String, f64)]) -> Result<(), &'static str> {
    let [buckets @ .., (sum, _), (counted, count)] = histogram else {
        return Err("a histogram has a sum and a count");
    };
    if sum != "_sum" || counted != "_count" {
        return Err("a histogram ends with its sum and its count");
    }
    let bounds: Option<Vec<f64>> = buckets.iter().map(|(bound, _)| number(bound)).collect();
    let bounds = bounds.ok_or("a bound that is none")?;
    if !bounds.is_sorted_by(|one, next| one < next) || !buckets.is_sorted_by(|one, next| one.1 <= next.1) {
        return Err("buckets of a histogram grow");
    }
    match buckets.last() {
        Some((bound, last)) if bound == "+Inf" && last == count => Ok(()),
        _ => Err("the last bucket has everything"),
    }
}

fn is_name(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(rest) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Names and values up to the brace at the end.
fn read_labels(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut labels = Vec::new();
    loop {
        let (name, rest) = text.split_once("=\"")?;
        let mut escaped = false;
        let end = rest.find(|character| {
            let ends = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            ends
        })?;
        labels.push((Some(name).filter(|name| is_name(name))?, unescape(&rest[..end], "\\n\"")?));
        text = &rest[end + 1..];
        match text.strip_prefix(',') {
            Some(rest) => text = rest,
            None => return (text == "}").then_some(labels),
        }
    }
}

/// A text without the backslashes before these characters, before which alone they may stand.
fn unescape(text: &str, escaped: &str) -> Option<String> {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next().filter(|next| escaped.contains(*next))? {
                'n' => '\n',
                other => other,
            },
            '\n' => return None,
            other => other,
        });
    }
    Some(plain)
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"-.e".contains(&byte)) => text.parse().ok(),
        _ => None,
    }
}
