"""Proofs: files that prove something about a log to whoever has its public key (docs/format.md, "Proofs")."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import columns, commitments, cose, events, notes, policies, records, rows, trees, units
from .commitments import Commitment
from .cursor import Cursor
from .hashes import sha256
from .refused import Refused
from .rows import BIT, FIELDS, Row

SINGLE, MANY = "c2sp.org/tlog-proof@v1", "bulla-multi-proof-v1"
GROWTH, EVENT = "bulla-consistency-v1", "bulla-event-v1"
# With what a receipt begins: the tag of a COSE_Sign1, and its array of four.
RECEIPT = b"\xd2\x84"
# How much of groups is opened, against the length of the file: it can come from anywhere.
EXPANSION = 256
LONGEST_ROW = 21_496_088


@dataclass
class DisclosedRow:
    number: int
    row: Row


@dataclass
class DisclosedGroup:
    numbers: list[int]
    shared: list[Row]
    personal: int
    subjects: list[int]
    ciphertext: bytes
    commitment: bytes
    secret: Optional[bytes]


Unit = Union[DisclosedRow, DisclosedGroup]


@dataclass
class DisclosedFrame:
    commitment: Commitment
    units: list[Unit]
    # By position; nothing where one is not disclosed.
    items: list[Optional[bytes]]


@dataclass
class EntriesProof:
    # Nothing of a receipt, which has a head in COSE.
    checkpoint: Optional[notes.Checkpoint]
    frames: list[DisclosedFrame]
    length: int


@dataclass
class EventProof:
    checkpoint: notes.Checkpoint
    commitment: Commitment
    body: bytes


@dataclass
class GrowthProof:
    checkpoint: notes.Checkpoint
    old: notes.Checkpoint


Proof = Union[EntriesProof, EventProof, GrowthProof]


class AnotherFile(Refused):
    """The file does not begin as a proof: as far as anybody can tell it is not one that was altered, but another file."""


class Lines:
    """A proof's lines, above its checkpoint."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def next_is(self, name: str) -> bool:
        return bool(self.lines) and self.lines[0].startswith(name + " ")

    def value(self, name: str) -> str:
        if not self.next_is(name):
            raise Refused("proof", f"must have a line `{name}` there")
        return self.lines.pop(0)[len(name) + 1 :]

    def data(self, name: str) -> bytes:
        return notes.base64_bytes(self.value(name), "proof")

    def hashes(self) -> list[bytes]:
        found = [notes.base64_bytes(line, "proof") for line in self.lines]
        if any(len(it) != 32 for it in found):
            raise Refused("proof", "a hash must have 32 bytes")
        return found


def read(data: bytes, key: Optional[notes.Verifier], policy: Optional[policies.Policy] = None) -> Proof:
    """A proof that holds: by itself, with a key by its signature, with a policy by that. Refuses any other file."""
    if data.startswith(RECEIPT):
        if policy is not None:
            raise AnotherFile("proof", "must be no receipt, which no witness cosigns, where a policy judges it")
        return receipt(data, key)
    if not data.startswith(tuple(f"{kind}\n".encode() for kind in (SINGLE, MANY, GROWTH, EVENT))):
        raise AnotherFile("proof", "the first line must be that of a kind of proof")
    text = notes.text_of(data, "proof")
    head, gap, signed = text.partition("\n\n")
    first, _, rest = head.partition("\n")
    if not gap:
        raise Refused("proof", "must have an empty line and a checkpoint")
    checkpoint = notes.checkpoint(signed)
    lines = Lines(rest.split("\n") if rest else [])
    if first == GROWTH:
        proof: Proof = growth(lines, checkpoint)
    elif first == EVENT:
        proof = event(lines, checkpoint)
    else:
        proof = entries(lines, checkpoint, first == MANY, len(data))
    if key is not None:
        for it in [proof.checkpoint] + ([proof.old] if isinstance(proof, GrowthProof) else []):
            assert it is not None
            check_signature(it, key)
    if policy is not None:
        policy.check(proof.checkpoint)
        if isinstance(proof, GrowthProof):
            policy.check_log(proof.old)
    return proof


def receipt(data: bytes, key: Optional[notes.Verifier]) -> EntriesProof:
    """A proof of entries as a receipt of RFC 9942."""
    found = cose.receipt(data)
    indexes = [index for index, _ in found.paths]
    if any(a >= b for a, b in zip(indexes, indexes[1:])):
        raise Refused("receipt", "the frames must ascend")
    frames = disclosed_frames(Cursor(found.disclosure, "disclosure"), indexes)
    size = found.head.size
    roots = {
        trees.multi_proof({index: trees.leaf(frame.commitment.encoded)}, size, path)
        for (index, path), frame in zip(found.paths, frames)
    }
    if len(roots) != 1:
        raise Refused("receipt", "all paths must lead to one root")
    if key is not None:
        found.head.check(roots.pop(), key)
    return EntriesProof(None, frames, len(data))


