"""Common items, and groups that are written as records (docs/format-columns.md, "Common items" and "Groups")."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from .cursor import Cursor
from .rows import BIT, BYTES, FIELDS, NUMBERS, STRING, SUBJECTS, Row, check_text, encoded_value, limit

SHAPE, WORD = 0, 1
MOST_ITEMS, MOST_SHAPES = 4_092, 1_024
MOST_SLOTS = 128
ALPHABETS = (
    b"0123456789abcdef",
    string.ascii_lowercase.encode() + b" ./_-@",
    (string.digits + string.ascii_uppercase + string.ascii_lowercase).encode() + b"-_",
)
SPELLED, EARLIER, SAME, PHRASE, FIRST_ITEM = range(5)
KEPT_DIGITS = 5


def slots(shape: bytes) -> list[tuple[bytes, Optional[int]]]:
    """The bytes of a shape before each slot with the byte that says what fills it, and those behind the last."""
    parts: list[tuple[bytes, Optional[int]]] = []
    rest = shape
    while 0 in rest:
        at = rest.index(0)
        kind = rest[at + 1] if at + 1 < len(rest) else -1
        if not (0 <= kind <= 20 or 32 <= kind <= 64):
            raise ValueError("a slot must say what fills it")
        parts.append((rest[:at], kind))
        rest = rest[at + 2 :]
    if len(parts) > MOST_SLOTS:
        raise ValueError("a shape has too many slots")
    return [*parts, (rest, None)]


def checked_item(cursor: Cursor, item: bytes) -> bytes:
    """An item behind the byte that says what it is."""
    if len(item) < 2 or item[0] > WORD or len(item) - 1 > (512, 255)[item[0]]:
        raise cursor.refuse("a common item must be a shape or a word, within its length")
    if item[0] == SHAPE:
        try:
            slots(item[1:])
        except ValueError as error:
            raise cursor.refuse(str(error)) from None
    return item


def read_items(
    cursor: Cursor, integers: Callable[[Cursor, int, int], list[int]], blob: Callable[[Cursor, int], bytes]
) -> list[Optional[bytes]]:
    """The common items of a block by their positions, each behind the byte that says what it is."""
    items: list[Optional[bytes]] = []
    for kind, most, longest, most_text in ((SHAPE, MOST_SHAPES, 512, 1 << 16), (WORD, MOST_ITEMS, 255, 1 << 18)):
        count = cursor.varint()
        if count > min(most, MOST_ITEMS - len(items)):
            raise cursor.refuse("has more common items than a block may have")
        lengths = integers(cursor, count, 4)
        if any(not 1 <= length <= longest for length in lengths) or sum(lengths) > most_text:
            raise cursor.refuse("a common item must be within its length, and all within theirs")
        text, at, before = blob(cursor, sum(lengths)), 0, b""
        for length in lengths:
            item = text[at : at + length]
            if item <= before:
                raise cursor.refuse("common items must ascend")
            items.append(checked_item(cursor, bytes([kind]) + item))
            at, before = at + length, item
    return items


class Bits:
    """Bits of bytes, the lowest of each first."""

    def __init__(self, cursor: Cursor) -> None:
        data = cursor.take(cursor.left())
        self.cursor, self.value, self.left = cursor, int.from_bytes(data, "little"), 8 * len(data)

    def get(self, width: int) -> int:
        if width > self.left:
            raise self.cursor.refuse("ends too early")
        value = self.value & ((1 << width) - 1)
        self.value >>= width
        self.left -= width
        return value

    def sized(self, width: int, most: int) -> int:
        size = self.get(width)
        if size > most:
            raise self.cursor.refuse("a number has too many bits")
        return 1 << (size - 1) | self.get(size - 1) if size else 0

    def end(self) -> None:
        if self.left > 7 or self.value:
            raise self.cursor.refuse("must end with fewer than 8 bits, all 0")


@dataclass
class Group:
    """A group that is being read: what it has spelled, and what is left to pay with."""

    cursor: Cursor
    bits: Bits
    items: list[Optional[bytes]]
    used: set[int]
    left: int
    spelled: list[bytes] = field(default_factory=list)
    numbers: list[tuple[int, int]] = field(default_factory=list)

    def pay(self, length: int) -> None:
        if length > self.left:
            raise self.cursor.refuse("its rows take more than was declared for them")
        self.left -= length

    def code(self) -> int:
        return self.bits.get((len(self.items) + FIRST_ITEM - 1).bit_length())

    def item(self, code: int) -> bytes:
        position = code - FIRST_ITEM
        if position >= len(self.items):
            raise self.cursor.refuse("refers to a common item that there is not")
        found = self.items[position]
        if found is None:
            raise self.cursor.refuse("refers to a common item that is not disclosed")
        self.used.add(position)
        return found

    def one_of(self, known: list[Any]) -> Any:
        place = self.bits.get((len(known) - 1).bit_length() if known else 0)
        if place >= len(known):
            raise self.cursor.refuse("refers to something that was not spelled")
        return known[place]

    def text(self, name: Optional[bytes], code: Optional[int] = None) -> bytes:
        """A string, whose code may have been read. What it takes is not paid for."""
        code = self.code() if code is None else code
        if code >= FIRST_ITEM and self.item(code)[0] == SHAPE:
            return self.bounded(b"".join(self.filled(self.item(code)[1:], name)))
        return self.wording(code)

    def bounded(self, found: bytes) -> bytes:
        if len(found) > self.left:
            self.pay(len(found))
        return found

    def filled(self, shape: bytes, name: Optional[bytes]) -> list[bytes]:
        parts = []
        for before, kind in slots(shape):
            parts.append(before)
            if kind is not None:
                parts.append(self.filling(kind, name))
        return parts

    def filling(self, kind: int, name: Optional[bytes]) -> bytes:
        if kind == 0:
            return self.wording(self.code())
        if kind == 1:
            digits = self.bits.get(5)
            if digits > 19:
                raise self.cursor.refuse("a run has more than 19 decimal digits")
            if digits == 0:
                digits, value = self.one_of(self.numbers)
                return b"%0*d" % (digits, value)
            value = self.decimal(digits)
            if digits >= KEPT_DIGITS:
                self.numbers.append((digits, value))
            return b"%0*d" % (digits, value)
        if kind <= 20:
            return b"%0*d" % (kind - 1, self.decimal(kind - 1))
        if kind == 64:
            if name is None:
                raise self.cursor.refuse("an entry must have the data subject that a slot is for")
            return name
        digits = kind - 31 if kind < 48 else kind - 47
        value = self.bits.get(4 * digits)
        return (b"%0*x" if kind < 48 else b"%0*X") % (digits, value)

    def decimal(self, digits: int) -> int:
        value = self.bits.get((10**digits - 1).bit_length())
        if value >= 10**digits:
            raise self.cursor.refuse("a run has more digits than it says")
        return value

    def wording(self, code: int) -> bytes:
        if code != PHRASE:
            return self.word(code)
        words: list[bytes] = []
        for _ in range(self.bits.sized(5, 16)):
            words.append(self.word(self.code()))
        return self.bounded(b" ".join(words))

    def word(self, code: int) -> bytes:
        if code == SPELLED:
            alphabet = self.bits.get(2)
            length = self.bits.sized(5, 25)
            width = (4, 5, 6, 8)[alphabet]
            if length * width > self.bits.left:
                raise self.cursor.refuse("ends too early")
            if length > self.left:
                self.pay(length)
            places = [self.bits.get(width) for _ in range(length)]
            found = bytes(places) if alphabet == 3 else bytes(ALPHABETS[alphabet][place] for place in places)
            self.spelled.append(found)
            return found
        if code == EARLIER:
            earlier: bytes = self.one_of(self.spelled)
            return earlier
        if code < FIRST_ITEM or self.item(code)[0] != WORD:
            raise self.cursor.refuse("a code must stand for something there")
        return self.item(code)[1:]


def read(cursor: Cursor, personal: int, parts: list[Row], items: list[Optional[bytes]], used: set[int], left: int) -> None:
    """Gives the entries of a group their personal fields; notes which common items they refer to."""
    group = Group(cursor, Bits(cursor), items, used, left)
    bits = group.bits
    if bits.get(1) != 1:
        raise cursor.refuse("must be columns or records")
    fields = [name for name in FIELDS if personal >> BIT[name] & 1]
    present: Optional[list[str]] = None
    before: dict[str, bytes] = {}
    subjects: Optional[list[bytes]] = None
    for row in parts:
        if present is None or not bits.get(1):
            present = [name for name in fields if bits.get(1)]
        if "subject" in present and (subjects is None or not bits.get(1)):
            count = 1 if bits.get(1) else bits.get(7)
            if count > SUBJECTS:
                raise cursor.refuse(f"a row has more than {SUBJECTS} subjects")
            subjects = [within(cursor, "subject", group.text(None)) for _ in range(count)]
        name = subjects[0] if "subject" in present and subjects else None
        for one in present:
            if one == "subject":
                value: Any = list(subjects or [])
            elif one in NUMBERS:
                value = bits.sized(7, 64)
                if value >= NUMBERS[one]:
                    raise cursor.refuse(f"{one} must fit 32 bits")
            else:
                code = group.code()
                if code == SAME and one not in before:
                    raise cursor.refuse("there is no string before that a code refers to")
                value = before[one] if code == SAME else within(cursor, one, group.text(name, code))
                before[one] = value
            group.pay(len(encoded_value(one, value)))
            row.values[one] = value
    bits.end()


def within(cursor: Cursor, name: str, value: bytes) -> bytes:
    """A string that is within the limits of its field."""
    if len(value) > (STRING if name == "subject" else limit(name)):
        raise cursor.refuse(f"{name} is too long")
    if name not in BYTES:
        check_text(cursor, value)
    return value
