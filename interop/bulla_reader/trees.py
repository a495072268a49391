"""Trees of RFC 6962: of the log and of a block, with proofs that leaves are in them or that one begins another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .hashes import HASHES, sha256
from .refused import Refused

MOST_LEAVES = 1 << 62
Node = Callable[[bytes, bytes], bytes]


def node(left: bytes, right: bytes) -> bytes:
    """A node of the log's tree."""
    return sha256(b"\x01" + left + right)


def leaf(commitment: bytes) -> bytes:
    return sha256(b"\x00" + commitment)


def root(leaves: Sequence[bytes], join: Node = node) -> bytes:
    """The tree over leaves that are hashes already."""
    if not leaves:
        return sha256(b"")
    level = list(leaves)
    while len(level) > 1:
        level = next_level(level, join)
    return level[0]


def next_level(level: Sequence[bytes], join: Node = node) -> list[bytes]:
    pairs = [join(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
    return pairs + list(level[len(level) & ~1 :])


def block_root(hash_: int, units: int, items: int, top: bytes) -> bytes:
    """A block's root, from the top of the tree over its units and common items."""
    return HASHES[hash_](b"\x02" + units.to_bytes(8, "little") + items.to_bytes(8, "little") + top).digest()


def block_node(hash_: int) -> Node:
    new = HASHES[hash_]
    return lambda left, right: new(b"\x01" + left + right).digest()


def needed(positions: Sequence[int], size: int) -> int:
    """How many hashes a multi-proof of these positions has."""
    known, count = list(positions), 0
    while size > 1:
        there = set(known)
        count += sum(1 for at in known if at ^ 1 < size and at ^ 1 not in there)
        known = sorted({at >> 1 for at in known})
        size = (size + 1) >> 1
    return count


def multi_proof(leaves: dict[int, bytes], size: int, proof: Sequence[bytes], join: Node = node) -> bytes:
    """The root of a tree of `size` leaves that these leaves and a proof's hashes come to. Every hash is used."""
    if not leaves:
        raise Refused("multi-proof", "must have a position")
    if size > MOST_LEAVES:
        raise Refused("multi-proof", "a tree must have at most 2^62 leaves")
    if not 0 <= min(leaves) <= max(leaves) < size:
        raise Refused("multi-proof", "a position is not in the tree")
    rest = iter(proof)
    known, width = dict(sorted(leaves.items())), size
    while width > 1:
        above: dict[int, bytes] = {}
        for at, value in known.items():
            if at & 1 and at ^ 1 in known:
                continue
            beside = at ^ 1
            if beside >= width:
                above[at >> 1] = value
                continue
            other = known[beside] if beside in known else next(rest, None)
            if other is None:
                raise Refused("multi-proof", "has too few hashes")
            above[at >> 1] = join(other, value) if at & 1 else join(value, other)
        known, width = above, (width + 1) >> 1
    if next(rest, None) is not None:
        raise Refused("multi-proof", "has hashes that nothing needs")
    return known[0]


def check_growth(old: tuple[int, bytes], new: tuple[int, bytes], proof: Sequence[bytes]) -> None:
    """Refuses unless the tree `new` (its size and root) begins with the tree `old` (RFC 6962, section 2.1.2)."""
    (old_size, old_root), (new_size, new_root) = old, new
    if max(old_size, new_size) > MOST_LEAVES:
        raise Refused("proof of consistency", "a tree must have at most 2^62 leaves")
    if old_size > new_size:
        raise Refused("proof of consistency", "the older tree must not be the larger one")
    if any(size == 0 and top != sha256(b"") for size, top in (old, new)):
        raise Refused("proof of consistency", "the root of an empty tree must be that of nothing")
    if old_size in (0, new_size):
        if proof:
            raise Refused("proof of consistency", "must have no hash")
        if old_size == new_size and old_root != new_root:
            raise Refused("proof of consistency", "trees of one size must have one root")
        return
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    if not path:
        raise Refused("proof of consistency", "has too few hashes")
    at, last = old_size - 1, new_size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    before = after = path[0]
    for beside in path[1:]:
        if last == 0:
            raise Refused("proof of consistency", "has hashes that nothing needs")
        if at & 1 or at == last:
            before, after = node(beside, before), node(beside, after)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            after = node(after, beside)
        at, last = at >> 1, last >> 1
    if last:
        raise Refused("proof of consistency", "has too few hashes")
    if before != old_root:
        raise Refused("proof of consistency", "does not lead to the older root")
    if after != new_root:
        raise Refused("proof of consistency", "does not lead to the newer root")
