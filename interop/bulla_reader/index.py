"""The index: which blocks can hold what. Nothing rests on it, but it must not hide what is there (docs/format.md)."""

from __future__ import annotations

import re
from typing import Optional

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import columns, commitments, epochs
from .blocks import OpenedBlock
from .cursor import MASK, Cursor, u64
from .findings import Finding
from .hashes import expand, extract, padme, sha256, siphash
from .history import History
from .log import list_directory
from .refused import Refused

HEAD = 100
MOST_CIPHERTEXT = 24 << 20
MOST_TOKENS = 1 << 20


def token(key: bytes, kind: int, value: bytes) -> int:
    return siphash(key, bytes([kind]) + value) >> 24


def tokens(block: OpenedBlock, keys: epochs.EpochKeys) -> set[int]:
    """What the index must say of a block, as far as its groups matter: their personal fields make none."""
    found = set()
    grouped = {place for group in block.groups for place in group.places}
    for place, opened in enumerate(block.rows):
        row = opened.row
        found.add(token(keys.token, 0, row.operation))
        if "processor" in row.values:
            found.add(token(keys.token, 1, row.values["processor"]))
        if place in grouped:
            continue
        found.add(token(keys.token, 2, row.values.get("stream", b"default")))
        for subject in row.values.get("subject", ()):
            found.add(token(keys.token, 3, subject))
    for group in block.groups:
        for number in group.subjects:
            found.add(token(keys.token, 4, u64(number)))
    if block.groups:
        found.add(token(keys.token, 5, b"grouped"))
    return found


class Index:
    """What each of the parts that count says of a frame."""

    def __init__(self) -> None:
        self.of: dict[int, list[set[int]]] = {}


def named(name: str) -> Optional[int]:
    return int(name[:20]) if re.fullmatch(r"[0-9]{20}\.idx", name) and int(name[:20]) < 1 << 64 else None


def read(history: History, keys_of: dict[int, Optional[epochs.EpochKeys]]) -> Index:
    """Reads all files of epochs that are open; notes what is no part."""
    index = Index()
    for path in list_directory(history.log.directory / "index"):
        epoch = named(path.name)
        keys = keys_of.get(epoch) if epoch is not None else None
        if epoch is None or keys is None or not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        at = 0
        while at < len(data):
            try:
                length = part(history, index, data, at, epoch, keys)
            except Refused as refused:
                name = f"index/{path.name}"
                history.log.findings.append(Finding("index-damaged", str(refused), name, at))
                break
            at += length
    return index


def part(history: History, index: Index, data: bytes, at: int, epoch: int, keys: epochs.EpochKeys) -> int:
    """Takes a part, where it counts; gives its length. Refuses what is none."""
    cursor = Cursor(data[at : at + HEAD], "part of the index")
    if cursor.take(8) != b"BulI\1\0\0\0" or cursor.unsigned(8) != epoch:
        raise cursor.refuse("must begin with its mark, version 1 and its epoch")
    group, covered = cursor.unsigned(8), cursor.unsigned(8)
    digest, random = cursor.take(32), cursor.take(32)
    length = cursor.unsigned(4)
    if group >= 1 << 58 or length > MOST_CIPHERTEXT or len(data) - at - HEAD < length:
        raise cursor.refuse("must have a group that there is, and be whole")
    key = expand(extract(random, keys.index), b"bulla index part key v1", 32)
    try:
        text = AESGCM(key).decrypt(bytes(12), data[at + HEAD : at + HEAD + length], data[at : at + HEAD])
    except (InvalidTag, ValueError):
        raise cursor.refuse("does not decrypt") from None
    found = decoded(text, covered)
    log = history.log
    frames = [64 * group + bit for bit in range(64) if covered >> bit & 1]
    known = [log.commitments[number] if number < len(log.commitments) else None for number in frames]
    if all(it is not None and it.epoch == epoch and it.kind == commitments.BLOCK for it in known):
        if sha256(b"".join(it.encoded for it in known if it is not None)) == digest:
            for number in frames:
                bit = number & 63
                index.of.setdefault(number, []).append({token for token, blocks in found if blocks >> bit & 1})
    return HEAD + length


def decoded(text: bytes, covered: int) -> list[tuple[int, int]]:
    """Tokens, each with the blocks that have it."""
    cursor = Cursor(text, "part of the index")
    count = cursor.varint()
    if count > MOST_TOKENS:
        raise cursor.refuse("must have at most 2^20 tokens")
    differences = columns.integers(cursor, count)
    blocks = columns.integers(cursor, count)
    length = cursor.at
    if any(cursor.take(cursor.left())) or len(text) != padme(length):
        raise cursor.refuse("must be padded with zeros to the Padmé length")
    found, token_ = [], 0
    for place, (difference, those) in enumerate(zip(differences, blocks)):
        token_ += difference
        if place and difference == 0 or token_ > MASK or those == 0 or those & ~covered:
            raise cursor.refuse("tokens must ascend, each with blocks that are covered")
        found.append((token_, those))
    return found
