//! Text with places in braces, which the record fills.

use super::MapError;
use super::document::Item;
use super::pointer::Pointer;
use super::scope::{Found, Names, Problem, Scope, Source};
use bulla_proof::entry::{MAX_PAYLOAD, MAX_STRING};
use bulla_text::spelling::nearest;
use std::borrow::Cow;

/// Text with places in braces.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    /// The first of these that is something.
    Place(Vec<Source>),
}

impl Template {
    /// Reads a template. Its pointers get numbers, and its groups have them.
    ///
    /// Where `may_be_several`, a template that is nothing but a place may have pointers that name several values.
    pub(super) fn parse(item: &Item<'_>, names: &mut Names, may_be_several: bool) -> Result<Self, MapError> {
        let Ok(text) = item.string() else { return Ok(Template(vec![Piece::Text(item.word()?)])) };
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        let is_sole = text.starts_with('{') && text.find('}') == Some(text.len() - 1);
        while let Some(brace) = text[at..].find(['{', '}']).map(|brace| at + brace) {
            literal.push_str(&text[at..brace]);
            let bytes = text.as_bytes();
            if bytes.get(brace + 1) == Some(&bytes[brace]) {
                literal.push(char::from(bytes[brace]));
                at = brace + 2;
                continue;
            }
            let Some(end) = text[brace..].find('}').map(|end| brace + end).filter(|_| bytes[brace] == b'{')
            else {
                let brace_is = &text[brace..=brace];
                let what = format!(
                    "this `{brace_is}` has no partner; the character itself is `{brace_is}{brace_is}`"
                );
                return Err(item.error_within(brace, what));
            };
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            let may_be_several = may_be_several && is_sole;
            pieces.push(Piece::Place(place(item, brace + 1, &text[brace + 1..end], names, may_be_several)?));
            at = end + 1;
        }
        literal.push_str(&text[at..]);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Template(pieces))
    }

    /// The members that it may have the value of.
    pub(super) fn pointers(&self) -> impl Iterator<Item = usize> {
        let places = self.0.iter().filter_map(|piece| match piece {
            Piece::Place(sources) => Some(sources),
            Piece::Text(_) => None,
        });
        places.flatten().filter_map(|source| match source {
            Source::Member(pointer) => Some(*pointer),
            _ => None,
        })
    }

    /// The text that it is whatever the record has.
    pub(super) fn constant(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Its places, where it is nothing but one.
    pub(super) fn sole(&self) -> Option<&[Source]> {
        match self.0.as_slice() {
            [Piece::Place(sources)] => Some(sources),
            _ => None,
        }
    }

    /// The text; `None` where a place has nothing. Where it `takes`, members that stand in it as they are count as taken. What is joined is
    /// held up to the limit of the field alone, however often the map repeats a place.
    pub(super) fn bytes<'s>(
        &'s self,
        scope: &mut Scope<'s, '_>,
        takes: bool,
        may_be_json: bool,
    ) -> Result<Option<Cow<'s, [u8]>>, Problem> {
        let text = match self.0.as_slice() {
            [Piece::Text(text)] => return Ok(Some(Cow::Borrowed(text.as_bytes()))),
            [Piece::Place(sources)] => match first(scope, sources) {
                Some((_, found)) => found.bytes(may_be_json)?,
                None => return Ok(None),
            },
            pieces => {
                // What is looked up, which does not count as taken, is in no field.
                let limit = if takes && !may_be_json { MAX_STRING } else { MAX_PAYLOAD };
                let (mut text, mut is_over) = (Vec::new(), false);
                for piece in pieces {
                    let more = match piece {
                        Piece::Text(literal) => Cow::Borrowed(literal.as_bytes()),
                        Piece::Place(sources) => match first(scope, sources) {
                            Some((_, found)) => found.bytes(may_be_json)?,
                            None => return Ok(None),
                        },
                    };
                    is_over |= text.len() + more.len() > limit;
                    if !is_over {
                        text.extend_from_slice(&more);
                    }
                }
                if is_over {
                    return Err(format!("is longer than {limit} bytes").into());
                }
                Cow::Owned(text)
            }
        };
        if takes {
            self.take(scope);
        }
        Ok(Some(text))
    }

    /// Notes that a field has what it took.
    pub(super) fn take(&self, scope: &mut Scope<'_, '_>) {
        if scope.taken.is_empty() {
            return;
        }
        for piece in &self.0 {
            if let Piece::Place(sources) = piece
                && let Some((source, _)) = first(scope, sources)
            {
                scope.take(source);
            }
        }
    }
}

/// The first of these that is something.
pub(super) fn first<'s, 'v>(scope: &Scope<'s, 'v>, sources: &[Source]) -> Option<(Source, Found<'s, 'v>)> {
    sources.iter().find_map(|source| Some((*source, scope.find(*source)?)))
}

/// Reads what stands between braces, which begins at this byte of the text.
fn place(
    item: &Item<'_>,
    mut at: usize,
    text: &str,
    names: &mut Names,
    may_be_several: bool,
) -> Result<Vec<Source>, MapError> {
    let mut sources = Vec::new();
    for name in text.split('|') {
        sources.push(match name {
            "" if !sources.is_empty() => Source::Empty,
            "" => return Err(item.error_within(at, "braces want a JSON pointer or the name of a group within them")),
            "raw" => Source::Raw,
            "rest" => {
                let what = "`{rest}` is nothing but a whole payload: payload = \"{rest}\"";
                return Err(item.error_within(at, what));
            }
            _ if name.starts_with('/') => {
                let pointer = Pointer::parse(name).map_err(|(place, what)| item.error_within(at + place, what))?;
                if pointer.is_several() && !may_be_several {
                    let what = "`*` is each item of a list, for which only `subject` has room, with nothing beside the braces";
                    return Err(item.error_within(at, what));
                }
                Source::Member(names.pointer(pointer).map_err(|what| item.error_within(at, what))?)
            }
            _ => match names.group(name) {
                Some(group) => Source::Group(group),
                None => return Err(item.error_within(at, unknown_group(name, names))),
            },
        });
        at += name.len() + 1;
    }
    Ok(sources)
}

fn unknown_group(name: &str, names: &Names) -> String {
    let known = names.groups().chain(["raw", "rest"]);
    let hint = match nearest(name, known.map(|name| (name, name))) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("a member of the record is `{{/{}}}`", name.escape_debug()),
    };
    format!("no regular expression of the map has a group `{}`; {hint}", name.escape_debug())
}
