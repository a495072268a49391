"""What a log's frames tell one after the other: numbers, epochs, changes of [log], erasures and holds.

All of it is public, and of frames below the checkpoint alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from . import commitments, epochs, events
from .commitments import Commitment
from .hashes import sha256
from .log import Log
from .refused import Refused
from .segments import Frame


@dataclass
class Epoch:
    """An epoch that was begun; without a body where that is damaged."""

    number: int
    body: Optional[epochs.EpochBody]


@dataclass
class History:
    log: Log
    epochs: dict[int, Epoch] = field(default_factory=dict)
    erased: dict[int, int] = field(default_factory=dict)
    explained: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    signed_time: Optional[int] = None
    # Digests of [log]: the current one, and the one that the next epoch may have instead.
    current: Optional[bytes] = None
    allowed: Optional[bytes] = None
    # Whether a frame that may have been an epoch or event is damaged or missing since the last epoch, and since when.
    doubtful: bool = False
    damaged: list[int] = field(default_factory=list)
    held: dict[int, list[int]] = field(default_factory=dict)
    orders: dict[str, list[int]] = field(default_factory=dict)
    # Of every event `held` its number and the digest of its order, by its frame; those of them that were released; all digests.
    holds: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)
    hold_orders: set[bytes] = field(default_factory=set)


def followed(log: Log) -> History:
    """Goes through the frames that the checkpoint covers, and notes what does not follow."""
    history = History(log)
    epoch: Optional[int] = None
    entry: Optional[int] = 0
    group = 0
    for number, commitment in enumerate(log.commitments):
        frame = log.frames[number]
        if frame is not None and frame.header is not None:
            if frame.header.group < group:
                log.find("numbering", "the group is below that of the frame before", frame)
            group = frame.header.group
        if commitment is None:
            epoch = entry = None
            history.doubtful = True
            history.damaged.append(number)
            continue
        check_numbers(log, frame, commitment, number, epoch, entry)
        entry = commitment.next_entry
        epoch = commitment.epoch
        if commitment.kind in (commitments.EPOCH, commitments.EVENT):
            history.signed_time = commitment.earliest
        body = sound_body(log, frame, number)
        if commitment.kind == commitments.EPOCH:
            begin_epoch(history, number, frame, body)
        elif commitment.kind == commitments.EVENT:
            take_event(history, number, frame, body)
        elif commitment.kind == commitments.GAP:
            log.find("gap", f"{commitment.entries} entries were lost", frame, number)
    if len(log.commitments) < log.size:
        history.doubtful = True
    if not history.doubtful and history.current is not None and log.config.digest not in (history.current, history.allowed):
        log.find("config-mismatch", "[log] is not the one that the last epoch was begun with", number=max(history.epochs))
    return history


def sound_body(log: Log, frame: Optional[Frame], number: int) -> Optional[bytes]:
    """A frame's body, where it has its digest. Bodies of blocks are looked at and let go."""
    if frame is None:
        return None
    body = frame.body()
    if sha256(body) != frame.commitment.body_digest:
        log.find("body-damaged", "the body does not have the digest in its commitment", frame)
        return None
    return body


def check_numbers(
    log: Log, frame: Optional[Frame], it: Commitment, number: int, epoch: Optional[int], entry: Optional[int]
) -> None:
    wrong = None
    if it.frame != number:
        wrong = f"the frame's number is {it.frame}"
    elif it.log_id != log.config.log_id:
        wrong = "the log id is another one"
    elif it.hash != log.config.hash:
        wrong = "the hash is not the log's"
    elif entry is not None and it.first_entry != entry:
        wrong = f"the first entry is {it.first_entry} and not {entry}"
    elif it.kind != commitments.EPOCH and (epoch is not None or number == 0) and it.epoch != epoch:
        wrong = f"the epoch is {it.epoch} and not {epoch}"
    if wrong is not None:
        log.find("numbering", wrong, frame, number)


