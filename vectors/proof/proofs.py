"""The vectors of proof files, for make.py: a small log, what is proven about it, and what is refused."""

import base64
import copy
import functools
import hashlib
import importlib.util
import pathlib
import struct

import blocks
from blocks import ascending, varint

# AES, GCM and Ed25519 are those of vectors/seal/make.py.
SPEC = importlib.util.spec_from_file_location("seal", pathlib.Path(__file__).resolve().parents[1] / "seal" / "make.py")
seal = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(seal)
# Each takes a while.
seal.ed25519 = functools.cache(seal.ed25519)

HASHES = {"sha256": hashlib.sha256, "sha3-256": hashlib.sha3_256}
ORIGIN, SEED = "example.com/log", bytes([7]) * 32
WITNESS, WITNESS_SEED = "witness.example", bytes([8]) * 32


def text64(data):
    return base64.b64encode(data).decode()


def key_id(name, seed):
    return hashlib.sha256(name.encode() + b"\n\1" + seal.ed25519(seed)[0]).digest()[:4]


def vkey(name, seed):
    return f"{name}+{key_id(name, seed).hex()}+{text64(bytes([1]) + seal.ed25519(seed)[0])}"


def sign(body, *signers):
    lines = [f"\u2014 {name} {text64(key_id(name, seed) + seal.ed25519(seed)[1](body.encode()))}\n" for name, seed in signers]
    return body + "\n" + "".join(lines)


class Log:
    """Seven frames: an epoch, three blocks between an event and a gap, and another block."""

    LAYOUT = [("epoch", 0), ("block", 5), ("block", 1), ("event", 0), ("gap", 41), ("block", 13), ("block", 300)]

    def __init__(self, hash_name, encode, commitment, tree, row, layout=LAYOUT, declared=None):
        """`declared` is what commitments of blocks say besides."""
        self.digest, self.tree, self.frames, first = HASHES[hash_name], tree, [], 0
        for number, (kind, count) in enumerate(layout):
            fields = dict(hash=hash_name, frame=number, first_entry=first, entries=count, epoch=0)
            units = self.units(number, count, first, row) if kind == "block" else []
            if units:
                items = self.items(number)
                top = blocks.tree(self.digest, [leaf["hash"] for leaf in units + items])
                root = blocks.root(self.digest, len(units), len(items), top)
                fields.update(units=len(units), root=root.hex(), **(declared or {}))
            self.frames.append(dict(encoded=encode(commitment("", kind, **fields)), first=first, units=units,
                                    items=self.items(number) if units else []))
            first += count
        self.leaves = [hashlib.sha256(b"\0" + frame["encoded"]).digest() for frame in self.frames]

    def items(self, frame):
        """The common items of a block."""
        return []

    def units(self, frame, count, first, row):
        return [self.unit(frame, index, first + index, row) for index in range(count)]

    def unit(self, frame, index, entry, row):
        salt = hashlib.sha256(f"salt {frame} {index}".encode()).digest()[:16]
        content = row(dict(time=1700000000000000000 + entry, operation="read", location=f"user_{entry}/ü".encode().hex(),
                           subjects=[f"user_{entry}"], status=entry))
        hashed = blocks.unit(self.digest, blocks.ROW, salt, blocks.row_content(index, content))
        return dict(salt=salt, entry=entry, row=content, hash=hashed)

    def checkpoint(self, size, *signers, origin=ORIGIN, root=None):
        root = root or self.tree(hashlib.sha256, self.leaves[:size])
        return sign(f"{origin}\n{size}\n{text64(root)}\n", *(signers or [(ORIGIN, SEED)]))

    def proof(self, chosen, multi_proof, size=7, signers=(), used=()):
        """The parts of a proof of the units at `chosen`, positions by frame; with the common items at the positions `used`."""
        frames = []
        for number, positions in sorted(chosen.items()):
            frame = self.frames[number]
            units = [{"kind": blocks.ROW, **frame["units"][at], "position": at} for at in positions]
            items = [{**frame["items"][at], "position": at} for at in used]
            leaves = [leaf["hash"] for leaf in frame["units"] + frame["items"]]
            nodes = blocks.multi_proof(self.digest, leaves, [*positions, *(len(frame["units"]) + at for at in used)])
            frames.append(dict(encoded=frame["encoded"], first=frame["first"], units=units, nodes=nodes, count=len(units),
                               item_count=len(frame["items"]), items=items))
        return dict(header="c2sp.org/tlog-proof@v1" if len(chosen) == 1 else "bulla-multi-proof-v1", version=1,
                    frames=frames, indices=sorted(chosen), tail=b"",
                    hashes=multi_proof(hashlib.sha256, self.leaves[:size], sorted(chosen)),
                    note=self.checkpoint(size, *signers))