def check_signature(checkpoint: notes.Checkpoint, key: notes.Verifier) -> None:
    if checkpoint.origin != key.name:
        raise Refused("checkpoint", f"must be of {key.name}, and is of {checkpoint.origin}")
    if not key.signed(checkpoint.note):
        raise Refused("checkpoint", f"must be signed with the key of {key.name}")


def growth(lines: Lines, new: notes.Checkpoint) -> GrowthProof:
    old = notes.checkpoint(notes.text_of(lines.data("old"), "checkpoint"))
    if old.origin != new.origin:
        raise Refused("proof of consistency", "both checkpoints must be of one origin")
    trees.check_growth((old.size, old.root), (new.size, new.root), lines.hashes())
    return GrowthProof(new, old)


def event(lines: Lines, checkpoint: notes.Checkpoint) -> EventProof:
    commitment = commitments.decoded(lines.data("commitment"))
    body = lines.data("event")
    if len(body) > events.MOST:
        raise Refused("proof of an event", "the event must be at most 1 MiB")
    if commitment.kind != commitments.EVENT:
        raise Refused("proof of an event", "the frame must be an event")
    if sha256(body) != commitment.body_digest:
        raise Refused("proof of an event", "the body must have the digest in the commitment")
    check_tree([commitment], checkpoint, lines.hashes())
    return EventProof(checkpoint, commitment, body)


def check_tree(frames: list[Commitment], checkpoint: notes.Checkpoint, proof: list[bytes]) -> None:
    if any(it.frame >= checkpoint.size for it in frames):
        raise Refused("proof", "a frame must be below the checkpoint's size")
    leaves = {it.frame: trees.leaf(it.encoded) for it in frames}
    root = trees.multi_proof(leaves, checkpoint.size, proof)
    if root != checkpoint.root:
        raise Refused("proof", "does not lead to the checkpoint's root", (checkpoint.root, root))


def entries(lines: Lines, checkpoint: notes.Checkpoint, many: bool, length: int) -> EntriesProof:
    disclosure = Cursor(lines.data("extra"), "disclosure")
    indexes = [notes.decimal(lines.value("index"), "proof", "an index must be a decimal number")]
    while many and lines.next_is("index"):
        indexes.append(notes.decimal(lines.value("index"), "proof", "an index must be a decimal number"))
    if many and len(indexes) < 2 or any(a >= b for a, b in zip(indexes, indexes[1:])):
        raise Refused("proof", "a proof of several frames must have two indexes or more, ascending")
    hashes = lines.hashes()
    frames = disclosed_frames(disclosure, indexes)
    check_tree([frame.commitment for frame in frames], checkpoint, hashes)
    return EntriesProof(checkpoint, frames, length)


def disclosed_frames(disclosure: Cursor, indexes: list[int]) -> list[DisclosedFrame]:
    if disclosure.u8() != 1:
        raise disclosure.refuse("the version must be 1")
    frames = [disclosed_frame(disclosure, index) for index in indexes]
    disclosure.end()
    for before, after in zip(frames, frames[1:]):
        one, other = before.commitment, after.commitment
        if (one.log_id, one.hash) != (other.log_id, other.hash):
            raise Refused("disclosure", "commitments must be of one log and one hash")
        if other.first_entry < one.next_entry:
            raise Refused("disclosure", "a frame's first entry must be after the last of the frame before")
    return frames


def disclosed_frame(cursor: Cursor, index: int) -> DisclosedFrame:
    commitment = commitments.decoded(cursor.take(commitments.LENGTH))
    if commitment.kind != commitments.BLOCK or commitment.frame != index:
        raise cursor.refuse("a commitment must be of a block, with the number of its index line")
    count = cursor.varint()
    if not 1 <= count <= commitment.units:
        raise cursor.refuse("must disclose from 1 to as many units as the block has")
    leaves: dict[int, bytes] = {}
    found: list[Unit] = []
    position = -1
    for _ in range(count):
        position += cursor.varint() + 1
        if position >= commitment.units:
            raise cursor.refuse("a unit's position must be in the block's tree")
        unit, leaves[position] = disclosed_unit(cursor, commitment)
        found.append(unit)
    check_apart(cursor, found)
    items = disclosed_items(cursor, commitment, found, leaves)
    shape = trees.block(commitment.hash)
    size = commitment.units + len(items)
    proof = [cursor.take(32) for _ in range(trees.needed(list(leaves), size, shape))]
    top = trees.multi_proof(leaves, size, proof, shape)
    root = trees.block_root(commitment.hash, commitment.units, len(items), top)
    if root != commitment.root:
        raise Refused(cursor.structure, "the units must lead to the block's root", (commitment.root, root))
    for number, row in (one for unit in found for one in unit_rows(unit)):
        if not commitment.earliest <= row.time // 10**9 <= commitment.latest:
            raise cursor.refuse(f"the time of entry {number} must be within those of its frame")
    return DisclosedFrame(commitment, found, items)


