"""Sources: what blocks say of where their entries come from, for whoever has the log's `sources.key`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Optional

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .commitments import Commitment
from .cursor import MASK, Cursor, u64
from .hashes import expand, extract, padme, sha256
from .refused import Refused

MOST_LABEL = 4096
MOST_SOURCES = 65_536


@dataclass(frozen=True)
class Source:
    id: bytes
    # None where it is as it was.
    label: Optional[bytes]
    # Start, end and check of each; none where the source has ended.
    ranges: list[tuple[int, int, int]]


def secret(line: str, log_id: bytes) -> bytes:
    """The key in `sources.key`; refuses another log's, and one that is damaged."""
    words = line.strip().split(" ")
    if len(words) != 4 or words[0] != "bulla-sources-key-v1":
        raise Refused("sources.key", "must be a line of four words")
    if sha256(" ".join(words[:3]).encode())[:4].hex() != words[3]:
        raise Refused("sources.key", "the last word must be the check of what stands before it")
    if words[1] != log_id.hex():
        raise Refused("sources.key", "must be of this log")
    return base64.b64decode(words[2], validate=True)


def key(secret: bytes, random: bytes, log_id: bytes, epoch: int) -> bytes:
    """The key of the sections of an epoch whose frame shows `random`."""
    return expand(extract(random, secret), b"bulla sources v1" + log_id + u64(epoch), 32)


def opened(key: bytes, commitment: Commitment, body: bytes) -> list[Source]:
    """What a block says of sources; refuses what does not decrypt or is no section."""
    nonce = u64(commitment.frame) + bytes(4)
    try:
        text = AESGCM(key).decrypt(nonce, body[commitment.sealed_length :], commitment.additional_data)
    except InvalidTag:
        raise Refused("sources", "the section does not decrypt under its epoch's key of sources") from None
    return decoded(text)


@dataclass(frozen=True)
class Kept:
    # How many frames it tells of, and the leaf of the last of these.
    frames: int
    leaf: bytes
    # Each with the number of the last frame that has something of it.
    sources: list[tuple[Source, int]]


def kept(secret: bytes, log_id: bytes, data: bytes) -> Kept:
    """What `sources.state` says; refuses what does not decrypt or is none."""
    head = data[:40]
    key_ = expand(extract(head[8:], secret), b"bulla sources state v1" + log_id, 32)
    try:
        text = AESGCM(key_).decrypt(bytes(12), data[40:], head)
    except InvalidTag:
        raise Refused("sources.state", "it does not decrypt under the log's key of sources") from None
    cursor = Cursor(text, "sources.state")
    if head[:8] != b"bullaSR1":
        raise cursor.refuse("must begin with its magic bytes")
    frames, leaf = cursor.unsigned(8), cursor.take(32)
    found: list[tuple[Source, int]] = []
    for _ in range(cursor.varint()):
        source = one(cursor)
        if source.label is None or not source.ranges or found and found[-1][0].id >= source.id:
            raise cursor.refuse("sources must ascend, with their labels and ranges")
        found.append((source, cursor.varint()))
    if cursor.left():
        raise cursor.refuse("must end with its sources")
    return Kept(frames, leaf, found)


def decoded(text: bytes) -> list[Source]:
    """The sources of a section; refuses what is none."""
    cursor = Cursor(text, "sources")
    found: list[Source] = []
    for _ in range(cursor.varint()):
        source = one(cursor)
        if found and found[-1].id >= source.id:
            raise cursor.refuse("ids must ascend")
        found.append(source)
    if not found:
        raise cursor.refuse("there must be a source")
    length = cursor.at
    if any(cursor.take(cursor.left())) or len(text) != padme(length):
        raise cursor.refuse("must end in zeros, up to the Padmé length")
    return found


def one(cursor: Cursor) -> Source:
    id_ = cursor.take(16)
    length = cursor.varint()
    if length > MOST_LABEL + 1:
        raise cursor.refuse("a label must have at most 4,096 bytes")
    label = cursor.take(length - 1) if length else None
    ranges: list[tuple[int, int, int]] = []
    end = 0
    for at in range(cursor.varint()):
        gap, size = cursor.varint(), cursor.varint()
        if size == 0 or gap == 0 and at:
            raise cursor.refuse("a range must not be empty, and not begin where the one before it ends")
        start, end = end + gap, end + gap + size
        if end > MASK:
            raise cursor.refuse("a range must end within 64 bits")
        ranges.append((start, end, cursor.unsigned(8)))
    if not ranges and label is not None:
        raise cursor.refuse("a source that has ended must have no label")
    return Source(id_, label, ranges)
