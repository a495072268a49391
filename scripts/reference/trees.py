"""Proofs about trees (RFC 6962, section 2.1), for any hash of nodes."""

from .basics import require

MAX_SIZE = 1 << 62


def multi_proof_root(node, size, leaves, nodes):
    """The root of the tree of `size` leaves, from some of them by position; takes what it needs from `nodes`, a list
    of which nothing may be left."""
    require(leaves and size <= MAX_SIZE and max(leaves) < size, "a proof is about no leaf of its tree")
    nodes = iter(nodes)
    width, known = size, dict(leaves)
    while width > 1:
        above = {}
        for index in sorted(known):
            left = index & ~1
            if left + 1 == width:
                above[left // 2] = known[left]
            elif left // 2 not in above:
                pair = [known[at] if at in known else next(nodes, None) for at in (left, left + 1)]
                require(None not in pair, "a proof has too few hashes")
                above[left // 2] = node(*pair)
        width, known = (width + 1) // 2, above
    require(next(nodes, None) is None, "a proof has too many hashes")
    return known[0]


def proof_length(size, positions):
    """How many nodes `multi_proof_root` takes."""
    require(positions and size <= MAX_SIZE and max(positions) < size, "a proof is about no leaf of its tree")
    count, width, known = 0, size, set(positions)
    while width > 1:
        count += sum(index ^ 1 < width and index ^ 1 not in known for index in known)
        width, known = (width + 1) // 2, {index // 2 for index in known}
    return count


def check_consistency(node, old_size, old_root, new_size, new_root, nodes, empty):
    """By the definition in section 2.1.2, taken backwards: the last node is the outermost sibling."""
    require(old_size <= new_size <= MAX_SIZE, f"the older tree has {old_size} leaves, the newer one {new_size}")
    require(old_size or old_root == empty, "the older tree is empty, but its root is not the empty one's")
    nodes = list(nodes)

    def take():
        require(nodes, "the proof has too few hashes")
        return nodes.pop()

    def roots(old, new, whole):
        if old == new:
            root = old_root if whole else take()
            return root, root
        split = 1 << (new - 1).bit_length() - 1
        sibling = take()
        if old <= split:
            left, right = roots(old, split, whole)
            return left, node(right, sibling)
        left, right = roots(old - split, new - split, False)
        return node(sibling, left), node(sibling, right)

    found = roots(old_size, new_size, True) if old_size else (old_root, old_root if not new_size else new_root)
    require(not nodes, "the proof has too many hashes")
    require(found[0] == old_root, "the hashes do not lead to the older tree's root")
    require(found[1] == new_root, "the hashes do not lead to the tree's root")
