#!/usr/bin/env python3
"""Makes the vectors of bulla-proof: a second implementation, of the standard library alone. Those of proof files are
made by proofs.py and groups.py; of tree heads in COSE, receipts and anchors by receipts.py.

    python3 vectors/proof/make.py            writes the .json files beside it
    python3 vectors/proof/make.py --check    fails where they differ
"""

import hashlib
import json
import pathlib
import struct
import sys

import blocks
import events
import groups
import proofs
import receipts
from blocks import varint

HASHES = {"sha256": (1, hashlib.sha256), "sha3-256": (2, hashlib.sha3_256)}
KINDS = {"block": 1, "epoch": 2, "event": 3, "gap": 4}


# Commitments.

def encode(c):
    return b"".join([
        struct.pack("<BBBBB", 1, KINDS[c["kind"]], c["codec"], HASHES[c["hash"]][0], c["content_log2"]),
        c["sources_length"].to_bytes(3, "little"),
        bytes.fromhex(c["log_id"]),
        struct.pack("<QQQqqQQ", c["frame"], c["first_entry"], c["entries"], c["earliest"], c["latest"], c["epoch"],
                    c["units"]),
        bytes.fromhex(c["root"]),
        struct.pack("<Q", c["body_length"]),
        bytes.fromhex(c["body_digest"]),
    ])


def commitment(name, kind, **fields):
    c = dict(kind=kind, codec=0, hash="sha256", content_log2=0, sources_length=0, log_id=bytes(range(16)).hex(), frame=7,
             first_entry=1000, entries=0, earliest=1700000000, latest=1700000000, epoch=5, units=0,
             root="00" * 32, body_length=0, body_digest=hashlib.sha256(b"").hexdigest())
    if kind == "block":
        c.update(codec=1, content_log2=20, entries=300, latest=1700000060, units=300, root="11" * 32,
                 body_length=4096, body_digest=hashlib.sha256(b"body").hexdigest())
    if kind == "epoch":
        c.update(epoch=7, body_length=1234, body_digest=hashlib.sha256(b"epoch").hexdigest())
    if kind == "event":
        c.update(body_length=5, body_digest=hashlib.sha256(b"event").hexdigest())
    if kind == "gap":
        c.update(entries=41)
    c.update(fields)
    return dict(name=name, **c)


def accepted_commitments():
    top = 2**64 - 1
    for c in [
        commitment("a block", "block"),
        commitment("a block hashed by SHA3-256, with fewer units than entries", "block", hash="sha3-256", units=3),
        commitment("an epoch", "epoch"),
        commitment("the first frame of a log", "epoch", frame=0, epoch=0, first_entry=0),
        commitment("an event", "event"),
        commitment("a gap", "gap"),
        commitment("times before 1970", "block", earliest=-(2**63), latest=-1),
        commitment("the limits", "block", content_log2=25, entries=2**21, units=2**21, body_length=2**29,
                   frame=top - 1, epoch=top - 2, first_entry=top - 2**21, latest=2**63 - 1),
        commitment("the smallest block", "block", content_log2=4, entries=1, units=1),
        commitment("a block with a sources section", "block", sources_length=0x010203, body_length=0x020000),
        commitment("the shortest sources section", "block", sources_length=17, body_length=18),
        commitment("the longest sources section", "block", sources_length=2**24 - 1, body_length=2**24),
        commitment("the largest gap, up to the last entry number", "gap", first_entry=top - 2**21, entries=2**21),
    ]:
        encoding = encode(c)
        leaf = hashlib.sha256(b"\0" + encoding).hexdigest()
        yield dict(c, encoding=encoding.hex(), leaf=leaf)


