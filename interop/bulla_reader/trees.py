"""The log's tree (RFC 6962) and a block's, with proofs that leaves are in them or that one begins another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .hashes import HASHES, sha256
from .refused import Refused

MOST_LEAVES = 1 << 62


@dataclass(frozen=True)
class Shape:
    """How many children a node has at most, and what it is of them. A lone one at the end of a level goes up as it is."""

    arity: int
    join: Callable[[Sequence[bytes]], bytes]

    def above(self, children: Sequence[bytes]) -> bytes:
        return self.join(children) if len(children) > 1 else children[0]

    def children(self, parent: int, width: int) -> range:
        """Where in a level of so many nodes those below a node of the next are."""
        return range(parent * self.arity, min((parent + 1) * self.arity, width))


def node(left: bytes, right: bytes) -> bytes:
    """A node of the log's tree."""
    return sha256(b"\x01" + left + right)


def leaf(commitment: bytes) -> bytes:
    return sha256(b"\x00" + commitment)


LOG = Shape(2, lambda children: node(*children))


def block(hash_: int) -> Shape:
    """The tree of a block whose units are hashed so."""
    return Shape(4, lambda children: HASHES[hash_](b"\x06" + b"".join(children)).digest())


def root(leaves: Sequence[bytes], shape: Shape = LOG) -> bytes:
    """The tree over leaves that are hashes already."""
    if not leaves:
        return sha256(b"")
    level = list(leaves)
    while len(level) > 1:
        level = next_level(level, shape)
    return level[0]


def next_level(level: Sequence[bytes], shape: Shape = LOG) -> list[bytes]:
    return [shape.above(level[at : at + shape.arity]) for at in range(0, len(level), shape.arity)]


def block_root(hash_: int, units: int, items: int, top: bytes) -> bytes:
    """A block's root, from the top of the tree over its units and common items."""
    return HASHES[hash_](b"\x02" + units.to_bytes(8, "little") + items.to_bytes(8, "little") + top).digest()


def needed(positions: Sequence[int], size: int, shape: Shape = LOG) -> int:
    """How many hashes a multi-proof of these positions has."""
    known, count = set(positions), 0
    while size > 1:
        parents = {at // shape.arity for at in known}
        count += sum(len(shape.children(parent, size)) for parent in parents) - len(known)
        known, size = parents, -(-size // shape.arity)
    return count


def multi_proof(leaves: dict[int, bytes], size: int, proof: Sequence[bytes], shape: Shape = LOG) -> bytes:
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
        for parent in sorted({at // shape.arity for at in known}):
            children = []
            for at in shape.children(parent, width):
                child = known[at] if at in known else next(rest, None)
                if child is None:
                    raise Refused("multi-proof", "has too few hashes")
                children.append(child)
            above[parent] = shape.above(children)
        known, width = above, -(-width // shape.arity)
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
