"""Commitments, 152 bytes each: the entries of the log's tree."""

import struct

from .basics import require

KINDS = {1: "block", 2: "epoch", 3: "event", 4: "gap"}
HASHES = {1: "sha256", 2: "sha3-256"}
COMMITMENT = 152


def read_commitment(data):
    require(len(data) == COMMITMENT, "a commitment is cut off")
    (version, kind, codec, hash_id, log2, reserved, log, frame, first, entries, earliest, latest, epoch, units, root,
     length, digest) = struct.unpack("<BBBBB3s16sQQQqqQQ32sQ32s", data)
    block = kind == 1
    require(version == 1 and reserved == bytes(3), "a commitment is of another version")
    require(kind in KINDS and hash_id in HASHES, "a commitment has an unknown kind or hash")
    require(codec == int(block) and (log2 <= 25 if block else log2 == 0), "a commitment's codec or content size is wrong")
    counts = {1: 1 <= entries <= (1 << log2) // 16, 2: entries == 0, 3: entries == 0, 4: 1 <= entries <= 1 << 21}
    require(counts[kind] and first + entries < 2**64, "a commitment has a wrong number of entries")
    require(earliest <= latest if block else earliest == latest, "a commitment's times are wrong")
    require(frame < 2**64 - 1, "a commitment's number is wrong")
    require(epoch == frame if kind == 2 else epoch < frame, "a commitment's epoch is wrong")
    require(1 <= units <= entries if block else units == 0, "a commitment's number of units is wrong")
    require(block or root == bytes(32), "a commitment has a root but no units")
    require(length <= (0 if kind == 4 else 1 << 29), "a commitment's body is too long")
    return dict(kind=KINDS[kind], hash=HASHES[hash_id], log=log, frame=frame, first=first, entries=entries, epoch=epoch,
                length=length, digest=digest, units=units, root=root, content=1 << log2)