def refused_commitments():
    top = 2**64 - 1
    block, epoch = encode(commitment("", "block")), encode(commitment("", "epoch"))

    def patched(encoding, offset, value):
        return encoding[:offset] + bytes([value]) + encoding[offset + 1:]

    yield "nothing", b"", "Length(0)"
    yield "one byte short", block[:-1], "Length(151)"
    yield "one byte long", block + b"\0", "Length(153)"
    yield "version 0", patched(block, 0, 0), "NoVersion"
    yield "version 2", patched(block, 0, 2), "NewerVersion(2)"
    yield "a later version of another length", b"\xff", "NewerVersion(255)"
    yield "kind 0", patched(block, 1, 0), "Kind(0)"
    yield "kind 5", patched(block, 1, 5), "Kind(5)"
    yield "hash 0", patched(block, 3, 0), "HashId(0)"
    yield "hash 3", patched(block, 3, 3), "HashId(3)"
    yield "a sources section of a byte", patched(block, 5, 1), "Sources(1)"
    yield "a sources section longer than the body", patched(block, 7, 1), "Sources(65536)"
    yield "an epoch with a sources section", patched(epoch, 5, 0x80), "Sources(128)"
    for kind, name, error, fields in [
        ("block", "a block with a plain body", "Codec(0)", dict(codec=0)),
        ("block", "an unknown codec", "Codec(2)", dict(codec=2)),
        ("epoch", "an epoch with columns", "Codec(1)", dict(codec=1)),
        ("event", "an event with columns", "Codec(1)", dict(codec=1)),
        ("gap", "a gap with columns", "Codec(1)", dict(codec=1)),
        ("block", "content past the limit", "ContentSize(26)", dict(content_log2=26)),
        ("block", "content past any integer", "ContentSize(255)", dict(content_log2=255)),
        ("event", "an event with content", "ContentSize(1)", dict(content_log2=1)),
        ("block", "the last frame number", "FrameOverflow", dict(frame=top)),
        ("block", "a block without entries", "Entries(0)", dict(entries=0, units=0)),
        ("block", "more entries than the content can hold", "Entries(17)", dict(content_log2=8, entries=17, units=17)),
        ("block", "entries but no content", "Entries(300)", dict(content_log2=0)),
        ("epoch", "an epoch with entries", "Entries(1)", dict(entries=1)),
        ("event", "an event with entries", "Entries(1)", dict(entries=1)),
        ("gap", "a gap of nothing", "Entries(0)", dict(entries=0)),
        ("gap", "a gap of more than a block holds", f"Entries({2**21 + 1})", dict(entries=2**21 + 1)),
        ("gap", "a gap of all entry numbers", f"Entries({top})", dict(first_entry=0, entries=top)),
        ("block", "entries past the last number", "EntryOverflow", dict(first_entry=top - 299)),
        ("gap", "a gap past the last number", "EntryOverflow", dict(first_entry=top - 40)),
        ("block", "times in the wrong order", "Times", dict(earliest=1, latest=0)),
        ("event", "signed times in the wrong order", "Times", dict(earliest=0, latest=-1)),
        ("epoch", "an epoch of two times", "Times", dict(latest=1700000001)),
        ("event", "an event of two times", "Times", dict(earliest=1699999999)),
        ("gap", "a gap of two times", "Times", dict(latest=2**63 - 1)),
        ("block", "a block as its own epoch", "Epoch", dict(epoch=7)),
        ("block", "an epoch yet to come", "Epoch", dict(epoch=8)),
        ("event", "an event as its own epoch", "Epoch", dict(epoch=7)),
        ("gap", "a gap as its own epoch", "Epoch", dict(epoch=7)),
        ("epoch", "an epoch of another's", "Epoch", dict(epoch=6)),
        ("block", "a block without units", "Units(0)", dict(units=0)),
        ("block", "more units than entries", "Units(301)", dict(units=301)),
        ("epoch", "an epoch with units", "Units(1)", dict(units=1)),
        ("gap", "a gap with units", "Units(1)", dict(units=1)),
        ("event", "an event with a root", "Root", dict(root="00" * 31 + "01")),
        ("gap", "a gap with a root", "Root", dict(root="80" + "00" * 31)),
        ("gap", "a gap with a body", "BodyLength(1)", dict(body_length=1)),
        ("block", "a body past the limit", f"BodyLength({2**29 + 1})", dict(body_length=2**29 + 1)),
        ("event", "an event's body past the limit", f"BodyLength({top})", dict(body_length=top)),
        ("block", "a sources section that is only a tag", "Sources(16)", dict(sources_length=16)),
        ("block", "a sources section that is the body", "Sources(4096)", dict(sources_length=4096)),
        ("block", "a sources section without a body", "Sources(17)", dict(sources_length=17, body_length=0)),
        ("event", "an event with a sources section", "Sources(17)", dict(sources_length=17, body_length=100)),
        ("gap", "a gap with a sources section", "Sources(17)", dict(sources_length=17)),
    ]:
        yield name, encode(commitment("", kind, **fields)), error


# Trees.