def begin_epoch(history: History, number: int, frame: Optional[Frame], body: Optional[bytes]) -> None:
    log = history.log
    history.epochs[number] = epoch = Epoch(number, None)
    if body is None:
        history.doubtful = True
        return
    try:
        epoch.body = epochs.decoded(body)
    except Refused as refused:
        log.find("epoch-invalid", str(refused), frame)
        history.doubtful = True
        return
    digest = epoch.body.config_digest
    if history.current is not None and not history.doubtful and digest not in (history.current, history.allowed):
        log.find("config-mismatch", "no event allows this epoch's [log]", frame)
    history.current = history.allowed = digest
    history.doubtful = False
    check_seal_before(log, number, frame, epoch.body.seal_before)


def check_seal_before(log: Log, number: int, frame: Optional[Frame], seal: bytes) -> None:
    if number == 0:
        if any(seal):
            log.find("epoch-invalid", "the seal before the first frame must be zero", frame)
        return
    before = log.frames[number - 1]
    if before is not None and before.seal() != seal:
        log.find("seal-mismatch", "the epoch that follows has another seal of this frame", before)


def take_event(history: History, number: int, frame: Optional[Frame], body: Optional[bytes]) -> None:
    log = history.log
    if body is None:
        history.doubtful = True
        history.damaged.append(number)
        return
    try:
        event = events.decoded(body)
    except Refused as refused:
        log.find("event-invalid", str(refused), frame)
        return
    kind = event["event"]
    if kind in ("recovered", "abandoned"):
        history.explained[(event["segment"], event["offset"])] = event
    elif kind == "configured":
        if bytes.fromhex(event["before"]) == history.current:
            history.allowed = bytes.fromhex(event["after"])
    elif kind in ("held", "released"):
        take_hold(history, number, frame, event)
    elif kind == "erased":
        take_erasure(history, number, frame, event)


def take_hold(history: History, number: int, frame: Optional[Frame], event: dict[str, Any]) -> None:
    """A hold counts whatever its order is worth, a release only where that holds."""
    digest = events.order_digest(event["order"])
    try:
        if check_hold(history, number, event, digest):
            history.held[event["number"]].remove(event["held"])
            history.released.add(event["held"])
    except Refused as refused:
        history.log.find("hold-unordered", str(refused), frame)
    history.hold_orders.add(digest)
    if event["event"] == "held":
        history.held.setdefault(event["number"], []).append(number)
        history.holds[number] = event["number"], digest


def check_hold(history: History, number: int, event: dict[str, Any], digest: bytes) -> bool:
    """Whether it releases a hold that is known; refuses what was not ordered so."""
    config = history.log.config
    order = events.check_hold_order(event, config.log_id)
    if config.erasure_key is None or not config.erasure_key.signed(order.note):
        raise Refused("hold", "the order must be signed with the log's erasure key")
    if digest in history.hold_orders:
        raise Refused("hold", "the order was carried out before")
    if not order.releases or any(event["held"] <= it < number for it in history.damaged):
        return False
    if event["held"] not in history.holds or event["held"] in history.released:
        raise Refused("hold", "must release what is held")
    if history.holds[event["held"]] != (event["number"], order.about):
        raise Refused("hold", "the order must be about the hold that is released")
    return True


def take_erasure(history: History, number: int, frame: Optional[Frame], event: dict[str, Any]) -> None:
    log = history.log
    try:
        order = events.check_accord(event, log.config.log_id)
        if log.config.erasure_key is None or not log.config.erasure_key.signed(order.note):
            raise Refused("erasure", "the order must be signed with the log's erasure key")
        before = history.orders.setdefault(order.note.text, event["numbers"])
        if before != event["numbers"]:
            raise Refused("erasure", "the order was carried out before, for others")
    except Refused as refused:
        log.find("erasure-unordered", str(refused), frame)
    for subject in event["numbers"]:
        holds = [hold for hold in history.held.get(subject, []) if not any(hold < it < number for it in history.damaged)]
        if holds:
            log.find("erased-while-held", f"data subject {subject} was held in frames {holds}", frame)
        history.erased.setdefault(subject, number)
