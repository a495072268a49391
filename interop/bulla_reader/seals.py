"""The seal chain, and what follows the checkpoint, as who has the seal key judges it (docs/format.md, "Recovery")."""

from __future__ import annotations

import hashlib
from typing import Optional

from . import notes, segments
from .commitments import EPOCH, GAP, LENGTH
from .cursor import u64
from .hashes import mac
from .log import Log
from .refused import Refused
from .segments import FIXED, Segment


def seal_key(text: str, log_id: bytes) -> bytes:
    """S_0, from the file that holds it."""
    begin = f"bulla-seal-key-v1 {log_id.hex()} "
    if not text.startswith(begin) or not text.endswith("\n"):
        raise Refused("seal key", "must be this log's")
    line, _, check = text[:-1].rpartition(" ")
    if hashlib.sha256(line.encode()).hexdigest()[:8] != check:
        raise Refused("seal key", "must have the check of what stands before it")
    state = notes.base64_bytes(line[len(begin) :], "seal key")
    if len(state) != 32:
        raise Refused("seal key", "must have 32 bytes")
    return state


class Chain:
    """The state before some frame."""

    def __init__(self, state: bytes) -> None:
        self.state = state
        self.before: Optional[bytes] = bytes(32)

    def seal(self, group: int, commitment: bytes) -> Optional[bytes]:
        """What the seal of the next frame must be; nothing, where the frame before is missing."""
        if self.before is None:
            return None
        return mac(mac(self.state, b"bulla seal v1"), self.before + u64(group) + commitment)

    def step(self, seal: Optional[bytes]) -> None:
        self.before = seal
        self.state = mac(self.state, b"bulla evolve v1")


def check(log: Log, key: bytes) -> None:
    """Checks every seal that the checkpoint covers, and what follows it."""
    chain = Chain(key)
    for frame in log.frames:
        if frame is None:
            chain.step(None)
            continue
        if frame.header is not None and chain.seal(frame.header.group, frame.commitment.encoded) not in (None, frame.seal()):
            log.find("seal-mismatch", "the seal does not hold", frame)
        chain.step(frame.seal())
    if len(log.frames) == log.size and None not in log.frames:
        check_tail(log, chain)


def check_tail(log: Log, chain: Chain) -> None:
    """Judges what follows the checkpoint: nobody has signed it, but only a writer or a crash may have left it."""
    try:
        walk_tail(log, chain)
    except Refused as refused:
        log.find("tail-damaged", str(refused), number=log.size)


def walk_tail(log: Log, chain: Chain) -> None:
    number = log.size
    last = log.commitments[-1] if log.commitments else None
    entry = last.next_entry if last is not None else 0
    rest: list[tuple[Segment, int]] = []
    for place, tail in enumerate(log.tails):
        if tail.number > number:
            raise Refused("tail", f"{tail.segment.name} begins beyond frame {number}, where the frames end")
        segment, at = tail.segment, tail.offset
        if segment.first >= log.size:
            at = copy_length(segment)
        bound = log.tails[place + 1].number if place + 1 < len(log.tails) else None
        while bound is None or number < bound:
            found = whole_frame(segment, at)
            if found is None or found.header is None or not follows(log, found, number, entry):
                break
            if chain.seal(found.header.group, found.commitment.encoded) != found.seal():
                break
            chain.step(found.seal())
            number, entry, at = number + 1, found.commitment.next_entry, found.end
        rest.append((segment, at))
    for segment, at in rest:
        check_groups(segment, at, number)
    if rest:
        check_end(log, *rest[-1], number, entry, chain)


def copy_length(segment: Segment) -> int:
    """How long the copy of an epoch frame is that a segment behind the checkpoint begins with."""
    copy = whole_frame(segment, 0)
    is_copy = copy is not None and copy.commitment.kind == EPOCH and copy.number < segment.first
    return copy.end if copy is not None and is_copy else 0


def whole_frame(segment: Segment, at: int) -> Optional[segments.Frame]:
    """The frame at a place, whose head parses and whose body has its digest."""
    frame = headed_frame(segment, at)
    return frame if frame is not None and frame.end <= segment.length and frame.body_is_sound() else None


def headed_frame(segment: Segment, at: int) -> Optional[segments.Frame]:
    """The frame at a place, whose head parses; whether the rest of it is there is another matter."""
    head = segment.read(at, FIXED)
    if len(head) < FIXED:
        return None
    try:
        header = segments.header(head)
    except Refused:
        return None
    it = segments.commitment(head[segments.HEAD :])
    if it is None or (it.kind, it.body_length) != (header.kind, header.body_length):
        return None
    return segments.Frame(it.frame, segment, at, it, header)


def follows(log: Log, frame: segments.Frame, number: int, entry: int) -> bool:
    """Whether a frame is the next one."""
    it = frame.commitment
    return (it.log_id, frame.number, it.first_entry) == (log.config.log_id, number, entry)


def check_groups(segment: Segment, at: int, number: int) -> None:
    """Refuses a head of a frame whose group begins after the first missing one: groups are synced in order."""
    data = segment.read(at, segment.length - at)
    found = data.find(segments.MARK)
    while found >= 0:
        try:
            group = segments.header(data[found : found + segments.HEAD]).group
        except Refused:
            group = 0
        if group > number:
            raise Refused("tail", f"frame {number} is missing, and {segment.name} has what was written after it")
        found = data.find(segments.MARK, found + 1)


def check_end(log: Log, segment: Segment, at: int, number: int, entry: int, chain: Chain) -> None:
    """Refuses what stands where the next frame should be, and is nothing that a crash leaves of it."""
    common = segments.MARK + b"\x01\0" + LENGTH.to_bytes(2, "little") + bytes(16) + b"\x01" + bytes(7) + log.config.log_id
    alike = [*range(5), 6, 7, segments.HEAD, *range(segments.HEAD + 8, segments.HEAD + 24)]
    start = segment.read(at, len(common))
    if any(place < len(start) and start[place] not in (0, common[place]) for place in alike):
        raise Refused("tail", f"what follows at offset {at} of {segment.name} is no frame")
    if any(place < len(start) and start[place] > GAP for place in (5, segments.HEAD + 1)):
        raise Refused("tail", f"what follows at offset {at} of {segment.name} has a kind that is none")
    check_heads(log, segment, at, number, entry)
    frame = whole_frame(segment, at)
    if frame is None or frame.header is None:
        return
    wanted = chain.seal(frame.header.group, frame.commitment.encoded) or b""
    if any(there not in (0, right) for there, right in zip(frame.seal(), wanted)):
        raise Refused("tail", f"frame {frame.number} has a seal that no writer made")


def check_heads(log: Log, segment: Segment, at: int, number: int, entry: int) -> None:
    """Refuses a head behind the end that the write of the next frame cannot have there."""
    data = segment.read(at, segment.length - at)
    found = data.find(segments.MARK)
    while found >= 0:
        frame = headed_frame(segment, at + found)
        if frame is not None:
            it = frame.commitment
            is_copy = at + found == 0 and it.kind == EPOCH and it.frame < segment.first
            later = it.log_id == log.config.log_id and it.frame > number and it.first_entry >= entry
            if not is_copy and not (later if found else follows(log, frame, number, entry)):
                raise Refused("tail", f"frame {it.frame} is no part of the write of frame {number}")
        found = data.find(segments.MARK, found + 1)
