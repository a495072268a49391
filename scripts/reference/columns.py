"""Columns, as docs/format-columns.md has them: what a group's ciphertext holds, back to its entries' personal fields."""

from .basics import require
from .rows import FIELDS, MAX_PAYLOAD, MAX_STRING, MAX_SUBJECTS, NUMBERS, Cursor

MASK = 2**64 - 1
# How wide integers in columns of strings may be, in bytes.
OF_STRINGS = 4
BYTES = ("location", "payload")

# The dictionary of codec 3.
TABLES = bytes.fromhex("""
    37a430ec010000003b10a832e31c3033333333333333333313a936c5475b4a615b6437aa44eb
    44294fe0a0e119ecc5761ee3d84657fb8793efd2d32661d803663333833393012020487436b6
    1a00000420411824a09290cd06b2681cc9711c47411004410c631021c0206410420cd9cc0000
    00f4e52463c202c2e1a1a1214191502416108722518960ac4d2e000000010000000400000008
    0000000000000000000000
""")


# How every zstd frame begins; and the largest window descriptor, which says 8 MiB.
MAGIC, LARGEST_WINDOW = b"\x28\xb5\x2f\xfd", 0x68


def zstd(frame, length, tables=None):
    """The content of a frame, or more than `length` bytes of it."""
    require(len(frame) > 5 and frame[:5] == MAGIC + b"\0", "a zstd frame has another head than it must")
    require(frame[5] <= LARGEST_WINDOW, "a zstd frame wants too large a window")
    try:
        from compression.zstd import ZstdDecompressor, ZstdDict
    except ImportError:
        require(False, "this Python cannot decompress zstd: 3.14 can")
    decompressor = ZstdDecompressor(zstd_dict=tables and ZstdDict(tables))
    found = decompressor.decompress(frame, max_length=length + 1)
    require(decompressor.eof and not decompressor.unused_data, "a blob is not one zstd frame")
    return found


def blob(data, length):
    if not length:
        return b""
    codec = data.byte()
    require(codec in (0, 2, 3), "a blob has an unknown codec")
    if codec == 0:
        return data.take(length)
    size = data.varint()
    require(1 <= size <= length, "a blob is longer than what it holds")
    stored = data.take(size)
    found = zstd(stored, length) if codec == 2 else zstd(MAGIC + stored, length, TABLES)
    require(len(found) == length, "a blob has another length")
    return found


