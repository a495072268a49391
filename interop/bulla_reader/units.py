"""Units: the leaves of a block's own tree (docs/format.md, "Units and the root of a block", "Groups")."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from .cursor import u64, varint
from .hashes import HASHES, expand


ROW, GROUP = 4, 5


def row_unit(hash_: int, salt: bytes, place: int, row: bytes) -> bytes:
    """The unit of an entry that is in no group, by its place in the block."""
    return unit(hash_, ROW, salt, varint(place) + varint(len(row)) + row)


def unit(hash_: int, kind: int, salt: bytes, content: bytes) -> bytes:
    return HASHES[hash_](bytes([kind]) + salt + content).digest()


def group_unit(
    hash_: int, salt: bytes, entries: Sequence[tuple[int, bytes]], personal: int, subjects: Sequence[int],
    ciphertext: bytes, commitment: bytes,
) -> bytes:  # fmt: skip
    """The unit of a group, of each of whose entries there are its place in the block and its shared row."""
    parts = [personal.to_bytes(2, "little"), varint(len(entries))]
    for distance, (_, row) in zip(distances([place for place, _ in entries]), entries):
        parts += [distance, varint(len(row)), row]
    parts += [varint(len(subjects)), *distances(subjects)]
    parts += [varint(len(ciphertext)), ciphertext, commitment]
    return unit(hash_, GROUP, salt, b"".join(parts))


def distances(ascending: Sequence[int]) -> list[bytes]:
    """Of each number how much more it is than it has to be."""
    return [varint(number - before - 1) for before, number in zip([-1, *ascending], ascending)]


def item_leaf(hash_: int, salt: bytes, position: int, item: bytes) -> bytes:
    """The leaf of a common item, which has the byte before it that says what it is."""
    return HASHES[hash_](b"\3" + salt + u64(position) + item).digest()


def group_keys(secret: bytes) -> tuple[bytes, bytes]:
    """The key of a group and the commitment to it."""
    both = expand(secret, b"bulla group keys v2", 64)
    return both[:32], both[32:]


def group_secret(keys: Sequence[bytes], log_id: bytes, random: bytes, frame: int, subjects: Sequence[int]) -> bytes:
    """The secret of a group, from the keys of its data subjects in the order of their numbers."""
    label = b"bulla group v1" + log_id + random + u64(frame) + u64(len(subjects)) + b"".join(map(u64, subjects))
    return expand(b"".join(keys), label, 32)


def decrypted(key: bytes, ciphertext: bytes) -> bytes:
    """What a group's ciphertext holds."""
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).decryptor()
    return stream.update(ciphertext) + stream.finalize()
