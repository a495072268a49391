"""The vectors of proofs that disclose groups, for make.py: what they disclose, opened or not, and what is refused."""

import copy
import hashlib
import hmac
import struct

import blocks
import proofs
import records
from proofs import Log, ORIGIN, SEED, render, varint

SHARED = ["controller", "processor", "purpose", "status", "duration", "size", "flags"]
FIELDS = SHARED + ["location", "client", "actor", "stream", "payload", "subjects"]
NUMBERS = {"status", "duration", "size", "flags"}
USUAL = sum(1 << FIELDS.index(field) for field in FIELDS if field not in SHARED)
FEW = 1 << FIELDS.index("subjects") | 1 << FIELDS.index("purpose") | 1 << FIELDS.index("status")
TOP = 2**64 - 1
# A secret of no subjects' keys.
OTHER = bytes([77]) * 32

# By block: presence bits of the personal fields, and each entry's group.
BLOCKS = {
    1: (USUAL, [None, "a", "b", "a", None, "b", "c", None, "a", "c", None, "b"]),
    2: (FEW, ["d", "d", "d"]),
    4: (USUAL, ["e"] + [None] * 39),
}
SUBJECTS = {"a": [3], "b": [3, 2**40], "c": [0, TOP], "d": list(range(128, 192)), "e": [7]}


def u64(value):
    return struct.pack("<Q", value)


# The plaintext of a group: every integer column `packed` at width 64, every string column `plain`, nothing compressed.

def integers(values):
    if not values:
        return b""
    chunks = [values[at:at + 512] for at in range(0, len(values), 512)]
    return b"\1\0\1" + b"".join(b"\0\x40" + b"".join(map(u64, chunk)) for chunk in chunks)


def strings(values):
    together = b"".join(values)
    lengths = integers([len(value) for value in values])
    return b"\2" + lengths + (b"\0" + together if together else b"") if values else b""


