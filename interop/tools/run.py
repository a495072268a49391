#!/usr/bin/env python3
"""Has other people's tools check logs that `bulla` writes, and refuse what was changed of them.

    interop/tools/run.py BULLA [TOOL...]

The tools: those in Python are pinned in scripts/requirements.txt, those in Go in go.mod and go.sum beside this file, and are built in
target/interop-tools. Without names, all of them. It ends with 1 where one does not say what it has to.
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import witnesses
from common import Failed, Log, bundle, expect, flipped, must, program, refused, run, say, size

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent.parent / "target" / "interop-tools"
# A log of more frames has a full tile, and one that is not full.
FULL = 256


# The tools. Each yields, in a line, what it was found to say.


def age(bulla, place):
    """age and age-keygen: an identity that they made opens the log, and age opens the key of each epoch."""
    program("age", "scripts/setup.sh installs it")
    identity = place / "age.identity"
    must(["age-keygen", "-o", identity])
    recipient = must(["age-keygen", "-y", identity]).strip()
    log = Log(bulla, place, "age", "--recipient", recipient, entries=20)
    exported = must([bulla, "export", log.directory, "--identity", identity]).splitlines()
    expect(len(exported) == log.entries, f"{len(exported)} entries were exported with an identity of age-keygen, and not {log.entries}")
    epochs = 0
    for segment in sorted((log.directory / "segments").iterdir()):
        content, at = segment.read_bytes(), 0
        while at < len(content):
            length = int.from_bytes(content[at + 8 : at + 12], "little")
            if content[at + 5] == 2:
                wrapped = content[at + 24 + 152 + 136 : at + 24 + 152 + length]
                opened = subprocess.run(["age", "--decrypt", "--identity", identity], input=wrapped, capture_output=True, check=False)
                expect(opened.returncode == 0 and len(opened.stdout) == 32, f"age does not open the key of an epoch: {opened.stderr!r}")
                epochs += 1
            at += 24 + 152 + length + 32
    expect(epochs > 1, "the log must have several epochs")
    yield f"opens the keys of {epochs} epochs; {log.entries} entries are read with an identity of age-keygen"


def tlog_scales(bulla, place):
    """tlog-scales: computes the root from tiles, each commitment's inclusion and each state's growth, and checks signatures."""
    from cryptography.exceptions import InvalidSignature
    from tlog_scales import tiles
    from tlog_scales.backend import LocalBackend
    from tlog_scales.reader import TilesReader
    from tlog_scales.signing import Vkey
    from tlog_scales.tlog import Checkpoint, ConsistencyProofInvalid, InclusionProofInvalid

    log = Log(bulla, place, "tlog-scales", frames=FULL)

    def whole(directory):
        """How many leaves hold."""
        reader = TilesReader(LocalBackend(directory))
        found = reader.get_checkpoint()
        found.verify(Vkey.from_string(log.key))
        expect(reader.calculate_root_hash() == found.root_hash, "the tiles do not lead to the root that is signed")
        for index in range(found.size):
            reader.get_inclusion_proof(index, found.size).check(tiles.leaf_hash(reader.get_entry(index)), found.root_hash)
        for older in map(bytes.decode, log.checkpoints):
            before = Checkpoint.from_text(older)
            reader.get_consistency_proof(before.size, found.size).check(before.root_hash, found.root_hash)
        return found.size

    leaves = whole(log.directory)
    changed = log.copied("tlog-scales.changed")
    for file in (bundle(changed, log), changed / "tile/0/000", changed / "checkpoint"):
        before = file.read_bytes()
        flipped(file, len(before) // 2)
        try:
            whole(changed)
        # It has an exception of its own for each of these, but for what its checkpoint's parser and Python make of the bytes.
        except (InclusionProofInvalid, ConsistencyProofInvalid, InvalidSignature, ValueError, RuntimeError, Failed):
            file.write_bytes(before)
        else:
            raise Failed(f"a changed bit in {file.relative_to(changed)} was not found")
    whole(changed)
    yield f"{leaves} leaves and {len(log.checkpoints)} states hold; a changed bit in a bundle, a tile and the checkpoint is refused"


def go(*packages):
    """Programs in Go, built as go.mod and go.sum pin them, in `target`."""
    program("go", "programs in Go are built with it, 1.25 or newer")
    folder = BUILT / "go"
    folder.mkdir(parents=True, exist_ok=True)
    must(["go", "build", "-mod=readonly", "-o", f"{folder}/", *packages], cwd=HERE, env=os.environ | {"GOFLAGS": ""})
    return folder


def recompute(bulla, place):
    """Go's sumdb/note and sumdb/tlog: entry, unit, root, commitment and checkpoint, from proof files."""
    tool = go("./recompute") / "recompute"
    for hash_ in ("sha256", "sha3-256"):
        log = Log(bulla, place, f"recompute.{hash_}", "--hash", hash_, entries=700)
        proven = 0
        for number in [0, 1, 2, 333, log.entries - 2, log.entries - 1]:
            file = log.prove("entry", "--entry", number, "--with-others")
            told = json.loads(must([tool, log.key, file]))
            expect(told["hash"] == hash_ and number in [it["entry"] for it in told["entries"]], f"entry {number}: {told}")
            for entry in told["entries"]:
                # Of an entry about somebody, only what is shared is a row.
                where = None if entry["entry"] % 2 else f"place {entry['entry']}"
                expect((entry["operation"], entry["purpose"], entry.get("location")) == ("read", "interop", where), f"entry {number}: {told}")
            proven += 1
            other = log.key.replace("+A", "+B", 1)
            refused("a proof with a key that is none", [tool, other, file])
            content = file.read_bytes()
            head = content.index(b"extra ") + 6
            end = content.index(b"\n", head)
            disclosed = base64.b64decode(content[head:end])
            # In each part of the disclosure: version, commitment, units, hashes.
            for at in (0, 60, 200, len(disclosed) // 2, len(disclosed) - 1):
                changed = bytearray(disclosed)
                changed[at] ^= 1
                bad = file.with_suffix(".changed")
                bad.write_bytes(content[:head] + base64.b64encode(changed) + content[end:])
                refused(f"entry {number} with another byte {at}", [tool, log.key, bad])
        for old in log.checkpoints[:-1]:
            older = log.directory.parent / "older.checkpoint"
            older.write_bytes(old)
            told = json.loads(must([tool, log.key, log.prove("growth", "--consistency", older)]))
            expect((told["old_size"], told["size"]) == (size(old), size(log.checkpoint())), f"growth: {told}")
        erased = json.loads(must([bulla, "erase", log.directory, "--subject", "user_1", "--yes", "--json"]))["frame"]
        told = json.loads(must([tool, log.key, log.prove("erased", "--event", erased)]))
        expect(told["frame"] == erased and json.loads(told["event"])["event"] == "erased", f"the erasure: {told}")
        yield f"{hash_}: {proven} entries lead to the checkpoint, and {len(log.checkpoints) - 1} older states and an erasure; {proven * 5} changed bytes are refused"


def fsck(bulla, place):
    """Tessera's fsck: the whole tree, from bundles to the checkpoint."""
    tool = go("github.com/transparency-dev/tessera/cmd/fsck") / "fsck"
    log = Log(bulla, place, "fsck", frames=FULL)
    key = place / "fsck.vkey"
    key.write_text(log.key)

    def holds(directory):
        """It ends with 0 whatever it finds; what it says counts. With fewer workers than tiles, it waits for ever after the first that is wrong."""
        code, out = run([tool, "-ui=false", "-N=8", f"-public_key={key}", f"-storage_url=file://{directory}"])
        verdicts = [f"Successfully fsck'd log with size {size(log.checkpoint())} ", "fsck failed: "]
        said = [verdict in out for verdict in verdicts]
        expect(code == 0 and sum(said) == 1, f"fsck ended with {code}: {out[-2000:]}")
        return said[0]

    expect(holds(log.directory), "fsck does not take a log that was not changed")
    changed = log.copied("fsck.changed")
    for file in (bundle(changed, log), changed / "tile/0/000", changed / "tile/1/000.p/1", changed / "checkpoint"):
        before = file.read_bytes()
        flipped(file, len(before) // 2)
        expect(not holds(changed), f"fsck takes a log with a changed bit in {file.relative_to(changed)}")
        file.write_bytes(before)
    expect(holds(changed), "fsck does not take a log where all is as it was")
    yield f"a log of {size(log.checkpoint())} frames holds; a changed bit in a bundle, in tiles of both levels and in the checkpoint is found"


TOOLS = {tool.__name__: tool for tool in (age, tlog_scales, *witnesses.TOOLS, recompute, fsck)}


def main(bulla, *names):
    bulla, bad = pathlib.Path(bulla).resolve(), 0
    for name in names or TOOLS:
        begun = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="bulla-interop-") as place:
                for line in TOOLS[name](bulla, pathlib.Path(place)):
                    print(f"swept: {name}: {line}", flush=True)
            say(f"{name}: {time.monotonic() - begun:.1f} s")
        except (Failed, ImportError, subprocess.TimeoutExpired) as error:
            say(f"{name} failed: {error}")
            bad = 1
    return bad


if __name__ == "__main__":
    if len(sys.argv) < 2 or set(sys.argv[2:]) - set(TOOLS):
        sys.exit(f"{__doc__}\nTools: {', '.join(TOOLS)}.")
    sys.exit(main(*sys.argv[1:]))
