"""Epochs: the body of their frames, the keys that come from an epoch's, and blocks' bodies under them."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import age
from .commitments import Commitment
from .cursor import Cursor, u64
from .hashes import expand, extract
from .refused import Refused

MOST_WRAPPED = 65_536


@dataclass(frozen=True)
class EpochBody:
    random: bytes
    key_commitment: bytes
    config_digest: bytes
    seal_before: bytes
    wrapped: bytes


def decoded(body: bytes) -> EpochBody:
    """An epoch frame's body; refuses what is none."""
    cursor = Cursor(body, "epoch")
    if cursor.take(4) != b"\1\0\0\0":
        raise cursor.refuse("must begin with version 1 and three zeros")
    random, commitment, digest, seal = (cursor.take(32) for _ in range(4))
    length = cursor.unsigned(4)
    if length > MOST_WRAPPED:
        raise cursor.refuse("the wrapped key must be at most 65,536 bytes")
    wrapped = cursor.take(length)
    age.check_stanzas(wrapped)
    cursor.end()
    return EpochBody(random, commitment, digest, seal, wrapped)


@dataclass(frozen=True)
class EpochKeys:
    body: bytes
    salt: bytes
    commitment: bytes
    index: bytes
    token: bytes
    random: bytes


def keys(key: bytes, random: bytes, log_id: bytes, epoch: int) -> EpochKeys:
    """All that is derived from an epoch's key."""
    root = extract(random, key)

    def derived(label: bytes) -> bytes:
        return expand(root, label + log_id + u64(epoch), 32)

    return EpochKeys(
        derived(b"bulla body key v1"),
        derived(b"bulla salt key v1"),
        derived(b"bulla key commitment v1"),
        derived(b"bulla index key v1"),
        derived(b"bulla index token key v1")[:16],
        random,
    )


def opened(body: EpochBody, identities: list[age.Identity], log_id: bytes, epoch: int) -> EpochKeys:
    """The keys of an epoch; raises `age.NotForUs` where no identity is its recipient's."""
    key = age.decrypted(body.wrapped, identities)
    if len(key) != 32:
        raise Refused("epoch", "the wrapped key must have 32 bytes")
    found = keys(key, body.random, log_id, epoch)
    if found.commitment != body.key_commitment:
        raise Refused("epoch", "the wrapped key is not the one that is committed to")
    return found


def plaintext(epoch: EpochKeys, commitment: Commitment, body: bytes) -> bytes:
    """What a block's body holds, without its sources section, which is for the writing host alone."""
    nonce = u64(commitment.frame) + bytes(4)
    try:
        return AESGCM(epoch.body).decrypt(nonce, body[: commitment.sealed_length], commitment.additional_data)
    except InvalidTag:
        raise Refused("block", "the body does not decrypt with its epoch's key") from None


FIRST_ITEM = 1 << 32


def salts(epoch: EpochKeys, frame: int, count: int, first: int = 0) -> list[bytes]:
    """The salts of a frame's units, or from `FIRST_ITEM` on of its common items."""
    encryptor = Cipher(algorithms.AES(epoch.salt), modes.ECB()).encryptor()
    blocks = b"".join(u64(frame) + unit.to_bytes(8, "big") for unit in range(first, first + count))
    stream = encryptor.update(blocks)
    return [stream[at : at + 16] for at in range(0, len(stream), 16)]
