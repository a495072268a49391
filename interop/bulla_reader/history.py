"""What a log's frames tell one after the other: numbers, epochs, changes of [log], erasures and holds.

All of it is public, and of frames below the checkpoint alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from . import commitments, epochs, events, notes
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
class Span:
    """Frames in which one erasure key counts, and that key as the change says with which they begin, and as what comes after says."""

    first: int
    starts: Optional[str] = None
    ends: Optional[str] = None


@dataclass
class Change:
    """A change of the erasure key that was done: the frame of its event, and the span that begins with it."""

    number: int
    event: dict[str, Any]
    span: int


@dataclass
class Ordered:
    """An event `erased`, `held` or `released`, whose order is judged once it is known which key counted."""

    number: int
    frame: Optional[Frame]
    event: dict[str, Any]


@dataclass
class History:
    log: Log
    spans: list[Span] = field(default_factory=lambda: [Span(0)])
    changes: list[Change] = field(default_factory=list)
    ordered: list[Ordered] = field(default_factory=list)
    # The digest of [log] in the last epoch, where that is known, and the event since then that allows another.
    digest: Optional[bytes] = None
    announced: Optional[tuple[int, dict[str, Any]]] = None
    epochs: dict[int, Epoch] = field(default_factory=dict)
    erased: dict[int, int] = field(default_factory=dict)
    # The ids of the parts of the log that were given up, each with the last frame that tells of it.
    given_up: dict[bytes, int] = field(default_factory=dict)
    explained: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    signed_time: Optional[int] = None
    # Digests of [log]: the current one, and the one that the next epoch may have instead.
    current: Optional[bytes] = None
    allowed: Optional[bytes] = None
    # Whether a frame that may have been an epoch or event is damaged or missing since the last epoch, and since when.
    doubtful: bool = False
    damaged: list[int] = field(default_factory=list)
    # Whether what an event of the log tells, or what a frame may have told as one, cannot be read.
    unread: bool = False
    held: dict[int, list[int]] = field(default_factory=dict)
    orders: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    # Of every event `held` its number and the digest of its order, by its frame; those of them that were released; all digests.
    holds: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)
    hold_orders: set[bytes] = field(default_factory=set)


def followed(log: Log, given: Sequence[notes.Verifier] = ()) -> History:
    """Goes through the frames that the checkpoint covers, where these erasure keys are known, and notes what does not follow."""
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
            history.unread = True
            history.damaged.append(number)
            lose_epoch(history, number)
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
            log.find("gap", "entries were lost", frame, number)
    if len(log.commitments) < log.size:
        history.doubtful = True
        history.unread = True
    if not history.doubtful and history.current is not None and log.config.digest not in (history.current, history.allowed):
        log.find("config-mismatch", "[log] is not the one that the last epoch was begun with", number=max(history.epochs))
    judge_orders(history, {key.text for key in given})
    return history


def lose_epoch(history: History, number: int) -> None:
    """A frame that is or may be an epoch's, and whose [log] nothing tells: no key reaches across it."""
    history.digest = history.announced = None
    begin_span(history, Span(number))


def begin_span(history: History, span: Span) -> None:
    if history.spans[-1].first != span.first:
        history.spans.append(span)


def follow_key(history: History, number: int, digest: bytes) -> None:
    """An epoch has the key of the one before, that of the change that allows it, or one that nothing tells."""
    before, announced = history.digest, history.announced
    history.digest, history.announced = digest, None
    if before == digest:
        return
    if announced is None or bytes.fromhex(announced[1]["after"]) != digest:
        begin_span(history, Span(number))
    elif announced[1]["event"] == "rekeyed":
        history.spans[-1].ends = announced[1]["from"]
        history.spans.append(Span(number, announced[1]["to"]))
        history.changes.append(Change(announced[0], announced[1], len(history.spans) - 1))