def disclosed_items(
    cursor: Cursor, commitment: Commitment, found: list[Unit], leaves: dict[int, bytes]
) -> list[Optional[bytes]]:
    """The common items of a block, of which a proof discloses some; their leaves stand behind the units."""
    count, disclosed = cursor.varint(), cursor.varint()
    if count > records.MOST_ITEMS or disclosed > count:
        raise cursor.refuse("must have as many common items as a block may have, and disclose no more")
    if disclosed and not any(isinstance(unit, DisclosedGroup) and unit.secret for unit in found):
        raise cursor.refuse("must disclose no common item without a secret")
    items: list[Optional[bytes]] = [None] * count
    position = -1
    for _ in range(disclosed):
        position += cursor.varint() + 1
        if position >= count:
            raise cursor.refuse("a common item's position must be in the block's tree")
        salt = cursor.take(16)
        item = cursor.take(cursor.varint())
        items[position] = item
        leaves[commitment.units + position] = units.item_leaf(commitment.hash, salt, position, item)
    return items


def unit_rows(unit: Unit) -> list[tuple[int, Row]]:
    if isinstance(unit, DisclosedRow):
        return [(unit.number, unit.row)]
    return list(zip(unit.numbers, unit.shared))


def check_apart(cursor: Cursor, found: list[Unit]) -> None:
    firsts = [unit_rows(unit)[0][0] for unit in found]
    if any(a >= b for a, b in zip(firsts, firsts[1:])):
        raise cursor.refuse("the units' first entries must ascend")
    numbers = [number for unit in found for number, _ in unit_rows(unit)]
    if len(set(numbers)) != len(numbers):
        raise cursor.refuse("units must have no entry in common")


def disclosed_unit(cursor: Cursor, commitment: Commitment) -> tuple[Unit, bytes]:
    kind = cursor.u8()
    if kind not in (units.ROW, units.GROUP):
        raise cursor.refuse("a unit must be a row or a group")
    salt = cursor.take(16)
    if kind == units.GROUP:
        group = disclosed_group(cursor, commitment)
        places = [number - commitment.first_entry for number in group.numbers]
        encoded = [(place, row.encoded()) for place, row in zip(places, group.shared)]
        unit = units.group_unit(
            commitment.hash, salt, encoded, group.personal, group.subjects, group.ciphertext, group.commitment
        )
        return group, unit
    offset = cursor.varint()
    if offset >= commitment.entries:
        raise cursor.refuse("an entry's number must be in the frame")
    number = commitment.first_entry + offset
    encoded_row = cursor.take(cursor.varint())
    row = rows.decoded(encoded_row)
    return DisclosedRow(number, row), units.row_unit(commitment.hash, salt, offset, encoded_row)


def disclosed_group(cursor: Cursor, commitment: Commitment) -> DisclosedGroup:
    personal = cursor.unsigned(2)
    columns.check_personal(cursor, personal)
    count = cursor.varint()
    if not 1 <= count <= commitment.entries:
        raise cursor.refuse("a group must have from 1 to as many entries as the frame")
    numbers, shared = [], []
    offset = -1
    for _ in range(count):
        offset += cursor.varint() + 1
        if offset >= commitment.entries:
            raise cursor.refuse("an entry's number must be in the frame")
        numbers.append(commitment.first_entry + offset)
        row = rows.decoded(cursor.take(cursor.varint()))
        if row.presence() & personal:
            raise cursor.refuse("a shared row must have no personal field")
        shared.append(row)
    howmany = cursor.varint()
    if not 1 <= howmany <= rows.SUBJECTS:
        raise cursor.refuse(f"a group must have from 1 to {rows.SUBJECTS} data subjects")
    subjects = [cursor.varint()]
    for _ in range(howmany - 1):
        subjects.append(subjects[-1] + cursor.varint() + 1)
    if subjects[-1] >= 1 << 64:
        raise cursor.refuse("a data subject's number must fit 64 bits")
    length = cursor.varint()
    if length < 1:
        raise cursor.refuse("a group's ciphertext must have a byte at least")
    ciphertext, key_commitment = cursor.take(length), cursor.take(32)
    follows = cursor.u8()
    if follows > 1:
        raise cursor.refuse("must say 0 or 1 of a secret")
    secret = cursor.take(32) if follows else None
    if secret is not None and units.group_keys(secret)[1] != key_commitment:
        raise cursor.refuse("a secret must be that of the group's commitment")
    return DisclosedGroup(numbers, shared, personal, subjects, ciphertext, key_commitment, secret)