def column(field, entries):
    has = [field in entry for entry in entries]
    values = [entry[field] for entry in entries if field in entry]
    bits = sum(one << at for at, one in enumerate(has)).to_bytes((len(has) + 7) // 8, "little")
    out = b"\0" if not values else b"\1" if all(has) else b"\2\0" + bits
    if field in NUMBERS:
        return out + integers(values)
    if field == "subjects":
        names = [name.encode() for value in values for name in value]
        return out + integers([len(value) for value in values]) + strings(names)
    return out + strings([bytes.fromhex(value) if field in ("location", "payload") else value.encode() for value in values])


def plaintext(personal, entries):
    return b"\0" + b"".join(column(field, entries) for bit, field in enumerate(FIELDS) if personal >> bit & 1)


def expand(secret, info, length):
    """HKDF-Expand, RFC 5869, section 2.3."""
    out, block = b"", b""
    for counter in range(1, (length + 31) // 32 + 1):
        block = hmac.new(secret, block + info + bytes([counter]), hashlib.sha256).digest()
        out += block
    return out[:length]


def group_secret(log, random, frame, subjects):
    """From keys of the subjects that are the hashes of their numbers."""
    keys = b"".join(hashlib.sha256(f"subject {number}".encode()).digest() for number in subjects)
    place = b"bulla group v1" + log + random + u64(frame)
    return expand(keys, place + u64(len(subjects)) + b"".join(map(u64, subjects)), 32)


class GroupedLog(Log):
    """Five frames: an epoch, two blocks with groups, an event, and a block of one group and many rows."""

    LAYOUT = [("epoch", 0), ("block", 12), ("block", 3), ("event", 0), ("block", 40)]
    USUAL = USUAL

    def __init__(self, hash_name, encode, commitment, tree, row, garble=None):
        self.write, self.random, self.garble = row, bytes(range(32)), garble or {}
        super().__init__(hash_name, encode, commitment, tree, row, self.LAYOUT, self.garble.get("declared"))

    def entry(self, number, group):
        entry = dict(time=1700000000000000000 + number, operation="read", location=f"user_{number}/ü".encode().hex())
        if number % 2:
            entry.update(status=number, purpose="support")
        if group:
            entry.update(subjects=[f"subject {subject}" for subject in SUBJECTS[group][:2]])
        if number % 3 == 0:
            entry.update(payload="00ff" * number, stream="", client="192.0.2.7")
        return entry

    def members(self, frame):
        """The personal fields of a block, and each entry's group."""
        return BLOCKS[frame]

    def plaintext(self, personal, name, entries):
        return plaintext(personal, entries)

    def units(self, frame, count, first, row):
        personal, members = self.members(frame)
        units, known = [], {}
        for index, name in enumerate(members):
            entry = self.entry(first + index, name)
            if name in known:
                known[name]["entries"].append((first + index, entry))
                continue
            salt = hashlib.sha256(f"salt {frame} {len(units)}".encode()).digest()[:16]
            unit = dict(salt=salt, entries=[(first + index, entry)], name=name)
            units.append(unit)
            if name:
                known[name] = unit
        return [self.group(frame, first, personal, unit) if unit["name"] else self.row(first, unit) for unit in units]

    def row(self, first, unit):
        (number, entry), = unit["entries"]
        content = self.write(entry)
        hashed = blocks.unit(self.digest, blocks.ROW, unit["salt"], blocks.row_content(number - first, content))
        return dict(salt=unit["salt"], entry=number, row=content, hash=hashed, kind=blocks.ROW, whole=[(number, content)])

    def group(self, frame, first, personal, unit):
        entries, subjects = unit["entries"], SUBJECTS[unit["name"]]
        private = {field for bit, field in enumerate(FIELDS) if personal >> bit & 1}
        shared = [(number, self.write({key: entry[key] for key in entry if key not in private}))
                  for number, entry in entries]
        usual = group_secret(bytes(range(16)), self.random, frame, subjects)
        secret, committed = (self.garble.get(which, usual) for which in ("encrypted", "committed"))
        key = expand(secret, b"bulla group keys v2", 64)[:32]
        promise = expand(committed, b"bulla group keys v2", 64)[32:]
        text = self.plaintext(personal, unit["name"], [entry for _, entry in entries])
        text = self.garble.get("text", lambda text: text)(text)
        ciphertext = self.garble.get("sealed", lambda data: data)(proofs.seal.ctr(key, text))
        places = [(number - first, row) for number, row in shared]
        content = blocks.group_content(personal, places, subjects, ciphertext, promise)
        return dict(salt=unit["salt"], kind=blocks.GROUP, personal=personal, entries=shared, subjects=subjects,
                    ciphertext=ciphertext, promise=promise, secret=secret,
                    hash=blocks.unit(self.digest, blocks.GROUP, unit["salt"], content),
                    whole=[(number, self.write(entry)) for number, entry in entries])

    def disclosed(self, chosen, multi_proof, closed=()):
        """The parts of a proof; without the secrets of `closed`, (frame, position)."""
        parts = copy.deepcopy(self.proof(chosen, multi_proof, len(self.frames)))
        for number, frame in zip(sorted(chosen), parts["frames"]):
            for unit in frame["units"]:
                if (number, unit["position"]) in closed:
                    unit["secret"] = None
        return parts


def described(unit):
    return dict(entries=[[number, row.hex()] for number, row in unit["entries"]], subjects=unit["subjects"],
                personal=unit["personal"], secret=unit["secret"].hex() if unit["secret"] else None)


def accepted(logs, multi_proof):
    for name, hash_name, chosen, closed in [
        ("a group with its secret", "sha256", {1: [1]}, []),
        ("a group without its secret", "sha256", {1: [1]}, [(1, 1)]),
        ("every unit of a block", "sha256", {1: [0, 1, 2, 3, 4, 5, 6]}, []),
        ("every unit, one group without its secret", "sha3-256", {1: [0, 1, 2, 3, 4, 5, 6]}, [(1, 2)]),
        ("the only unit of a block, of 64 data subjects, with other personal fields", "sha256", {2: [0]}, []),
        ("rows alone of a block with groups", "sha256", {1: [0, 3, 6]}, []),
        ("groups and rows of several blocks", "sha3-256", {1: [2, 3], 2: [0], 4: [0, 1, 39]}, [(2, 0)]),
    ]:
        yield proven(name, logs[hash_name].disclosed(chosen, multi_proof, closed))


def accepted_records(logs, multi_proof):
    both = sorted(records.USED["a"] + records.USED["b"])
    for name, hash_name, positions, used, closed in [
        ("a group of records, and the common items that it refers to", "sha256", [0], records.USED["a"], []),
        ("a group of records of which the secret is withheld", "sha256", [0], [], [0]),
        ("two groups of records", "sha3-256", [0, 1], both, []),
        ("two groups of records, one without its secret", "sha256", [0, 1], records.USED["b"], [0]),
    ]:
        yield proven(name, logs[hash_name].disclosed_items({1: positions}, multi_proof, used, closed))


def proven(name, parts):
    units = [unit for frame in parts["frames"] for unit in frame["units"]]
    opened = []
    for unit in units:
        withheld = unit["kind"] == blocks.GROUP and not unit["secret"]
        rows = unit["entries"] if withheld else unit["whole"]
        opened += [[number, row.hex(), withheld] for number, row in rows]
    return dict(name=name, file=render(parts), units=len(units),
                entries=[[unit["entry"], unit["row"].hex()] for unit in units if unit["kind"] == blocks.ROW],
                groups=[described(unit) for unit in units if unit["kind"] == blocks.GROUP], opened=sorted(opened))


def refused(log, multi_proof):
    both, only = log.disclosed({1: [1, 2]}, multi_proof), log.disclosed({2: [0]}, multi_proof)
    many = log.disclosed({4: [0]}, multi_proof)
    one, two = both["frames"][0]["units"]
    moved = lambda numbers: [(number, row) for number, (_, row) in zip(numbers, two["entries"])]
    first_row = one["entries"][0][1]
    at = lambda frame, unit, problem: f"Unit {{ frame: {frame}, unit: {unit}, problem: {problem} }}"
    of_frame = lambda frame, problem: f"Frame {{ frame: {frame}, problem: {problem} }}"
    root = of_frame(1, "Root")
    flipped = lambda data: bytes([data[0] ^ 1]) + data[1:]
    presence = lambda row, bits: struct.pack("<H", struct.unpack("<H", row[:2])[0] | bits) + row[2:]
    plain = log.write(dict(time=0, operation="x", location=b"here".hex()))

    # What can be told from the form, of the first or the second of two groups.
    for name, number, problem, change in [
        ("the kind of a root", 0, "Kind(2)", dict(kind=blocks.ROOT)),
        ("the kind of a node", 1, "Kind(6)", dict(kind=blocks.NODE)),
        ("personal fields without the data subjects", 0, "Personal(3968)", dict(personal=USUAL - 4096)),
        ("no personal fields", 0, "Personal(0)", dict(personal=0)),
        ("personal fields that are unknown", 0, f"Personal({USUAL + 8192})", dict(personal=USUAL + 8192)),
        ("no entries", 0, "Entries(0)", dict(count=0)),
        ("more entries than the block has", 0, "Entries(13)", dict(count=13)),
        ("as many entries as integers go", 0, f"Entries({TOP})", dict(count=TOP)),
        ("an entry before the frame's", 0, "Entry", dict(entries=[(TOP, first_row)])),
        ("an entry after the frame's", 1, "Entry", dict(entries=moved([2, 5, 12]))),
        ("an entry twice", 1, "Entry", dict(entries=moved([2, 5, 5]))),
        ("entries that descend", 1, "Entry", dict(entries=moved([5, 2, 11]))),
        ("an entry that is not in its shortest form", 1, "NotMinimal", dict(distances=[b"\x82\0", b"\2", b"\5"])),
        ("a first entry before that of the unit before it", 1, "Order", dict(entries=moved([0, 5, 11]))),
        ("a first entry that the unit before it has too", 1, "Order", dict(entries=moved([1, 5, 11]))),
        ("an entry that the unit before it has too", 1, "Repeated", dict(entries=moved([2, 3, 11]))),
        ("the last entry of the unit before it", 1, "Repeated", dict(entries=moved([2, 5, 8]))),
        ("a row of all memory", 0, "Truncated", dict(row_length=TOP)),
        ("a row that is not canonical", 0, "Row(UnknownField)", dict(entries=[(1, presence(first_row, 1 << 15))])),
        ("a shared row that goes on", 0, "Row(LeftOver)", dict(entries=[(1, first_row + b"\0")])),
        ("an empty shared row", 0, "Row(Truncated)", dict(entries=[(1, b"")])),
        ("a shared row with a personal field", 0, "NotShared(1)", dict(entries=[(1, plain)])),
        ("no data subjects", 0, "Subjects(0)", dict(subjects=[])),
        ("65 data subjects", 0, "Subjects(65)", dict(subjects=list(range(65)))),
        ("as many data subjects as integers go", 0, f"Subjects({TOP})", dict(subject_count=TOP)),
        ("a data subject past the last", 1, "Subject", dict(subject_distances=[varint(3), varint(TOP)])),
        ("a data subject after the last", 1, "Subject", dict(subject_distances=[varint(TOP), varint(0)])),
        ("a data subject twice", 1, "Subject", dict(subjects=[3, 3])),
                ("no ciphertext", 0, "Ciphertext(0)", dict(ciphertext=b"")),
        ("a ciphertext of all memory", 0, "Truncated", dict(ciphertext_length=TOP)),
        ("a secret that is there and not", 0, "Opened(2)", dict(opened=2)),
        ("a secret of any kind", 0, "Opened(255)", dict(opened=255)),
    ]:
        yield name, proofs.altered(both, lambda parts: parts["frames"][0]["units"][number].update(change)), at(1, number, problem)

    # What is not there. A secret that is denied stands where the number of common items does, and how many are disclosed.
    def denied(parts):
        values, place = [0], 0
        for byte in parts["frames"][0]["units"][0]["secret"]:
            values[-1] |= byte % 128 << 7 * place
            place += 1
            if byte < 128:
                values, place = [*values, 0], 0
        return values[0] if values[0] > 4092 else values[1]

    for name, parts, problem, change in [
        ("entries that are not there", many, at(4, 0, "Truncated"), dict(count=40)),
        ("a commitment that is cut off", only, of_frame(2, "Truncated"), dict(promise=bytes(31), opened=0, secret=None)),
        ("a secret that is not there", only, at(2, 0, "Truncated"), dict(opened=1, secret=None)),
        ("a secret that is cut off", only, of_frame(2, "Truncated"), dict(secret=bytes(31))),
        ("a secret that is told and denied", only, of_frame(2, f"Items({denied(only)})"), dict(opened=0)),
        ("a secret that goes on", only, "LeftOver(1)", dict(secret=only["frames"][0]["units"][0]["secret"] + b"\0")),
    ]:
        yield name, proofs.altered(parts, lambda parts: parts["frames"][0]["units"][0].update(change)), problem

    # What has the right form and does not hold.
    for name, problem, change in [
        ("a row less", root, dict(entries=one["entries"][:2])),
        ("an entry's number", root, dict(entries=[(1, first_row), *((number - 1 if number == 8 else number, row)
                                                                    for number, row in one["entries"][1:])])),
        ("another shared row", root, dict(entries=[(1, log.write(dict(time=0, operation="x"))), *one["entries"][1:]])),
        ("other personal fields", root, dict(personal=USUAL | 1)),
        ("another data subject", root, dict(subjects=[4])),
        ("another data subject besides", root, dict(subjects=[3, 4])),
        ("another ciphertext", root, dict(ciphertext=flipped(one["ciphertext"]))),
        ("another commitment", root, dict(promise=flipped(one["promise"]))),
        ("another commitment, without a secret", root, dict(promise=flipped(one["promise"]), secret=None)),
        ("another salt", root, dict(salt=bytes(16))),
        ("the secret of another group", at(1, 0, "Secret"), dict(secret=two["secret"])),
        ("a secret of nothing", at(1, 0, "Secret"), dict(secret=bytes(32))),
        ("a secret with a bit altered", at(1, 0, "Secret"), dict(secret=flipped(one["secret"]))),
    ]:
        yield name, proofs.altered(both, lambda parts: parts["frames"][0]["units"][0].update(change)), problem


def other_secrets(make, written, multi_proof, **garble):
    """A group in columns and one of records, whose ciphertexts have sense under a secret that is disclosed, and their log's is not."""
    garble = dict(garble, encrypted=OTHER)
    yield "a group in columns", make(garble).disclosed({1: [1]}, multi_proof)
    yield "a group of records", written(garble).disclosed_items({1: [0]}, multi_proof, records.USED["a"])


def refused_secrets(make, written, multi_proof):
    """Nobody who compares the commitment first sees what they hold."""
    for name, parts in other_secrets(make, written, multi_proof):
        yield f"{name} under a secret that it does not commit to", render(parts), "Unit { frame: 1, unit: 0, problem: Secret }"


def refused_times(make, multi_proof):
    """A log that committed to other times than its rows have: those of groups count, opened or not."""
    log = make(dict(declared=dict(earliest=1700000001)))
    for name, closed in [("a group from before its block's earliest", []), ("the same without its secret", [(1, 1)])]:
        yield name, render(log.disclosed({1: [1]}, multi_proof, closed)), "Unit { frame: 1, unit: 0, problem: Time(1) }"


def unopened(make, multi_proof):
    """Logs that committed to groups which do not open: the proofs hold, and their groups are refused."""
    for name, garble in [
        ("a ciphertext with a bit altered", dict(sealed=lambda data: bytes([data[0] ^ 1]) + data[1:])),
        ("a ciphertext that goes on", dict(sealed=lambda data: data + b"\0")),
        ("a plaintext that goes on", dict(text=lambda text: text + b"\0")),
        ("a plaintext that is cut off", dict(text=lambda text: text[:-1])),
        ("another form of column", dict(text=lambda text: b"\0\3" + text[2:])),
        ("neither columns nor records", dict(text=lambda text: b"\2" + text[1:])),
        ("a location of another length", dict(text=lambda text: text.replace(u64(9), u64(10), 1))),
        ("a location of all memory", dict(text=lambda text: text.replace(u64(9), u64(2**63), 1))),
        ("rows of more bytes than the block declared", dict(declared=dict(content_log2=8))),
    ]:
        chosen = {1: [0, 1, 2, 3] if "declared" in garble else [1]}
        yield dict(name=name, file=render(make(garble).disclosed(chosen, multi_proof)))


def vectors(encode, commitment, tree, multi_proof, row):
    make = lambda garble=None, name="sha256": GroupedLog(name, encode, commitment, tree, row, garble)
    logs = {name: make(name=name) for name in proofs.HASHES}
    RecordsLog = records.records_log(GroupedLog)
    written = lambda garble=None, name="sha256": RecordsLog(name, encode, commitment, tree, row, garble)
    of_records = {name: written(name=name) for name in proofs.HASHES}
    wrong = [*refused(logs["sha256"], multi_proof), *refused_times(make, multi_proof), *refused_secrets(make, written, multi_proof),
             *records.refused(of_records["sha256"], multi_proof)]
    committed = [proven(f"{name} under a secret that it does commit to", parts)
                 for name, parts in other_secrets(make, written, multi_proof, committed=OTHER)]
    named = [dict(name=name, file=file, error=error) for name, file, error in wrong]
    return dict(vkey=proofs.vkey(ORIGIN, SEED), refused=named,
                proofs=[*accepted(logs, multi_proof), *accepted_records(of_records, multi_proof), *committed],
                unopened=[*unopened(make, multi_proof), *records.unopened(written, of_records["sha256"], multi_proof)])
