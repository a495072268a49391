"""Cosignatures (C2SP tlog-cosignature) and policies (C2SP tlog-policy): who has to have seen a log."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Optional, Union

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from . import notes
from .hashes import sha256
from .refused import Refused

ED25519, ML_DSA_44 = 0x04, 0x06
LENGTHS = {ED25519: (32, 64), ML_DSA_44: (1312, 2420)}
MOST, MOST_OF_EACH = 1 << 20, 100
LAST_TIME = (1 << 63) - 1


class WrongSignature(Refused):
    """Somebody who is known has signed, and not this."""


@dataclass(frozen=True)
class Cosigner:
    """A witness's key, or a log's of ML-DSA-44."""

    name: str
    key_id: bytes
    kind: int
    public: bytes

    def message(self, text: str, time: int) -> bytes:
        if self.kind == ED25519:
            return f"cosignature/v1\ntime {time}\n{text}".encode()
        origin, size, root = text.split("\n")[:3]
        tree = bytes(8) + int(size).to_bytes(8, "big") + base64.b64decode(root)
        return b"subtree/v1\n\0" + sized(self.name) + time.to_bytes(8, "big") + sized(origin) + tree

    def time(self, checkpoint: notes.Checkpoint) -> Optional[int]:
        """The newest time at which it has signed a checkpoint; each of its signatures has to hold."""
        found = [sig for name, key_id, sig in checkpoint.note.signatures if (name, key_id) == (self.name, self.key_id)]
        return max((self.verified(checkpoint.note.text, sig) for sig in found), default=None)

    def verified(self, text: str, signature: bytes) -> int:
        time, rest = int.from_bytes(signature[:8], "big"), signature[8:]
        if len(rest) != LENGTHS[self.kind][1] or time > LAST_TIME:
            raise WrongSignature("cosignature", "must be a time of at most 2^63 - 1 and a signature")
        key: Union[Ed25519PublicKey, MLDSA44PublicKey]
        if self.kind == ED25519:
            key = Ed25519PublicKey.from_public_bytes(self.public)
        else:
            key = MLDSA44PublicKey.from_public_bytes(self.public)
        try:
            key.verify(rest, self.message(text, time))
        except InvalidSignature:
            raise WrongSignature("cosignature", f"that of {self.name} must hold") from None
        return time


def sized(text: str) -> bytes:
    if len(text.encode()) > 255:
        raise WrongSignature("cosignature", "a name and an origin must not be longer than 255 bytes")
    return bytes([len(text.encode())]) + text.encode()


def cosigner(text: str) -> Cosigner:
    parts = text.split("+", 2)
    if len(parts) != 3 or not notes.is_name(parts[0]):
        raise Refused("verifier key", "must be a name, a key id and a key, with `+` between them")
    data = notes.base64_bytes(parts[2], "verifier key")
    if not data or data[0] not in LENGTHS or len(data) != 1 + LENGTHS[data[0]][0]:
        raise Refused("verifier key", "must be of type 0x04 or 0x06")
    if parts[1] != sha256(parts[0].encode() + b"\n" + data)[:4].hex():
        raise Refused("verifier key", "the key id must be that of name and key")
    if data[0] == ML_DSA_44:
        sized(parts[0])
    return Cosigner(parts[0], bytes.fromhex(parts[1]), data[0], data[1:])


LogKey = Union[notes.Verifier, Cosigner]


def log_key(text: str) -> LogKey:
    """A log's key: of type 0x01 or 0x06."""
    try:
        found = cosigner(text)
    except Refused:
        return notes.verifier(text)
    if found.kind != ML_DSA_44:
        raise Refused("policy", "a witness's Ed25519 key is no log's")
    return found


