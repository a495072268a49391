//! Where entries come from: what the log says of its source is what its entries are of.

use super::entries::Id;
use super::host::Host;
use super::observed::Observed;
use super::outcome::{Outcome, must, sound};
use bulla::{Place, SourceId, SourceState};

/// The source that every third producer has its entries from.
pub(super) const SOURCE: SourceId = SourceId([7; 16]);

/// Where in the source an entry stands, if it is from there. What follows each other of a producer meets.
pub(super) fn place(id: Id) -> Option<Place> {
    let start = 10 * (id.producer << 32 | id.index);
    id.producer.is_multiple_of(3).then(|| Place { range: start..start + 10, check: start ^ 0x5555_5555 })
}

/// That these states are of all that was observed, and of nothing else.
pub(super) fn check(observed: &Observed, states: &[SourceState]) -> Outcome {
    let mut places = observed.entries.iter().filter_map(|seen| place(seen.id)).collect::<Vec<_>>();
    places.sort_by_key(|place| place.range.start);
    let mut expected = Vec::<Place>::new();
    for place in places {
        match expected.last_mut() {
            Some(last) if last.range.end == place.range.start => {
                *last = Place { range: last.range.start..place.range.end, ..place };
            }
            _ => expected.push(place),
        }
    }
    must!(states.len() <= 1, "there are {} sources", states.len());
    let places =
        states.iter().flat_map(|state| state.ranges.iter().cloned().zip(state.checks.iter().copied()));
    let found = places.map(|(range, check)| Place { range, check }).collect::<Vec<_>>();
    must!(found == expected, "the source has {found:?}, and entries are of {expected:?}");
    Ok(())
}

/// The same of a log that nobody has open, whether what is kept of sources is at hand or all blocks are asked.
pub(super) fn check_closed(host: &Host, observed: &Observed, kept: bool) -> Outcome {
    let copy = host.crashed(None);
    if !kept {
        copy.machine.remove_file("audit.keys/sources.state");
    }
    check(observed, &sound("sources", bulla::sources_of(copy.joined()?, &*copy.keys()))?)
        .map_err(|failure| format!("{failure} (kept: {kept})"))
}
