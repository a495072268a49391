"""Columns: the inside of a block, and of a group (docs/format-columns.md).

A reader pays for every part of a row from the content limit before it makes room for it: see `Budget`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Optional

import zstandard

from . import records
from .cursor import MASK, Cursor
from .hashes import padme
from .rows import BIT, BYTES, FIELDS, NUMBERS, STRING, SUBJECTS, Row, check_text, encoded_value, limit

# What entries, values and subjects may take of a block, and of a group: each takes more memory than it is paid for.
MOST_VALUES = 17 << 20
MAGIC = bytes.fromhex("28b52ffd")
TABLES = bytes.fromhex(
    "37a430ec010000003b10a832e31c3033333333333333333313a936c5475b4a615b6437aa44eb"
    "44294fe0a0e119ecc5761ee3d84657fb8793efd2d32661d803663333833393012020487436b6"
    "1a00000420411824a09290cd06b2681cc9711c47411004410c631021c0206410420cd9cc0000"
    "00f4e52463c202c2e1a1a1214191502416108722518960ac4d2e000000010000000400000008"
    "0000000000000000000000"
)
DICTIONARY = zstandard.ZstdCompressionDict(TABLES, dict_type=zstandard.DICT_TYPE_FULLDICT)
# The same with as many other bytes between the tables and the zeros as the tables have, of a value that they have not got.
APART = zstandard.ZstdCompressionDict(TABLES[:155] + b"\xff" * 155 + bytes(8), dict_type=zstandard.DICT_TYPE_FULLDICT)


class Budget:
    """What is left of the content limit, and of what values may take."""

    def __init__(self, limit: int, cursor: Cursor) -> None:
        self.left = limit
        self.values = MOST_VALUES
        self.cursor = cursor

    def refuse(self) -> Exception:
        return self.cursor.refuse("its rows take more than was declared for them")

    def pay_values(self, count: int) -> None:
        """Entries, values and subjects: as many bytes of rows as they take at least."""
        if count > self.values:
            raise self.cursor.refuse("has more entries, values and subjects than a block may have")
        self.values -= count
        self.pay(count)

    def pay(self, length: int) -> None:
        self.fits(length)
        self.left -= length

    def fits(self, length: int) -> None:
        if length > self.left:
            raise self.refuse()


# Integers


def integers(cursor: Cursor, count: int, widest: int = 8, depth: int = 0) -> list[int]:
    """An integer column of so many values; `widest` is how wide the values of form 5 may be."""
    if count == 0:
        return []
    form = cursor.u8()
    if form > 5 or depth >= 3 and form not in (0, 1, 5):
        raise cursor.refuse(f"an integer column of form {form} at depth {depth}")
    if form == 0:
        return [cursor.varint()] * count
    if form == 1:
        return packed_integers(cursor, count)
    if form == 2:
        return delta(cursor, count, widest, depth)
    if form == 3:
        return runs(cursor, count, widest, depth)
    if form == 4:
        length = cursor.varint()
        check_shorter(cursor, length, count)
        values = integers(cursor, length, widest, depth + 1)
        return [values[at] for at in indexes(cursor, integers(cursor, count, widest, depth + 1), length)]
    base, scale, width = cursor.varint(), cursor.varint(), cursor.u8()
    if not 1 <= width <= widest:
        raise cursor.refuse(f"a column of bytes has {width} of them for a value")
    planes = blob(cursor, count * width)
    numbers = [0] * count
    for place in range(width):
        for at, byte in enumerate(planes[place * count : (place + 1) * count]):
            numbers[at] |= byte << (8 * place)
    return [(base + scale * number) & MASK for number in numbers]


def check_shorter(cursor: Cursor, length: int, count: int) -> None:
    if length != 1 and not 1 <= length <= count // 2:
        raise cursor.refuse("runs and dictionaries of integers must be at most half as many as the values, or one")


def indexes(cursor: Cursor, values: list[int], below: int) -> list[int]:
    if any(value >= below for value in values):
        raise cursor.refuse(f"an index is not below {below}")
    return values


def packed_integers(cursor: Cursor, count: int) -> list[int]:
    base, scale = cursor.varint(), cursor.varint()
    values: list[int] = []
    while len(values) < count:
        offset, width = cursor.varint(), cursor.u8()
        if width > 64:
            raise cursor.refuse(f"packed values of {width} bits")
        chunk = bits(cursor, min(512, count - len(values)), width)
        values += [(base + scale * (offset + value)) & MASK for value in chunk]
    return values


def bits(cursor: Cursor, count: int, width: int) -> list[int]:
    """Numbers of so many bits, the lowest first; what is left of the last byte is zero."""
    data = cursor.take((count * width + 7) // 8)
    used = count * width & 7
    if used and data[-1] >> used:
        raise cursor.refuse("unused bits must be zero")
    mask = (1 << width) - 1
    found: list[int] = []
    for at in range(0, count, 64):  # 64 numbers begin at a whole byte
        part = int.from_bytes(data[at * width // 8 : (at + 64) * width // 8], "little")
        for _ in range(min(64, count - at)):
            found.append(part & mask)
            part >>= width
    return found


def delta(cursor: Cursor, count: int, widest: int, depth: int) -> list[int]:
    value = cursor.varint()
    values = [value]
    for difference in integers(cursor, count - 1, widest, depth + 1):
        value = (value + ((difference >> 1) ^ -(difference & 1))) & MASK
        values.append(value)
    return values


def runs(cursor: Cursor, count: int, widest: int, depth: int) -> list[int]:
    length = cursor.varint()
    check_shorter(cursor, length, count)
    values = integers(cursor, length, widest, depth + 1)
    lengths = [run + 1 for run in integers(cursor, length, widest, depth + 1)]
    if sum(lengths) != count:
        raise cursor.refuse("the lengths of runs must add up to the values")
    return [value for value, run in zip(values, lengths) for _ in range(run)]


# Bytes


def are_blocks(data, longest):
    """Whether these are blocks of zstd up to a last one, none of them longer than one may be."""
    while len(data) >= 3:
        head = int.from_bytes(data[:3], "little")
        kind, length = head >> 1 & 3, head >> 3
        stored = 1 if kind == 1 else length
        if kind == 3 or kind == 2 and length == 0 or length > longest or stored > len(data) - 3:
            return False
        data = data[3 + stored:]
        if head & 1:
            return not data
    return False


def blob(cursor: Cursor, length: int) -> bytes:
    """A blob of a length that was paid for."""
    if length == 0:
        return b""
    codec = cursor.u8()
    if codec == 0:
        return cursor.take(length)
    if codec not in (2, 3):
        raise cursor.refuse(f"a blob of codec {codec}")
    stored = cursor.varint()
    if not 1 <= stored <= length:
        raise cursor.refuse("a frame of zstd must be from one byte to as long as what it holds")
    frame = cursor.take(stored)
    if codec == 3:
        frame = MAGIC + frame
    if frame[:4] != MAGIC:
        raise cursor.refuse("a frame of zstd must begin with the magic number of one")
    window = max(1 << (length - 1).bit_length(), 1024)
    if len(frame) < 6 or frame[4] != 0 or frame[5] != (window.bit_length() - 11) << 3:
        raise cursor.refuse("the descriptor of a frame of zstd must be 0, and its window the least for what it holds")
    if not are_blocks(frame[6:], min(window, 128 << 10)):
        raise cursor.refuse("a frame of zstd must be of blocks up to a last one, none too long or compressed to nothing")
    data = decompressed(cursor, frame, length, window, DICTIONARY if codec == 3 else None)
    if codec == 3 and data != decompressed(cursor, frame, length, window, APART):
        raise cursor.refuse("what is before the zeros of the dictionary must not be copied")
    return data


def decompressed(
    cursor: Cursor, frame: bytes, length: int, window: int, dictionary: Optional[zstandard.ZstdCompressionDict]
) -> bytes:
    """What a frame holds; zstd, decompressing it piece by piece as here, looks at how long a block comes out, too."""
    try:
        decompressor = zstandard.ZstdDecompressor(dictionary, max_window_size=window)
        data = decompressor.decompress(frame, max_output_size=length, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise cursor.refuse(f"a frame of zstd does not decompress: {error}") from None
    if len(data) != length:
        raise cursor.refuse("a frame of zstd must hold exactly the bytes of its blob")
    return data


# Strings


@dataclass(frozen=True)
class Kind:
    """What the strings of a column must be."""

    shortest: int
    longest: int
    text: bool


ANY = Kind(0, MASK, text=False)
WORD = Kind(1, MASK, text=False)


def checked(cursor: Cursor, strings: list[bytes], kind: Kind) -> list[bytes]:
    for value in strings:
        if not kind.shortest <= len(value) <= kind.longest:
            raise cursor.refuse(f"a string of {len(value)} bytes is not within its column's limits")
    if kind.text:
        for value in set(strings):
            check_text(cursor, value)
    return strings


def plain(cursor: Cursor, count: int, pay: Any, kind: Kind) -> list[bytes]:
    """Strings one after the other, behind their lengths; `pay` is told how long they are together before they are read."""
    lengths = integers(cursor, count, widest=4)
    if any(not kind.shortest <= length <= kind.longest for length in lengths):
        raise cursor.refuse("a string's length is not within its column's limits")
    pay(sum(lengths))
    data = blob(cursor, sum(lengths))
    strings, at = [], 0
    for length in lengths:
        strings.append(data[at : at + length])
        at += length
    return checked(cursor, strings, kind)


def strings(cursor: Cursor, count: int, budget: Budget, kind: Kind) -> list[bytes]:
    """A string column of so many values."""
    if count == 0:
        return []
    form = cursor.u8()
    if form == 0:
        length = cursor.varint()
        if not kind.shortest <= length <= kind.longest:
            raise cursor.refuse("a string's length is not within its column's limits")
        budget.pay(length)
        return checked(cursor, [blob(cursor, length)], kind) * count
    if form == 1:
        length = cursor.varint()
        if not 1 <= length <= min(count, 65_536):
            raise cursor.refuse("a dictionary must have from 1 to as many strings as the column, at most 65,536")
        values = plain(cursor, length, budget.pay, kind)
        found = indexes(cursor, integers(cursor, count, widest=4), length)
        check_all_occur(cursor, found, length)
        return [values[at] for at in found]
    if form == 2:
        return plain(cursor, count, budget.pay, kind)
    if form == 3:
        return words(cursor, count, budget, kind)
    if form == 4:
        return templates(cursor, count, budget, kind)
    raise cursor.refuse(f"a string column of form {form}")


def words(cursor: Cursor, count: int, budget: Budget, kind: Kind) -> list[bytes]:
    size = cursor.varint()
    if not 1 <= size <= 256:
        raise cursor.refuse("a column must have from 1 to 256 words")
    vocabulary = plain(cursor, size, budget.fits, WORD)
    counts = integers(cursor, count, widest=4)
    tails = plain(cursor, count, budget.fits, ANY)
    budget.fits(sum(counts))
    width = cursor.u8()
    if width > 9:
        raise cursor.refuse(f"words' numbers of width {width}")
    total = sum(counts)
    numbers = list(blob(cursor, total)) if width == 9 else bits(cursor, total, width)
    check_all_occur(cursor, indexes(cursor, numbers, size), size)
    budget.pay(sum(len(vocabulary[number]) for number in numbers) + sum(map(len, tails)))
    found, at = [], 0
    for howmany, tail in zip(counts, tails):
        found.append(b"".join(vocabulary[number] for number in numbers[at : at + howmany]) + tail)
        at += howmany
    return checked(cursor, found, kind)


def check_all_occur(cursor: Cursor, used: list[int], size: int) -> None:
    if len(set(used)) != size:
        raise cursor.refuse("each word, each shape and each string of a dictionary must occur")


# Templates


DECIMALS = [(10**digits - 10) // 9 for digits in range(1, 21)]


def spelled(cursor: Cursor, kind: int, value: int) -> bytes:
    """What a value of a column of this kind, which is no word, fills its slot with."""
    if kind == 1:
        if value >= DECIMALS[19]:
            raise cursor.refuse("a run of decimal digits must have 19 of them at most")
        digits = next(digits for digits in range(1, 20) if value < DECIMALS[digits])
        return b"%0*d" % (digits, value - DECIMALS[digits - 1])
    lower = kind <= 17
    digits = kind - 1 if lower else kind - 17
    if value >> (4 * digits):
        raise cursor.refuse("a value has more hexadecimal digits than its column")
    return (b"%0*x" if lower else b"%0*X") % (digits, value)


def slots(cursor: Cursor, shape: bytes, columns: int) -> list[tuple[bytes, Optional[int]]]:
    """A shape's pieces: bytes that stand for themselves, and the column of the slot behind them."""
    pieces: list[tuple[bytes, Optional[int]]] = []
    at = 0
    while True:
        slot = shape.find(b"\0", at)
        if slot < 0:
            return pieces + [(shape[at:], None)]
        if slot + 1 == len(shape) or shape[slot + 1] >= columns:
            raise cursor.refuse("a slot of a shape must have the number of a column")
        pieces.append((shape[at:slot], shape[slot + 1]))
        at = slot + 2


