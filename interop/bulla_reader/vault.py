"""The vault: numbers and keys of data subjects, read only (docs/format.md, "The vault")."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from pathlib import Path
from typing import Optional, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV

from . import age, notes
from .cursor import Cursor, u64
from .hashes import crc32c, expand, hkdf, mac, siphash
from .refused import Refused
from .units import group_secret

RECORDS, ROWS, ENTRIES, BUCKETS = 1, 2, 3, 4
MOST_KEYS = 1 << 20
MOST_ERASED = 4096
MOST_GIVEN_UP = 64
MOST_SKIPPED = 1 << 16
SCHEMA = {
    name: f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT"
    for name in ("records", "rows", "entries", "buckets")
}


class BeingErased(Refused):
    """Somebody's keys are asked for while they are being destroyed: of the log that says nothing."""


class Secrets(Protocol):
    """Who has secrets of groups: the vault, or a grant."""

    follows: int
    has_all: bool

    def secret(self, log_id: bytes, random: bytes, frame: int, subjects: list[int]) -> Optional[bytes]: ...

    def is_one_of(self, name: bytes, subjects: list[int]) -> bool: ...


class KeyFile:
    """What the vault's keys are, from the two files in `roots`."""

    def __init__(self, root: bytes, data: bytes, log_id: bytes, generation: int) -> None:
        cursor = Cursor(data, "file of keys")
        if cursor.take(8) != b"bullaVK1":
            raise cursor.refuse("must begin with its mark")
        if (cursor.take(16), cursor.unsigned(8)) != (log_id, generation):
            raise Refused("file of keys", "must be of this log and generation")
        rows, buckets = cursor.unsigned(4), cursor.unsigned(4)
        if rows > MOST_KEYS or buckets > MOST_KEYS:
            raise cursor.refuse("must have at most 2^20 keys of a kind")
        random = cursor.take(32)
        key = hkdf(random, root, b"bulla vault keys v1" + log_id + u64(generation), 32)
        try:
            keys = Cursor(AESGCM(key).decrypt(bytes(12), data[72:], data[:72]), "file of keys")
        except (InvalidTag, ValueError):
            raise cursor.refuse("must decrypt with its root") from None
        self.pseudonym = keys.take(32)
        self.rows = [keys.take(32) for _ in range(rows)]
        self.buckets = {keys.unsigned(4): keys.take(32) for _ in range(buckets)}
        if len(self.buckets) != buckets or list(self.buckets) != sorted(self.buckets):
            raise keys.refuse("ids of buckets must ascend")
        keys.end()


def read_root(data: bytes, log_id: bytes, generation: int, identities: list[age.Identity]) -> bytes:
    """The root of a generation, from its file."""
    if data.startswith(age.INTRO):
        root = age.decrypted(data, identities)
    else:
        line = re.fullmatch(r"bulla-vault-root-v1 ([0-9a-f]{32}) (\d+) (\S+)\n", notes.text_of(data, "root file"))
        if line is None:
            raise Refused("root file", "must be the line of a root")
        root = notes.base64_bytes(line[3], "root file")
        if (line[1], line[2]) != (log_id.hex(), str(generation)):
            raise Refused("root file", "must be of this log and generation")
    if len(root) != 32:
        raise Refused("root file", "a root must have 32 bytes")
    return root


