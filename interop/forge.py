"""Writes a log anew with all of its keys, so that what is wrong in it is signed, sealed and encrypted as it should be.

What a lying writer could make is what a reader has to refuse by more than a digest. For tests alone.
"""

from __future__ import annotations

import base64
import os
import shutil
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Iterable, Optional

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bulla_reader import age, blocks, columns, commitments, epochs, log, notes, seals, tiles, trees, units, verify
from bulla_reader.cursor import u32, u64
from bulla_reader.hashes import HASHES, crc32c, hkdf, mac, padme, sha256
from bulla_reader.history import followed
from bulla_reader.refused import Refused


@dataclass
class Forged:
    """A frame as it is to be: its commitment's fields, its body (of a block in clear), and its group."""

    kind: int
    frame: int
    first_entry: int
    entries: int
    earliest: int
    latest: int
    epoch: int
    units: int
    root: bytes
    content: int
    hash: int
    log_id: bytes
    text: bytes
    group: int
    raw: dict[str, object] = field(default_factory=dict)


class Forge:
    """A log's frames and keys, to be changed and written elsewhere."""

    def __init__(self, directory: Path, keys: Path, former: Iterable[Path] = ()) -> None:
        self.directory = directory
        of = log.opened(directory)
        self.config = of.config
        signing = (keys / "signing.key").read_text().strip().split("+", 4)
        self.signing = Ed25519PrivateKey.from_private_bytes(base64.b64decode(signing[-1])[1:])
        # With which orders can be signed: the log's key, or all that it had.
        self.erasures = [secret_key(it) for it in (keys / "erasure.key", *former) if it.exists()]
        self.seal_key = seals.seal_key((keys / "seal.key").read_text(), self.config.log_id)
        opens = blocks.Opener(followed(of), verify.read_identities([keys / "identity.age"]), None)
        self.keys = {number: opens.epoch(number) for number in opens.history.epochs}
        self.frames: list[Forged] = []
        for frame in of.frames:
            assert frame is not None and frame.header is not None
            it = frame.commitment
            text = frame.body()
            if it.kind == commitments.BLOCK:
                text = epochs.plaintext(self.keys[it.epoch], it, text)
            self.frames.append(
                Forged(
                    it.kind, it.frame, it.first_entry, it.entries, it.earliest, it.latest, it.epoch, it.units, it.root,
                    it.content, it.hash, it.log_id, text, frame.header.group,
                )  # fmt: skip
            )

    def copy(self) -> Forge:
        other = Forge.__new__(Forge)
        other.__dict__ = dict(self.__dict__)
        other.frames = [replace(frame, raw=dict(frame.raw)) for frame in self.frames]
        return other

    def recommit(self, frame: Forged) -> Optional[columns.Block]:
        """Makes units, root and times of a block those of its plaintext, where that is one."""
        limit = 1 << min(frame.content, 25)
        keys = self.keys.get(frame.epoch)
        try:
            block = columns.decoded(frame.text, frame.entries, limit)
        except Refused:
            return None
        if keys is None or not block.rows or frame.hash not in HASHES:
            return None
        count = len(block.groups) + block.member.count(0)
        salts = epochs.salts(keys, frame.frame, count)
        found: list[bytes] = []
        seen = 0
        for place, row in enumerate(block.rows):
            group = block.group_of(place)
            if group is None:
                found.append(units.row_unit(frame.hash, salts[len(found)], place, row.encoded()))
            elif block.member[place] > seen:
                seen += 1
                entries = [(at, block.rows[at].encoded()) for at in group.places]
                found.append(
                    units.group_unit(
                        frame.hash, salts[len(found)], entries, block.personal, group.subjects, group.ciphertext,
                        group.commitment,
                    )  # fmt: skip
                )
        times = [row.time // 1_000_000_000 for row in block.rows]
        frame.units, frame.earliest, frame.latest = count, min(times), max(times)
        found += blocks.item_leaves(frame, block, keys)
        frame.root = trees.block_root(
            frame.hash, count, len(block.items), trees.root(found, trees.block(frame.hash))
        )
        return block

    def commitment(self, frame: Forged) -> tuple[bytes, bytes]:
        """The commitment and the body as it is stored."""
        body = frame.text
        block = frame.kind == commitments.BLOCK
        length = len(body) + 16 if block else len(body)
        head = struct.pack(
            "<BBBBB3x16sQQQqqQQ32sQ",
            1, frame.kind, int(block), frame.hash, frame.content, frame.log_id, frame.frame, frame.first_entry,
            frame.entries, frame.earliest, frame.latest, frame.epoch, frame.units, frame.root, length,
        )  # fmt: skip
        keys = self.keys.get(frame.epoch)
        if block and keys is not None:
            body = AESGCM(keys.body).encrypt(u64(frame.frame) + bytes(4), body, head)
        elif block:
            body += bytes(16)
        digest = bytes(32) if "digest" in frame.raw else sha256(body)
        return head + digest, body

    def write(self, place: Path, covered: Optional[int] = None) -> None:
        """Writes the log, in one segment; the checkpoint covers so many frames, or all."""
        shutil.rmtree(place, ignore_errors=True)
        (place / "segments").mkdir(parents=True)
        shutil.copy(self.directory / "bulla.toml", place)
        if (self.directory / "index").is_dir():
            shutil.copytree(self.directory / "index", place / "index")
        chain = seals.Chain(self.seal_key)
        data, leaves, known = [], [], []
        for frame in self.frames:
            if frame.kind == commitments.EPOCH and "seal" not in frame.raw and len(frame.text) >= 132:
                frame.text = frame.text[:100] + chain.before + frame.text[132:]
            commitment, body = self.commitment(frame)
            head = b"Bulf\x01" + bytes([frame.kind]) + b"\x98\x00" + u32(len(body)) + u64(frame.group)
            seal = chain.seal(frame.group, commitment)
            chain.step(seal)
            data.append(head + u32(crc32c(head)) + commitment + body + seal)
            if covered is None or len(leaves) < covered:
                known.append(commitment)
                leaves.append(trees.leaf(commitment))
        (place / "segments/00000000000000000000.seg").write_bytes(b"".join(data))
        for (level, index, width), tile in tiles.contents(leaves).items():
            self.put(place / tiles.path(level, index, width), tile)
            if level == 0:
                self.put(place / tiles.path("entries", index, width), tiles.bundle(known[256 * index : 256 * index + width]))
        (place / "checkpoint").write_text(self.checkpoint(len(leaves), trees.root(leaves)))

    @staticmethod
    def put(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def order(self, text: str, by: int = 0) -> str:
        """A note of a text by a key that orders erasures, or did."""
        return signed(text, *self.erasures[by])

    def append(self, event: str) -> None:
        """An event behind all frames."""
        last = self.frames[-1]
        epoch, number, entry = last.epoch, len(self.frames), last.first_entry + last.entries
        self.frames.append(
            Forged(
                commitments.EVENT, number, entry, 0, last.latest, last.latest, epoch, 0, bytes(32), 0, last.hash, last.log_id,
                event.encode(), number,
            )  # fmt: skip
        )

    def checkpoint(self, size: int, root: bytes) -> str:
        return signed(f"{self.config.origin}\n{size}\n{base64.b64encode(root).decode()}\n", self.config.verifier, self.signing)


def secret_key(path: Path) -> tuple[notes.Verifier, Ed25519PrivateKey]:
    """The two halves of a key in its file."""
    _, _, name, key_id, secret = path.read_text().strip().split("+", 4)
    key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(secret)[1:])
    public = b"\x01" + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return notes.verifier(f"{name}+{key_id}+{base64.b64encode(public).decode()}"), key


def signed(text: str, verifier: notes.Verifier, key: Ed25519PrivateKey) -> str:
    """A signed note of a text."""
    signature = base64.b64encode(verifier.key_id + key.sign(text.encode())).decode()
    return f"{text}\n\u2014 {verifier.name} {signature}\n"


def wrapped(data: bytes, public: bytes, others: bytes = b"") -> bytes:
    """An age file of up to one chunk of data, for an X25519 recipient, and with other stanzas before theirs."""
    key, ephemeral, nonce = os.urandom(16), X25519PrivateKey.generate(), os.urandom(16)
    share = ephemeral.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
    sealed = ChaCha20Poly1305(hkdf(share + public, shared, b"age-encryption.org/v1/X25519", 32)).encrypt(bytes(12), key, None)
    head = age.INTRO + others + b"-> X25519 " + unpadded(share) + b"\n" + unpadded(sealed) + b"\n---"
    tag = mac(hkdf(b"", key, b"header", 32), head)
    payload = ChaCha20Poly1305(hkdf(nonce, key, b"payload", 32)).encrypt(bytes(11) + b"\x01", data, None)
    return head + b" " + unpadded(tag) + b"\n" + nonce + payload


def unpadded(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def padded(text: bytes) -> bytes:
    """A plaintext with its padding."""
    return text + bytes(padme(len(text)) - len(text))
