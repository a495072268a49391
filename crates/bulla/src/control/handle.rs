//! Carrying out what a client asks of the writer.

use super::message::{Answer, MAX_GROUPS, Request, Secret, Status};
use crate::write::engine::Engine;
use bulla_crypto::group::{BlockContext, GroupKeys, PartId};
use bulla_proof::commitment::LogId;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};

/// Does what is asked.
///
/// # Errors
/// What the client is told.
pub(super) fn handle(engine: &Engine, request: Request) -> Result<Answer> {
    match request {
        Request::Status => Ok(Answer::Status(status(engine))),
        Request::Numbers { subjects } => {
            let subjects = subjects.iter().map(String::as_str).collect::<Vec<_>>();
            Ok(Answer::Numbers(engine.vault()?.numbers(&subjects)?))
        }
        Request::Secrets { log, epoch_random, frame, groups } => {
            secrets(engine, BlockContext { log, epoch_random: &epoch_random, frame }, &groups)
        }
        Request::ErasedUpTo => erased_up_to(engine),
        Request::Whose { asked } => whose(engine, &asked),
        Request::Missing { from } => Ok(Answer::Missing(engine.vault()?.missing(from)?.into())),
        Request::Configure(configure) => Ok(Answer::Configured(configure.apply_to(engine)?.into())),
        Request::Rotate => Ok(Answer::Epoch(engine.rotate()?)),
        Request::RecordExport(record) => engine.record(record.event()?).map(|_| Answer::Recorded),
        Request::Erase(order) => engine.erase(&order, None).map(Answer::Erased),
        Request::EraseOnly { order, numbers } => engine.erase(&order, Some(&numbers)).map(Answer::Erased),
        Request::Hold(order) => engine.hold(&order).map(Answer::Held),
        Request::Release(order) => engine.release(&order).map(|()| Answer::Released),
    }
}

fn status(engine: &Engine) -> Status {
    let config = engine.config();
    Status {
        log: config.id,
        origin: config.origin.clone(),
        process: std::process::id(),
        acknowledged: engine.progress.entries().kept,
        vault_replicas: engine.replicas(),
    }
}

/// The vault follows frames before a checkpoint covers them. Whoever reads finds no checkpoint with these yet, so that the last one that
/// they do find is told.
fn erased_up_to(engine: &Engine) -> Result<Answer> {
    let (vault, published) = (engine.vault()?, engine.published());
    let (followed, unfollowed) = (vault.follows()?, vault.unfollowed()?);
    let given_up = vault.given_up()?.into_iter().map(|PartId(id)| id).collect();
    let TreeHead { size, root } = if published.size < followed.size { published } else { followed };
    Ok(Answer::ErasedUpTo { frames: size, root: root.0, unfollowed, given_up })
}

fn secrets(engine: &Engine, place: BlockContext<'_>, groups: &[Vec<u64>]) -> Result<Answer> {
    check_log(engine, place.log)?;
    check_count(groups.len())?;
    let groups = groups.iter().map(Vec::as_slice).collect::<Vec<_>>();
    let secrets = engine.vault()?.secrets(place, &groups)?;
    Ok(Answer::Secrets(secrets.into_iter().map(|secret| secret.map(Secret)).collect()))
}

fn whose(engine: &Engine, asked: &[(Vec<u64>, String)]) -> Result<Answer> {
    check_count(asked.len())?;
    let asked = asked.iter().map(|(numbers, name)| (&numbers[..], &name[..])).collect::<Vec<_>>();
    let whose = engine.vault()?.whose(&asked)?;
    Ok(Answer::Whose(whose.into_iter().map(Into::into).collect()))
}

fn check_count(count: usize) -> Result<()> {
    match count <= MAX_GROUPS {
        true => Ok(()),
        false => Err(Error::invalid(format!("{count} groups are asked for at once, not {MAX_GROUPS}"))),
    }
}

fn check_log(engine: &Engine, log: LogId) -> Result<()> {
    match engine.config().id == log {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Refused, format!("the writer has another log open than {log}"))),
    }
}
