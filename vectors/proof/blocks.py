"""What a block's root is made of, for the vectors: units, common items, and the tree over them, by its recursive definition."""

import struct

ROOT, ITEM, ROW, GROUP, NODE = (bytes([number]) for number in (2, 3, 4, 5, 6))
ARITY = 4


def varint(value):
    low, rest = value % 128, value // 128
    return bytes([low + 128]) + varint(rest) if rest else bytes([low])


def ascending(numbers, least=0):
    """How far each number is from the least that it may be."""
    for number in numbers:
        yield varint((number - least) % 2**64)
        least = number + 1


def row_content(place, row):
    return varint(place) + varint(len(row)) + row


def group_content(personal, entries, subjects, ciphertext, promise):
    """`entries` are places in the block, and shared rows."""
    distances = ascending(place for place, _ in entries)
    return b"".join([
        struct.pack("<H", personal), varint(len(entries)),
        *(distance + varint(len(row)) + row for distance, (_, row) in zip(distances, entries)),
        varint(len(subjects)), *ascending(subjects), varint(len(ciphertext)), ciphertext, promise,
    ])


def unit(digest, kind, salt, content):
    return digest(kind + salt + content).digest()


def item(digest, salt, position, content):
    return digest(ITEM + salt + struct.pack("<Q", position) + content).digest()


def children(count):
    """Where the subtrees below the top of `count` leaves, two or more, begin and end, and their level."""
    level = 0
    while ARITY ** (level + 1) < count:
        level += 1
    width = ARITY ** level
    return level, [(at, min(at + width, count)) for at in range(0, count, width)]


def tree(digest, leaves):
    """The node at the top: over up to four subtrees, all but the last of as many leaves as the largest power of four below all."""
    if len(leaves) < 2:
        return leaves[0]
    _, parts = children(len(leaves))
    return digest(NODE + b"".join(tree(digest, leaves[start:end]) for start, end in parts)).digest()


def root(digest, units, items, top):
    return digest(ROOT + struct.pack("<QQ", units, items) + top).digest()


def multi_proof(digest, leaves, positions):
    """The tops of the largest subtrees without any of `positions`, lowest level first, from left to right."""
    found = []

    def visit(start, end, level):
        if not any(start <= position < end for position in positions):
            found.append((level, start, tree(digest, leaves[start:end])))
        elif end - start > 1:
            level, parts = children(end - start)
            for first, last in parts:
                visit(start + first, start + last, level)

    visit(0, len(leaves), None)
    return [node for _, _, node in sorted(found)]
