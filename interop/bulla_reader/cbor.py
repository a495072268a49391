"""As much of CBOR (RFC 8949) as tree heads and receipts have, in its deterministic encoding alone (section 4.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from .cursor import Cursor


@dataclass(frozen=True)
class Tagged:
    tag: int
    value: "Item"


Item = Union[int, bytes, str, None, list["Item"], dict[int, "Item"], Tagged]

NULL = 22
DEEPEST = 8


def decoded(data: bytes, structure: str) -> Item:
    """The one item that the bytes are."""
    cursor = Cursor(data, structure)
    item = taken(cursor, 0)
    cursor.end()
    return item


def taken(cursor: Cursor, depth: int) -> Item:
    if depth > DEEPEST:
        raise cursor.refuse("must not be nested deeper than a receipt is")
    first = cursor.u8()
    kind, short = first >> 5, first & 31
    if kind == 7:
        if short != NULL:
            raise cursor.refuse("a simple value must be null")
        return None
    if short > 27:
        raise cursor.refuse("a length must be definite")
    value = short if short < 24 else int.from_bytes(cursor.take(1 << (short - 24)), "big")
    if short >= 24 and value < (24 if short == 24 else 1 << (8 << (short - 25))):
        raise cursor.refuse("an integer and a length must be in their shortest form")
    if kind == 0:
        return value
    if kind == 1:
        return -1 - value
    if kind == 2:
        return cursor.take(value)
    if kind == 3:
        try:
            return cursor.take(value).decode()
        except UnicodeDecodeError:
            raise cursor.refuse("text must be UTF-8") from None
    if kind == 6:
        return Tagged(value, taken(cursor, depth + 1))
    # Each item takes a byte at least, so that a length which is too large runs into the end.
    if kind == 4:
        return [taken(cursor, depth + 1) for _ in range(value)]
    found: dict[int, Item] = {}
    before = b""
    for _ in range(value):
        start = cursor.at
        key = taken(cursor, depth + 1)
        spelled = cursor.data[start : cursor.at]
        if not isinstance(key, int) or spelled <= before:
            raise cursor.refuse("the labels of a map must be integers, in the order of their encodings")
        found[key], before = taken(cursor, depth + 1), spelled
    return found


def head(kind: int, value: int) -> bytes:
    if value < 24:
        return bytes([kind << 5 | value])
    width = next(width for width in range(4) if value < 1 << (8 << width))
    return bytes([kind << 5 | 24 + width]) + value.to_bytes(1 << width, "big")


def encoded(item: Item) -> bytes:
    if item is None:
        return bytes([7 << 5 | NULL])
    if isinstance(item, int):
        return head(0, item) if item >= 0 else head(1, -1 - item)
    if isinstance(item, bytes):
        return head(2, len(item)) + item
    if isinstance(item, str):
        return head(3, len(item.encode())) + item.encode()
    if isinstance(item, list):
        return head(4, len(item)) + b"".join(map(encoded, item))
    if isinstance(item, Tagged):
        return head(6, item.tag) + encoded(item.value)
    pairs = sorted((encoded(key), encoded(value)) for key, value in item.items())
    return head(5, len(pairs)) + b"".join(key + value for key, value in pairs)
