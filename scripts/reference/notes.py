"""Signed checkpoints (C2SP signed-note and tlog-checkpoint)."""

import base64
import re

from . import ed25519
from .basics import require, sha256


def canonical_base64(text, what):
    """Standard base64 with padding, in its one spelling."""
    require(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) and len(text) % 4 == 0, f"{what} is not base64")
    data = base64.b64decode(text, validate=True)
    require(base64.b64encode(data).decode() == text, f"{what} is not canonical base64")
    return data


def parse_vkey(text):
    name, key_id, data = text.split("+", 2)
    data = base64.b64decode(data, validate=True)
    require(len(data) == 33 and data[0] == 1, "the verifier key is not of Ed25519")
    expected = sha256(name.encode(), b"\n", data)[:4].hex()
    require(key_id == expected, f"the verifier key's id is {key_id}, but its name and key come to {expected}")
    return name, bytes.fromhex(key_id), data[1:]


def parse_note(data, what):
    """The text of a signed note, and its signatures as (name, bytes)."""
    text = data.decode()
    require(not any(c < " " and c != "\n" for c in text), f"{what} has control characters")
    body, separator, lines = text.rpartition("\n\n")
    require(separator and lines.endswith("\n"), f"{what} has no signature lines")
    signatures = []
    for line in lines[:-1].split("\n"):
        match = re.fullmatch(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/]+=*)", line)
        require(match, f"a signature line of {what} is malformed")
        signature = canonical_base64(match[2], f"a signature of {what}")
        require(len(signature) > 4, f"a signature of {what} is too short")
        signatures.append((match[1], signature))
    require(len(signatures) <= 100, f"{what} has more than 100 signatures")
    return body + "\n", signatures


def parse_checkpoint(data):
    """The text of a signed checkpoint, its origin, size and root, and its signatures as (name, bytes)."""
    require(len(data) <= 1 << 20, "the checkpoint is longer than 1 MiB")
    body, signatures = parse_note(data, "the checkpoint")
    lines = body[:-1].split("\n")
    require(len(lines) >= 3 and all(lines), "the checkpoint has too few lines, or an empty one")
    require(re.fullmatch(r"0|[1-9][0-9]*", lines[1], re.ASCII), "the checkpoint's size is not a decimal number")
    size, root = int(lines[1]), canonical_base64(lines[2], "the checkpoint's root")
    require(size < 2**64 and len(root) == 32, "the checkpoint's size or root is not one")
    return body, lines[0], size, root, signatures


def read_checkpoint(data, vkey=None):
    """The origin, size and root of a checkpoint; with the log's key, one that the log has signed."""
    body, origin, size, root, signatures = parse_checkpoint(data)
    if vkey is not None:
        name, key_id, public = parse_vkey(vkey)
        found = [signature[4:] for of, signature in signatures if of == name and signature[:4] == key_id]
        require(len(found) == 1, f"the checkpoint has {len(found)} signatures of the key")
        require(ed25519.verify(public, body.encode(), found[0]), "the checkpoint's signature does not verify")
        require(origin == name, f"the checkpoint is of {origin}, the key of {name}")
    return origin, size, root