def judge_orders(history: History, given: set[str]) -> None:
    """Compares erasures, holds and releases with their orders, and changes of the erasure key with theirs."""
    log, last = history.log, history.spans[-1]
    present = log.config.erasure_key.text if log.config.erasure_key is not None else None
    settled = history.digest == log.config.digest
    announced = history.announced[1] if history.announced is not None else None
    replaced = has_announced(history)
    if announced is not None and bytes.fromhex(announced["after"]) == log.config.digest:
        last.ends = announced["from"] if announced["event"] == "rekeyed" else present
    else:
        last.ends = present if settled else None
    changes = list(history.changes)
    if history.announced is not None and history.announced[1]["event"] == "rekeyed":
        # No epoch was begun with it yet, and the file may have either key.
        changes.append(Change(*history.announced, len(history.spans)))
    trusted = set(given)
    for at, change in enumerate(changes):
        objection = judge_change(history, at, change, given, trusted)
        lied = at == len(history.changes) and replaced and lie(history, at, change) is not None
        if objection is not None and (at < len(history.changes) or lied):
            log.find("erasure-key-unordered", objection[0], number=change.number)
            log.findings[-1].is_vouched_for = objection[1]
    for ordered in history.ordered:
        keys = counting(history, ordered.number, present)
        judge = judge_erasure if ordered.event["event"] == "erased" else judge_hold
        judge(history, ordered, [key for key in keys if not given or key.text in trusted])
    known = {present, *(it.event[name] for it in changes for name in ("from", "to"))}
    for key in sorted(given):
        if key not in known:
            log.find("key-mismatch", f"the erasure key that was given, {key}, is none that the log has or had")
    if given and present is not None and present not in trusted:
        log.find("key-mismatch", "no key that was given is the log's erasure key, or handed over to it")


def judge_change(history: History, at: int, change: Change, given: set[str], trusted: set[str]) -> Optional[tuple[str, bool]]:
    """What is wrong with a change, if anything, and whether its key is known all the same; else a trusted key hands over."""
    log, event = history.log, change.event
    wrong = lie(history, at, change)
    if wrong is not None:
        return wrong, False
    try:
        events.check_key_order(event, log.config.log_id)
    except Refused as refused:
        return str(refused), event["to"] in given
    if event["from"] in trusted:
        trusted.add(event["to"])
    elif given and event["to"] not in given:
        return "the order must be signed with a key that was given, or that one of them handed over to", False
    return None


def has_announced(history: History) -> bool:
    """Whether `bulla.toml` has the digest that an event allows, and with which no epoch was begun yet."""
    return history.announced is not None and bytes.fromhex(history.announced[1]["after"]) == history.log.config.digest


def counting(history: History, number: int, present: Optional[str]) -> list[notes.Verifier]:
    """The keys with one of which an order in a frame must be signed: one, but where no change reaches it."""
    at = max(place for place, span in enumerate(history.spans) if span.first <= number)
    span = history.spans[at]
    texts = [first_known(span.starts, span.ends)]
    if texts == [None]:
        before = [first_known(span.ends, span.starts) for span in reversed(history.spans[:at])]
        after = [first_known(span.starts, span.ends) for span in history.spans[at + 1 :]]
        texts = [first_known(*before), first_known(*after, present)]
    keys = []
    for text in texts:
        if text is None:
            continue
        try:
            keys.append(notes.verifier(text))
        except Refused:
            pass
    return keys


def first_known(*texts: Optional[str]) -> Optional[str]:
    """The first that is told: what is no key, such as the empty string, is told, and signs nothing."""
    return next((text for text in texts if text is not None), None)


def lie(history: History, at: int, change: Change) -> Optional[str]:
    """What a change says of the keys before and after it that is not so."""
    before = history.spans[change.span - 1].starts
    if before is not None and before != change.event["from"]:
        return "the key that is changed did not count"
    if any(notes.is_same_key(it.event["from"], change.event["to"]) for it in history.changes[:at]):
        return "the new key was replaced before"
    config, announced = history.log.config, history.announced
    present = config.erasure_key.text if config.erasure_key is not None else None
    rekeyed = announced is not None and announced[1]["event"] == "rekeyed"
    if change.span == len(history.spans):
        follows = has_announced(history)
    else:
        follows = change.span + 1 == len(history.spans) and (
            history.digest == config.digest or (has_announced(history) and not rekeyed)
        )
    if follows and change.event["to"] != present:
        return "[log] has another key"
    return None


