"""Logs of every kind, made by the command: what both readers are compared on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from bulla_reader.segments import named


@dataclass
class Sample:
    """A log, its keys, and a grant for it where there is one."""

    log: Path
    keys: Path
    grant: Optional[Path] = None


class Zoo:
    """Makes logs with the command in a directory of their own."""

    def __init__(self, bulla: str, place: Path) -> None:
        self.bulla, self.place = bulla, place
        place.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: object, text: bytes = b"") -> bytes:
        done = subprocess.run([self.bulla, *map(str, arguments)], input=text, capture_output=True)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{arguments}: {done.stderr.decode()}")
        return done.stdout

    def init(self, name: str, *options: str) -> Sample:
        log, keys = self.place / name, self.place / f"{name}.keys"
        for path in (log, keys):
            shutil.rmtree(path, ignore_errors=True)
        self.run("init", log, "--origin", f"example.com/{name}", *options)
        return Sample(log, keys)

    def append(self, sample: Sample, entries: list[dict[str, object]]) -> None:
        self.run("append", sample.log, text="\n".join(map(json.dumps, entries)).encode())

    def all(self) -> dict[str, Sample]:
        """Every kind of log."""
        first = (self.plain, self.groups, self.common, self.erased)
        made = (*first, self.rekeyed, self.changed, self.crashed, self.granted, self.given_up, self.workloads)
        return {make.__name__: make() for make in made}

    def plain(self) -> Sample:
        sample = self.init("plain", "--erasure", "off")
        self.append(sample, odd_entries())
        self.append(sample, entries(random.Random(1), 60))
        return sample

    def groups(self) -> Sample:
        sample = self.init("groups")
        self.append(sample, odd_entries())
        self.append(sample, entries(random.Random(2), 40))
        return sample

    def common(self) -> Sample:
        """Groups that refer to what many of them have in common; one person is erased."""
        sample = self.init("common", "--common", "8")
        for name in ("tenants", "json"):
            self.run("append", sample.log, text=self.run("generate", name, "--entries", "120"))
        somebody = json.loads(self.run("generate", "tenants", "--entries", "1"))["subject"]
        self.run("erase", sample.log, "--subject", somebody, "--yes")
        return sample

    def erased(self) -> Sample:
        sample = self.init("erased")
        self.append(sample, entries(random.Random(3), 40))
        self.run("hold", sample.log, "add", "--subject", "user_2", "--by", "legal", "--reason", "a case")
        order, key = self.place / "order.json", sample.keys / "erasure.key"
        for made in (order, self.place / "erased.cert", self.place / "second.cert"):
            made.unlink(missing_ok=True)
        log_id = json.loads(self.run("info", sample.log, "--json"))["id"]
        names = ("--subject", "user_1", "--subject", "n\u00f6body", "--reason", "asked")
        self.run("order", "--log", log_id, *names, "--authority", key, "-o", order)
        self.run("erase", sample.log, "--authority", order, "-o", self.place / "erased.cert")
        self.run("hold", sample.log, "release", "--subject", "user_2", "--by", "legal", "--reason", "it is closed")
        self.append(sample, entries(random.Random(4), 20))
        self.run("erase", sample.log, "--subject", "user_2", "--subject", "user_3", "-o", self.place / "second.cert")
        return sample

    def rekeyed(self) -> Sample:
        """Erasures and holds by the first key, by the second, and by one of which the order was made elsewhere."""
        sample = self.init("rekeyed")
        self.append(sample, entries(random.Random(11), 30))
        self.run("erase", sample.log, "--subject", "user_1")
        log_id = json.loads(self.run("info", sample.log, "--json"))["id"]
        former = sample.keys / "erasure.key"
        because = ("--by", "legal", "--reason", "a case", "--authority")
        for subject in ("user_0", "user_4"):
            self.run("hold", sample.log, "add", "--subject", subject, *because, former)
        for place in range(2):
            key, order = self.place / f"erasure-{place}.key", self.place / f"rekey-{place}.order"
            for made in (key, order):
                made.unlink(missing_ok=True)
            public = self.run("keys", sample.log, "new-erasure-key", "-o", key).decode().strip()
            self.run("order", "--log", log_id, "--new-erasure-key", public, "--authority", former, "-o", order)
            self.run("config", sample.log, "set", "log.erasure_key", public, "--authority", order)
            self.append(sample, entries(random.Random(12 + place), 10))
            self.run("erase", sample.log, "--subject", f"user_{2 + place}", "--authority", key)
            for action in ("release", "add"):
                self.run("hold", sample.log, action, "--subject", f"user_{4 * place}", *because, key)
            former = key
        return sample

    def changed(self) -> Sample:
        sample = self.init("changed", "--heartbeat", "1m", "--field", "client=truncate-ip:24/48")
        self.append(sample, entries(random.Random(5), 10))
        other = self.place / "other.age"
        other.unlink(missing_ok=True)
        recipient = self.run("keys", sample.log, "new-identity", "-o", other).decode().split()[-1]
        self.run("keys", sample.log, "add-recipient", recipient)
        self.append(sample, entries(random.Random(6), 10))
        self.run("keys", sample.log, "rotate")
        self.run("config", sample.log, "set", "log.fields.payload", "cap:3")
        self.append(sample, entries(random.Random(7), 10))
        self.run("export", sample.log, "--record", "--operation", "read", "-o", self.place / "recorded.jsonl")
        return sample

    def crashed(self) -> Sample:
        sample = self.init("crashed", "--erasure", "off")
        self.run("config", sample.log, "set", "segment_size", "64 KiB", "checkpoint_interval", "1 h")
        lines = [json.dumps(entry).encode() + b"\n" for entry in entries(random.Random(8), 400)]
        for _ in range(3):
            command = [self.bulla, "append", str(sample.log)]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            assert child.stdin is not None
            child.stdin.write(b"".join(lines))
            child.stdin.flush()
            while child.poll() is None and newest(sample.log).stat().st_size < 2000:
                time.sleep(0.001)
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdin.close()
            segment = newest(sample.log)
            os.truncate(segment, max(0, segment.stat().st_size - 7))  # as a write that was cut short
        self.append(sample, entries(random.Random(9), 10))
        return sample

    def granted(self) -> Sample:
        sample = self.init("granted")
        self.append(sample, entries(random.Random(10), 40))
        recipient = next(line for line in (sample.keys / "identity.age").read_text().splitlines() if "age1" in line).split()[-1]
        sample.grant = self.place / "granted.grant"
        sample.grant.unlink(missing_ok=True)
        self.run("grant", sample.log, "--recipient", recipient, "--subject", "user_1", "-o", sample.grant)
        return sample

    def given_up(self) -> Sample:
        """A log of which the newest part is lost, and was given up. The key directory of before that is beside it (`earlier.keys`)."""
        sample, earlier = self.init("given_up"), self.place / "earlier"
        self.append(sample, entries(random.Random(13), 30))
        for path, copy in ((sample.log, earlier), (sample.keys, self.place / "earlier.keys")):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(path, copy)
        self.append(sample, entries(random.Random(14), 30))
        shutil.rmtree(sample.log)
        earlier.rename(sample.log)
        (sample.keys / "seal.state").unlink()
        given = ("--seal-key", sample.keys / "seal.key", "--identity", sample.keys / "identity.age")
        self.run("restore", sample.log, "--older-log", *given)
        self.append(sample, entries(random.Random(15), 30))
        return sample

    def workloads(self) -> Sample:
        sample = self.init("workloads", "--erasure", "off")
        for name in ("gdpr", "json", "web", "web-adversarial", "slow", "integrity"):
            self.run("append", sample.log, text=self.run("generate", name, "--entries", "300"))
        return sample


def newest(log: Path) -> Path:
    """The last segment, or a file without a byte where there is none."""
    found = {named(path.name): path for path in (log / "segments").iterdir() if path.stat().st_size}
    return found[max(name for name in found if name)] if found else log / "LOCK"


def odd_entries() -> list[dict[str, object]]:
    """Entries at the edges of what one can be."""
    odd = "".join(map(chr, range(1, 0x180))) + "\u2028\u2029\ufeff\U0001f600"
    return [
        {"operation": odd, "location": odd, "payload": odd, "subject": [odd, "a"]},
        {"operation": "x", "subject": [], "payload_base64": "/wA=", "location_base64": "/wA="},
        {"operation": "x", "subject": "", "payload": "", "location": "", "actor": "", "client": "", "stream": ""},
        {"operation": "x", "time": "1677-09-21T00:12:43.145224192Z", "status": 4294967295, "duration": 0},
        {"operation": "x", "time": "2262-04-11T23:47:16.854775807Z", "size": 18446744073709551615, "flags": 1},
        {"operation": "x", "time": "1969-12-31T23:59:59.999999999Z", "payload": "long " * 20000},
    ]


def entries(draw: random.Random, count: int) -> list[dict[str, object]]:
    """Entries of all fields, some about nobody, some about several people."""
    found = []
    for number in range(count):
        entry: dict[str, object] = {"operation": draw.choice(["read", "write", "delete"])}
        if draw.random() < 0.7:
            entry["subject"] = [f"user_{draw.randrange(5)}" for _ in range(draw.choice([0, 1, 1, 1, 2, 3]))]
        for name in ("controller", "processor", "purpose", "actor", "client", "stream", "location", "payload"):
            if draw.random() < 0.5:
                entry[name] = f"192.0.2.{number}" if name == "client" else f"{name} {draw.randrange(9)}" * draw.randrange(4)
        for name in ("status", "duration", "size", "flags"):
            if draw.random() < 0.5:
                entry[name] = draw.randrange(1 << draw.choice([1, 8, 31]))
        found.append(entry)
    return found
