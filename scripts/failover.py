#!/usr/bin/env python3
"""A log on several paths, on real file systems that fill up, break, become read-only or go away while it is written.

    scripts/failover.py BULLA [NAME...]

Each case makes a log on a file system of its own, with a backup path on another, feeds `bulla append --acks` as fast as it reads, and has the
first file system fail. Every line that was acknowledged has to be in the log, once, whatever came of the process, and the log has to
verify. A log that may drop has one file system alone, which has room again later: each line is there or counted by an event. Told is what was acknowledged, and for how long nothing was: the longest time between two acknowledgements from half a second before the failure on. In the last
case the process is killed after that, and the log opened again without the first file system.

Needs root (or a user namespace) to mount file systems, which nobody else sees: it starts itself again in a mount namespace of its own.
What a machine cannot do is said aloud (`not tested: …`).
"""

import fcntl
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

# How long it is fed before the failure and after it, in seconds, how long at most until what is waited for has happened, and what payloads are
# cut from.
BEFORE, AFTER, PATIENCE = 1.5, 2.5, 60
PAYLOAD = random.Random(7).randbytes(1 << 20).hex()
EXT4_IOC_SHUTDOWN = 0x8004587D


class Unable(Exception):
    """What this machine cannot do."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def mount(*words):
    done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unable(f"mount: {done.stderr.strip()}")


def ext4(place, size):
    """An ext4 file system of so many MiB on a loop device; the one that was there before, if there was."""
    if place.with_suffix(".img").exists():
        mount("-o", "loop", place.with_suffix(".img"), place)
        return
    image = place.with_suffix(".img")
    run("truncate", "-s", f"{size}m", image)
    if not shutil.which("mkfs.ext4"):
        raise Unable("there is no mkfs.ext4")
    run("mkfs.ext4", "-q", "-m", "0", image)
    mount("-o", "loop", image, place)


def tmpfs(place, size):
    mount("-t", "tmpfs", "-o", f"size={size}m", "tmpfs", place)


def shut_down(place):
    """Has an ext4 file system fail every operation from now on, as a disk that is gone does."""
    directory = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(directory, EXT4_IOC_SHUTDOWN, struct.pack("I", 2))
    except OSError as error:
        raise Unable(f"shutting a file system down: {error}") from None
    finally:
        os.close(directory)


def unmount(place):
    run("umount", "-l", place)


def fill(place):
    """Leaves no room on a file system, by a file of somebody else's."""
    with open(place / "filler", "wb") as filler:
        try:
            while True:
                filler.write(b"\0" * (1 << 20))
                filler.flush()
        except OSError:
            pass


def feed(seconds, until=lambda: True):
    """Lets it be fed so long, and on a slow machine until that is so."""
    began = time.monotonic()
    time.sleep(seconds)
    while not until() and time.monotonic() - began < PATIENCE:
        time.sleep(0.1)


