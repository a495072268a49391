"""What a proof discloses of a block: rows, and groups of rows, opened where the proof tells how."""

import hashlib
import hmac
import struct

from .aes import TAG, open_sealed
from .basics import require
from .columns import read_group
from .rows import FIELDS, MAX_SUBJECTS, read_row, size
from .trees import multi_proof_root, proof_length

HASHES = {"sha256": hashlib.sha256, "sha3-256": hashlib.sha3_256}
SUBJECT = 1 << FIELDS.index("subject")


def integer(value):
    return struct.pack("<Q", value)


def counted(data):
    return integer(len(data)) + data


def ascending(disclosure, count, first, end, what):
    """So many numbers, told by how far each is from the least that it can be; each with what follows it."""
    for _ in range(count):
        number = first + disclosure.varint()
        require(number < end, f"{what} is past the last")
        first = number + 1
        yield number


def read_entries(disclosure, commitment, count):
    end = commitment["first"] + commitment["entries"]
    for number in ascending(disclosure, count, commitment["first"], end, "an entry"):
        row = disclosure.take(disclosure.varint())
        yield number, row, read_row(row)


def group_keys(secret):
    """The key of a group's ciphertext and the commitment to it: HKDF-Expand (RFC 5869)."""
    label, out = b"bulla group keys v1", b""
    for counter in (1, 2):
        out += hmac.new(secret, out[-32:] + label + bytes([counter]), hashlib.sha256).digest()
    return out[:32], out[32:]


def read_group_unit(disclosure, commitment):
    """What a group's unit hashes; its entries; and, to be checked once that is what was committed to, its secret."""
    personal = struct.unpack("<H", disclosure.take(2))[0]
    require(personal < 1 << len(FIELDS) and personal & SUBJECT, "a group's personal fields are none")
    count = disclosure.varint()
    require(1 <= count <= commitment["entries"], f"a group has {count} entries")
    entries = list(read_entries(disclosure, commitment, count))
    for _, row, _ in entries:
        require(not struct.unpack("<H", row[:2])[0] & personal, "a shared row has a personal field")
    count = disclosure.varint()
    require(1 <= count <= MAX_SUBJECTS, f"a group has {count} data subjects")
    subjects = list(ascending(disclosure, count, 0, 2**64, "a data subject"))
    ciphertext = disclosure.take(disclosure.varint())
    require(len(ciphertext) >= TAG, "a group's ciphertext is too short")
    promise, opened = disclosure.take(32), disclosure.byte()
    require(opened < 2, f"a group says {opened} of its secret")
    secret = disclosure.take(32) if opened else None
    hashed = b"".join([
        b"\1\1", integer(len(entries)), *(integer(number) for number, _, _ in entries), integer(personal),
        *(counted(row) for _, row, _ in entries), integer(len(subjects)), *map(integer, subjects), counted(ciphertext),
        promise])
    group = dict(personal=personal, ciphertext=ciphertext, promise=promise, secret=secret)
    return hashed, entries, group


def read_row_unit(disclosure, commitment):
    (number, row, entry), = read_entries(disclosure, commitment, 1)
    return b"\0\1" + integer(number) + row, [(number, row, entry)], None


def open_group(entries, group):
    """The whole entries of a group, or without its secret what is shared of them; and how many bytes that adds to rows."""
    if group["secret"] is None:
        return [(number, dict(entry, withheld="not-given")) for number, _, entry in entries], 0
    key, promise = group_keys(group["secret"])
    require(promise == group["promise"], "a secret is not the one that its group commits to")
    text = open_sealed(key, bytes(12), b"", group["ciphertext"])
    found = read_group(text, group["personal"], len(entries))
    added = sum(size(field, value) for personal in found for field, value in personal.items())
    return [(number, entry | personal) for (number, _, entry), personal in zip(entries, found)], added


def read_units(disclosure, commitment):
    """What is disclosed of a block: (entry number, entry), ascending."""
    def digest(*parts):
        return HASHES[commitment["hash"]](b"".join(parts)).digest()

    leaves, found, first, seen = {}, [], -1, set()
    count = disclosure.varint()
    require(1 <= count <= commitment["units"], f"frame {commitment['frame']} discloses {count} units")
    for position in ascending(disclosure, count, 0, commitment["units"], "a unit's position"):
        kind, codec, salt = disclosure.byte(), disclosure.byte(), disclosure.take(16)
        require(kind < 2 and codec == 1, f"a unit has kind {kind} and codec {codec}")
        hashed, entries, group = (read_group_unit if kind else read_row_unit)(disclosure, commitment)
        require(first < entries[0][0], "a unit's first entry does not come after that of the unit before it")
        first, numbers = entries[0][0], {number for number, _, _ in entries}
        require(not seen & numbers, "two units have one entry")
        seen |= numbers
        leaves[position] = digest(b"\0", salt, hashed)
        found.append((entries, group))
    nodes = [disclosure.take(32) for _ in range(proof_length(commitment["units"], set(leaves)))]
    top = multi_proof_root(lambda left, right: digest(b"\1", left, right), commitment["units"], leaves, nodes)
    root = digest(b"\2", integer(commitment["units"]), top)
    require(root == commitment["root"], f"frame {commitment['frame']} does not have what is disclosed of it")
    for number, _, entry in (one for entries, _ in found for one in entries):
        within = commitment["earliest"] <= entry["time"] // 10**9 <= commitment["latest"]
        require(within, f"the time of entry {number} is not within those of its frame")
    return sorted(open_groups(found, commitment), key=lambda one: one[0])


def open_groups(found, commitment):
    """All entries; what their rows take is within what the block declared."""
    out, content = [], sum(len(row) + 4 for entries, _ in found for _, row, _ in entries)
    for entries, group in found:
        opened, added = open_group(entries, group) if group else ([(number, entry) for number, _, entry in entries], 0)
        out, content = out + opened, content + added
        require(not added or content <= commitment["content"], "a group holds more than its block declared")
    return out
