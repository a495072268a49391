"""Compares this reader with the command on what neither should have to read: damaged and lying logs, proofs, vaults.

    python interop/fuzz.py BULLA [--rounds N] [--seed S] [--place DIRECTORY]

Each round changes a log of the zoo, asks both readers, and compares whether they refuse. A round in which they differ is
left in the directory, and named. Exits with 1 where there was one.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Callable, Optional

sys.path.insert(0, str(Path(__file__).parent))

from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: E402

from bulla_reader import age, commitments, config, events, index, lines, notes, proofs, trees, units, vault, verify  # noqa: E402
from bulla_reader.cursor import u32, u64  # noqa: E402
from bulla_reader.hashes import crc32c, expand, extract, mac  # noqa: E402
from bulla_reader.refused import Refused  # noqa: E402
from forge import Forge, Forged, padded, signed, wrapped  # noqa: E402
from grammar import Grammar  # noqa: E402
from zoo import Sample, Zoo  # noqa: E402


class Differ(Exception):
    """The two readers say different things."""


class Fuzz:
    def __init__(self, bulla: str, place: Path, seed: int, say: bool, only: Optional[str]) -> None:
        self.bulla, self.place, self.seed, self.say, self.only = bulla, place, seed, say, only
        for stale in place.glob("*.vault"):
            shutil.rmtree(stale)
        self.zoo = Zoo(bulla, place / "zoo")
        self.samples = self.zoo.all()
        former = [self.zoo.place / f"erasure-{place}.key" for place in range(2)]
        self.forges = {name: Forge(it.log, it.keys, former if name == "rekeyed" else ()) for name, it in self.samples.items()}
        # What was recovered lies in segments that a forged log has not got.
        for frame in self.forges["crashed"].frames:
            if frame.kind == commitments.EVENT:
                frame.text = re.sub(rb'"segment":"[^"]*"', b'"segment":"00000000000000099999.seg"', frame.text)
        changes = [json.loads(it.text) for it in self.forges["rekeyed"].frames if b'"rekeyed"' in it.text]
        # All that count or did, and one of another log.
        self.erasure_keys = [changes[0]["from"], *(it["to"] for it in changes), self.forges["erased"].config.erasure_key.text]
        self.proofs = self.make_proofs()
        self.counts: Counter[str] = Counter()
        self.draw = random.Random(seed)

    def make_proofs(self) -> list[bytes]:
        found = []
        for name, entries in (("plain", "3..9"), ("groups", "7"), ("groups", "0.."), ("erased", "5..50")):
            what = "--entries" if "." in entries else "--entry"
            found.append(self.zoo.run("prove", self.samples[name].log, "--with-others", what, entries))
        found.append((self.place / "zoo/erased.cert").read_bytes())
        found.append((self.place / "zoo/second.cert").read_bytes())
        log = self.samples["plain"].log
        old = self.place / "zoo/old.checkpoint"
        old.write_bytes((log / "checkpoint").read_bytes())
        found.append(self.zoo.run("prove", log, "--consistency", old))
        forge = self.forges["erased"]
        whole = [trees.leaf(forge.commitment(it)[0]) for it in forge.frames]
        old.write_text(forge.checkpoint(4, trees.root(whole[:4])))
        found.append(self.zoo.run("prove", self.samples["erased"].log, "--consistency", old))
        return found

    def round(self, number: int) -> None:
        self.draw = random.Random(f"{self.seed}/{number}")
        kinds = [
            self.bytes_round, self.bytes_round, self.lying_round, self.lying_round, self.columns_round, self.columns_round,
            self.proof_round, self.group_round, self.index_round, self.vault_round, self.grant_round, self.order_round,
            self.settings_round, self.tail_round, self.hold_round,
        ]  # fmt: skip
        kind = getattr(self, f"{self.only}_round") if self.only else self.draw.choice(kinds)
        kind(number)

    # Logs

    def compare(self, number: int, what: str, log: Path, sample: Sample, keys: Optional[Path] = None) -> None:
        """Asks both of a log, with public data alone, with erasure keys that are known, with the seal key, and with all that there is."""
        bare = self.place / "bare.keys"
        bare.mkdir(exist_ok=True)
        where = keys or self.vault_of(sample)
        known = self.draw.sample(self.erasure_keys, self.draw.randrange(1, 4))
        levels: dict[str, tuple[list[str], verify.Hand]] = {
            "public": (["--public"], verify.Hand()),
            "known": (
                ["--public", *(f"--erasure-key={key}" for key in known)],
                verify.Hand(erasure_keys=[notes.verifier(key) for key in known]),
            ),
            "seal": (["--seal-key", str(sample.keys / "seal.key")], verify.Hand(seal_key=(sample.keys / "seal.key").read_text())),
            "identity": (
                ["--identity", str(sample.keys / "identity.age")],
                verify.Hand(identities=verify.read_identities([sample.keys / "identity.age"]), vault=where),
            ),
        }
        keys_of = {"identity": str(where or bare)}
        for level, (options, hand) in levels.items():
            command = [self.bulla, "verify", str(log), "--json", "--keys", keys_of.get(level, str(bare)), *options]
            done = subprocess.run(command, capture_output=True)
            told = json.loads(done.stdout) if done.stdout else {}
            theirs = violations(told["findings"]) if "findings" in told else {f"exit {done.returncode}"}
            try:
                mine = violations([it.as_json() for it in verify.verified(log, hand).findings])
            except (Refused, OSError) as refused:
                mine = {f"exit: {refused}"}
            self.judge(number, f"{what}, {level}", theirs, mine, keys or log)

    def vault_of(self, sample: Sample) -> Optional[Path]:
        if not (sample.keys / "vault").is_dir():
            return None
        place = self.place / f"{sample.keys.name}.vault"
        if not place.is_dir():
            place.mkdir()
            for part in ("vault", "roots"):
                shutil.copytree(sample.keys / part, place / part)
        return place

    def judge(self, number: int, what: str, theirs: set[str], mine: set[str], kept: Path) -> None:
        self.counts["refused" if theirs else "taken"] += 1
        if theirs != mine and kept.is_dir():
            self.counts["other kinds"] += 1
            if self.say:
                print(f"round {number}: {what}: only theirs {sorted(theirs - mine)}, only mine {sorted(mine - theirs)}")
        if bool(theirs) == bool(mine):
            return
        place = self.place / f"differ-{number}"
        shutil.rmtree(place, ignore_errors=True)
        (shutil.copytree if kept.is_dir() else shutil.copyfile)(kept, place)
        raise Differ(f"round {number}: {what}: the command says {sorted(theirs) or 'ok'}, this reader {sorted(mine) or 'ok'}; {place}")

    def chosen(self) -> tuple[str, Sample]:
        name = self.draw.choice([name for name in self.samples if name != "workloads"])
        return name, self.samples[name]

    def bytes_round(self, number: int) -> None:
        """Changes bytes of some file of a log."""
        name, sample = self.chosen()
        log = self.place / "log"
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(sample.log, log)
        files = [path for path in sorted(log.rglob("*")) if path.is_file() and path.stat().st_size]
        weighted = [path for path in files for _ in range(6 if path.suffix == ".seg" or path.parent == log else 1)]
        path = self.draw.choice(weighted)
        what = self.damage(path, files)
        self.compare(number, f"{name}: {what}", log, sample)

    def damage(self, path: Path, files: list[Path]) -> str:
        data = bytearray(path.read_bytes())
        way = self.draw.randrange(9)
        at = self.draw.randrange(len(data))
        if way == 0:
            del data[at:]
        elif way == 1:
            data += self.draw.choice([bytes(100), self.draw.randbytes(60), bytes(data[at:]), b"Bulf\x01"])
        elif way == 2:
            path.unlink()
            return f"{path.name} removed"
        elif way == 3:
            data[at : at + self.draw.randrange(1, 300)] = b""
        elif way == 4:
            other = self.draw.choice(files)
            other.write_bytes(data)
            return f"{other.name} is {path.name}"
        elif way == 5 and path.suffix == ".seg":
            number, generation = self.draw.randrange(14), self.draw.choice(["", "-1", "-7"])
            path.rename(path.parent / f"{number:020d}{generation}.seg")
            return f"{path.name} is {number}{generation}"
        elif way == 6 and path.suffix == ".seg":
            found = [at for at in range(len(data)) if data[at : at + 6] in (b"Bulf\1\1", b"Bulf\1\2", b"Bulf\1\3", b"Bulf\1\4")]
            start = self.draw.choice(found or [0])
            place = start + self.draw.randrange(20)
            data[place] ^= 1 << self.draw.randrange(8)
            data[start + 20 : start + 24] = u32(crc32c(bytes(data[start : start + 20])))
            at = place
        else:
            for _ in range(self.draw.choice([1, 1, 1, 2, 5])):
                at = self.draw.randrange(len(data))
                data[at] ^= 1 << self.draw.randrange(8)
        path.write_bytes(data)
        return f"{path.name}, way {way} at {at}"

    def settings_round(self, number: int) -> None:
        """Sets something below the line [settings], which only has to be of its form."""
        name, sample = self.chosen()
        log = self.place / "log"
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(sample.log, log)
        setting = self.draw.choice([*config.SETTINGS, "foo", "x-foo"])
        amount = self.draw.choice(["5"] * 9 + ["0", "05", "5.5", "-5", "+5", "5_0", "", "18446744073709551616", "4294967296", "٥"])
        unit = self.draw.choice(["", "B", "K", "KB", "kib", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s", "m", "min", "h", "d"])
        between = self.draw.choice(["", " ", "  ", "\\t"])
        words = ["fast", "max", "balanced", "group", "os", "interval", "interval 5 ms", "interval 5ms", "interval  5 ms", ""]
        value = self.draw.choice([amount, f'"{amount}{between}{unit}"', f'"{self.draw.choice(words)}"', "true", "[]", '["a"]', "[1]"])
        with (log / "bulla.toml").open("a") as file:
            file.write(f"{setting} = {value}\n")
        self.compare(number, f"{name}: {setting} = {value}", log, sample)

    def tail_round(self, number: int) -> None:
        """Changes what follows the checkpoint, which nobody has signed, but whose seals whoever has the key can check."""
        name, sample = self.chosen()
        forge = self.forges[name].copy()
        covered = self.draw.randrange(1, len(forge.frames))
        log = self.place / "log"
        if self.draw.random() < 0.3:
            for frame in forge.frames[covered:]:
                frame.group = self.draw.choice([covered, frame.frame, frame.group])
        forge.write(log, covered)
        path = log / "segments/00000000000000000000.seg"
        data = bytearray(path.read_bytes())
        found = [at for at in range(len(data)) if data[at : at + 5] == b"Bulf\1"]
        tail = found[covered]
        way = self.draw.randrange(7)
        at = self.draw.choice([tail + self.draw.randrange(200), self.draw.randrange(tail, len(data))])
        if way == 0:
            del data[at:]
        elif way == 1:
            end = self.draw.choice([at + 1, at + 7, at + 300, len(data)])
            data[at:end] = bytes(len(data[at:end]))
        elif way == 2 and at < len(data):
            data[at] ^= 1 << self.draw.randrange(8)
        elif way == 3:
            data[at : at + self.draw.randrange(1, 40)] = b""
        elif way == 4:
            data[tail:tail] = self.draw.choice([bytes(1), bytes(300), b"Bulf\1", data[tail : tail + 100]])
        elif way == 5:
            frame = self.draw.choice(found)
            data += data[frame:] if self.draw.random() < 0.5 else data[frame : frame + 700]
        path.write_bytes(data)
        if self.draw.random() < 0.2:
            first, part = self.draw.choice([covered, covered + 1, len(forge.frames)]), self.draw.choice(found)
            (log / f"segments/{first:020d}.seg").write_bytes(data[part:])
        self.compare(number, f"{name}: behind frame {covered}, way {way} at {at}", log, sample)

    # Logs that are lied about

    def lying_round(self, number: int) -> None:
        """Changes what frames say, and signs and seals the log anew."""
        name, sample = self.chosen()
        forge = self.forges[name].copy()
        ways: list[Callable[[Forge], str]] = [self.lie_field, self.lie_field, self.lie_body, self.lie_order, self.lie_event, self.lie_gap]
        try:
            what = self.draw.choice(ways)(forge)
        except OverflowError:
            return  # numbers that no field holds
        self.write_and_compare(number, f"{name}: {what}", forge, sample)

    def write_and_compare(self, number: int, what: str, forge: Forge, sample: Sample) -> None:
        log = self.place / "log"
        try:
            forge.write(log)
        except (OverflowError, struct.error):
            return
        self.compare(number, what, log, sample)

    def lie_field(self, forge: Forge) -> str:
        at = self.draw.randrange(len(forge.frames))
        frame = forge.frames[at]
        field = self.draw.choice(
            ["kind", "frame", "first_entry", "entries", "earliest", "latest", "epoch", "units", "root", "content", "hash", "log_id", "group"]
        )
        old = getattr(frame, field)
        if isinstance(old, bytes):
            new: object = bytes([old[0] ^ 1]) + old[1:]
        else:
            new = self.draw.choice([old + 1, max(0, old - 1), 0, 1, old ^ 1 << self.draw.randrange(8), (1 << 64) - 1, 3, 25, 26])
        setattr(frame, field, new)
        if self.draw.random() < 0.5 and frame.kind == commitments.BLOCK:
            times = frame.earliest, frame.latest
            forge.recommit(frame)
            if field in ("earliest", "latest"):
                frame.earliest, frame.latest = times
        if self.draw.random() < 0.5 and field in ("entries", "first_entry"):
            self.renumber(forge)
        return f"frame {at}: {field} {old!r:.20} becomes {new!r:.20}"

    def renumber(self, forge: Forge) -> None:
        entry = 0
        for frame in forge.frames:
            moved = frame.first_entry != entry
            frame.first_entry, entry = entry, entry + frame.entries
            if moved and frame.kind == commitments.BLOCK:
                forge.recommit(frame)

    def mutated(self, text: bytes) -> bytes:
        data = bytearray(text)
        for _ in range(self.draw.choice([1, 1, 2, 4])):
            at = self.draw.randrange(len(data)) if data else 0
            way = self.draw.randrange(5)
            if way == 0 and data:
                data[at] ^= 1 << self.draw.randrange(8)
            elif way == 1 and data:
                data[at] = self.draw.choice([0, 1, 2, 3, 4, 5, 127, 128, 255])
            elif way == 2:
                data[at:at] = self.draw.randbytes(self.draw.choice([1, 1, 2, 8]))
            elif way == 3:
                del data[at : at + self.draw.choice([1, 1, 2, 8])]
            else:
                data[at : at + 8] = data[self.draw.randrange(len(data) + 1) :][:8]
        return bytes(data)

    def lie_body(self, forge: Forge) -> str:
        at = self.draw.randrange(len(forge.frames))
        frame = forge.frames[at]
        if frame.kind == commitments.BLOCK:
            block = forge.recommit(frame)
            length = block.length if block is not None else len(frame.text)
            text = self.mutated(frame.text[:length])
            frame.text = padded(text) if self.draw.random() < 0.9 else text
            forge.recommit(frame)
        else:
            frame.text = self.mutated(frame.text)
            if self.draw.random() < 0.3:
                frame.raw["seal"] = True
        return f"the body of frame {at}"

    def lie_order(self, forge: Forge) -> str:
        one, other = (self.draw.randrange(len(forge.frames)) for _ in range(2))
        way = self.draw.randrange(3)
        if way == 0:
            forge.frames[one], forge.frames[other] = forge.frames[other], forge.frames[one]
        elif way == 1:
            forge.frames.insert(one, forge.frames[other])
        else:
            del forge.frames[one]
        if self.draw.random() < 0.7:
            forge.frames = [Forged(**{**it.__dict__, "raw": dict(it.raw)}) for it in forge.frames]
            moved = {}
            for number, frame in enumerate(forge.frames):
                if frame.kind == commitments.EPOCH:
                    moved[frame.epoch] = number
                    frame.epoch = number
                else:
                    frame.epoch = moved.get(frame.epoch, frame.epoch)
                frame.frame = number
                frame.group = min(frame.group, number)
            self.renumber(forge)
        return f"frames {one} and {other}, way {way}"

    def lie_event(self, forge: Forge) -> str:
        those = [frame for frame in forge.frames if frame.kind == commitments.EVENT]
        if not those:
            return self.lie_field(forge)
        frame = self.draw.choice(those)
        event = json.loads(frame.text)
        name = self.draw.choice(list(event))
        odd = [0, 1, -1, 1.0, 1.5, True, None, "", "x", [], [0], [0, 1], [1, 0], {}, 1 << 64, (1 << 64) - 1, 1e3, "shared-fields", ["time"]]
        way = self.draw.randrange(6)
        if way == 0:
            event[name] = self.draw.choice(odd)
        elif way == 1:
            del event[name]
        elif way == 2:
            event["more"] = self.draw.choice(odd)
        elif way == 3 and isinstance(event[name], list):
            event[name] = event[name] + [self.draw.choice(event[name] or odd)]
        elif way == 4:
            event = {"event": self.draw.choice(list(events.SHAPES)), **{it: self.draw.choice(odd) for it in event if it != "event"}}
        text = json.dumps(event)
        if way == 5:
            text = self.draw.choice(
                [text + " ", " " + text, text + "x", text[:-1] + ',"event":"heartbeat"}', "[" + text + "]", "\ufeff" + text, text.replace(":", " : "), text.replace('"', '\\u0022', 1)]
            )
        frame.text = text.encode()
        return f"event {text:.200}"

    def hold_round(self, number: int) -> None:
        """Has a log tell of holds, releases and erasures by orders that hold, were used, are about something else, or are none,
        or are signed with a key that counted before, or came to count only later.
        """
        name = self.draw.choice(["erased", "rekeyed"])
        sample, forge = self.samples[name], self.forges[name].copy()
        told = []
        for frame in forge.frames:
            if frame.kind == commitments.EVENT and self.draw.random() < 0.2:
                event = json.loads(frame.text)
                if event["event"] in ("held", "released", "erased"):
                    text = event["order"].split("\n\n")[0] + "\n"
                    frame.text = json.dumps(event | {"order": forge.order(text, self.by(forge))}).encode()
                    told.append(f"{event['event']} signed anew")
        for _ in range(self.draw.randrange(1, 9)):
            frames = [(at, json.loads(it.text)) for at, it in enumerate(forge.frames) if it.kind == commitments.EVENT]
            holds = [(at, it) for at, it in frames if it["event"] == "held"]
            at, hold = self.draw.choice(holds)
            if self.draw.random() < 0.2:
                subject = base64.b64encode(self.draw.randbytes(32)).decode()
                order = f"bulla-erasure-order-v1\nlog {forge.config.log_id.hex()}\ntime 1\nsubject {subject}\n"
                numbers = [hold["number"]]
                event = {"event": "erased", "numbers": numbers, "carried_out": [0], "order": forge.order(order, self.by(forge)), "remains": []}
            elif self.draw.random() < 0.5:
                event = {"event": "held", "number": self.draw.randrange(4), "order": self.hold_order(forge, "hold", self.draw.randbytes(32), frames)}
            else:
                order = self.hold_order(forge, "release", events.order_digest(hold["order"]), frames)
                event = {"event": "released", "number": hold["number"], "held": at, "order": order}
                if self.draw.random() < 0.2:
                    event[self.draw.choice(["number", "held"])] = self.draw.randrange(len(forge.frames) + 2)
            forge.append(json.dumps(event))
            told.append(event["event"])
        damaged = self.draw.random() < 0.3
        if damaged:
            frame = self.draw.choice([it for it in forge.frames if it.kind == commitments.EVENT])
            frame.raw["digest"] = True
        self.write_and_compare(number, f"events {', '.join(told)}{', one damaged' if damaged else ''}", forge, sample)

    def by(self, forge: Forge) -> int:
        """With which key: mostly the one that counts at last."""
        last = len(forge.erasures) - 1
        return last if self.draw.random() < 0.7 else self.draw.randrange(last + 1)

    def hold_order(self, forge: Forge, act: str, about: bytes, frames: list[tuple[int, dict[str, object]]]) -> str:
        way = self.draw.randrange(12)
        if way == 0:
            return str(self.draw.choice([it["order"] for _, it in frames if "order" in it]))
        log_id = bytes(16) if way == 1 else forge.config.log_id
        act = {"hold": "release", "release": "hold"}[act] if way == 2 else act
        about = self.draw.randbytes(32) if way == 3 else about
        digests = [base64.b64encode(it).decode() for it in (about, self.draw.randbytes(32))]
        text = f"bulla-hold-order-v1\nlog {log_id.hex()}\ntime {self.draw.choice(['1', '1', '01'])}\n{act} {digests[0]}\nbecause {digests[1]}\n"
        if way == 4:
            text = self.mutated(text.encode()).decode(errors="replace")
        if way == 5:
            return text
        if way == 6:
            return signed(text, forge.config.verifier, forge.signing)
        note = forge.order(text, self.by(forge))
        return self.mutated(note.encode()).decode(errors="replace") if way == 7 else note

    def lie_gap(self, forge: Forge) -> str:
        at = self.draw.randrange(1, len(forge.frames) + 1)
        before = forge.frames[at - 1]
        lost = self.draw.choice([1, 2, 1 << 21, (1 << 21) + 1, 0])
        now = before.latest
        gap = Forged(
            commitments.GAP, at, before.first_entry + before.entries, lost, now, now, before.epoch, 0, bytes(32), 0, before.hash,
            before.log_id, self.draw.choice([b"", b"", b"", b"x"]), at,
        )  # fmt: skip
        forge.frames[at:] = [gap]
        return f"a gap of {lost} as frame {at}"

    # Columns

    def columns_round(self, number: int) -> None:
        """A log of one block, of columns that a grammar has drawn: of every form, and some a little wrong."""
        sample = self.samples["plain"]
        forge = self.forges["plain"].copy()
        frame = forge.frames[1]
        forge.frames = forge.frames[:2]
        frame.content = self.draw.choice([25, 25, 20, 10])
        frame.entries, frame.text = Grammar(self.draw).block()
        frame.entries = max(1, frame.entries)
        frame.units = frame.entries
        forge.recommit(frame)
        self.write_and_compare(number, "drawn columns", forge, sample)
        self.compare_export(number, sample)

    def compare_export(self, number: int, sample: Sample) -> None:
        log = self.place / "log"
        identity = sample.keys / "identity.age"
        command = [self.bulla, "export", str(log), "--keys", str(self.place / "bare.keys"), "--identity", str(identity)]
        theirs = subprocess.run(command, capture_output=True)
        found: list[bytes] = []
        hand = verify.Hand(identities=verify.read_identities([identity]))
        report = verify.verified(log, hand, lambda block: found.extend(lines.line(it.number, it.row, it.withheld) for it in block.rows))
        if report.ok and theirs.returncode == 0:
            self.counts["exports compared"] += 1
            if b"".join(found) != theirs.stdout:
                shutil.copytree(log, self.place / f"differ-{number}", dirs_exist_ok=True)
                raise Differ(f"round {number}: exports differ")

    # Groups, the index and the vault

    def group_round(self, number: int) -> None:
        """Changes what is encrypted in a group, under its own key."""
        name = self.draw.choice(["groups", "erased", "changed"])
        sample, forge = self.samples[name], self.forges[name].copy()
        place = self.vault_of(sample)
        assert place is not None
        opened = vault.Vault(place, forge.config.log_id, [])
        frame = self.draw.choice([it for it in forge.frames if it.kind == commitments.BLOCK])
        block = forge.recommit(frame)
        assert block is not None
        if not block.groups:
            return
        group = self.draw.choice(block.groups)
        keys = forge.keys[frame.epoch]
        secret = opened.secret(frame.log_id, keys.random, frame.frame, group.subjects)
        opened.database.close()
        if secret is None:
            return
        key = units.group_keys(secret)[0]
        text = bytearray(units.decrypted(key, group.ciphertext))
        for _ in range(self.draw.choice([1, 1, 2])):
            at = self.draw.randrange(len(text))
            text[at] = self.draw.choice([text[at] ^ 1 << self.draw.randrange(8), text[at] + 1 & 255, 0, 1, 2])
        changed = AESGCM(key).encrypt(bytes(12), bytes(text), None)
        frame.text = frame.text.replace(group.ciphertext, changed)
        forge.recommit(frame)
        self.write_and_compare(number, f"{name}: a group of frame {frame.frame}", forge, sample)

    def index_round(self, number: int) -> None:
        """Changes what a part of the index says."""
        name, sample = self.chosen()
        log = self.place / "log"
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(sample.log, log)
        files = [path for path in sorted((log / "index").iterdir()) if path.stat().st_size > index.HEAD]
        if not files:
            return
        path = self.draw.choice(files)
        keys = self.forges[name].keys[int(path.name[:20])]
        data = path.read_bytes()
        length = int.from_bytes(data[96:100], "little")
        key = expand(extract(data[64:96], keys.index), b"bulla index part key v1", 32)
        text = AESGCM(key).decrypt(bytes(12), data[index.HEAD : index.HEAD + length], data[: index.HEAD])
        text = self.mutated(text)
        if self.draw.random() < 0.5:
            text = padded(text.rstrip(b"\0"))
        head = bytearray(data[:96] + u32(len(text) + 16))
        if self.draw.random() < 0.3:
            head[self.draw.randrange(100)] ^= 1 << self.draw.randrange(8)
        sealed = AESGCM(key).encrypt(bytes(12), text, bytes(head))
        path.write_bytes(bytes(head) + sealed + data[index.HEAD + length :])
        self.compare(number, f"{name}: {path.name}", log, sample)

    def vault_round(self, number: int) -> None:
        """Changes the vault, now and then with its own keys."""
        name = self.draw.choice(["groups", "erased", "changed"])
        sample = self.samples[name]
        whole = self.vault_of(sample)
        assert whole is not None
        keys = self.place / "changed.keys"
        shutil.rmtree(keys, ignore_errors=True)
        shutil.copytree(whole, keys)
        if self.draw.random() < 0.2:
            path = self.draw.choice(sorted((keys / "roots").iterdir()))
            path.write_bytes(self.mutated(path.read_bytes()))
            what = path.name
        else:
            what = self.change_vault(keys, self.forges[name].config.log_id)
        self.compare(number, f"{name}: vault, {what}", sample.log, sample, keys)

    def change_vault(self, keys: Path, log_id: bytes) -> str:
        opened = vault.Vault(keys, log_id, [])
        opened.database.close()
        database = sqlite3.connect(keys / "vault/vault.db")
        table = self.draw.choice(["records", "records", "rows", "entries", "buckets"])
        rows = database.execute(f"SELECT id, sealed FROM {table}").fetchall()
        row, data = self.draw.choice(rows)
        way = self.draw.choice(["flipped", "removed", "sealed", "statement"])
        if way == "flipped":
            data = self.mutated(data)
        elif way == "removed":
            database.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        elif way == "sealed" and table in ("records", "buckets"):
            number = vault.RECORDS if table == "records" else vault.BUCKETS
            text = self.mutated(data[:-16])
            if table == "records" and self.draw.random() < 0.8:
                text = self.mutated(data[:-20])
                text += u32(crc32c(text))
            data = text + mac(opened.record_key, bytes([number]) + u64(row) + text)[:16]
        else:
            database.execute(self.draw.choice(["PRAGMA user_version = 1", "PRAGMA application_id = 1", "CREATE TABLE more (id)"]))
        if way in ("flipped", "sealed"):
            database.execute(f"UPDATE {table} SET sealed = ? WHERE id = ?", (data, row))
        database.commit()
        database.close()
        return f"row {row} of {table} {way}"

    # Grants and orders

    def grant_round(self, number: int) -> None:
        """Changes what a grant holds."""
        sample = self.samples["granted"]
        assert sample.grant is not None
        mine = verify.read_identities([sample.keys / "identity.age"])
        file = self.place / "grant"
        file.unlink(missing_ok=True)
        file.write_bytes(wrapped(self.mutated(age.decrypted(sample.grant.read_bytes(), mine)), mine[0].public))
        command = [self.bulla, "export", str(sample.log), "--keys", str(sample.keys), "--grant", str(file)]
        theirs = subprocess.run(command, capture_output=True)
        found: list[bytes] = []
        try:
            report = verify.verified(
                sample.log,
                verify.Hand(identities=mine, grant=file.read_bytes()),
                lambda block: found.extend(lines.line(it.number, it.row, it.withheld) for it in block.rows),
            )
            refused = violations([it.as_json() for it in report.findings])
        except Refused as error:
            refused = {str(error)}
        self.judge(number, "grant", set() if theirs.returncode == 0 else {theirs.stderr.decode()}, refused, file)
        if not refused and theirs.stdout != b"".join(found):
            raise Differ(f"round {number}: exports with a grant differ")

    def order_round(self, number: int) -> None:
        """Changes the file of an order, or its names and salts."""
        text = (self.place / "zoo/order.json").read_bytes()
        if self.draw.random() < 0.5:
            order = json.loads(text)
            subject = self.draw.choice(order["subjects"])
            way = self.draw.randrange(5)
            if way == 0:
                subject[self.draw.choice(["subject", "salt", "more"])] = self.draw.choice(["", "user_1", 1, None, []])
            elif way == 1:
                order["subjects"].append(subject)
            elif way == 2:
                order["subjects"].remove(subject)
            elif way == 3:
                order["order"] = self.mutated(order["order"].encode()).decode(errors="replace")
            else:
                order[self.draw.choice(["more", "order", "subjects"])] = self.draw.choice(["", [], {}, None])
            text = json.dumps(order).encode()
        else:
            text = self.mutated(text)
        file = self.place / "order"
        file.write_bytes(text)
        key = self.forges["erased"].config.erasure_key
        assert key is not None
        certificate = self.place / "zoo/erased.cert"
        command = [self.bulla, "check", str(certificate), "--erasure-key", key.text, "--order", str(file)]
        done = subprocess.run(command, capture_output=True)
        try:
            proof = proofs.read(certificate.read_bytes(), None)
            assert isinstance(proof, proofs.EventProof)
            proofs.check_order(proof, key, text)
            mine: set[str] = set()
        except Refused as refused:
            mine = {str(refused)}
        self.judge(number, "order", set() if done.returncode == 0 else {done.stderr.decode()}, mine, file)

    # Proofs

    def proof_round(self, number: int) -> None:
        """Changes a proof: its text, or what is inside its base64."""
        data = self.draw.choice(self.proofs)
        parts = data.split(b"\n")
        way = self.draw.randrange(4)
        if way == 0:
            data = self.mutated(data)
        elif way == 1:
            one, other = (self.draw.randrange(len(parts)) for _ in range(2))
            parts[one] = parts[other]
            data = b"\n".join(parts)
        else:
            at = self.draw.randrange(len(parts))
            name, gap, encoded = parts[at].rpartition(b" ")
            try:
                inner = base64.b64decode(encoded, validate=True)
            except ValueError:
                inner = b""
            parts[at] = name + gap + base64.b64encode(self.mutated(inner))
            data = b"\n".join(parts)
            if way == 3:
                data = self.led_to_itself(data)
        file = self.place / "proof"
        file.write_bytes(data)
        done = subprocess.run([self.bulla, "check", str(file), "--json"], capture_output=True)
        theirs = set() if done.returncode == 0 else {f"exit {done.returncode}"}
        try:
            proof = proofs.read(data, None)
            mine: set[str] = set()
            if isinstance(proof, proofs.EntriesProof):
                rows = proofs.opened(proof)
                if not theirs:
                    printed = json.loads(done.stdout)["entries"]
                    if [json.loads(lines.line(n, row, "not-given" if held else None)) for n, row, held in rows] != printed:
                        raise Differ(f"round {number}: a proof discloses other entries")
            elif isinstance(proof, proofs.EventProof):
                proofs.certificate(proof, None)
        except Refused as refused:
            mine = {str(refused)}
        self.judge(number, f"proof, way {way}", theirs, mine, file)

    def led_to_itself(self, data: bytes) -> bytes:
        """A changed proof of entries with the roots that it leads to, so that the rest of it is looked at."""
        return Rerooted(data).data


class Rerooted:
    """Puts into a proof the roots of its own trees, where it can be read that far."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        for _ in range(8):
            try:
                proofs.read(self.data, None)
                return
            except Refused as refused:
                if not self.mend(refused):
                    return

    def mend(self, refused: Refused) -> bool:
        if "must lead to the block's root" in refused.rule and refused.found is not None:
            wrong, right = refused.found
            head, _, rest = self.data.partition(b"extra ")
            encoded, _, rest = rest.partition(b"\n")
            inner = base64.b64decode(encoded).replace(wrong, right, 1)
            self.data = head + b"extra " + base64.b64encode(inner) + b"\n" + rest
            return True
        if "does not lead to the checkpoint's root" in refused.rule and refused.found is not None:
            wrong, right = refused.found
            self.data = self.data.replace(base64.b64encode(wrong), base64.b64encode(right))
            return True
        return False


def violations(findings: list[dict[str, object]]) -> set[str]:
    return {str(it["kind"]) for it in findings if it["severity"] == "violation"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares the second reader with the command.")
    parser.add_argument("bulla")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--place", type=Path)
    parser.add_argument("--only", help="rounds of this kind alone: bytes, lying, columns, proof, group, index, vault, grant, order, settings, tail, hold")
    parser.add_argument("--kinds", action="store_true", help="name the rounds in which findings are of other kinds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        fuzz = Fuzz(given.bulla, given.place or Path(made), given.seed, given.kinds, given.only)
        differ = 0
        for number in range(given.first, given.first + given.rounds):
            try:
                fuzz.round(number)
            except Differ as found:
                differ += 1
                print(found, flush=True)
        print(f"swept: {given.rounds} rounds, seed {given.seed}: {differ} differ; {dict(fuzz.counts)}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
