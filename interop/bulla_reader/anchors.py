"""Anchors: that a checkpoint of a log stands in somebody else's transparency log, a Rekor v2 (docs/format.md, "Proofs")."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from . import notes, trees
from .hashes import sha256
from .proofs import AnotherFile, Lines, check_signature
from .refused import Refused

FIRST = "bulla-rekor-anchor-v1"
PAYLOAD_TYPE = "application/vnd.c2sp.tlog-checkpoint"
# The DER of an Ed25519 public key up to its 32 bytes: RFC 8410, section 4.
DER = bytes.fromhex("302a300506032b6570032100")
# The canonical JSON of the entry: its members are sorted, and no value in it needs an escape.
ENTRY = (
    '{{"apiVersion":"0.0.2","kind":"dsse","spec":{{"dsseV002":{{"payloadHash":{{"algorithm":"SHA2_256","digest":"{digest}"}},'
    '"signatures":[{{"content":"{signature}","verifier":{{"keyDetails":"PKIX_ED25519","publicKey":{{"rawBytes":"{key}"}}}}}}]}}}}}}'
)


@dataclass(frozen=True)
class Anchor:
    # Of the log.
    checkpoint: notes.Checkpoint
    index: int
    # Of the transparency log.
    rekor: notes.Checkpoint


def read(data: bytes, log: notes.Verifier, rekor: notes.Verifier) -> Anchor:
    """An anchor that holds. Refuses any other file."""
    if not data.startswith(f"{FIRST}\n".encode()):
        raise AnotherFile("anchor", "the first line must be an anchor's")
    head, gap, signed = notes.text_of(data, "anchor").partition("\n\n")
    if not gap:
        raise Refused("anchor", "must have an empty line and a checkpoint")
    lines = Lines(head.split("\n")[1:])
    note = lines.data("checkpoint")
    anchored = notes.checkpoint(notes.text_of(note, "checkpoint"))
    signature = lines.data("signature")
    if len(signature) != 64:
        raise Refused("anchor", "the signature must have 64 bytes")
    index = notes.decimal(lines.value("index"), "anchor", "the index must be a number of 64 bits")
    path = lines.hashes()
    of_rekor = notes.checkpoint(signed)
    check_signature(anchored, log)
    try:
        Ed25519PublicKey.from_public_bytes(log.public).verify(signature, pre_authentication(note))
    except (InvalidSignature, ValueError):
        raise Refused("anchor", f"the envelope must be signed with the key of {log.name}") from None
    check_signature(of_rekor, rekor)
    if index >= of_rekor.size:
        raise Refused("anchor", "the index must be below the size of Rekor's tree")
    leaf = trees.leaf(entry(note, signature, log))
    if trees.multi_proof({index: leaf}, of_rekor.size, path) != of_rekor.root:
        raise Refused("anchor", "the hashes must lead to Rekor's root")
    return Anchor(anchored, index, of_rekor)


def pre_authentication(note: bytes) -> bytes:
    """What DSSE v1 has signed; lengths are in decimal."""
    return f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(note)} ".encode() + note


def entry(note: bytes, signature: bytes, log: notes.Verifier) -> bytes:
    """What Rekor stores of the envelope."""
    parts = dict(digest=sha256(note), signature=signature, key=DER + log.public)
    return ENTRY.format(**{name: base64.b64encode(part).decode() for name, part in parts.items()}).encode()