@dataclass
class Policy:
    """Which logs are believed, and how many of which witnesses have to have cosigned."""

    logs: list[LogKey] = field(default_factory=list)
    witnesses: dict[str, Cosigner] = field(default_factory=dict)
    groups: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    quorum: Optional[str] = None
    # The ids of the keys of the witnesses that have a URL: whom a log asks.
    asked: list[bytes] = field(default_factory=list)

    def check_log(self, checkpoint: notes.Checkpoint) -> None:
        """Refuses a checkpoint that no log of the policy has signed."""
        signed = []
        for key in self.logs:
            if key.name != checkpoint.origin:
                continue
            if isinstance(key, Cosigner):
                signed.append(key.time(checkpoint) is not None)
            else:
                there = any((name, key_id) == (key.name, key.key_id) for name, key_id, _ in checkpoint.note.signatures)
                if there and not key.signed(checkpoint.note):
                    raise WrongSignature("checkpoint", f"the signature of {key.name} must hold, and be one")
                signed.append(there)
        if not any(signed):
            raise Refused("checkpoint", "must be signed by a log of the policy")

    def is_met(self, checkpoint: notes.Checkpoint) -> bool:
        """Whether the quorum has cosigned a checkpoint."""
        if any((key.kind, key.name) == (ML_DSA_44, checkpoint.origin) for key in self.witnesses.values()):
            raise Refused("policy", "a witness must not go by the log's own name, with a key as logs sign with")
        seen = {name: key.time(checkpoint) is not None for name, key in self.witnesses.items()}
        for name, (needed, members) in self.groups.items():
            seen[name] = sum(seen[member] for member in members) >= needed
        return self.quorum is None or seen[self.quorum]

    def check(self, checkpoint: notes.Checkpoint) -> None:
        self.check_log(checkpoint)
        if not self.is_met(checkpoint):
            raise Refused("checkpoint", "must be cosigned as the policy asks for")


def policy(data: bytes) -> Policy:
    """A policy file; refuses any other."""

    def need(holds: bool, rule: str) -> None:
        if not holds:
            raise Refused("policy", rule)

    need(len(data) <= MOST, "must not be longer than 1 MiB")
    need(data.endswith(b"\n"), "the last line must have a newline")
    found, taken, quorums = Policy(), set(), 0
    public: dict[str, set[tuple[bool, bytes]]] = {"log": set(), "witness": set()}
    for line in data[:-1].split(b"\n"):
        need(not any(byte < 32 and byte != 9 or byte == 127 for byte in line), "must not have control characters")
        stripped = line.strip(b" \t")
        if not stripped or stripped.startswith(b"#"):
            continue
        kind, *words = [it for it in notes.text_of(stripped, "policy").replace("\t", " ").split(" ") if it]
        if kind == "quorum":
            need(len(words) == 1, "must have a line `quorum NAME|none`")
            quorums += 1
            need(words[0] in {"none", *found.witnesses, *found.groups}, "the quorum must be defined above")
            found.quorum = None if words[0] == "none" else words[0]
            continue
        if kind == "log":
            need(len(words) in (1, 2), "must have lines `log VKEY [URL]`")
            key = log_key(words[0])
            found.logs.append(key)
        elif kind == "witness":
            need(len(words) in (2, 3), "must have lines `witness NAME VKEY [URL]`")
            need(words[0] not in {"none", *found.witnesses, *found.groups}, "a name must be defined once, and not be none")
            key = found.witnesses[words[0]] = cosigner(words[1])
            found.asked += [key.key_id] if len(words) == 3 else []
        else:
            need(kind == "group" and len(words) >= 3, "must have lines `log`, `witness`, `group` and `quorum`")
            name, number, *members = words
            need(name not in {"none", *found.witnesses, *found.groups}, "a name must be defined once, and not be none")
            for member in members:
                need(member in {*found.witnesses, *found.groups}, "a member must be defined above")
                need(member not in taken, "a member must be one of one group")
                taken.add(member)
            count = {"any": "1", "all": str(len(members))}.get(number, number)
            need(count.isascii() and count.isdigit() and 1 <= int(count) <= len(members), "a group must need 1 to all members")
            found.groups[name] = (int(count), members)
            continue
        same = (isinstance(key, Cosigner) and key.kind == ML_DSA_44, key.public)
        need(same not in public[kind], "two logs, or two witnesses, must not have one key")
        need(not same[0] or all(same not in keys for keys in public.values()), "a witness must not have the key of a log")
        public[kind].add(same)
    for each in (found.logs, found.witnesses, found.groups):
        need(len(each) <= MOST_OF_EACH, "must not have more than 100 of a kind")
    need(quorums == 1, "must have one quorum")
    return found
