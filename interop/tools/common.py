"""What all sections of run.py are made with: programs that are run, and logs that `bulla` makes."""

import copy
import hashlib
import json
import shutil
import subprocess

ORIGIN = "example.com/interop"


class Failed(Exception):
    """A tool is missing, or says something else than it has to."""


def run(arguments, **options):
    """Runs a program: its exit code, and what it printed, standard error included."""
    ran = subprocess.run([str(it) for it in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False, **options)
    return ran.returncode, ran.stdout.decode(errors="replace")


def must(arguments, **options):
    """What a program prints on standard output that has to succeed."""
    ran = subprocess.run([str(it) for it in arguments], capture_output=True, timeout=600, check=False, **options)
    if ran.returncode:
        raise Failed(f"{' '.join(map(str, arguments))} ended with {ran.returncode}: {(ran.stdout + ran.stderr).decode(errors='replace')[-2000:]}")
    return ran.stdout.decode()


def refused(what, arguments):
    """Has a program refuse something in order: with the exit code 1."""
    code, out = run(arguments)
    if code != 1 or not out:
        raise Failed(f"{what} had to be refused, and {arguments[0]} ended with {code}: {out[-2000:]}")


def expect(condition, what):
    if not condition:
        raise Failed(what)


def program(name, of):
    found = shutil.which(name)
    if not found:
        raise Failed(f"{name} is missing: {of}")
    return found


class Log:
    """A log of a kind, with checkpoints of the states that it went through."""

    def __init__(self, bulla, place, name, *options, entries=0, frames=0):
        self.bulla, self.directory = bulla, place / name
        must([bulla, "init", self.directory, "--origin", ORIGIN, *options])
        for setting, value in (("block_size", "4 KiB"), ("segment_size", "64 KiB")):
            must([bulla, "config", self.directory, "set", setting, value])
        self.key = json.loads(must([bulla, "info", self.directory, "--json"]))["vkey"]
        self.checkpoints = []
        self.entries = 0
        self.append(1)
        for more in (entries // 3, entries - entries // 3 - 1) if entries else ():
            self.append(more)
        # How many entries share a block depends on how fast they come.
        while size(self.checkpoint()) <= frames:
            self.append(20_000)

    @property
    def keys(self):
        return self.directory.with_name(self.directory.name + ".keys")

    def append(self, count):
        """Appends so many entries, of which every second one is about somebody, and keeps the checkpoint."""
        lines = []
        for number in range(self.entries, self.entries + count):
            entry = {"operation": "read", "location": f"place {number}", "purpose": "interop", "payload": hashlib.sha256(str(number).encode()).hexdigest()}
            if number % 2:
                entry["subject"] = f"user_{number % 50}"
            lines.append(json.dumps(entry))
        must([self.bulla, "append", self.directory], input="\n".join(lines).encode())
        self.entries += count
        self.checkpoints.append(self.checkpoint())

    def forked(self, name):
        """Another log with the same keys and the same beginning."""
        fork = copy.copy(self)
        fork.directory, fork.checkpoints = self.directory.with_name(name), list(self.checkpoints)
        for old, new in ((self.directory, fork.directory), (self.keys, fork.keys)):
            shutil.copytree(old, new, copy_function=shutil.copy2)
        return fork

    def checkpoint(self):
        return (self.directory / "checkpoint").read_bytes()

    def copied(self, name):
        """Another place with the same files, to be changed."""
        place = self.directory.with_name(name)
        shutil.copytree(self.directory, place)
        return place

    def prove(self, name, *arguments):
        """The file of a proof."""
        file = self.directory.parent / f"{self.directory.name}.{name}.proof"
        must([self.bulla, "prove", self.directory, *arguments, "-o", file])
        return file


def say(text):
    print(f"interop: {text}", flush=True)


def size(checkpoint):
    return int(checkpoint.split(b"\n")[1])


def flipped(file, at):
    """Changes one bit of a file."""
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.chmod(0o600)
    file.write_bytes(content)


def bundle(directory, log):
    """The newest bundle of commitments."""
    return directory / f"tile/entries/{size(log.checkpoint()) // 256:03}.p/{size(log.checkpoint()) % 256}"
