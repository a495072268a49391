"""Draws the columns of a block from their grammar: every form that there is, and now and then one that is a little wrong."""

from __future__ import annotations

import random

from bulla_reader.columns import MAGIC, TABLES
from bulla_reader.cursor import MASK, varint
from bulla_reader.hashes import padme

import zstandard

MOST = 5000


class Grammar:
    """Writes columns into `out`; what `slip` gives is now and then another number than the right one."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.wrong = draw.choice([0.0, 0.0, 0.003, 0.02])
        self.out = bytearray()

    def slip(self, value: int) -> int:
        if self.draw.random() >= self.wrong:
            return value
        return max(0, self.draw.choice([value + 1, value - 1, 0, 255, 1 << 32, MASK, value * 2]))

    def byte(self, value: int) -> None:
        self.out.append(self.slip(value) & 0xFF)

    def number(self, value: int) -> None:
        value = self.slip(value) & MASK
        self.out += varint(value)
        if self.draw.random() < self.wrong / 4:
            self.out[-1] |= 0x80
            self.out.append(0)

    def block(self) -> tuple[int, bytes]:
        count = self.draw.choice([0, 1, 2, 3, 5, 17, 64, 200, 600])
        self.byte(1)
        self.number(count)
        self.number(0)
        self.integers(count, 1 << 62, 0)
        self.strings(count, 1, True)
        for name in range(13):
            self.optional(count, name)
        padding = padme(len(self.out)) - len(self.out) + (self.draw.random() < self.wrong)
        return count, bytes(self.out) + bytes(padding)

    def optional(self, count: int, field: int) -> None:
        form = self.draw.choice([0, 0, 1, 2])
        self.byte(form)
        there = 0 if form == 0 else count
        if form == 2:
            bits = [self.draw.random() < 0.5 for _ in range(count)]
            there = sum(bits)
            data = bytearray((count + 7) // 8)
            for at, bit in enumerate(bits):
                data[at >> 3] |= bit << (at & 7)
            self.blob(bytes(data))
        if field in (3, 6):
            self.integers(there, 1 << 32, 0)
        elif field in (4, 5):
            self.integers(there, 1 << 64, 0)
        elif field == 12:
            self.strings(min(MOST, sum(self.integers(there, 4, 0))), 0, True)
        else:
            self.strings(there, 0, field not in (7, 11))

    def integers(self, count: int, below: int, depth: int, widest: int = 8) -> list[int]:
        """Writes a column of so many values, and gives them."""
        if count == 0:
            return []
        form = self.draw.choice([0, 1, 1, 2, 3, 4, 5] if depth < 3 else [0, 1, 5])
        if below <= 2 and form == 2:
            form = 1
        self.byte(form)
        if form == 0:
            value = self.draw.randrange(min(below, 1 << self.draw.choice([1, 8, 64])))
            self.number(value)
            return [value] * count
        if form == 1:
            return self.packed(count, below)
        if form == 2:
            first = self.draw.randrange(below)
            self.number(first)
            top = min(below, 1 << 20)
            steps = self.integers(count - 1, min(8, top), depth + 1, widest)
            values = [first]
            for step in steps:
                values.append((values[-1] + ((step >> 1) ^ -(step & 1))) & MASK)
            return values
        if form == 3:
            return self.runs(count, below, depth, widest)
        if form == 4:
            size = self.draw.randint(1, max(1, count // 2))
            self.number(size)
            values = self.integers(size, below, depth + 1, widest)
            return [values[at] if at < len(values) else 0 for at in self.integers(count, size, depth + 1, widest)]
        width = self.draw.randint(1, max(1, min(widest, (below.bit_length() - 1) // 8)))
        base = 0
        self.number(base)
        self.number(1)
        self.byte(width)
        values = [self.draw.randrange(min(below, 1 << 8 * width)) for _ in range(count)]
        self.blob(b"".join(bytes(value >> 8 * place & 0xFF for value in values) for place in range(width)))
        return values

    def packed(self, count: int, below: int) -> list[int]:
        base = self.draw.randrange(min(below, 300))
        scale = self.draw.choice([0, 1, 1, 3])
        self.number(base)
        self.number(scale)
        values: list[int] = []
        room = (below - 1 - base) // max(scale, 1)
        while len(values) < count:
            size = min(512, count - len(values))
            offset = self.draw.randrange(min(room + 1, 9))
            width = self.draw.randint(0, max(0, (room - offset + 1).bit_length() - 1))
            self.number(offset)
            self.byte(width)
            numbers = [self.draw.randrange(1 << width) for _ in range(size)]
            self.bits(numbers, width)
            values += [(base + scale * (offset + it)) & MASK for it in numbers]
        return values

    def bits(self, numbers: list[int], width: int) -> None:
        whole = 0
        for at, number in enumerate(numbers):
            whole |= number << (at * width)
        length = (len(numbers) * width + 7) // 8
        if len(numbers) * width & 7 and self.draw.random() < self.wrong:
            whole |= 1 << (8 * length - 1)
        self.out += whole.to_bytes(length, "little")

    def runs(self, count: int, below: int, depth: int, widest: int) -> list[int]:
        size = self.draw.randint(1, max(1, count // 2))
        each, rest = divmod(count, size)
        if rest:
            size, each = 1, count
        self.number(size)
        values = self.integers(size, below, depth + 1, widest)
        self.byte(0)
        self.number(each - 1)
        return [value for value in values for _ in range(each)]

    def blob(self, data: bytes) -> None:
        if not data:
            return
        codec = self.draw.choice([0, 0, 2, 3])
        window = zstandard.ZstdCompressionParameters(
            window_log=self.draw.choice([10, 17, 23, 23 + (self.draw.random() < self.wrong * 20)]),
            write_content_size=self.draw.random() < self.wrong,
            write_checksum=self.draw.random() < self.wrong,
            write_dict_id=False,
            compression_level=self.draw.choice([1, 5, 19]),
        )
        tables = zstandard.ZstdCompressionDict(TABLES, dict_type=zstandard.DICT_TYPE_FULLDICT) if codec == 3 else None
        if codec:
            stream = zstandard.ZstdCompressor(compression_params=window, dict_data=tables).compressobj()
            frame = stream.compress(data) + stream.flush()
            frame = frame[4:] if codec == 3 else frame
            if len(frame) > len(data) and self.draw.random() >= self.wrong:
                codec = 0
        self.byte(codec)
        if codec == 0:
            self.out += data
            return
        if self.draw.random() < self.wrong:
            frame += bytes(1)
        self.number(len(frame))
        self.out += frame

    def text(self, longest: int, shortest: int, utf8: bool) -> bytes:
        length = self.draw.randint(shortest, max(shortest, longest))
        if utf8:
            return "".join(self.draw.choice("ab1 /é\0") for _ in range(length)).encode()
        return self.draw.randbytes(length)

    def plain(self, values: list[bytes], widest: int = 4) -> None:
        """Writes strings one after the other, behind their lengths, packed."""
        if not values:
            return
        lengths = [len(value) for value in values]
        width = max(lengths).bit_length()
        self.byte(1)
        self.number(0)
        self.number(1)
        for at in range(0, len(lengths), 512):
            self.number(0)
            self.byte(width)
            self.bits(lengths[at : at + 512], width)
        self.blob(b"".join(values))

    def strings(self, count: int, shortest: int, utf8: bool) -> None:
        if count == 0:
            return
        form = self.draw.choice([0, 1, 2, 3, 4])
        self.byte(form)
        if form == 0:
            value = self.text(9, shortest, utf8)
            self.number(len(value))
            self.blob(value)
        elif form == 1:
            size = self.draw.randint(1, count)
            self.number(size)
            self.plain([self.text(9, shortest, utf8) for _ in range(size)])
            self.integers(count, size, 0, 4)
        elif form == 2:
            self.plain([self.text(20, shortest, utf8) for _ in range(count)])
        elif form == 3:
            self.words(count, shortest, utf8)
        else:
            self.templates(count)

    def words(self, count: int, shortest: int, utf8: bool) -> None:
        size = self.draw.randint(1, 5)
        self.number(size)
        self.plain([self.text(6, 1, utf8) for _ in range(size)])
        counts = self.integers(count, 9, 0, 4)
        self.plain([self.text(4, shortest, utf8) for _ in range(count)])
        total = min(MOST, sum(counts))
        width = self.draw.choice([3, 4, 8, 9])
        self.byte(width)
        numbers = [at % size for at in range(total)]
        self.draw.shuffle(numbers)
        if width == 9:
            self.blob(bytes(numbers))
        else:
            self.bits(numbers, width)

    def templates(self, count: int) -> None:
        columns = self.draw.randint(0, 3)
        self.number(columns)
        kinds = [self.draw.choice([0, 1, 2, 5, 17, 18, 20, 33, 34 if self.draw.random() < self.wrong else 3]) for _ in range(columns)]
        self.out += bytes(kinds)
        size = self.draw.randint(1, min(3, count))
        self.number(size)
        shapes = []
        for at in range(size):
            literal = bytes(self.draw.choice(b"ab/-") for _ in range(self.draw.randint(1, 4)))
            slots = [self.draw.randrange(columns) for _ in range(self.draw.randint(0, 3))] if columns else []
            if at == 0:
                slots += list(range(columns))
            shapes.append((literal, slots))
        self.plain([literal + b"".join(bytes([0, self.slip(slot) & 0xFF]) for slot in slots) for literal, slots in shapes])
        chosen = [at % size for at in range(count)]
        self.byte(1)
        self.number(0)
        self.number(1)
        for at in range(0, count, 512):
            self.number(0)
            self.byte(2)
            self.bits(chosen[at : at + 512], 2)
        uses = [sum(shapes[shape][1].count(column) for shape in chosen) for column in range(columns)]
        words = [self.text(5, 1, True) for _ in range(self.draw.randint(0, 3))]
        of_words = sum(uses[at] for at in range(columns) if kinds[at] == 0)
        words = words[:of_words]
        self.number(len(words))
        self.plain(words)
        spelled, at = 0, 0
        for column, kind in enumerate(kinds):
            if kind == 0:
                numbers = []
                for _ in range(uses[column]):
                    at += 1
                    numbers.append(at if at <= len(words) else self.draw.randint(0, len(words)))
                spelled += numbers.count(0)
                self.byte(1)
                self.number(0)
                self.number(1)
                for start in range(0, len(numbers), 512):
                    self.number(0)
                    self.byte(2)
                    self.bits(numbers[start : start + 512], 2)
            else:
                below = (10**20 - 10) // 9 if kind == 1 else 16 ** (kind - 1 if kind <= 17 else kind - 17)
                self.integers(uses[column], min(below, 1 << 64), 0)
        self.plain([self.text(6, 1, True) for _ in range(spelled)])


__all__ = ["Grammar", "MAGIC"]