def judge_erasure(history: History, erasure: Ordered, keys: list[notes.Verifier]) -> None:
    log, event = history.log, erasure.event
    try:
        order = events.check_accord(event, log.config.log_id)
        if not any(key.signed(order.note) for key in keys):
            raise Refused("erasure", "the order must be signed with the erasure key that counts")
        told = (event["numbers"], event["carried_out"])
        if history.orders.setdefault(order.note.text, told) != told:
            raise Refused("erasure", "the order was carried out before, for others")
    except Refused as refused:
        log.find("erasure-unordered", str(refused), erasure.frame)
    for subject in event["numbers"]:
        holds = [hold for hold in history.held.get(subject, []) if not any(hold < it < erasure.number for it in history.damaged)]
        if holds:
            log.find("erased-while-held", f"data subject {subject} was held in frames {holds}", erasure.frame)


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
        lose_epoch(history, number)
        return
    try:
        epoch.body = epochs.decoded(body)
    except Refused as refused:
        log.find("epoch-invalid", str(refused), frame)
        history.doubtful = True
        lose_epoch(history, number)
        return
    digest = epoch.body.config_digest
    if history.current is not None and not history.doubtful and digest not in (history.current, history.allowed):
        log.find("config-mismatch", "no event allows this epoch's [log]", frame)
    follow_key(history, number, digest)
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
        history.unread = True
        history.damaged.append(number)
        return
    try:
        event = events.decoded(body)
    except Refused as refused:
        log.find("event-invalid", str(refused), frame)
        history.unread = True
        return
    kind = event["event"]
    if kind in ("recovered", "abandoned"):
        history.explained[(event["segment"], event["offset"])] = event
    elif kind in ("configured", "rekeyed"):
        if bytes.fromhex(event["before"]) == history.current:
            history.allowed = bytes.fromhex(event["after"])
        if bytes.fromhex(event["before"]) == history.digest:
            history.announced = (number, event)
    elif kind == "truncated":
        history.given_up[bytes.fromhex(event["id"])] = number
    elif kind in ("held", "released", "erased"):
        history.ordered.append(Ordered(number, frame, event))
        for subject in event.get("numbers", []):
            history.erased.setdefault(subject, number)


def judge_hold(history: History, ordered: Ordered, keys: list[notes.Verifier]) -> None:
    """A hold counts whatever its order is worth, a release only where that holds."""
    number, event = ordered.number, ordered.event
    digest = events.order_digest(event["order"])
    try:
        if check_hold(history, ordered, keys, digest):
            history.held[event["number"]].remove(event["held"])
            history.released.add(event["held"])
    except Refused as refused:
        history.log.find("hold-unordered", str(refused), ordered.frame)
    history.hold_orders.add(digest)
    if event["event"] == "held":
        history.held.setdefault(event["number"], []).append(number)
        history.holds[number] = event["number"], digest


def check_hold(history: History, ordered: Ordered, keys: list[notes.Verifier], digest: bytes) -> bool:
    """Whether it releases a hold that is known; refuses what was not ordered so."""
    number, event = ordered.number, ordered.event
    order = events.check_hold_order(event, history.log.config.log_id)
    if not any(key.signed(order.note) for key in keys):
        raise Refused("hold", "the order must be signed with the erasure key that counts")
    if digest in history.hold_orders:
        raise Refused("hold", "the order was carried out before")
    if not order.releases or any(event["held"] <= it < number for it in history.damaged):
        return False
    if event["held"] not in history.holds or event["held"] in history.released:
        raise Refused("hold", "must release what is held")
    if history.holds[event["held"]] != (event["number"], order.about):
        raise Refused("hold", "the order must be about the hold that is released")
    return True
