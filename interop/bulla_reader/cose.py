"""Tree heads and receipts in COSE (docs/format.md, "The tree head as COSE" and "Proofs"; RFC 9052, RFC 9942)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from . import cbor, notes
from .refused import Refused

SIGN1 = 18
ALG, KID, CLAIMS, VDS, VDP, TREE_SIZE, DISCLOSURE = 1, 4, 15, 395, 396, -70001, -70002
EDDSA, ISS, RFC9162_SHA256, INCLUSION = -8, 1, 1, -1
MOST = 1 << 20


@dataclass(frozen=True)
class Head:
    """What a log signs of its tree: all but the root, which is the payload."""

    origin: str
    key_id: bytes
    size: int
    protected: bytes
    signature: bytes

    def check(self, root: bytes, key: notes.Verifier) -> None:
        if self.origin != key.name:
            raise Refused("COSE message", f"must be of {key.name}, and is of {self.origin}")
        signed = cbor.encoded(["Signature1", self.protected, b"", root])
        try:
            if self.key_id != key.key_id:
                raise ValueError
            Ed25519PublicKey.from_public_bytes(key.public).verify(self.signature, signed)
        except (InvalidSignature, ValueError):
            raise Refused("COSE message", f"must be signed with the key of {key.name}") from None


@dataclass(frozen=True)
class Receipt:
    head: Head
    # By frame: the audit path.
    paths: list[tuple[int, list[bytes]]]
    disclosure: bytes


def require(holds: bool, rule: str) -> None:
    if not holds:
        raise Refused("COSE message", rule)


def message(data: bytes) -> tuple[Head, dict[int, cbor.Item], Optional[bytes]]:
    """A COSE_Sign1: its head, its unprotected header, and its payload."""
    tagged = cbor.decoded(data, "COSE message")
    require(isinstance(tagged, cbor.Tagged) and tagged.tag == SIGN1, "must be a COSE_Sign1, tagged 18")
    assert isinstance(tagged, cbor.Tagged)
    parts = tagged.value
    require(isinstance(parts, list) and len(parts) == 4, "a COSE_Sign1 must be an array of 4")
    assert isinstance(parts, list)
    protected, unprotected, payload, signature = parts
    require(isinstance(protected, bytes), "the protected header must be a byte string")
    require(isinstance(unprotected, dict), "the unprotected header must be a map")
    require(payload is None or isinstance(payload, bytes), "the payload must be bytes or null")
    require(isinstance(signature, bytes) and len(signature) == 64, "the signature must be 64 bytes")
    assert isinstance(protected, bytes) and isinstance(unprotected, dict) and isinstance(signature, bytes)
    assert payload is None or isinstance(payload, bytes)
    header = cbor.decoded(protected, "protected header")
    known = {ALG, KID, CLAIMS, VDS, TREE_SIZE}
    require(isinstance(header, dict) and set(header) == known, "the protected header must have its five parameters")
    assert isinstance(header, dict)
    key_id, claims, size = header[KID], header[CLAIMS], header[TREE_SIZE]
    require(header[ALG] == EDDSA, "alg must be -8, EdDSA")
    require(header[VDS] == RFC9162_SHA256, "vds must be 1, RFC9162_SHA256")
    require(isinstance(claims, dict) and set(claims) == {ISS}, "the claims must be iss alone")
    assert isinstance(claims, dict)
    origin = claims[ISS]
    require(isinstance(origin, str) and notes.is_name(origin), "iss must be an origin")
    require(isinstance(key_id, bytes) and len(key_id) == 4, "kid must be a key id of 4 bytes")
    require(isinstance(size, int) and 0 <= size < 1 << 64, "the size of the tree must be a number")
    assert isinstance(origin, str) and isinstance(key_id, bytes) and isinstance(size, int)
    return Head(origin, key_id, size, protected, signature), unprotected, payload


def checkpoint(data: bytes) -> tuple[Head, bytes]:
    """What stands in `checkpoint.cose`: a head, and its root."""
    require(len(data) <= MOST, "the file of a tree head must be at most 1 MiB")
    head, unprotected, root = message(data)
    require(not unprotected, "the unprotected header must be empty")
    require(root is not None and len(root) == 32, "the payload must be a root of 32 bytes")
    assert root is not None
    return head, root


def receipt(data: bytes) -> Receipt:
    head, unprotected, payload = message(data)
    require(payload is None, "the payload must be detached")
    require(set(unprotected) == {VDP, DISCLOSURE}, "the unprotected header must have proofs and a disclosure alone")
    proofs, disclosure = unprotected[VDP], unprotected[DISCLOSURE]
    require(isinstance(disclosure, bytes), "the disclosure must be a byte string")
    require(isinstance(proofs, dict) and set(proofs) == {INCLUSION}, "the proofs must be of inclusion")
    assert isinstance(disclosure, bytes) and isinstance(proofs, dict)
    inclusion = proofs[INCLUSION]
    require(isinstance(inclusion, list) and bool(inclusion), "there must be a proof of inclusion")
    assert isinstance(inclusion, list)
    return Receipt(head, [path(it, head.size) for it in inclusion], disclosure)


def path(item: cbor.Item, size: int) -> tuple[int, list[bytes]]:
    require(isinstance(item, bytes), "a proof of inclusion must be a byte string")
    assert isinstance(item, bytes)
    proof = cbor.decoded(item, "proof of inclusion")
    require(isinstance(proof, list) and len(proof) == 3, "a proof of inclusion must be an array of 3")
    assert isinstance(proof, list)
    of_size, index, nodes = proof
    require(of_size == size, "the size of the tree must be that in the protected header")
    require(isinstance(index, int) and 0 <= index < size, "the frame must be in the tree")
    require(isinstance(nodes, list), "the path must be an array")
    assert isinstance(index, int) and isinstance(nodes, list)
    hashes = [node for node in nodes if isinstance(node, bytes) and len(node) == 32]
    require(len(hashes) == len(nodes), "a hash must have 32 bytes")
    return index, hashes