def row_form(unit, first):
    """The binary form of a row, behind its salt."""
    offset = unit.get("offset", varint((unit["entry"] - first) % 2**64))
    return offset + varint(unit.get("length", len(unit["row"]))) + unit["row"]


def group_form(unit, first):
    """The binary form of a group, behind its salt."""
    entries, subjects = unit["entries"], unit["subjects"]
    out = struct.pack("<H", unit["personal"]) + varint(unit.get("count", len(entries)))
    for distance, (_, row) in zip(unit.get("distances", ascending([number for number, _ in entries], first)), entries):
        out += distance + varint(unit.get("row_length", len(row))) + row
    out += varint(unit.get("subject_count", len(subjects))) + b"".join(unit.get("subject_distances", ascending(subjects, 0)))
    out += varint(unit.get("ciphertext_length", len(unit["ciphertext"]))) + unit["ciphertext"] + unit["promise"]
    return out + bytes([unit.get("opened", unit["secret"] is not None)]) + (unit["secret"] or b"")


def disclosure(parts):
    out = bytes([parts["version"]])
    for frame in parts["frames"]:
        out += frame["encoded"] + varint(frame["count"])
        following = 0
        for unit in frame["units"]:
            out += unit.get("distance", varint((unit["position"] - following) % 2**64))
            out += unit["kind"] + unit["salt"]
            out += group_form(unit, frame["first"]) if "ciphertext" in unit else row_form(unit, frame["first"])
            following = unit["position"] + 1
        out += varint(frame["item_count"]) + varint(frame.get("disclosed_items", len(frame["items"])))
        following = 0
        for item in frame["items"]:
            out += varint((item["position"] - following) % 2**64) + item["salt"]
            out += varint(item.get("length", len(item["bytes"]))) + item["bytes"]
            following = item["position"] + 1
        out += b"".join(frame["nodes"])
    return out + parts["tail"]


def render(parts):
    lines = [parts["header"]]
    extra = parts.get("extra", "extra " + text64(disclosure(parts)))
    lines += [extra] * (extra is not None)
    lines += parts.get("index_lines", [f"index {index}" for index in parts["indices"]])
    lines += parts.get("hash_lines", [text64(node) for node in parts["hashes"]])
    return "\n".join(lines) + "\n" + parts.get("blank", "\n") + parts["note"]


def altered(parts, change):
    parts = copy.deepcopy(parts)
    change(parts)
    return render(parts)


def set_to(place, *path):
    """A change that sets `path`, keys one inside the other, to `place`."""
    def change(parts):
        for key in path[:-1]:
            parts = parts[key]
        parts[path[-1]] = place
    return change


def patch(data, offset, value):
    return data[:offset] + value + data[offset + len(value):]