class Append:
    """`bulla append --acks`, fed as fast as it reads."""

    def __init__(self, bulla, log, keys, wrapped=(), first=1):
        command = [*wrapped, bulla, "append", log, "--keys", keys, "--acks", "--json", "--stats"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([str(word) for word in command], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.fed = 0
        self.first, self.acknowledged, self.times, self.told, self.outcome, self.stopped = first, 0, [], [], None, False
        self.threads = [threading.Thread(target=work) for work in (self.feed, self.read, self.hear)]
        for thread in self.threads:
            thread.start()

    def feed(self):
        number = self.first
        try:
            while not self.stopped:
                entry = {"operation": "write", "location": str(number), "payload": PAYLOAD[number % 6000 * 300 :][:300]}
                self.process.stdin.write(json.dumps(entry) + "\n")
                number += 1
                self.fed += 1
            self.process.stdin.close()
        except (BrokenPipeError, ValueError):
            pass

    def read(self):
        for line in self.process.stdout:
            if line.startswith("durable "):
                self.acknowledged = self.first - 1 + int(line.split()[1])
                self.times.append(time.monotonic())
            else:
                self.outcome = json.loads(line)

    def hear(self):
        for line in self.process.stderr:
            self.told.append(line.rstrip())

    def end(self, kill=False, done=(0,)):
        self.stopped = True
        if kill:
            self.process.kill()
        code = self.process.wait(timeout=120)
        for thread in self.threads:
            thread.join()
        if code not in done and not kill:
            raise RuntimeError(f"append: exit {code}: {self.told[-3:]}")

    def longest_gap(self, since):
        """The longest time without an acknowledgement after this moment, in milliseconds."""
        times = [at for at in self.times if at >= since]
        return 1000 * max((b - a for a, b in zip(times, times[1:])), default=float("inf"))


def check(bulla, log, keys, acknowledged):
    """That the log verifies, and has each line that was acknowledged once."""
    run(bulla, "verify", log, "--keys", keys)
    lines = run(bulla, "export", log, "--keys", keys).splitlines()
    numbers = [int(json.loads(line)["location"]) for line in lines]
    if len(set(numbers)) != len(numbers):
        raise RuntimeError("a line is there twice")
    missing = set(range(1, acknowledged + 1)) - set(numbers)
    if missing:
        raise RuntimeError(f"{len(missing)} lines were acknowledged and are not there, the first of them {min(missing)}")


def case(bulla, folder, make, fail=None, wrapped=(), again=None, kill=False):
    """Has the first file system fail under load. `make` makes it, and mounts it again where `again` says so."""
    first, second = folder / "first", folder / "second"
    for place in (first, second):
        place.mkdir()
    make(first)
    log, keys = first / "audit", folder / "audit.keys"
    run(bulla, "init", log, "--keys", keys)
    run(bulla, "config", log, "--keys", keys, "set", "backup_paths", second / "audit")
    if wrapped and not shutil.which(wrapped[0]):
        raise Unable(f"there is no {wrapped[0]}")
    append = Append(bulla, log, keys, wrapped)
    feed(BEFORE, lambda: append.acknowledged)
    since, before = time.monotonic() - 0.5, append.acknowledged
    if fail:
        fail(first)
    feed(AFTER, lambda: any((second / "audit/segments").iterdir()) and append.acknowledged > before)
    append.end(kill)
    acknowledged = append.acknowledged
    if not before < acknowledged:
        raise RuntimeError(f"nothing was acknowledged after the failure: {append.told[-3:]}")
    if kill:
        # Without the first file system, which the writer had left.
        unmount(first)
        more = Append(bulla, log, keys, first=acknowledged + 1_000_000)
        feed(BEFORE, lambda: more.acknowledged)
        more.end()
        report = json.loads(subprocess.run([bulla, "verify", log, "--keys", keys, "--json"], capture_output=True, check=False).stdout)
        kinds = {finding["kind"] for finding in report["findings"]}
        if report["ok"] or not {"path-missing", "frames-missing"} <= kinds:
            raise RuntimeError(f"of a log without its first path verification tells {sorted(kinds)}")
    if again:
        again(first)
        make(first)
    check(bulla, log, keys, acknowledged)
    events = [json.loads(line) for line in run(bulla, "events", log, "--keys", keys, "--json").splitlines()]
    replaced = [event for event in events if event["event"] == "path-replaced"]
    if not replaced:
        raise RuntimeError("no path was replaced")
    stalled = (append.outcome or {}).get("stats", {}).get("failovers", {}).get("longest", 0) / 1e6
    inside = f", {stalled:.1f} ms of that in the log" if stalled else ""
    return (
        f"{acknowledged} lines acknowledged, {before} of them before; {len(replaced)} switches; "
        f"at most {append.longest_gap(since if fail else 0):.1f} ms without an acknowledgement{inside}"
    )


def dropping(bulla, folder):
    """Has the only file system of a log that may drop fill up under load, and then have room again."""
    first = folder / "first"
    first.mkdir()
    tmpfs(first, 48)
    log, keys, errors = first / "audit", folder / "audit.keys", folder / "errors"
    run(bulla, "init", log, "--keys", keys)
    for name, value in (("on_failure", "drop"), ("memory", "64 MiB"), ("error_path", errors)):
        run(bulla, "config", log, "--keys", keys, "set", name, value)
    append = Append(bulla, log, keys)
    feed(BEFORE, lambda: append.acknowledged)
    before = append.acknowledged
    fill(first)
    fed = append.fed
    feed(AFTER, lambda: errors.exists() and any(errors.iterdir()))
    during = append.fed - fed
    (first / "filler").unlink()
    feed(BEFORE)
    append.end(done=(3,))
    counts = append.outcome
    run(bulla, "verify", log, "--keys", keys)
    found = {int(json.loads(line)["location"]) for line in run(bulla, "export", log, "--keys", keys).splitlines()}
    missing = set(range(1, append.acknowledged + 1)) - found
    events = [json.loads(line) for line in run(bulla, "events", log, "--keys", keys, "--kind", "dropped", "--json").splitlines()]
    told = sum(event["entries"] for event in events)
    if missing or not before or not events or not all(event["exact"] for event in events):
        raise RuntimeError(f"{len(missing)} acknowledged lines are missing, {before} were acknowledged, {events}")
    if len(found) + told != counts["accepted"] or told != counts["dropped"]:
        raise RuntimeError(f"{counts['accepted']} were accepted, {len(found)} are there, {told} are told to be dropped")
    aside = set()
    for file in sorted(errors.iterdir()):
        if not shutil.which("age"):
            break
        lines = run("age", "-d", "-i", keys / "identity.age", file).splitlines()
        aside |= {int(json.loads(line)["location"]) for line in lines}
    if aside & found:
        raise RuntimeError(f"{len(aside & found)} lines are in the log and set aside as well")
    return (
        f"{counts['accepted']} lines accepted, {during} of them while nothing took the log; {len(found)} are there, "
        f"{told} told to be dropped by {len(events)} events, {sum(event['set_aside'] for event in events)} of them set aside"
        f"{f', {len(aside)} of which age decrypts' if aside else ''}"
    )


def nothing(_place):
    pass


STRACE = ("strace", "-f", "-qq", "-o", "/dev/null")
CASES = {
    "a tmpfs that somebody else fills": dict(make=lambda place: tmpfs(place, 96), fail=fill),
    "an ext4 that the log fills": dict(make=lambda place: ext4(place, 16)),
    "an ext4 that breaks": dict(make=lambda place: ext4(place, 256), fail=shut_down, again=unmount),
    "an ext4 that is unmounted": dict(make=lambda place: ext4(place, 256), fail=unmount, again=nothing),
    "an ext4 that breaks, and a kill": dict(make=lambda place: ext4(place, 256), fail=shut_down, again=nothing, kill=True),
    "a sync that fails": dict(make=nothing, wrapped=(*STRACE, "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=25")),
    "a tmpfs that somebody else fills, of a log that drops": dict(work=dropping),
    "a write that fails": dict(make=nothing, wrapped=(*STRACE, "-e", "trace=pwritev,pwrite64", "-e", "inject=pwritev,pwrite64:error=ENOSPC:when=25")),
}  # fmt: skip


def main():
    if os.environ.get("BULLA_FAILOVER_NAMESPACE") != "1":
        words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        os.environ["BULLA_FAILOVER_NAMESPACE"] = "1"
        os.execvp(words[0], [*words, sys.executable, *sys.argv])
    bulla, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    failed = 0
    for name, given in CASES.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="bulla-failover-") as folder:
            try:
                work = given.get("work", case)
                given = {key: value for key, value in given.items() if key != "work"}
                print(f"swept: {name}: {work(str(bulla), pathlib.Path(folder), **given)}", flush=True)
            except Unable as why:
                print(f"swept: {name}: not tested: {why}", flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"swept: {name}: failed: {error}", flush=True)
            finally:
                subprocess.run(["umount", "-l", pathlib.Path(folder) / "first"], capture_output=True, check=False)
    return 1 if failed else 0


sys.exit(main())