def templates(cursor: Cursor, count: int, budget: Budget, kind: Kind) -> list[bytes]:
    columns = cursor.varint()
    if columns > 256:
        raise cursor.refuse("a column of templates must have at most 256 columns")
    kinds = list(cursor.take(columns))
    if any(it > 33 for it in kinds):
        raise cursor.refuse("a column of templates has a column of a kind that is none")
    size = cursor.varint()
    if not 1 <= size <= 256:
        raise cursor.refuse("a column must have from 1 to 256 shapes")

    def pay_shapes(length: int) -> None:
        if length > 65_536:
            raise cursor.refuse("shapes must be at most 65,536 bytes together")
        budget.fits(-(-length // 2))

    shapes = [slots(cursor, shape, columns) for shape in plain(cursor, size, pay_shapes, ANY)]
    chosen = indexes(cursor, integers(cursor, count, widest=4), size)
    check_all_occur(cursor, chosen, size)
    values = [0] * columns
    for shape, times in enumerate(occurrences(chosen, size)):
        for _, column in shapes[shape]:
            if column is not None:
                values[column] += times
    if any(it == 0 for it in values):
        raise cursor.refuse("each column must have a slot in some shape")
    budget.fits(2 * sum(values))
    if 2 * sum(values) > budget.values:
        raise cursor.refuse("has more values of slots than a block may have")
    budget.values -= 2 * sum(values)
    vocabulary_size = cursor.varint()
    if vocabulary_size > 65_536:
        raise cursor.refuse("a column of templates must have at most 65,536 words")
    vocabulary = plain(cursor, vocabulary_size, budget.fits, WORD)
    numbers = [integers(cursor, values[at], widest=8 if kinds[at] else 4) for at in range(columns)]
    of_words = [numbers[at] for at in range(columns) if kinds[at] == 0]
    if any(number > vocabulary_size for column in of_words for number in column):
        raise cursor.refuse(f"a word's number is above {vocabulary_size}")
    check_all_occur(cursor, [number for column in of_words for number in column if number], vocabulary_size)
    others = iter(plain(cursor, sum(column.count(0) for column in of_words), budget.fits, WORD))
    filled: list[deque[bytes]] = []
    for kind_of, fills in zip(kinds, numbers):
        if kind_of == 0:
            filled.append(deque(vocabulary[number - 1] if number else next(others) for number in fills))
        else:
            filled.append(deque(spelled(cursor, kind_of, value) for value in fills))
    found = []
    for shape in chosen:
        parts = []
        for literal, slot in shapes[shape]:
            parts.append(literal)
            if slot is not None:
                parts.append(filled[slot].popleft())
        budget.pay(sum(map(len, parts)))
        found.append(b"".join(parts))
    return checked(cursor, found, kind)


def occurrences(values: list[int], below: int) -> list[int]:
    found = [0] * below
    for value in values:
        found[value] += 1
    return found


# Blocks


@dataclass
class Group:
    """A group of a block: its entries by their places in the block, and what is encrypted."""

    places: list[int] = field(default_factory=list)
    subjects: list[int] = field(default_factory=list)
    ciphertext: bytes = b""
    commitment: bytes = b""


@dataclass
class Block:
    """A block: its rows, of which those in groups have their shared fields alone."""

    rows: list[Row]
    personal: int
    groups: list[Group]
    items: list[Optional[bytes]]
    member: list[int]
    left: int
    length: int  # of the plaintext without its padding

    def group_of(self, place: int) -> Optional[Group]:
        number = self.member[place]
        return self.groups[number - 1] if number else None


def presence(cursor: Cursor, count: int) -> list[bool]:
    """Which of so many rows have a value."""
    form = cursor.u8()
    if form > 2:
        raise cursor.refuse(f"a column's presence is {form}")
    if form < 2:
        return [form == 1] * count
    data = blob(cursor, (count + 7) // 8)
    if count & 7 and data[-1] >> (count & 7):
        raise cursor.refuse("unused bits must be zero")
    return [bool(data[at >> 3] >> (at & 7) & 1) for at in range(count)]


def optional_column(cursor: Cursor, name: str, rows: list[Row], budget: Budget) -> None:
    """Gives those of the rows that have one a value of this field."""
    there = [row for row, has in zip(rows, presence(cursor, len(rows))) if has]
    budget.pay_values(len(there))
    if name in NUMBERS:
        values: list[Any] = integers(cursor, len(there))
        if any(value >= NUMBERS[name] for value in values):
            raise cursor.refuse(f"{name} must fit 32 bits")
    elif name == "subject":
        counts = integers(cursor, len(there))
        if any(count > SUBJECTS for count in counts):
            raise cursor.refuse(f"a row has more than {SUBJECTS} subjects")
        budget.pay_values(sum(counts))
        names = strings(cursor, sum(counts), budget, Kind(0, STRING, text=True))
        values, at = [], 0
        for count in counts:
            values.append(names[at : at + count])
            at += count
    else:
        values = strings(cursor, len(there), budget, Kind(0, limit(name), text=name not in BYTES))
    for row, value in zip(there, values):
        row.values[name] = value


def decoded(data: bytes, entries: int, content_limit: int) -> Block:
    """A block's plaintext as rows; refuses what is none of so many entries and within the limit."""
    cursor = Cursor(data, "columns of a block")
    version = cursor.u8()
    if version != 1:
        raise cursor.refuse(f"layout version {version} is unknown")
    if cursor.varint() != entries:
        raise cursor.refuse("the number of entries must be the commitment's")
    budget = Budget(content_limit, cursor)
    budget.pay_values(15 * entries)
    count = cursor.varint()
    if count > entries:
        raise cursor.refuse("a block must not have more groups than entries")
    personal, member = 0, [0] * entries
    if count:
        personal, member = membership(cursor, entries, count)
    times = integers(cursor, entries)
    operations = strings(cursor, entries, budget, Kind(1, STRING, text=True))
    rows = [Row(signed(time), operation) for time, operation in zip(times, operations)]
    single = [row for row, group in zip(rows, member) if group == 0]
    for name in FIELDS:
        optional_column(cursor, name, single if personal >> BIT[name] & 1 else rows, budget)
    items = records.read_items(cursor, integers, blob) if count else []
    groups = read_groups(cursor, count, member, budget) if count else []
    length = cursor.at
    if any(cursor.take(cursor.left())):
        raise cursor.refuse("padding must be zero")
    if len(data) != padme(length):
        raise cursor.refuse("must be padded to the Padmé length")
    taken = sum(len(row.encoded()) + 4 for row in rows)
    if taken > content_limit:
        raise budget.refuse()
    return Block(rows, personal, groups, items, member, content_limit - taken, length)


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def membership(cursor: Cursor, entries: int, count: int) -> tuple[int, list[int]]:
    personal = cursor.unsigned(2)
    check_personal(cursor, personal)
    member = integers(cursor, entries)
    newest = 0
    for group in member:
        if group > newest + 1:
            raise cursor.refuse("groups must be numbered in the order of their first entries")
        newest = max(newest, group)
    if newest != count:
        raise cursor.refuse("each group must have an entry, and no entry a group that is none")
    return personal, member


def check_personal(cursor: Cursor, personal: int) -> None:
    if personal >> len(FIELDS) or not personal >> BIT["subject"] & 1:
        raise cursor.refuse("personal fields must be fields, and subject one of them")


def read_groups(cursor: Cursor, count: int, member: list[int], budget: Budget) -> list[Group]:
    groups = [Group() for _ in range(count)]
    for place, number in enumerate(member):
        if number:
            groups[number - 1].places.append(place)
    counts = integers(cursor, count)
    if any(not 1 <= howmany <= SUBJECTS for howmany in counts):
        raise cursor.refuse(f"a group must have from 1 to {SUBJECTS} data subjects")
    budget.pay_values(sum(counts))
    numbers = iter(integers(cursor, sum(counts)))
    for group, howmany in zip(groups, counts):
        group.subjects = [next(numbers) for _ in range(howmany)]
        if any(after <= before for before, after in zip(group.subjects, group.subjects[1:])):
            raise cursor.refuse("the data subjects of a group must ascend")
    if len({tuple(group.subjects) for group in groups}) != count:
        raise cursor.refuse("no two groups of a block must be of the same data subjects")
    lengths = integers(cursor, count)
    if any(length < 1 for length in lengths):
        raise cursor.refuse("a group's ciphertext must have a byte at least")
    for group in groups:
        group.commitment = cursor.take(32)
    for group, length in zip(groups, lengths):
        group.ciphertext = cursor.take(length)
    return groups


def open_group(
    data: bytes, personal: int, subjects: Optional[int], shared: list[Row], items: list[Optional[bytes]], used: set[int], left: int
) -> tuple[list[Row], int]:
    """The rows of a group's entries, from its plaintext and their shared rows, and what its fields leave of the limit.

    `subjects` is how many data subjects the group has, which its entries must name; nothing, where it is not looked at. `items` are
    the block's common items by position, of which `used` gets those that the group refers to.
    """
    cursor = Cursor(data, "a group")
    budget = Budget(left, cursor)
    parts = [Row(row.time, row.operation) for row in shared]
    if data[:1] == b"\0":
        cursor.u8()
        for name in FIELDS:
            if personal >> BIT[name] & 1:
                optional_column(cursor, name, parts, budget)
        cursor.end()
    else:
        records.read(cursor, personal, parts, items, used, left)
    taken = sum(len(encoded_value(name, value)) for part in parts for name, value in part.values.items())
    if taken > left:
        raise budget.refuse()
    names = {frozenset(part.values.get("subject", ())) for part in parts}
    if subjects is not None and (len(names) != 1 or len(min(names)) != subjects):
        raise cursor.refuse("each entry must name the same data subjects, as many as the group has")
    rows = [Row(row.time, row.operation, {**row.values, **part.values}) for row, part in zip(shared, parts)]
    return rows, left - taken