class Vault:
    """A vault that was checked as far as it must be before anything of it is used."""

    has_all = True

    def __init__(self, directory: Path, log_id: bytes, identities: list[age.Identity]) -> None:
        self.log_id, self.directory = log_id, directory
        self.database = sqlite3.connect(f"{(directory / 'vault/vault.db').resolve().as_uri()}?mode=ro", uri=True)
        try:
            self.database.execute("BEGIN")
            self.check_schema()
            meta = Cursor(self.stored(RECORDS, 1), "record 1 of the vault")
            if meta.take(8) != b"bullaVM5":
                raise meta.refuse("must begin with its mark")
            meta.take(16)  # the log id, which counts once the seal holds
            generation = meta.unsigned(8)
            root = read_root((directory / f"roots/{generation}.root").read_bytes(), log_id, generation, identities)
            self.keys = KeyFile(root, (directory / f"roots/{generation}.keys").read_bytes(), log_id, generation)
            self.record_key = hkdf(log_id, self.keys.pseudonym, b"bulla vault records v1", 32)
            self.next_number = self.read_records()
            self.buckets = self.read_buckets()
            self.check_people()
        except sqlite3.Error as error:
            raise Refused("vault", f"cannot be read: {error}") from None

    def check_schema(self) -> None:
        def pragma(name: str) -> object:
            return self.database.execute(f"PRAGMA {name}").fetchone()[0]

        if (pragma("application_id"), pragma("user_version"), pragma("journal_mode")) != (0x42756C6C, 5, "wal"):
            raise Refused("vault", "application id, user version and journal mode must be a vault's")
        schema = self.database.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
        if sorted(schema) != sorted(("table", name, sql) for name, sql in SCHEMA.items()):
            raise Refused("vault", "the schema must be that of a vault")

    def stored(self, table: int, number: int) -> bytes:
        row = self.found(table, number)
        if row is None:
            raise Refused("vault", f"row {number} of table {table} is missing")
        return row

    def found(self, table: int, number: int) -> Optional[bytes]:
        name = list(SCHEMA)[table - 1]
        row = self.database.execute(f"SELECT sealed FROM {name} WHERE id = ?", (number,)).fetchone()
        return row[0] if row is not None else None

    def sealed(self, table: int, number: int, data: bytes) -> Cursor:
        """What is before a seal, once it holds."""
        cursor = Cursor(data[:-16], f"row {number} of table {table} of the vault")
        if len(data) < 16 or mac(self.record_key, bytes([table]) + u64(number) + data[:-16])[:16] != data[-16:]:
            raise cursor.refuse("the seal does not hold")
        return cursor

    def record(self, number: int, mark: bytes) -> Cursor:
        cursor = self.sealed(RECORDS, number, self.stored(RECORDS, number))
        if cursor.take(8) != mark:
            raise cursor.refuse("must begin with its mark")
        if crc32c(cursor.data[:-4]) != int.from_bytes(cursor.data[-4:], "little"):
            raise cursor.refuse("the sum is wrong")
        cursor.data = cursor.data[:-4]
        return cursor

    def read_records(self) -> int:
        """Looks at all records, and gives the next number."""
        meta = self.record(1, b"bullaVM5")
        if meta.take(16) != self.log_id:
            raise meta.refuse("must be of this log")
        meta.take(8)
        next_number = meta.unsigned(8)
        self.indexed = [meta.unsigned(8) for _ in range(16)]
        if max(self.indexed) > next_number:
            raise meta.refuse("the index must not lead to a number that is not below the next one")
        self.follows = meta.unsigned(8)
        self.follows_root = meta.take(32)
        meta.unsigned(4)
        # The first of those frames whose event was passed over: what it and those behind it tell may not have been carried out.
        self.unfollowed = self.follows
        if meta.left() % 16 == 8:
            self.unfollowed = meta.unsigned(8)
            if self.follows <= self.unfollowed < 2**64 - 1:
                raise meta.refuse("the frame that was passed over must be below those that are followed, or none of the log")
        self.given_up = []
        while meta.left():
            self.given_up.append(meta.take(16))
        meta.end()
        if len(self.given_up) > MOST_GIVEN_UP:
            raise meta.refuse("must have at most 64 parts that were given up")
        if any(one >= following for one, following in zip(self.given_up, self.given_up[1:])):
            raise meta.refuse("the parts that were given up must ascend")
        erasing = self.record(2, b"bullaVE3")
        self.erasing_state = erasing.u8()
        if self.erasing_state > 2 or any(erasing.take(3)):
            raise erasing.refuse("the state must be 0, 1 or 2")
        count = erasing.unsigned(4)
        if count > MOST_ERASED:
            raise erasing.refuse("must have at most 4,096 numbers")
        written = erasing.take(32)
        self.erasing = [erasing.unsigned(8) for _ in range(count)]
        erasing.end()
        if self.erasing_state == 0 and (self.erasing or any(written)):
            raise erasing.refuse("of no erasure it must have nothing")
        if self.erasing_state != 0 and not self.erasing:
            raise erasing.refuse("of an erasure it must have a number")
        if any(one >= following for one, following in zip(self.erasing, self.erasing[1:])):
            raise erasing.refuse("the numbers must ascend")
        if self.erasing and self.erasing[-1] >= next_number:
            raise erasing.refuse("the numbers must be below the next one")
        changes = self.record(4, b"bullaVC2")
        changes.take(16)
        changes.end()
        skipped = self.record(5, b"bullaVS2")
        self.skipped = []
        while skipped.left():
            self.skipped.append((skipped.unsigned(8), skipped.unsigned(8)))
        if len(self.skipped) > MOST_SKIPPED:
            raise skipped.refuse("must have at most 65,536 ranges")
        before = 0
        for first, end in self.skipped:
            if not before <= first < end:
                raise skipped.refuse("the ranges must ascend")
            before = end
        return next_number

    def read_buckets(self) -> list[tuple[int, int]]:
        """First prefix and id of every bucket; together they divide all prefixes."""
        found, expected = [], 0
        for first, data in self.database.execute("SELECT id, sealed FROM buckets ORDER BY id"):
            cursor = self.sealed(BUCKETS, first, data)
            number, end = cursor.unsigned(4), cursor.unsigned(4)
            cursor.end()
            if first != expected or end <= first or number not in self.keys.buckets:
                raise cursor.refuse("buckets must divide all prefixes, and have a key each")
            found.append((first, number))
            expected = end
        if expected != 1 << 16:
            raise Refused("vault", "buckets must divide all prefixes")
        return found

    def check_people(self) -> None:
        """Refuses a vault in which an older row hides somebody: one whom the index does not lead to, or it alone has."""
        people = {}
        for number in range(self.next_number):
            subject = self.subject(number)
            if subject is not None:
                people[number] = subject[1]
        for row, data in self.database.execute("SELECT id, sealed FROM rows WHERE id >= ?", (self.next_number >> 4,)):
            first = max(0, self.next_number - 16 * row) if row == self.next_number >> 4 else 0
            key = self.keys.rows[row >> 8] if row >> 8 < len(self.keys.rows) else bytes(32)
            if int.from_bytes(self.row(data, row, key)[:2], "little") >> first:
                raise Refused("vault", "nobody may have a number that is not below the next one")
        self.unindexed = {pseudonym: number for number, pseudonym in people.items() if number >= self.indexed[pseudonym[0] >> 4]}
        found = []
        for _, bucket in self.buckets:
            key = expand(self.keys.buckets[bucket], b"bulla vault index v2", 48)[:32]
            for row in range(bucket << 8, (bucket << 8) + 256):
                found += [number for _, number in self.entries(row, self.stored(ENTRIES, row), key)]
        if sorted(found) != sorted(number for number, pseudonym in people.items() if number < self.indexed[pseudonym[0] >> 4]):
            raise Refused("vault", "the index must have everybody once whom it is to lead to, and nobody else")
        for number, pseudonym in people.items():
            if self.number_at(pseudonym) != number:
                raise Refused("vault", f"the index must lead to number {number} from its pseudonym")

    def check_given_up(self, told: dict[bytes, int]) -> None:
        """Refuses a vault that does not know of a part of the log that was given up since it followed that, or is being given up: whoever
        was erased there may have a key in it. `told` has the frames of the events."""
        unknown = [f"which frame {frame} tells of" for part, frame in told.items() if frame >= self.follows and part not in self.given_up]
        restoring = self.directory / "restoring"
        text = notes.text_of(restoring.read_bytes(), "restoring") if restoring.is_file() else ""
        begun = re.search(r" older-log \d+ \d+ [0-9a-f]{32} ([0-9a-f]{32}) (?:-|[0-9a-f]{64})(?: [0-9a-f]{32})*\n\Z", text)
        if begun is not None and bytes.fromhex(begun[1]) not in self.given_up:
            unknown.append("which is being given up")
        if not self.parts_of_seal_state() <= set(self.given_up):
            unknown.append("that seal.state knows to be given up")
        if unknown:
            raise Refused("vault", f"must know of the part of the log {unknown[0]}")

    def parts_of_seal_state(self) -> set[bytes]:
        """The parts of the log that were given up, as a seal state tells that can be read."""
        place = self.directory / "seal.state"
        state = place.read_bytes() if place.is_file() else b""
        content, check = state[:-32], state[-32:]
        if content[:8] != b"bullaSS5" or hashlib.sha256(content).digest() != check:
            return set()
        return {content[at : at + 16] for at in range(248, len(content), 16)}

    def subject(self, number: int) -> Optional[tuple[bytes, bytes]]:
        """Key and pseudonym of a data subject, where there is one of that number."""
        if number >= self.next_number:
            return None
        data = self.found(ROWS, number >> 4)
        if data is None:
            if any(first <= number < end for first, end in self.skipped):
                return None
            raise Refused("vault", f"the row of number {number} is missing")
        if number >> 12 >= len(self.keys.rows):
            raise Refused("vault", f"number {number} has no row key")
        row = self.row(data, number >> 4, self.keys.rows[number >> 12])
        place = number & 15
        if not int.from_bytes(row[:2], "little") >> place & 1:
            return None
        at = 2 + 48 * place
        return row[at : at + 32], row[at + 32 : at + 48]

    def row(self, data: bytes, number: int, key: bytes) -> bytes:
        text = decrypted(key, number, data, b"bulla vault row v2" + self.log_id + u64(number))
        if len(text) != 770:
            raise Refused("vault", f"row {number} must have 786 bytes")
        return text

    def entries(self, number: int, data: bytes, key: bytes) -> list[tuple[bytes, int]]:
        """Half pseudonyms and numbers of a row of the index."""
        text = decrypted(key, number, data, b"bulla vault index v2" + self.log_id + u64(number))
        if len(text) % 12:
            raise Refused("vault", f"row {number} of the index must have 12 bytes an entry")
        return [(text[at : at + 8], int.from_bytes(text[at + 8 : at + 12], "little")) for at in range(0, len(text), 12)]

    def pseudonym(self, name: bytes) -> bytes:
        return mac(self.keys.pseudonym, b"bulla vault pseudonym v1" + self.log_id + name)[:16]

    def number_of(self, name: bytes) -> Optional[int]:
        """The number of whoever has this name."""
        return self.number_at(self.pseudonym(name))

    def number_at(self, pseudonym: bytes) -> Optional[int]:
        """The number that the index leads to, or that of somebody whom it does not lead to yet."""
        if pseudonym in self.unindexed:
            return self.unindexed[pseudonym]
        prefix = int.from_bytes(pseudonym[:2], "big")
        bucket = [number for first, number in self.buckets if first <= prefix][-1]
        both = expand(self.keys.buckets[bucket], b"bulla vault index v2", 48)
        place = siphash(both[32:], pseudonym[:8]) & 0xFF
        row = bucket << 8 | place
        for half, number in self.entries(row, self.stored(ENTRIES, row), both[:32]):
            if half == pseudonym[:8]:
                subject = self.subject(number)
                if subject is not None and subject[1] == pseudonym:
                    return number
        return None

    def is_one_of(self, name: bytes, subjects: list[int]) -> bool:
        """Whether one of these numbers is that of whoever has this name."""
        pseudonym = self.pseudonym(name)
        return any(subject is not None and subject[1] == pseudonym for subject in map(self.subject, subjects))

    def secret(self, log_id: bytes, random: bytes, frame: int, subjects: list[int]) -> Optional[bytes]:
        """The secret of a group, where the keys of all of its data subjects are there."""
        keys = []
        for number in subjects:
            if self.erasing_state == 1 and number in self.erasing:
                raise BeingErased("vault", f"number {number} is being erased, and must not be given out")
            subject = self.subject(number)
            if subject is None:
                return None
            keys.append(subject[0])
        return group_secret(keys, log_id, random, frame, subjects)


def decrypted(key: bytes, number: int, data: bytes, additional: bytes) -> bytes:
    try:
        return AESGCMSIV(key).decrypt(number.to_bytes(12, "little"), data, additional)
    except (InvalidTag, ValueError):
        raise Refused("vault", f"row {number} is not authentic") from None


def is_there(directory: Path) -> bool:
    return (directory / "vault/vault.db").is_file() and any(
        re.fullmatch(r"\d+\.root", it.name) for it in (directory / "roots").glob("*.root")
    )