def tree(digest, leaves):
    """RFC 6962, section 2.1, by its recursive definition, over leaf hashes."""
    if not leaves:
        return digest(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return digest(b"\1" + tree(digest, leaves[:split]) + tree(digest, leaves[split:])).digest()


def units():
    salt = bytes(range(0x30, 0x40))
    for name, (_, digest) in HASHES.items():
        for place, row in [(0, b""), (127, b"a row"), (128, bytes(127)), (2**21 - 1, bytes(200))]:
            unit = blocks.unit(digest, blocks.ROW, salt, blocks.row_content(place, row))
            yield dict(hash=name, salt=salt.hex(), place=place, row=row.hex(), unit=unit.hex())


def group_units():
    salt, promise = bytes(range(0x50, 0x60)), bytes(range(32))
    for name, (_, digest) in HASHES.items():
        for personal, entries, subjects, ciphertext in [
            (1 << 12, [(0, b"a row")], [0], b"c"),
            (0x1fff, [(3, b""), (4, bytes(128)), (2**21 - 1, b"row")], [127, 128, 2**64 - 1], bytes(300)),
        ]:
            content = blocks.group_content(personal, entries, subjects, ciphertext, promise)
            yield dict(hash=name, salt=salt.hex(), personal=personal, entries=[[place, row.hex()] for place, row in entries],
                       subjects=subjects, ciphertext=ciphertext.hex(), commitment=promise.hex(),
                       unit=blocks.unit(digest, blocks.GROUP, salt, content).hex())


def item_leaves():
    salt = bytes(range(0x70, 0x80))
    for name, (_, digest) in HASHES.items():
        for position, content in [(0, b"\1support"), (4091, b"\0" + bytes(60))]:
            yield dict(hash=name, salt=salt.hex(), position=position, item=content.hex(),
                       leaf=blocks.item(digest, salt, position, content).hex())


def block_roots():
    """Of blocks whose leaf number i is the hash of the byte i."""
    for name, (_, digest) in HASHES.items():
        for count in [*range(1, 10), *range(13, 23), 64, 65, 100]:
            for items in sorted({0, count // 3}):
                leaves = [digest(bytes([index])).digest() for index in range(count)]
                root = blocks.root(digest, count - items, items, blocks.tree(digest, leaves))
                yield dict(hash=name, leaves=count, items=items, root=root.hex())


def log_roots():
    """Roots of trees whose leaf number i is the decimal text of i."""
    leaves = [hashlib.sha256(b"\0" + str(index).encode()).digest() for index in range(66000)]
    for size in [0, 1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 513, 1000, 65535, 65536, 65537, 66000]:
        yield dict(size=size, root=tree(hashlib.sha256, leaves[:size]).hex())


# Proofs about trees.

def split(size):
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def multi_proof(digest, leaves, positions):
    """The roots of the largest subtrees without any of `positions`, lowest level first, from left to right."""
    found = []

    def visit(start, size, level):
        inside = [position for position in positions if start <= position < start + size]
        if not inside:
            found.append((level, start, tree(digest, leaves[start:start + size])))
        elif size > 1:
            left = split(size)
            visit(start, left, left.bit_length() - 1)
            visit(start + left, size - left, left.bit_length() - 1)

    visit(0, len(leaves), None)
    return [node for _, _, node in sorted(found)]


def consistency(digest, leaves, old):
    """RFC 6962, section 2.1.2, by its recursive definition."""
    def subproof(old, leaves, whole):
        if old == len(leaves):
            return [] if whole else [tree(digest, leaves)]
        left, right = leaves[:split(len(leaves))], leaves[split(len(leaves)):]
        if old <= len(left):
            return subproof(old, left, whole) + [tree(digest, right)]
        return subproof(old - len(left), right, False) + [tree(digest, left)]

    return subproof(old, leaves, True) if old else []


def multi_proofs(name, make_tree, make_proof):
    """Of trees whose leaf number i is the hash of the decimal text of i."""
    digest = HASHES[name][1]
    for size, positions in [
        (1, [0]), (2, [0]), (2, [1]), (2, [0, 1]), (3, [2]), (3, [0, 2]), (4, [1]), (4, [0, 3]), (5, [4]), (5, [3, 4]), (6, [4]),
        (7, [0, 6]), (7, [1, 2, 5]), (8, list(range(8))), (8, [0, 1, 2, 3]), (13, [0, 5, 12]), (16, [9]), (17, [16]), (17, [3]),
        (20, [16, 19]), (21, [20]), (64, [31, 32]), (65, [64]), (65, [0, 64]), (100, [0, 1, 50, 96, 99]), (257, [256]),
        (257, [0, 256]), (300, list(range(3, 300, 7))),
    ]:
        leaves = [digest(str(index).encode()).digest() for index in range(size)]
        yield dict(hash=name, size=size, positions=positions, top=make_tree(digest, leaves).hex(),
                   nodes=[node.hex() for node in make_proof(digest, leaves, positions)])


def misplaced(name, make_tree, make_proof):
    """Proofs of such trees whose nodes are missing, more, or not in their places."""
    digest = HASHES[name][1]
    for size, positions in [(5, [4]), (6, [4]), (13, [0, 5, 12]), (22, [20]), (70, [3])]:
        leaves = [digest(str(index).encode()).digest() for index in range(size)]
        nodes = make_proof(digest, leaves, positions)
        proof = dict(hash=name, size=size, top=make_tree(digest, leaves).hex())
        for at, node in enumerate(nodes):
            less, twice = nodes[:at] + nodes[at + 1:], nodes[:at + 1] + nodes[at:]
            yield dict(proof, what=f"without node {at}", positions=positions, nodes=less, error="TooFewNodes")
            yield dict(proof, what=f"node {at} twice", positions=positions, nodes=twice, error="TooManyNodes")
            yield dict(proof, what=f"node {at} last", positions=positions, nodes=less + [node],
                       error="Root" if at + 1 < len(nodes) else None)
            if at > 0:
                yield dict(proof, what=f"nodes {at - 1} and {at} exchanged", positions=positions,
                           nodes=nodes[:at - 1] + [node, nodes[at - 1]] + nodes[at + 1:], error="Root")
        # Leaves of whose node others are not known, told to be their neighbours: no more nodes and no fewer.
        beside = [*positions[:-1], positions[-1] ^ 1]
        if beside[-1] < size and len(make_proof(digest, leaves, beside)) == len(nodes):
            yield dict(proof, what="the last leaf at its neighbour's place", positions=beside, of=positions, nodes=nodes,
                       error="Root")


def refused_places(name, make_tree, make_proof):
    for vector in misplaced(name, make_tree, make_proof):
        if vector["error"]:
            yield dict(vector, of=vector.get("of", vector["positions"]), nodes=[node.hex() for node in vector["nodes"]])


def of_both(make):
    """Of the log's tree, and of a block's."""
    return dict(log=list(make("sha256", tree, multi_proof)),
                block=[vector for name in HASHES for vector in make(name, blocks.tree, blocks.multi_proof)])


def refused_multi_proofs():
    node = "22" * 32
    for size, positions, count, error in [
        (0, [], 0, "NoPosition"), (5, [], 1, "NoPosition"), (0, [0], 0, "Position { position: 0, size: 0 }"),
        (5, [5], 1, "Position { position: 5, size: 5 }"), (5, [0, 7], 3, "Position { position: 7, size: 5 }"),
        (5, [1, 1], 3, "Order(1)"), (5, [3, 2], 2, "Order(2)"), (1, [0], 1, "TooManyNodes"), (2, [0], 0, "TooFewNodes"),
        (2, [0], 2, "TooManyNodes"), (5, [4], 0, "TooFewNodes"), (5, [4], 2, "TooManyNodes"), (5, [0], 2, "TooFewNodes"),
        (5, [0], 4, "TooManyNodes"), (8, list(range(8)), 1, "TooManyNodes"), (2**62, [0], 61, "TooFewNodes"),
        (2**62, [0], 63, "TooManyNodes"), (2**62 + 1, [0], 62, f"Size({2**62 + 1})"), (2**64 - 1, [0], 64, f"Size({2**64 - 1})"),
    ]:
        yield dict(size=size, positions=positions, nodes=[node] * count, error=error)


def refused_block_proofs():
    node = "22" * 32
    for size, positions, count, error in [
        (0, [], 0, "NoPosition"), (5, [], 1, "NoPosition"), (5, [5], 1, "Position { position: 5, size: 5 }"), (5, [1, 1], 3, "Order(1)"),
        (1, [0], 1, "TooManyNodes"), (4, [0], 2, "TooFewNodes"), (4, [0], 4, "TooManyNodes"), (5, [4], 0, "TooFewNodes"),
        (5, [4], 2, "TooManyNodes"), (5, [0], 3, "TooFewNodes"), (5, [0], 5, "TooManyNodes"), (2**62, [0], 92, "TooFewNodes"),
        (2**62, [0], 94, "TooManyNodes"), (2**62 + 1, [0], 93, f"Size({2**62 + 1})"),
    ]:
        yield dict(size=size, positions=positions, nodes=[node] * count, error=error)


def log_leaves(size):
    return [hashlib.sha256(b"\0" + str(index).encode()).digest() for index in range(size)]


def consistency_proofs():
    for old, new in [(0, 0), (0, 1), (0, 9), (1, 1), (1, 2), (2, 2), (1, 3), (2, 3), (3, 4), (3, 7), (4, 7), (6, 7), (6, 8),
                     (7, 8), (8, 8), (8, 9), (5, 300), (128, 300), (255, 300), (256, 257), (299, 300), (300, 300)]:
        leaves = log_leaves(new)
        yield dict(old_size=old, old_root=tree(hashlib.sha256, leaves[:old]).hex(), new_size=new,
                   new_root=tree(hashlib.sha256, leaves).hex(),
                   nodes=[node.hex() for node in consistency(hashlib.sha256, leaves, old)])


def refused_consistency_proofs():
    leaves = log_leaves(9)
    roots = [tree(hashlib.sha256, leaves[:size]).hex() for size in range(10)]
    sound = [node.hex() for node in consistency(hashlib.sha256, leaves, 6)]
    wrong = "33" * 32
    for old, old_root, new, new_root, nodes, error in [
        (6, roots[6], 9, roots[9], sound[:-1], "TooFewNodes"),
        (6, roots[6], 9, roots[9], [], "TooFewNodes"),
        (6, roots[6], 9, roots[9], sound + [wrong], "TooManyNodes"),
        (6, roots[6], 9, roots[9], [wrong] + sound[1:], "OldRoot"),
        (6, roots[6], 9, roots[9], sound[:-1] + [wrong], "Root"),
        (6, roots[5], 9, roots[9], sound, "OldRoot"),
        (6, roots[6], 9, roots[8], sound, "Root"),
        (4, roots[4], 9, roots[9], [], "TooFewNodes"),
        (8, roots[8], 9, roots[9], [wrong], "Root"),
        (9, roots[9], 9, roots[8], [], "Root"),
        (9, roots[9], 9, roots[9], [wrong], "TooManyNodes"),
        (0, roots[0], 9, roots[9], [wrong], "TooManyNodes"),
        (0, roots[1], 9, roots[9], [], "OldRoot"),
        (0, roots[0], 0, roots[1], [], "Root"),
        (9, roots[9], 6, roots[6], sound, "Shrunk { old: 9, new: 6 }"),
        (1, roots[1], 2**62 + 1, roots[9], [], f"Size({2**62 + 1})"),
    ]:
        yield dict(old_size=old, old_root=old_root, new_size=new, new_root=new_root, nodes=nodes, error=error)


# Tiles.

def path(place, index, width):
    digits = str(index)
    digits = digits.zfill((len(digits) + 2) // 3 * 3)
    groups = [digits[at:at + 3] for at in range(0, len(digits), 3)]
    return f"tile/{place}/" + "/".join(["x" + group for group in groups[:-1]] + groups[-1:]) + (
        f".p/{width}" if width < 256 else "")


def tile_paths():
    for level, index, width in [
        (0, 0, 256), (0, 0, 1), (0, 999, 256), (0, 1000, 255), (1, 1234067, 256), (0, 1234067, 17), (2, 10**6, 10),
        (3, 123456789, 100), (0, 2**56 - 1, 256), (6, 255, 3), (7, 0, 256), (7, 0, 9), ("entries", 0, 256),
        ("entries", 273, 112), ("entries", 2**56 - 1, 255), ("entries", 1000000000, 256),
    ]:
        yield dict(level=level, index=index, width=width, path=path(level, index, width))


REFUSED_PATHS = [
    "", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/00", "tile/0/0000", "tile/0/x000", "tile/0/000/",
    "tile//000", "/tile/0/000", "tile/00/000", "tile/01/000", "tile/8/000", "tile/+1/000", "tile/-1/000",
    "tile/64/000", "tile/0/x000/001", "tile/0/001/002", "tile/0/x001/x002", "tile/0/x001/2", "tile/0/X001/002",
    "tile/0/x01/002", "tile/0/x0001/002", "tile/0/x001//002", "tile/0/000.p/", "tile/0/000.p/0", "tile/0/000.p/256",
    "tile/0/000.p/01", "tile/0/000.p/+1", "tile/0/000.p/1/", "tile/0/000.p/1.p/1", "tile/0/000.p", "tile/0/+00",
    "tile/0/0 0", "tile/0/00\u0660", "tile/entries/0", "tile/Entries/000", "tile/data/000", "tile/entries/000.p/999",
    "tile/7/001", "tile/6/256", "tile/0/x072/x057/x594/x037/x927/936", "tile/0/x018/x446/x744/x073/x709/x551/616",
    "tile/0/x999/x999/x999/x999/x999/x999/x999/999", "tile/0/000\n", " tile/0/000",
]


def partial_paths():
    for size in [0, 1, 255, 256, 257, 70000, 2**24, 2**24 + 2**16 + 2**8 + 1, 2**64 - 1]:
        tiles = [(level, size // 256**(level + 1), size // 256**level % 256) for level in range(8)]
        yield dict(size=size, paths=[path(*tile) for tile in tiles if tile[2]])


def full_paths():
    for old, new in [(0, 0), (0, 255), (0, 256), (255, 256), (256, 256), (200, 800), (65535, 65536),
                     (65536 - 257, 65536 + 256), (2**40 - 1, 2**40), (10, 5)]:
        paths = [path(level, index, 256) for level in range(8)
                 for index in range(old // 256**(level + 1), new // 256**(level + 1))]
        yield dict(old=old, new=new, paths=paths)


# Rows.

FIELDS = ["controller", "processor", "purpose", "status", "duration", "size", "flags", "location", "client", "actor",
          "stream", "payload", "subjects"]


def row(entry):
    def string(value):
        value = value if isinstance(value, bytes) else value.encode()
        return varint(len(value)) + value

    presence = sum(1 << bit for bit, field in enumerate(FIELDS) if field in entry)
    out = struct.pack("<Hq", presence, entry["time"]) + string(entry["operation"])
    for field in FIELDS:
        if field not in entry:
            continue
        value = entry[field]
        if field in ("location", "payload"):
            out += string(bytes.fromhex(value))
        elif field == "subjects":
            out += varint(len(value)) + b"".join(string(subject) for subject in value)
        else:
            out += varint(value) if isinstance(value, int) else string(value)
    return out


def rows():
    for entry in [
        dict(time=0, operation="x"),
        dict(time=-1, operation="read", location=b"user_42/email".hex(), subjects=["user_42"], purpose="support"),
        dict(time=2**63 - 1, operation="löschen", controller="", processor="", purpose="", status=0, duration=0,
             size=0, flags=0, location="", client="", actor="", stream="", payload="", subjects=[]),
        dict(time=1700000000123456789, operation="update", controller="hospital", processor="lab", purpose="care",
             status=2**32 - 1, duration=2**64 - 1, size=128, flags=127, location="00ff", client="192.0.2.7",
             actor="nurse", stream="ward", payload="80" * 130, subjects=["", "anna", "böb"]),
    ]:
        yield dict(entry, row=row(entry).hex())


FILES = {
    "commitments.json": lambda: list(accepted_commitments()),
    "commitments-refused.json": lambda: [dict(name=name, encoding=encoding.hex(), error=error)
                                         for name, encoding, error in refused_commitments()],
    "units.json": lambda: dict(rows=list(units()), groups=list(group_units()), items=list(item_leaves()), roots=list(block_roots())),
    "tree.json": lambda: list(log_roots()),
    "tiles.json": lambda: dict(paths=list(tile_paths()), refused=REFUSED_PATHS, partial=list(partial_paths()),
                               full=list(full_paths())),
    "rows.json": lambda: list(rows()),
    "multiproofs.json": lambda: dict(proofs=of_both(multi_proofs), misplaced=of_both(refused_places),
                                     refused=dict(log=list(refused_multi_proofs()), block=list(refused_block_proofs()))),
    "consistency.json": lambda: dict(proofs=list(consistency_proofs()), refused=list(refused_consistency_proofs())),
    "proofs.json": lambda: proofs.vectors(encode, commitment, tree, multi_proof, consistency, row),
    "events.json": lambda: events.vectors(encode, commitment, tree, multi_proof),
    "groups.json": lambda: groups.vectors(encode, commitment, tree, multi_proof, row),
    "receipts.json": lambda: receipts.vectors(encode, commitment, tree, multi_proof, row),
}


def main():
    here = pathlib.Path(__file__).parent
    stale = []
    for name, make in FILES.items():
        text = json.dumps(make(), indent=1) + "\n"
        if "--check" in sys.argv[1:]:
            if (here / name).read_text() != text:
                stale.append(name)
        else:
            (here / name).write_text(text)
    if stale:
        sys.exit("differ: " + ", ".join(stale))


main()
