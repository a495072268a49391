"""Commitments: the public description of a frame, 152 bytes (docs/format.md, "Commitments")."""

from __future__ import annotations

from dataclasses import dataclass

from .cursor import MASK, Cursor

LENGTH = 152
BLOCK, EPOCH, EVENT, GAP = 1, 2, 3, 4
MOST_CONTENT = 25
MOST_BODY = 1 << 29
MOST_LOST = 1 << 21
LEAST_SOURCES = 17


@dataclass(frozen=True)
class Commitment:
    encoded: bytes
    kind: int
    hash: int
    content: int
    sources_length: int
    log_id: bytes
    frame: int
    first_entry: int
    entries: int
    earliest: int
    latest: int
    epoch: int
    units: int
    root: bytes
    body_length: int
    body_digest: bytes

    @property
    def next_entry(self) -> int:
        return self.first_entry + self.entries

    @property
    def content_limit(self) -> int:
        return 1 << self.content

    @property
    def sealed_length(self) -> int:
        """Bytes of the body before its sources section."""
        return self.body_length - self.sources_length

    @property
    def additional_data(self) -> bytes:
        """What the body's encryption binds: all but the body's digest."""
        return self.encoded[:120]


def decoded(data: bytes) -> Commitment:
    """The commitment of these bytes; refuses what is none."""
    cursor = Cursor(data, "commitment")
    if data and data[0] > 1:
        raise cursor.refuse(f"format version {data[0]} is newer than this reader")
    if len(data) != LENGTH:
        raise cursor.refuse(f"has {len(data)} bytes and not {LENGTH}")
    version, kind, codec, hash_, content = cursor.take(5)
    if version != 1:
        raise cursor.refuse(f"format version {version} is unknown")
    if kind not in (BLOCK, EPOCH, EVENT, GAP):
        raise cursor.refuse(f"kind {kind} is unknown")
    if codec != (1 if kind == BLOCK else 0):
        raise cursor.refuse(f"codec {codec} is not that of its kind")
    if hash_ not in (1, 2):
        raise cursor.refuse(f"hash {hash_} is unknown")
    sources_length = cursor.unsigned(3)
    log_id = cursor.take(16)
    frame, first_entry, entries = (cursor.unsigned(8) for _ in range(3))
    earliest, latest = cursor.signed(8), cursor.signed(8)
    epoch, units = cursor.unsigned(8), cursor.unsigned(8)
    root = cursor.take(32)
    body_length = cursor.unsigned(8)
    found = Commitment(
        data, kind, hash_, content, sources_length, log_id, frame, first_entry, entries, earliest, latest, epoch, units, root,
        body_length, cursor.take(32),
    )  # fmt: skip
    check(found, cursor)
    return found


def check(it: Commitment, cursor: Cursor) -> None:
    if it.next_entry > MASK or it.frame == MASK:
        raise cursor.refuse("its numbers overflow")
    if it.earliest > it.latest:
        raise cursor.refuse("the earliest time must not be after the latest")
    if it.body_length > MOST_BODY:
        raise cursor.refuse("a body must not be longer than 2^29 bytes")
    if it.sources_length and not (it.kind == BLOCK and LEAST_SOURCES <= it.sources_length < it.body_length):
        raise cursor.refuse("a sources section must be in a block, longer than a tag and shorter than the body")
    if it.kind == EPOCH and it.frame != it.epoch or it.kind != EPOCH and it.frame <= it.epoch:
        raise cursor.refuse("the frame's number must be above its epoch's, and an epoch frame's its own")
    if it.kind == BLOCK:
        if it.content > MOST_CONTENT:
            raise cursor.refuse("the content size must be at most 25")
        if not 1 <= it.units <= it.entries:
            raise cursor.refuse("a block must have from 1 to as many units as entries")
        if it.entries > it.content_limit // 16:
            raise cursor.refuse("a block must not have more than 2^k / 16 entries")
        return
    if it.content or it.units or any(it.root):
        raise cursor.refuse("content size, units and root must be zero where there is no block")
    if it.earliest != it.latest:
        raise cursor.refuse("a frame that is no block must have one time")
    if it.kind == GAP:
        if not 1 <= it.entries <= MOST_LOST:
            raise cursor.refuse("a gap must have from 1 to 2^21 entries")
        if it.body_length:
            raise cursor.refuse("a gap must have no body")
    elif it.entries:
        raise cursor.refuse("an epoch or event must have no entries")
