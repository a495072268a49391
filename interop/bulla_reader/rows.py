"""Rows: the canonical encoding of an entry (docs/format.md, "Rows")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .cursor import Cursor, u16, varint

STRING = 65_536
PAYLOAD = 16_777_216
SUBJECTS = 64

# The fields by their presence bits.
FIELDS = (
    "controller", "processor", "purpose", "status", "duration", "size", "flags", "location", "client", "actor",
    "stream", "payload", "subject",
)  # fmt: skip
BIT = {name: bit for bit, name in enumerate(FIELDS)}
NUMBERS = {"status": 1 << 32, "duration": 1 << 64, "size": 1 << 64, "flags": 1 << 32}
BYTES = {"location", "payload"}


def limit(name: str) -> int:
    """How long a value of this field is at most, in bytes."""
    return PAYLOAD if name == "payload" else STRING


@dataclass
class Row:
    """An entry: its time, its operation, and by name the fields that it has. Strings are bytes."""

    time: int
    operation: bytes
    values: dict[str, Any] = field(default_factory=dict)

    def presence(self) -> int:
        return sum(1 << BIT[name] for name in self.values)

    def encoded(self) -> bytes:
        parts = [u16(self.presence()), self.time.to_bytes(8, "little", signed=True), string(self.operation)]
        parts += [encoded_value(name, self.values[name]) for name in FIELDS if name in self.values]
        return b"".join(parts)


def string(value: bytes) -> bytes:
    return varint(len(value)) + value


def encoded_value(name: str, value: Any) -> bytes:
    """One field as a row has it."""
    if name in NUMBERS:
        return varint(value)
    if name == "subject":
        return varint(len(value)) + b"".join(map(string, value))
    return string(value)


def decoded(data: bytes) -> Row:
    """The row of these bytes; refuses what is not its one encoding."""
    cursor = Cursor(data, "row")
    presence = cursor.unsigned(2)
    if presence >> len(FIELDS):
        raise cursor.refuse("presence bits 13 to 15 must be zero")
    row = Row(cursor.signed(8), read_string(cursor, STRING, text=True))
    if not row.operation:
        raise cursor.refuse("the operation must not be empty")
    for bit, name in enumerate(FIELDS):
        if presence >> bit & 1:
            row.values[name] = read_value(cursor, name)
    cursor.end()
    return row


def read_value(cursor: Cursor, name: str) -> Any:
    if name in NUMBERS:
        value = cursor.varint()
        if value >= NUMBERS[name]:
            raise cursor.refuse(f"{name} must fit 32 bits")
        return value
    if name == "subject":
        count = cursor.varint()
        if count > SUBJECTS:
            raise cursor.refuse(f"{count} subjects are more than {SUBJECTS}")
        return [read_string(cursor, STRING, text=True) for _ in range(count)]
    return read_string(cursor, limit(name), text=name not in BYTES)


def read_string(cursor: Cursor, most: int, text: bool) -> bytes:
    length = cursor.varint()
    if length > most:
        raise cursor.refuse(f"a string of {length} bytes is longer than {most}")
    value = cursor.take(length)
    if text:
        check_text(cursor, value)
    return value


def check_text(cursor: Cursor, value: bytes) -> None:
    try:
        value.decode()
    except UnicodeDecodeError:
        raise cursor.refuse("a string must be UTF-8") from None
