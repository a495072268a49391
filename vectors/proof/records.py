"""Groups that are written as records, for groups.py: docs/format-columns.md, "Common items" and "Groups"."""

import copy
import hashlib

import blocks
import proofs
from proofs import render

ALPHABETS = [b"0123456789abcdef", b"abcdefghijklmnopqrstuvwxyz ./_-@",
             b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"]

# Positions 0 to 2 are shapes, which say of their slots: the subject and digits; words and two digits; digits and five hexadecimal ones.
SHAPES = [b"\0\x40/\0\1", b"/\0\0/\0\3", b'{"id":\0\1,"x":"\0\x24"}']
WORDS = [b"read it", b"support"]
ITEMS = [b"\0" + shape for shape in SHAPES] + [b"\1" + word for word in WORDS]

# Of each group its entries: what they hold, and how a writer may spell it.
ENTRIES = {
    "a": [
        (dict(location="ann/123456", stream="", payload='{"id":123456,"x":"1a2b3"}', subjects=["ann"]),
         [("spelled", b"ann"), ("shape", 0, [("decimal", "123456")]), ("spelled", b""),
          ("shape", 2, [("earlier decimal", 0), ("hexadecimal", "1a2b3")])]),
        (dict(location="ann/123456", stream="support", payload="ann", subjects=["ann"]),
         [("same",), ("word", 4), ("earlier", 0)]),
    ],
    "b": [
        (dict(location="/by read it x/07", client="S_1", payload="\u00fc\u0000", subjects=["n o", "42"]),
         [("spelled", b"n o"), ("spelled", b"42"),
          ("shape", 1, [("words", [("spelled", b"by"), ("word", 3), ("spelled", b"x")]), ("digits", "07")]),
          ("spelled", b"S_1"), ("spelled", "\u00fc\u0000".encode())]),
        (dict(location="S_1 n o", actor="42", subjects=["42"]),
         [("earlier", 1), ("words", [("earlier", 4), ("earlier", 0)]), ("earlier", 1)]),
    ],
}
PERSONAL = ["location", "client", "actor", "stream", "payload", "subjects"]
USED = {"a": [0, 2, 4], "b": [1, 3]}


class Bits:
    def __init__(self):
        self.bits, self.spelled, self.numbers = [], 0, 0

    def put(self, value, width):
        self.bits += [value >> at & 1 for at in range(width)]

    def sized(self, value, width):
        self.put(value.bit_length(), width)
        self.put(value, max(value.bit_length() - 1, 0))

    def code(self, code):
        self.put(code, (len(ITEMS) + 3).bit_length())

    def string(self, how, *what):
        if how == "spelled":
            self.code(0)
            which = [number for number, known in enumerate(ALPHABETS) if set(what[0]) <= set(known)]
            self.put(which[0] if which else 3, 2)
            self.sized(len(what[0]), 5)
            for byte in what[0]:
                self.put(*(ALPHABETS[which[0]].index(byte), 4 + which[0]) if which else (byte, 8))
            self.spelled += 1
        elif how == "earlier":
            self.code(1)
            self.put(what[0], (self.spelled - 1).bit_length())
        elif how == "same":
            self.code(2)
        elif how == "words":
            self.code(3)
            self.sized(len(what[0]), 5)
            for word in what[0]:
                self.string(*word)
        else:
            self.code(4 + what[0])
            for filling in what[1] if how == "shape" else []:
                self.filling(*filling)

    def filling(self, how, what):
        if how == "hexadecimal":
            self.put(int(what, 16), 4 * len(what))
        elif how == "earlier decimal":
            self.put(0, 5)
            self.put(what, (self.numbers - 1).bit_length())
        elif how in ("decimal", "digits"):
            if how == "decimal":
                self.put(len(what), 5)
                self.numbers += len(what) >= 5
            self.put(int(what), (10 ** len(what) - 1).bit_length())
        else:
            self.string(how, what)

    def bytes(self):
        return bytes(sum(bit << at for at, bit in enumerate(self.bits[begin:begin + 8])) for begin in range(0, len(self.bits), 8))


def plaintext(entries):
    bits, before, listed = Bits(), None, None
    bits.put(1, 1)
    for values, how in entries:
        present = [field in values for field in PERSONAL]
        if before is not None:
            bits.put(present == before, 1)
        if present != before:
            for has in present:
                bits.put(has, 1)
        if listed is not None:
            bits.put(values["subjects"] == listed, 1)
        if values["subjects"] != listed:
            bits.put(len(values["subjects"]) == 1, 1)
            if len(values["subjects"]) != 1:
                bits.put(len(values["subjects"]), 7)
        before, listed = present, values["subjects"]
        for string in how:
            bits.string(*string)
    return bits.bytes()


def records_log(base):
    """A log of an epoch, and a block of two groups that are written as records."""

    class RecordsLog(base):
        LAYOUT = [("epoch", 0), ("block", 4)]
        MEMBERS = ["a", "b", "a", "b"]
        TEXT = {}

        def items(self, frame):
            found = []
            for position, item in enumerate(ITEMS):
                salt = hashlib.sha256(f"item {position}".encode()).digest()[:16]
                hashed = blocks.item(self.digest, salt, position, item)
                found.append(dict(salt=salt, bytes=item, hash=hashed))
            return found

        def members(self, frame):
            return self.USUAL, self.MEMBERS

        def entry(self, number, group):
            # Entries of a group take turns, and the first has number 0.
            values = dict(ENTRIES[group][number // 2][0])
            for field in ("location", "payload"):
                if field in values:
                    values[field] = values[field].encode().hex()
            return dict(time=1700000000000000000 + number, operation="read", **values)

        def plaintext(self, personal, name, entries):
            text = plaintext(ENTRIES[name])
            return self.garble.get("records", lambda name, text: text)(name, text)

        def disclosed_items(self, chosen, multi_proof, used, closed=()):
            parts = copy.deepcopy(self.proof(chosen, multi_proof, len(self.frames), used=used))
            for unit in parts["frames"][0]["units"]:
                if unit["position"] in closed:
                    unit["secret"] = None
            return parts

    return RecordsLog


def refused(log, multi_proof):
    """Proofs whose common items are not as they have to be, which takes no cipher to see."""
    both = log.disclosed_items({1: [0]}, multi_proof, USED["a"])
    root = "Frame { frame: 1, problem: Root }"
    of_item = lambda item, problem: f"Item {{ frame: 1, item: {item}, problem: {problem} }}"
    top = 2**64 - 1
    frame = lambda parts: parts["frames"][0]
    for name, error, change in [
        ("more common items than a block may have", "Frame { frame: 1, problem: Items(4093) }", lambda it: it.update(item_count=4093)),
        ("more common items than there are", "Frame { frame: 1, problem: Items(3) }", lambda it: it.update(item_count=2)),
        ("as many common items as integers go", f"Frame {{ frame: 1, problem: Items({top}) }}", lambda it: it.update(item_count=top)),
        ("a common item past the last", of_item(2, "Position"), lambda it: it["items"][2].update(position=5)),
        ("a common item that is not there", of_item(2, "Truncated"), lambda it: it["items"][2].update(length=5000)),
        ("another common item", root, lambda it: it["items"][2].update(bytes=b"\1suppose")),
        ("a common item of another kind", root, lambda it: it["items"][2].update(bytes=b"\0support")),
        ("a common item with another salt", root, lambda it: it["items"][0].update(salt=bytes(16))),
        ("a common item at another position", root, lambda it: it["items"][2].update(position=3)),
        ("a number of common items that is not the block's", "Frame { frame: 1, problem: Truncated }", lambda it: it.update(item_count=6)),
    ]:
        yield name, proofs.altered(both, lambda parts: change(frame(parts))), error
    withheld = log.disclosed_items({1: [0]}, multi_proof, USED["a"], closed=[0])
    yield "common items without a secret", render(withheld), "Frame { frame: 1, problem: Items(3) }"


def unopened(make, log, multi_proof):
    """Proofs that hold, and that whoever opens their groups refuses."""
    for name, used in [
        ("a common item too few", [0, 2]),
        ("no common item", []),
        ("a common item too many", [0, 1, 2, 4]),
        ("all common items", [0, 1, 2, 3, 4]),
    ]:
        yield dict(name=name, file=render(log.disclosed_items({1: [0]}, multi_proof, used)))
    first = lambda change: lambda name, text: change(text) if name == "a" else text
    bits = lambda text: int.from_bytes(text, "little")
    flip = lambda at: first(lambda text: (bits(text) ^ 1 << at).to_bytes(len(text), "little"))
    for name, change in [
        ("records that go on", first(lambda text: text + b"\0")),
        ("records that are cut off", first(lambda text: text[:-1])),
        ("records whose last bits are not zero", first(lambda text: text[:-1] + bytes([text[-1] | 0x80]))),
        # Behind the first bit and six of presence: one subject, the code of three letters that are spelled.
        ("a subject whose list is longer than any", flip(7)),
        ("a subject that was spelled before the first", flip(8)),
        ("a subject that is what the field had before", flip(9)),
    ]:
        yield dict(name=name, file=render(make(dict(records=change)).disclosed_items({1: [0]}, multi_proof, USED["a"])))