def accepted(logs, multi_proof):
    both = [(ORIGIN, SEED), (WITNESS, WITNESS_SEED)]
    for name, hash_name, chosen, size, signers in [
        ("one entry", "sha256", {1: [3]}, 7, ()),
        ("the only entry of a block", "sha256", {2: [0]}, 7, ()),
        ("every entry of a block", "sha256", {1: [0, 1, 2, 3, 4]}, 7, ()),
        ("entries of one block, hashed by SHA3-256", "sha3-256", {5: [0, 5, 12]}, 7, ()),
        ("the last frame of a smaller tree", "sha256", {5: [12]}, 6, ()),
        ("a tree of two frames", "sha256", {1: [0]}, 2, ()),
        ("positions that take two bytes", "sha256", {6: [127, 128, 299]}, 7, ()),
        ("two frames", "sha256", {1: [0, 4], 6: [299]}, 7, ()),
        ("every block", "sha3-256", {1: [1], 2: [0], 5: [3, 4], 6: [0, 1, 2]}, 7, ()),
        ("a checkpoint with a witness's signature", "sha256", {1: [3]}, 7, both),
    ]:
        parts = logs[hash_name].proof(chosen, multi_proof, size, signers)
        entries = [[unit["entry"], unit["row"].hex()] for frame in parts["frames"] for unit in frame["units"]]
        root = logs[hash_name].tree(hashlib.sha256, logs[hash_name].leaves[:size]).hex()
        yield dict(name=name, file=render(parts), frames=len(chosen), tree_size=size, root=root, entries=entries)