def chunk(data, count):
    offset, width = data.varint(), data.byte()
    require(width <= 64, "a chunk is too wide")
    bits = int.from_bytes(data.take((count * width + 7) // 8), "little")
    require(bits >> count * width == 0, "unused bits are set")
    return [offset + (bits >> at * width & (1 << width) - 1) for at in range(count)]


def integers(data, count, widest=8, depth=0):
    if not count:
        return []
    form = data.byte()
    require(form < 6 and (depth < 3 or form in (0, 1, 5)), "an integer column has an unknown form")
    inner = lambda many: integers(data, many, widest, depth + 1)
    if form == 0:
        return [data.varint()] * count
    if form == 2:
        values = [data.varint()]
        for step in inner(count - 1):
            values.append(values[-1] + (step // 2 if step % 2 == 0 else -(step + 1) // 2) & MASK)
        return values
    if form in (3, 4):
        few = data.varint()
        require(1 <= few <= max(count // 2, 1), "an integer column has too many runs or too large a dictionary")
        values, others = inner(few), inner(few if form == 3 else count)
        if form == 4:
            require(max(others) < few, "an index is past its dictionary")
            return [values[index] for index in others]
        require(sum(length + 1 for length in others) == count, "runs have another length")
        return [value for value, length in zip(values, others) for _ in range(length + 1)]
    base, scale = data.varint(), data.varint()
    if form == 1:
        found = [one for at in range(0, count, 512) for one in chunk(data, min(512, count - at))]
    else:
        width = data.byte()
        require(1 <= width <= widest, "bytes are too wide")
        planes = blob(data, count * width)
        found = [int.from_bytes(planes[at::count], "little") for at in range(count)]
    return [base + scale * one & MASK for one in found]


def strings(data, count, limit):
    if not count:
        return []
    form = data.byte()
    require(form < 5, "a string column has an unknown form")
    if form == 0:
        found = [blob(data, within(data.varint(), limit))] * count
    elif form == 1:
        size = data.varint()
        require(1 <= size <= min(count, 1 << 16), "a dictionary is too large")
        known = plain(data, size, limit)
        indexes = integers(data, count, OF_STRINGS)
        require(max(indexes) < size, "an index is past its dictionary")
        found = [known[index] for index in indexes]
    elif form == 2:
        found = plain(data, count, limit)
    else:
        found = (words if form == 3 else templates)(data, count, limit)
    return found


def words(data, count, limit):
    size = data.varint()
    require(1 <= size <= 256, "a vocabulary has no or too many words")
    known = plain(data, size, MAX_PAYLOAD)
    require(all(known), "a vocabulary has an empty word")
    counts, tails = integers(data, count, OF_STRINGS), plain(data, count, MAX_PAYLOAD)
    width, total = data.byte(), sum(counts)
    if width == 9:
        numbers = blob(data, total)
    else:
        require(width <= 8, "words are too wide")
        bits = int.from_bytes(data.take((total * width + 7) // 8), "little")
        require(bits >> total * width == 0, "unused bits are set")
        numbers = [bits >> at * width & (1 << width) - 1 for at in range(total)]
    require(all(number < size for number in numbers), "a word is past its vocabulary")
    require(len(set(numbers)) == size, "a word does not occur")
    numbers = iter(numbers)
    found = [b"".join(known[next(numbers)] for _ in range(many)) + tail for many, tail in zip(counts, tails)]
    for one in found:
        within(len(one), limit)
    return found


def slots(shape, columns):
    """What stands for itself in a shape, and behind each piece of that its slot's column; none behind the last."""
    pieces, rest = [], Cursor(shape, "a shape")
    literal = b""
    while rest.left():
        if byte := rest.byte():
            literal += bytes([byte])
            continue
        column = rest.byte()
        require(column < columns, "a shape has an unknown column")
        pieces.append((literal, column))
        literal = b""
    return pieces + [(literal, None)]


def decimal(value):
    """A run of digits, by its number among all: the shorter ones come first."""
    digits = 1
    while value >= 10**digits:
        value -= 10**digits
        digits += 1
    require(digits < 20, "a number has too many digits")
    return f"{value:0{digits}}".encode()


def hexadecimal(value, kind):
    digits = kind - 1 if kind < 18 else kind - 17
    require(value < 16**digits, "a number has too many digits")
    return f"{value:0{digits}{'x' if kind < 18 else 'X'}}".encode()


def templates(data, count, limit):
    columns = data.varint()
    require(columns <= 256, "templates have too many columns")
    kinds = data.take(columns)
    require(all(kind < 34 for kind in kinds), "a column is of an unknown kind")
    size = data.varint()
    require(1 <= size <= 256, "templates have no or too many shapes")
    shapes = plain(data, size, 1 << 16)
    require(len(b"".join(shapes)) <= 1 << 16, "shapes are too long")
    shapes = [slots(shape, columns) for shape in shapes]
    indexes = integers(data, count, OF_STRINGS)
    require(set(indexes) == set(range(size)), "a shape is unknown, or does not occur")
    filled = [column for index in indexes for _, column in shapes[index] if column is not None]
    many = [filled.count(column) for column in range(columns)]
    require(all(many), "a column has no slot")
    size, slotted = data.varint(), sum(length for kind, length in zip(kinds, many) if not kind)
    require(size <= min(slotted, 1 << 16), "templates have too many words")
    known = plain(data, size, MAX_PAYLOAD)
    values = [integers(data, length, 8 if kind else OF_STRINGS) for kind, length in zip(kinds, many)]
    numbers = [number for kind, column in zip(kinds, values) if not kind for number in column]
    require(set(numbers) | {0} == set(range(size + 1)), "a word is unknown, or does not occur")
    spelled = plain(data, numbers.count(0), MAX_PAYLOAD)
    require(all(known) and all(spelled), "a word is empty")
    spelled = iter(spelled)

    def text(kind, value):
        if kind:
            return decimal(value) if kind == 1 else hexadecimal(value, kind)
        return known[value - 1] if value else next(spelled)

    # As lists, so that words are spelled column by column.
    values = [iter([text(kind, value) for value in column]) for kind, column in zip(kinds, values)]
    found = []
    for index in indexes:
        pieces = [literal + (b"" if column is None else next(values[column])) for literal, column in shapes[index]]
        within(sum(map(len, pieces)), limit)
        found.append(b"".join(pieces))
    return found


def within(length, limit):
    require(length <= limit, "a string is too long")
    return length


def plain(data, count, limit):
    lengths = [within(length, limit) for length in integers(data, count, OF_STRINGS)]
    together, at, found = blob(data, sum(lengths)), 0, []
    for length in lengths:
        found.append(together[at:at + length])
        at += length
    return found


def presence(data, count):
    kind = data.byte()
    require(kind < 3, "a column has an unknown presence")
    if kind < 2:
        return [kind == 1] * count
    bits = int.from_bytes(blob(data, (count + 7) // 8), "little")
    require(bits >> count == 0, "unused bits are set")
    return [bool(bits >> at & 1) for at in range(count)]


def values(data, field, count):
    if field in NUMBERS:
        found = integers(data, count)
        require(all(value < 1 << NUMBERS[field] for value in found), f"a {field} is too large")
        return found
    if field == "subject":
        counts = integers(data, count)
        require(all(many <= MAX_SUBJECTS for many in counts), "an entry has too many subjects")
        names = iter([name.decode() for name in strings(data, sum(counts), MAX_STRING)])
        return [[next(names) for _ in range(many)] for many in counts]
    found = strings(data, count, MAX_PAYLOAD if field == "payload" else MAX_STRING)
    return found if field in BYTES else [value.decode() for value in found]


def read_group(text, personal, count):
    """The personal fields of each of a group's entries."""
    data, entries = Cursor(text, "a group"), [{} for _ in range(count)]
    for bit, field in enumerate(FIELDS):
        if personal >> bit & 1:
            having = [entry for entry, has in zip(entries, presence(data, count)) if has]
            for entry, value in zip(having, values(data, field, len(having))):
                entry[field] = value
    require(not data.left(), "a group has bytes after its last column")
    return entries
