"""Blocks as an identity opens them: rows, with what is personal of them where their keys are there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from . import age, columns, epochs, trees, units
from .commitments import Commitment
from .history import History
from .refused import Refused
from .rows import Row
from .segments import Frame
from .vault import Secrets


@dataclass
class OpenedRow:
    number: int
    row: Row
    withheld: Optional[str] = None


@dataclass
class OpenedBlock:
    rows: list[OpenedRow]
    # Data subjects' numbers of each group, by the places of its entries.
    groups: list[columns.Group]
    opened: list[bool] = field(default_factory=list)


class NotOpened(Exception):
    """There is no key for a block."""


class Opener:
    """Opens blocks with identities, and groups with the secrets that are at hand."""

    def __init__(self, history: History, identities: list[age.Identity], secrets: Optional[Secrets]) -> None:
        self.history = history
        self.identities = identities
        self.secrets = secrets
        # What an edited file says, the log did not.
        edited = any(it.kind == "config-mismatch" for it in history.log.findings)
        self.allows_items = edited or history.log.config.common
        self.allows_groups = edited or history.log.config.erasure
        self.allows_ungrouped = edited or not history.log.config.erasure
        self.keys: dict[int, Optional[epochs.EpochKeys]] = {}

    def epoch(self, number: int) -> Optional[epochs.EpochKeys]:
        """The keys of an epoch, where an identity opens it; notes an epoch whose key is not the one committed to."""
        if number not in self.keys:
            self.keys[number] = self.open_epoch(number)
        return self.keys[number]

    def open_epoch(self, number: int) -> Optional[epochs.EpochKeys]:
        log = self.history.log
        epoch = self.history.epochs.get(number)
        if epoch is None or epoch.body is None:
            return None
        try:
            return epochs.opened(epoch.body, self.identities, log.config.log_id, number)
        except age.NotForUs:
            return None
        except Refused as refused:
            log.find("epoch-invalid", str(refused), log.frames[number])
            return None

    def block(self, frame: Frame, body: bytes) -> OpenedBlock:
        """A block whose body has its digest. Refuses one that is not what was committed to."""
        it = frame.commitment
        keys = self.epoch(it.epoch)
        if keys is None:
            raise NotOpened
        block = columns.decoded(epochs.plaintext(keys, it, body), it.entries, it.content_limit)
        check_units(it, block, keys)
        if block.items and not self.allows_items:
            self.history.log.find("block-invalid", "has common items, which [log] does not ask for", frame)
        if block.groups and not self.allows_groups:
            self.history.log.find("block-invalid", "has groups, in a log without erasure", frame)
        grouped = {place for group in block.groups for place in group.places}
        ungrouped = (row for place, row in enumerate(block.rows) if place not in grouped)
        if not self.allows_ungrouped and any(row.values.get("subject") for row in ungrouped):
            self.history.log.find("block-invalid", "names data subjects outside of groups, in a log with erasure", frame)
        rows = [OpenedRow(it.first_entry + place, row) for place, row in enumerate(block.rows)]
        found = OpenedBlock(rows, block.groups)
        left = block.left
        for group in block.groups:
            left = self.group(it, keys, block, group, found, left)
        return found

    def group(
        self, it: Commitment, keys: epochs.EpochKeys, block: columns.Block, group: columns.Group, found: OpenedBlock, left: int
    ) -> int:
        """Opens a group of a block, or says why it does not open; gives what it leaves of the content limit."""
        secret, why = self.secret(it, keys, group)
        found.opened.append(secret is not None)
        if secret is None:
            for place in group.places:
                found.rows[place].withheld = why
            return left
        key, commitment = units.group_keys(secret)
        if commitment != group.commitment:
            raise Refused("group", "the key must be the one that is committed to")
        shared = [block.rows[place] for place in group.places]
        plaintext = units.decrypted(key, group.ciphertext)
        rows, left = columns.open_group(plaintext, block.personal, len(group.subjects), shared, block.items, set(), left)
        assert self.secrets is not None
        if not all(self.secrets.is_one_of(name, group.subjects) for name in set(rows[0].values["subject"])):
            raise Refused("group", "each name must have one of the group's numbers")
        for place, row in zip(group.places, rows):
            found.rows[place].row = row
        return left

    def secret(self, it: Commitment, keys: epochs.EpochKeys, group: columns.Group) -> tuple[Optional[bytes], Optional[str]]:
        erased = self.history.erased
        if self.secrets is None:
            return None, "not-given"
        if any(erased.get(number, -1) >= self.secrets.follows for number in group.subjects):
            return None, "erased"
        secret = self.secrets.secret(it.log_id, keys.random, it.frame, group.subjects)
        if secret is not None:
            return secret, None
        if any(number in erased for number in group.subjects):
            return None, "erased"
        return None, "key-lost" if self.secrets.has_all else "not-given"


class UnitsMismatch(Refused):
    """A block's entries are not those that were committed to."""


def check_units(it: Commitment, block: columns.Block, keys: epochs.EpochKeys) -> None:
    count = len(block.groups) + block.member.count(0)
    if count != it.units:
        raise UnitsMismatch("block", f"has {count} units, and {it.units} were committed to")
    found: list[bytes] = []
    salts = epochs.salts(keys, it.frame, count)
    seen = 0
    for place, row in enumerate(block.rows):
        salt = salts[len(found)] if len(found) < count else b""
        group = block.group_of(place)
        if group is None:
            found.append(units.row_unit(it.hash, salt, place, row.encoded()))
        elif block.member[place] > seen:
            seen += 1
            entries = [(at, block.rows[at].encoded()) for at in group.places]
            found.append(
                units.group_unit(it.hash, salt, entries, block.personal, group.subjects, group.ciphertext, group.commitment)
            )
    found += item_leaves(it, block, keys)
    top = trees.root(found, trees.block(it.hash))
    if trees.block_root(it.hash, count, len(block.items), top) != it.root:
        raise UnitsMismatch("block", "the entries do not have the root that was committed to")
    times = [row.time // 1_000_000_000 for row in block.rows]
    if (min(times), max(times)) != (it.earliest, it.latest):
        raise UnitsMismatch("block", "the entries do not have the times that were committed to")


def item_leaves(it: Commitment, block: columns.Block, keys: epochs.EpochKeys) -> list[bytes]:
    """The leaves of a block's common items."""
    salts = epochs.salts(keys, it.frame, len(block.items), epochs.FIRST_ITEM)
    each = enumerate(zip(salts, block.items))
    return [units.item_leaf(it.hash, salt, position, item or b"") for position, (salt, item) in each]