def opened(proof: EntriesProof) -> list[tuple[int, Row, bool]]:
    """Number and row of every disclosed entry, in order, and whether its personal fields are withheld.

    Refuses a file with a group that its secret does not open.
    """
    found: list[tuple[int, Row, bool]] = []
    allowed = max(EXPANSION * proof.length, LONGEST_ROW)
    for frame in proof.frames:
        shared = sum(len(row.encoded()) + 4 for unit in frame.units for _, row in unit_rows(unit))
        left = frame.commitment.content_limit - shared
        used: set[int] = set()
        has_secret = any(isinstance(unit, DisclosedGroup) and unit.secret for unit in frame.units)
        if has_secret:
            for item in frame.items:
                if item is not None:
                    records.checked_item(Cursor(item, "common items"), item)
        for unit in frame.units:
            if isinstance(unit, DisclosedRow):
                found.append((unit.number, unit.row, False))
            elif unit.secret is None:
                found += [(number, row, True) for number, row in unit_rows(unit)]
            else:
                plaintext = units.decrypted(units.group_keys(unit.secret)[0], unit.ciphertext)
                mine = min(left, allowed)
                whole, rest = columns.open_group(plaintext, unit.personal, None, unit.shared, frame.items, used, mine)
                left, allowed = left - (mine - rest), allowed - (mine - rest)
                found += [(number, row, False) for number, row in zip(unit.numbers, whole)]
        if has_secret and used != {position for position, item in enumerate(frame.items) if item is not None}:
            raise Refused("common items", "must be those that the groups with a secret refer to")
    return sorted(found, key=lambda it: it[0])


def withheld_fields(personal: int) -> list[str]:
    return [name for name in FIELDS if personal >> BIT[name] & 1]


class NobodyOrders(Refused):
    """An erasure key is at hand, and the event is of a kind that has no order."""


def certificate(proof: EventProof, erasure_key: Optional[notes.Verifier]) -> Optional[dict[str, Any]]:
    """The event that a proof is of, once it is in accord with its order; nothing of an event that nobody orders."""
    found = events.decoded(proof.body)
    ordered: Union[events.Order, events.HoldOrder]
    if found["event"] in ("held", "released"):
        ordered = events.check_hold_order(found, proof.commitment.log_id)
        if found["event"] == "released" and found["held"] >= proof.commitment.frame:
            raise Refused("event", "a release must be of a hold in a frame before its own")
    elif found["event"] == "erased":
        ordered = events.check_accord(found, proof.commitment.log_id)
    elif found["event"] == "rekeyed":
        check_change(found, proof.commitment.log_id, erasure_key)
        return found
    elif erasure_key is not None:
        raise NobodyOrders("event", "must be an erasure, hold, release or change of the erasure key, to be checked with that key")
    else:
        return None
    if erasure_key is not None and not erasure_key.signed(ordered.note):
        raise Refused("erasure order", "must be signed with the erasure key")
    return found


def check_change(event: dict[str, Any], log_id: bytes, erasure_key: Optional[notes.Verifier]) -> None:
    """Refuses a change of the erasure key whose order does not hold, or which that key did not order; without a key it may have none."""
    if event["order"]:
        events.check_key_order(event, log_id)
    if erasure_key is not None and (not event["order"] or event["from"] != erasure_key.text):
        raise Refused("order of a key", "must be signed with the erasure key")


def check_order(proof: EventProof, erasure_key: Optional[notes.Verifier], file: bytes) -> list[str]:
    """The names in the file of an order to erase; refuses a file that is not that of the order in the event."""
    event = certificate(proof, erasure_key)
    names: list[str] = []
    if event is not None and event["event"] == "rekeyed":
        if file != event["order"].encode():
            raise Refused("order file", "must be the order that the event has")
        return names
    order: Union[events.Order, events.HoldOrder]
    if event is not None and event["event"] in ("held", "released"):
        order = events.hold_file(file)
    else:
        order, names = events.order_file(file)
    if event is None or events.order_digest(event["order"]) != events.order_digest(json.loads(file)["order"]):
        raise Refused("order file", "must be of the order that the event has")
    if erasure_key is not None and not erasure_key.signed(order.note):
        raise Refused("order file", "must be signed with the erasure key")
    return names
