"""Segments: frames one after the other, found again where some are damaged (docs/format.md, "Frames")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import commitments, trees
from .commitments import Commitment
from .hashes import crc32c, sha256
from .refused import Refused

MARK = b"Bulf"
HEAD = 24
FIXED = HEAD + commitments.LENGTH
SEAL = 32


@dataclass(frozen=True)
class Header:
    kind: int
    body_length: int
    group: int


def header(data: bytes) -> Header:
    """The first 24 bytes of a frame; refuses what is none."""
    if len(data) < HEAD or data[:4] != MARK:
        raise Refused("frame", "must begin with its mark")
    if data[4] != 1 or data[6:8] != commitments.LENGTH.to_bytes(2, "little"):
        raise Refused("frame", "must be of version 1, with a commitment of 152 bytes")
    if crc32c(data[:20]) != int.from_bytes(data[20:24], "little"):
        raise Refused("frame", "the header's sum is wrong")
    length = int.from_bytes(data[8:12], "little")
    if length > commitments.MOST_BODY:
        raise Refused("frame", "a body must not be longer than 2^29 bytes")
    return Header(data[5], length, int.from_bytes(data[12:20], "little"))


class Segment:
    """A file of frames, read piece by piece."""

    def __init__(self, path: Path, first: int, generation: int) -> None:
        self.path, self.name, self.first, self.generation = path, path.name, first, generation
        self.length = path.stat().st_size

    def read(self, at: int, length: int) -> bytes:
        """What there is of so many bytes."""
        with self.path.open("rb") as file:
            file.seek(at)
            return file.read(max(0, min(length, self.length - at)))


def named(name: str) -> Optional[tuple[int, int]]:
    """The first frame and the generation that a segment's name says."""
    read = re.fullmatch(r"([0-9]{20})(?:-([1-9][0-9]{0,19}))?\.seg", name)
    if not read or int(read[1]) >= 1 << 64 or int(read[2] or 0) >= 1 << 32:
        return None
    return int(read[1]), int(read[2] or 0)


@dataclass
class Frame:
    """A frame where it lies, with the commitment that it has, or that the tree says it has."""

    number: int
    segment: Segment
    offset: int
    commitment: Commitment
    header: Optional[Header]

    @property
    def length(self) -> int:
        return FIXED + self.commitment.body_length + SEAL

    @property
    def end(self) -> int:
        return self.offset + self.length

    def body(self) -> bytes:
        return self.segment.read(self.offset + FIXED, self.commitment.body_length)

    def seal(self) -> bytes:
        return self.segment.read(self.end - SEAL, SEAL)

    def body_is_sound(self) -> bool:
        return sha256(self.body()) == self.commitment.body_digest


@dataclass
class Told:
    """What the tree's files tell of a frame: its leaf, by the tile, and its commitment, by the bundle."""

    leaf: Optional[bytes] = None
    bundled: Optional[bytes] = None

    def agreed(self, stored: Optional[bytes]) -> Optional[bytes]:
        """The commitment that two of three agree on, or else the one that there is."""
        if stored is not None and (trees.leaf(stored) == self.leaf or stored == self.bundled):
            return stored
        if self.bundled is not None and trees.leaf(self.bundled) == self.leaf:
            return self.bundled
        return stored if stored is not None else self.bundled


def commitment(data: Optional[bytes]) -> Optional[Commitment]:
    """The commitment of these bytes, where they are one."""
    try:
        return commitments.decoded(data) if data is not None else None
    except Refused:
        return None