def refused(log, other, encode, commitment, multi_proof):
    one, two = log.proof({1: [1, 3]}, multi_proof), log.proof({1: [0], 5: [2]}, multi_proof)
    six = log.proof({6: [0]}, multi_proof)
    top = 2**64 - 1
    extra = text64(disclosure(one))
    block = one["frames"][0]["encoded"]
    unit = one["frames"][0]["units"][1]
    expect = lambda number, expected: f'Line {{ number: {number}, expected: "{expected}" }}'
    of_frame = lambda frame, problem: f"Frame {{ frame: {frame}, problem: {problem} }}"
    of_unit = lambda number, problem: f"Unit {{ frame: 1, unit: {number}, problem: {problem} }}"
    hash_line, extra_line = "a hash in base64", "`extra` and base64"

    # Lines.
    sound = render(one)
    for name, file, error in [
        ("nothing", "", "Kind"),
        ("another first line", sound.replace("@v1", "@v2", 1), "Kind"),
        ("a first line that goes on", sound.replace("@v1", "@v1 ", 1), "Kind"),
        ("no empty line", sound.split("\n\n")[0] + "\n", "NoCheckpoint"),
        ("Windows line ends", sound.replace("\n", "\r\n"), "Kind"),
        ("bytes after the last line", sound + "x\n", "Checkpoint(SignatureLine)"),
        ("no newline at the end", sound[:-1], "Checkpoint(NoSignatures)"),
    ]:
        yield name, file, error
    for name, error, change in [
        ("no disclosure", expect(2, extra_line), set_to(None, "extra")),
        ("a disclosure of nothing", "NoDisclosure", set_to("extra ", "extra")),
        ("a disclosure without padding", expect(2, extra_line), set_to("extra AQ", "extra")),
        ("a disclosure with bits after its end", expect(2, extra_line), set_to("extra AR==", "extra")),
        ("a disclosure in the URL alphabet", expect(2, extra_line), set_to("extra _w==", "extra")),
        ("two spaces before the disclosure", expect(2, extra_line), set_to("extra  " + extra, "extra")),
        ("a space after the disclosure", expect(2, extra_line), set_to("extra " + extra + " ", "extra")),
        ("no index", expect(3, "`index` and a frame's number"), set_to([], "index_lines")),
        ("an index with a zero before it", expect(3, "`index` and a frame's number"), set_to(["index 01"], "index_lines")),
        ("an index with a sign", expect(3, "`index` and a frame's number"), set_to(["index +1"], "index_lines")),
        ("an index past 64 bits", expect(3, "`index` and a frame's number"), set_to([f"index {2**64}"], "index_lines")),
        ("two indices of one frame", expect(4, hash_line), set_to([1, 1], "indices")),
        ("a hash that is too short", expect(4, hash_line), set_to([text64(bytes(31))], "hash_lines")),
        ("a hash with bits after its end", expect(4, hash_line), set_to(["A" * 42 + "B="], "hash_lines")),
        ("a hash with a space", expect(4, hash_line), set_to([text64(bytes(32)) + " "], "hash_lines")),
        ("an empty line too many", "Checkpoint(CheckpointLines)", set_to("\n\n", "blank")),
    ]:
        yield name, altered(one, change), error

    # The kinds of file, and the frames.
    for name, parts, error, change in [
        ("one frame in a file for several", one, expect(4, "a second `index` and a frame's number"),
         set_to("bulla-multi-proof-v1", "header")),
        ("several frames in a file for one", two, "LeftOver(" + str(152 + 3 + 20 + len(log.frames[5]["units"][2]["row"])
         + 32 * len(two["frames"][1]["nodes"])) + ")", set_to("c2sp.org/tlog-proof@v1", "header")),
        ("the index of another frame", one, of_frame(2, "Number(1)"), set_to([2], "indices")),
        ("the indices exchanged", two, of_frame(5, "Number(1)"), set_to([5, 1], "indices")),
        ("the frames exchanged", two, of_frame(1, "Order"),
         lambda parts: (parts["frames"].reverse(), parts["indices"].reverse())),
        ("a frame twice", two, of_frame(1, "Order"),
         lambda parts: parts.update(frames=parts["frames"][:1] * 2, indices=[1, 1])),
        ("a frame past the tree", one, of_frame(1, "NotInTree { size: 1 }"), set_to(log.checkpoint(1), "note")),
        ("a frame of another log", two, of_frame(5, "OtherLog"),
         set_to(patch(two["frames"][1]["encoded"], 8, b"\xff"), "frames", 1, "encoded")),
        ("a frame of another hash", two, of_frame(5, "OtherHash"),
         set_to(patch(two["frames"][1]["encoded"], 3, b"\2"), "frames", 1, "encoded")),
        ("a frame that repeats entries", two, of_frame(5, "Entries"),
         set_to(patch(two["frames"][1]["encoded"], 32, struct.pack("<Q", 4)), "frames", 1, "encoded")),
        ("a frame that is an event", one, of_frame(3, "Kind(Event)"),
         lambda parts: (parts.update(indices=[3]), parts["frames"][0].update(encoded=log.frames[3]["encoded"]))),
        ("a frame that is a gap", one, of_frame(4, "Kind(Gap)"),
         lambda parts: (parts.update(indices=[4]), parts["frames"][0].update(encoded=log.frames[4]["encoded"]))),
        ("a commitment of a later version", one, of_frame(1, "Commitment(NewerVersion(2))"),
         set_to(patch(block, 0, b"\2"), "frames", 0, "encoded")),
        ("no units", one, of_frame(1, "Units(0)"), set_to(0, "frames", 0, "count")),
        ("more units than the block has", one, of_frame(1, "Units(6)"), set_to(6, "frames", 0, "count")),
        ("as many units as integers go", one, of_frame(1, f"Units({top})"), set_to(top, "frames", 0, "count")),
        ("units where common items and nodes are", one, of_unit(2, "Kind(0)"), set_to(5, "frames", 0, "count")),
        ("units that are not there", six, of_frame(6, "Truncated"), set_to(300, "frames", 0, "count")),
        ("a node less", one, of_frame(1, "Truncated"), lambda parts: parts["frames"][0]["nodes"].pop()),
        ("a node more", one, "LeftOver(32)", lambda parts: parts["frames"][0]["nodes"].append(bytes(32))),
        ("a byte more", one, "LeftOver(1)", set_to(b"\0", "tail")),
        ("version 0", one, "Version(0)", set_to(0, "version")),
        ("version 2", one, "Version(2)", set_to(2, "version")),
    ]:
        yield name, altered(parts, change), error

    # Units.
    for name, error, change in [
        ("a row that is said to be a group", "Personal(8707)", dict(kind=blocks.GROUP)),
        ("the kind of a node", "Kind(6)", dict(kind=blocks.NODE)),
        ("the kind of a common item", "Kind(3)", dict(kind=blocks.ITEM)),
        ("a position past the last", "Position", dict(position=5)),
        ("a position past all integers", "Position", dict(distance=varint(top))),
        ("a distance that is not in its shortest form", "NotMinimal", dict(distance=b"\x81\0")),
        ("a distance of 65 bits", "NotMinimal", dict(distance=b"\xff" * 9 + b"\2")),
        ("an entry before the frame's", "Entry", dict(entry=top)),
        ("an entry after the frame's", "Entry", dict(entry=5)),
        ("the entry of the unit before", "Order", dict(entry=1)),
        ("an entry that is not in its shortest form", "NotMinimal", dict(offset=b"\x83\0")),
        ("a row that is not there", "Truncated", dict(length=2000)),
        ("a row of all memory", "Truncated", dict(length=top)),
        ("an empty row", "Row(Truncated)", dict(row=b"")),
        ("a row that goes on", "Row(LeftOver)", dict(row=unit["row"] + b"\0")),
        ("a row that is not canonical", "Row(UnknownField)", dict(row=patch(unit["row"], 1, b"\x80"))),
    ]:
        yield name, altered(one, lambda parts: parts["frames"][0]["units"][1].update(change)), of_unit(1, error)

    # What has the right form and does not hold.
    flipped = lambda data: bytes([data[0] ^ 1]) + data[1:]
    for name, error, change in [
        ("another salt", of_frame(1, "Root"), lambda parts: parts["frames"][0]["units"][0].update(salt=bytes(16))),
        ("another row", of_frame(1, "Root"),
         lambda parts: parts["frames"][0]["units"][0].update(row=log.frames[1]["units"][2]["row"])),
        ("another entry number", of_frame(1, "Root"), lambda parts: parts["frames"][0]["units"][0].update(entry=2)),
        ("another position", of_frame(1, "Root"), lambda parts: parts["frames"][0]["units"][0].update(position=0)),
        ("a unit at the place of a node", of_frame(1, "Root"), lambda parts: parts["frames"][0]["units"][1].update(position=2)),
        ("two nodes in the block's tree exchanged", of_frame(1, "Root"),
         lambda parts: parts["frames"][0]["nodes"].insert(0, parts["frames"][0]["nodes"].pop(1))),
        ("another node in the block's tree", of_frame(1, "Root"),
         lambda parts: parts["frames"][0]["nodes"].insert(0, flipped(parts["frames"][0]["nodes"].pop(0)))),
        ("the same block in another log", "Tree(Root)",
         lambda parts: parts["frames"][0].update(encoded=patch(block, 8, b"\xff"))),
        ("the same content under another body", "Tree(Root)",
         lambda parts: parts["frames"][0].update(encoded=patch(block, 120, b"\xff"))),
        ("another node in the log's tree", "Tree(Root)",
         lambda parts: parts["hashes"].append(flipped(parts["hashes"].pop()))),
        ("a hash less", "Tree(TooFewNodes)", lambda parts: parts["hashes"].pop()),
        ("a hash more", "Tree(TooManyNodes)", lambda parts: parts["hashes"].append(bytes(32))),
        ("another tree of that size", "Tree(Root)", set_to(other.checkpoint(7), "note")),
        ("a checkpoint that is signed by nobody known", "Checkpoint(NotSigned)",
         set_to(log.checkpoint(7, (WITNESS, WITNESS_SEED)), "note")),
        ("a checkpoint that is signed by another's key under the log's name", "Checkpoint(NotSigned)",
         set_to(log.checkpoint(7, (ORIGIN, WITNESS_SEED)), "note")),
        ("a checkpoint of another origin", "Checkpoint(Origin)",
         set_to(log.checkpoint(7, origin="example.com/other"), "note")),
        ("a checkpoint whose signature is of another text", "Checkpoint(BadSignature)",
         set_to(log.checkpoint(6).replace("\n6\n", "\n7\n"), "note")),
        ("a tree larger than any", f"Tree(Size({2**63}))", set_to(sign(f"{ORIGIN}\n{2**63}\n{text64(bytes(32))}\n",
         (ORIGIN, SEED)), "note")),
    ]:
        yield name, altered(one, change), error


