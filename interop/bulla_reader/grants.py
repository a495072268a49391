"""Grants: the secrets of some groups, for somebody who has not got the subjects' keys (docs/format.md, "Grants")."""

from __future__ import annotations

from typing import Optional

from . import age
from .cursor import Cursor
from .rows import STRING, SUBJECTS, check_text

MOST = 1 << 27


class Grant:
    """What a grant opens."""

    has_all = False

    def __init__(self, data: bytes) -> None:
        cursor = Cursor(data, "grant")
        if cursor.take(4) != b"BulG" or cursor.u8() != 1:
            raise cursor.refuse("must begin with its mark and version 1")
        self.log_id = cursor.take(16)
        self.follows = cursor.unsigned(8)
        self.names: dict[bytes, int] = {}
        before: Optional[bytes] = None
        for _ in range(cursor.varint()):
            length = cursor.varint()
            if length > STRING:
                raise cursor.refuse("a name must be at most 65,536 bytes")
            name = cursor.take(length)
            check_text(cursor, name)
            if before is not None and name <= before:
                raise cursor.refuse("names must ascend")
            before = name
            self.names[name] = cursor.varint()
        self.secrets: dict[tuple[int, tuple[int, ...]], bytes] = {}
        frame = 0
        last: tuple[int, tuple[int, ...]] = (-1, ())
        for _ in range(cursor.varint()):
            frame += cursor.varint()
            if frame >= self.follows:
                raise cursor.refuse("a frame must be below the tree's size")
            subjects = read_subjects(cursor)
            if (frame, subjects) <= last:
                raise cursor.refuse("groups must ascend")
            last = (frame, subjects)
            self.secrets[last] = cursor.take(32)
        cursor.end()

    def secret(self, log_id: bytes, random: bytes, frame: int, subjects: list[int]) -> Optional[bytes]:
        return self.secrets.get((frame, tuple(subjects)))

    def is_one_of(self, name: bytes, subjects: list[int]) -> bool:
        """Nothing to the contrary: only the vault tells whose a number is."""
        return True


def read_subjects(cursor: Cursor) -> tuple[int, ...]:
    count = cursor.varint()
    if not 1 <= count <= SUBJECTS:
        raise cursor.refuse(f"a group must have from 1 to {SUBJECTS} data subjects")
    subjects = [cursor.varint()]
    for _ in range(count - 1):
        subjects.append(subjects[-1] + cursor.varint() + 1)
    if subjects[-1] >= 1 << 64:
        raise cursor.refuse("a data subject's number must fit 64 bits")
    return tuple(subjects)


def opened(data: bytes, identities: list[age.Identity]) -> Grant:
    if len(data) > MOST:
        raise Cursor(b"", "grant").refuse("must be at most 2^27 bytes")
    return Grant(age.decrypted(data, identities))
