"""C2SP signed notes, verifier keys and checkpoints."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .hashes import sha256
from .refused import Refused

ED25519 = 0x01
MOST_NOTE = 1 << 20
MOST_SIGNATURES = 100


def base64_bytes(text: str, structure: str, rule: str = "base64 must be standard, padded and canonical") -> bytes:
    """The bytes of canonical base64."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise Refused(structure, rule) from None
    if base64.b64encode(data).decode() != text:
        raise Refused(structure, rule)
    return data


def decimal(text: str, structure: str, rule: str) -> int:
    """A number below 2^64 in decimal, without leading zeros."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and str(int(text)) == text and int(text) < 1 << 64):
        raise Refused(structure, rule)
    return int(text)


def is_name(name: str) -> bool:
    return bool(name) and not any(it.isspace() or it < " " or it in "+\x7f" for it in name)


@dataclass(frozen=True)
class Verifier:
    """Whose signatures count: a C2SP verifier key."""

    text: str
    name: str
    key_id: bytes
    public: bytes

    def signed(self, note: Note) -> bool:
        """Whether the note has this key's signature, and it holds."""
        mine = [sig for name, key_id, sig in note.signatures if name == self.name and key_id == self.key_id]
        if len(mine) != 1:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(mine[0], note.text.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


def verifier(text: str) -> Verifier:
    parts = text.split("+", 2)
    if len(parts) != 3 or not is_name(parts[0]):
        raise Refused("verifier key", "must be a name, a key id and a key, with `+` between them")
    name, key_id, encoded = parts
    key = base64_bytes(encoded, "verifier key")
    if len(key) != 33 or key[0] != ED25519:
        raise Refused("verifier key", "must be an Ed25519 key of type 0x01")
    if key_id != sha256(name.encode() + b"\n" + key)[:4].hex():
        raise Refused("verifier key", "the key id must be that of name and key")
    return Verifier(text, name, bytes.fromhex(key_id), key[1:])


def is_same_key(one: str, other: str) -> bool:
    """Whether two texts are one key, under whatever names; what is no key is another than any but the same text."""
    try:
        return verifier(one).public == verifier(other).public
    except Refused:
        return one == other


@dataclass(frozen=True)
class Note:
    """A text, which ends in a newline, and who signed it."""

    text: str
    signatures: tuple[tuple[str, bytes, bytes], ...]


def note(text: str) -> Note:
    """A signed note; refuses what is malformed, whoever signed it."""
    if len(text.encode()) > MOST_NOTE:
        raise Refused("signed note", "must not be longer than 1 MiB")
    if any(character < " " and character != "\n" for character in text):
        raise Refused("signed note", "must not have characters below U+0020 but newlines")
    body, gap, signatures = text.rpartition("\n\n")
    if not gap or not signatures.endswith("\n"):
        raise Refused("signed note", "must be a text, an empty line, and signatures in lines")
    found = []
    lines = signatures[:-1].split("\n")
    if len(lines) > MOST_SIGNATURES:
        raise Refused("signed note", "must not have more than 100 signatures")
    for line in lines:
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != "\u2014" or not is_name(parts[1]):
            raise Refused("signed note", "a signature's line must be a dash, a name and base64")
        if len(parts[2]) % 4 or not re.fullmatch("[A-Za-z0-9+/]*={0,2}", parts[2], re.ASCII):
            raise Refused("signed note", "base64 must be standard and padded")
        data = base64.b64decode(parts[2])
        if len(data) < 5:
            raise Refused("signed note", "a signature must have a key id and something behind it")
        # With set bits behind its end it is nobody's signature, and in nobody's way.
        if base64.b64encode(data).decode() == parts[2]:
            found.append((parts[1], data[:4], data[4:]))
    if not found:
        raise Refused("signed note", "must have a signature in canonical base64")
    return Note(body + "\n", tuple(found))


@dataclass(frozen=True)
class Checkpoint:
    """A signed tree head."""

    note: Note
    origin: str
    size: int
    root: bytes


def checkpoint(text: str) -> Checkpoint:
    read = note(text)
    lines = read.text[:-1].split("\n")
    if len(lines) < 3 or not all(lines):
        raise Refused("checkpoint", "must be an origin, a size and a root, and no line of it empty")
    size = decimal(lines[1], "checkpoint", "the size must be a decimal number without leading zeros")
    root = base64_bytes(lines[2], "checkpoint")
    if len(root) != 32:
        raise Refused("checkpoint", "the root must have 32 bytes")
    return Checkpoint(read, lines[0], size, root)


def text_of(data: bytes, structure: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(structure, "must be UTF-8") from None