def refused_times(dated, multi_proof):
    """A log that committed to other times than its rows have: of the root that says nothing."""
    for name, earliest, latest in [
        ("an entry from before its block's earliest", 1700000001, 1700000060),
        ("an entry from after its block's latest", 1699999940, 1699999999),
    ]:
        log = dated(dict(earliest=earliest, latest=latest))
        yield name, render(log.proof({1: [1, 3]}, multi_proof)), "Unit { frame: 1, unit: 0, problem: Time(1) }"


def growth(log, old, new, nodes=None, old_note=None, new_note=None):
    nodes = log.consistency(old, new) if nodes is None else nodes
    lines = ["bulla-consistency-v1", "old " + text64((old_note or log.checkpoint(old)).encode()), *map(text64, nodes)]
    return "\n".join(lines) + "\n\n" + (new_note or log.checkpoint(new))


def refused_growth(log, other):
    sound, nodes = growth(log, 3, 7), log.consistency(3, 7)
    anonymous = (ORIGIN, WITNESS_SEED)
    old_line = 'Line { number: 2, expected: "`old` and base64" }'
    empty = log.checkpoint(0, root=bytes(32))
    yield "another first line", sound.replace("-v1", "-v2", 1), "Kind"
    yield "no older checkpoint", sound.replace("old ", "new ", 1), old_line
    yield "an older checkpoint that is not base64", sound.replace("old ", "old =", 1), old_line
    yield "an older checkpoint that is none", growth(log, 3, 7, old_note="x"), "OldCheckpoint(NoSignatures)"
    yield "a newer checkpoint that is none", growth(log, 3, 7, new_note="x"), "Checkpoint(NoSignatures)"
    yield "a hash less", growth(log, 3, 7, nodes=nodes[:-1]), "Tree(TooFewNodes)"
    yield "a hash more", growth(log, 3, 7, nodes=nodes + [bytes(32)]), "Tree(TooManyNodes)"
    yield "another first hash", growth(log, 3, 7, nodes=[bytes(32)] + nodes[1:]), "Tree(OldRoot)"
    yield "another last hash", growth(log, 3, 7, nodes=nodes[:-1] + [bytes(32)]), "Tree(Root)"
    yield "a history of another log", growth(log, 3, 7, old_note=other.checkpoint(3)), "Tree(OldRoot)"
    yield "two trees of one size", growth(log, 7, 7, nodes=[], old_note=other.checkpoint(7)), "Tree(Root)"
    yield "a log that shrank", growth(log, 7, 3, nodes=nodes), "Tree(Shrunk { old: 7, new: 3 })"
    yield "an empty log with a root", growth(log, 0, 7, nodes=[], old_note=empty), "Tree(OldRoot)"
    yield ("an older checkpoint of another origin",
           growth(log, 3, 7, old_note=log.checkpoint(3, origin="example.com/other")), "Origins")
    yield ("both checkpoints of another origin",
           growth(log, 3, 7, old_note=log.checkpoint(3, origin="example.com/other"),
                  new_note=log.checkpoint(7, origin="example.com/other")), "OldCheckpoint(Origin)")
    yield ("an older checkpoint that the log has not signed",
           growth(log, 3, 7, old_note=log.checkpoint(3, anonymous)), "OldCheckpoint(NotSigned)")
    yield ("a newer checkpoint that the log has not signed",
           growth(log, 3, 7, new_note=log.checkpoint(7, anonymous)), "Checkpoint(NotSigned)")


def vectors(encode, commitment, tree, multi_proof, consistency, row):
    logs = {name: Log(name, encode, commitment, tree, row) for name in HASHES}
    for log in logs.values():
        log.consistency = lambda old, new, log=log: consistency(hashlib.sha256, log.leaves[:new], old)
    log, other = logs["sha256"], logs["sha3-256"]
    dated = lambda times: Log("sha256", encode, commitment, tree, row, declared=times)
    named = lambda items: [dict(name=name, file=file, error=error) for name, file, error in items]
    grown = [dict(old_size=old, new_size=new, file=growth(log, old, new))
             for old, new in [(0, 0), (0, 7), (1, 7), (3, 7), (4, 7), (6, 7), (7, 7), (5, 6)]]
    return dict(vkey=vkey(ORIGIN, SEED), proofs=list(accepted(logs, multi_proof)),
                refused=named([*refused(log, other, encode, commitment, multi_proof), *refused_times(dated, multi_proof)]),
                consistency=grown, consistency_refused=named(refused_growth(log, other)))
