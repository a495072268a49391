#!/usr/bin/env python3
"""A second implementation of checking a proof file: what `bulla check` does, with nothing from Bulla.

    python3 scripts/reference_check.py FILE... [--vkey VKEY]

Standard library alone (groups that zstd compressed take Python 3.14). Prints the disclosed entries as `bulla export`
does, those of a group whose secret is not disclosed with `"withheld":"not-given"` at their end, or of a proof of
consistency the two sizes, of an event that, and exits 0; or says what is wrong with a file and exits 1. Without the log's key, which has
to come from elsewhere, it checks only that the file agrees with itself, and says so.
"""

import argparse
import json
import pathlib
import re
import sys

from reference.basics import Objection, require, sha256
from reference.commitments import COMMITMENT, read_commitment
from reference.disclosures import read_units
from reference.events import read_event
from reference.notes import canonical_base64, read_checkpoint
from reference.rows import Cursor, to_json
from reference.trees import check_consistency, multi_proof_root

SINGLE, MULTI, CONSISTENCY = "c2sp.org/tlog-proof@v1", "bulla-multi-proof-v1", "bulla-consistency-v1"
EVENT = "bulla-event-v1"


def log_node(left, right):
    return sha256(b"\1", left, right)


def split(file):
    head, blank, note = file.partition(b"\n\n")
    require(blank, "the file has no checkpoint")
    return head.decode().split("\n"), note


def take(lines, name):
    """The rest of the next line, if that begins with `name`."""
    return lines.pop(0)[len(name) + 1:] if lines and lines[0].startswith(name + " ") else None


def read_hashes(lines):
    hashes = [canonical_base64(line, "a hash") for line in lines]
    require(all(len(one) == 32 for one in hashes), "a hash has another length than 32 bytes")
    return hashes


def check_proof(file, vkey):
    lines, note = split(file)
    several = lines.pop(0) == MULTI
    _, size, root = read_checkpoint(note, vkey)
    extra = take(lines, "extra")
    require(extra is not None, "the proof discloses nothing")
    disclosure = Cursor(canonical_base64(extra, "the disclosure"), "the disclosure")
    require(disclosure.byte() == 1, "the disclosure is of another version")
    entries, leaves, before = [], {}, None
    while (index := take(lines, "index")) is not None:
        require(re.fullmatch(r"0|[1-9][0-9]*", index, re.ASCII), f"no frame has the number {index}")
        encoded = disclosure.take(COMMITMENT)
        commitment = read_commitment(encoded)
        require(commitment["frame"] == int(index) < size, f"the commitment is not of frame {index} of {size}")
        require(commitment["kind"] == "block", f"frame {index} is no block")
        if before:
            require(before["frame"] < commitment["frame"], f"frame {index} does not come after the one before it")
            require(before["log"] == commitment["log"], f"frame {index} is of another log")
            require(before["hash"] == commitment["hash"], f"frame {index} is hashed otherwise")
            require(before["first"] + before["entries"] <= commitment["first"], f"frame {index} repeats entries")
        entries += read_units(disclosure, commitment)
        leaves[int(index)] = sha256(b"\0", encoded)
        before = commitment
    require(len(leaves) > 1 if several else len(leaves) == 1, "the proof has another number of frames than its kind")
    require(not disclosure.left(), "the disclosure goes on after its last frame")
    found = multi_proof_root(log_node, size, leaves, read_hashes(lines))
    require(found == root, "the frames are not in the tree that the checkpoint states")
    return [to_json(number, entry) for number, entry in entries]


def check_growth(file, vkey):
    lines, note = split(file)
    lines.pop(0)
    new_origin, new_size, new_root = read_checkpoint(note, vkey)
    old = take(lines, "old")
    require(old is not None, "the file has no older checkpoint")
    origin, size, root = read_checkpoint(canonical_base64(old, "the older checkpoint"), vkey)
    require(origin == new_origin, "the two checkpoints are of different logs")
    check_consistency(log_node, size, root, new_size, new_root, read_hashes(lines), sha256())
    return [json.dumps(dict(origin=origin, old_size=size, new_size=new_size, root=new_root.hex()))]


def check_event(file, vkey):
    lines, note = split(file)
    lines.pop(0)
    _, size, root = read_checkpoint(note, vkey)
    encoded, event = take(lines, "commitment"), take(lines, "event")
    require(encoded is not None and event is not None, "the file has no commitment, or no event")
    encoded, event = canonical_base64(encoded, "the commitment"), canonical_base64(event, "the event")
    commitment = read_commitment(encoded)
    frame = commitment["frame"]
    require(commitment["kind"] == "event" and frame < size, f"frame {frame} is of no event, or not in the tree")
    require(sha256(event) == encoded[-32:], "the event does not have the digest in its commitment")
    found = multi_proof_root(log_node, size, {frame: sha256(b"\0", encoded)}, read_hashes(lines))
    require(found == root, "the frame is not in the tree that the checkpoint states")
    read_event(event, commitment["log"].hex())
    return [event.decode()]


CHECKS = {SINGLE: check_proof, MULTI: check_proof, CONSISTENCY: check_growth, EVENT: check_event}


def check(path, vkey):
    file = path.read_bytes()
    kind = file.split(b"\n", 1)[0].decode()
    require(kind in CHECKS, "the file is no proof")
    return CHECKS[kind](file, vkey)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", metavar="FILE", nargs="+", type=pathlib.Path)
    parser.add_argument("--vkey", help="the log's key, from elsewhere")
    arguments = parser.parse_args()
    proven = "proven" if arguments.vkey else "agrees with itself; without the key anybody can have made it"
    refused = 0
    for path in arguments.files:
        try:
            lines = check(path, arguments.vkey)
        except (Objection, OSError, ValueError) as error:
            print(f"{path}: not proven: {error}", file=sys.stderr)
            refused += 1
            continue
        sys.stdout.buffer.write("".join(line + "\n" for line in lines).encode())
        print(f"{path}: {proven}", file=sys.stderr)
    sys.exit(1 if refused else 0)


main()
