#!/usr/bin/env python3
"""A second implementation of reading a Bulla log: what anyone can check with public data, and the seals with their key.

    python3 scripts/reference_reader.py DIR [--vkey VKEY] [--seal-key FILE]

Standard library alone. Prints one JSON object and exits 0, or says what is wrong and exits 1. It is strict where
`bulla verify` goes on: the first thing that is not as the format says ends it. It opens no block, for which it would
need AES and age; it recovers nothing; it holds one segment in memory at a time.
"""

import argparse
import base64
import hashlib
import hmac
import json
import pathlib
import re
import struct
import sys
import tomllib

from reference.basics import Objection, require, sha256
from reference.commitments import COMMITMENT, KINDS, read_commitment
from reference.events import Erasures, read_event
from reference.notes import parse_vkey, read_checkpoint

HEADER, SEAL = 24, 32
HEAD = HEADER + COMMITMENT


def _crc_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        yield byte


CRC_TABLE = list(_crc_table())


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


# The tree (RFC 6962, section 2.1) and its files (C2SP tlog-tiles).

def tree_hash(hashes):
    """By levels; an odd last node moves up as it is."""
    hashes = list(hashes)
    while len(hashes) > 1:
        pairs = [sha256(b"\1", hashes[i], hashes[i + 1]) for i in range(0, len(hashes) - 1, 2)]
        hashes = pairs + hashes[len(pairs) * 2:]
    return hashes[0] if hashes else sha256()


def tile_path(level, index, width):
    groups = [f"{index % 1000:03}"]
    while index >= 1000:
        index //= 1000
        groups.insert(0, f"x{index % 1000:03}")
    return f"tile/{level}/{'/'.join(groups)}" + ("" if width == 256 else f".p/{width}")


def check_file(directory, path, expected, what):
    try:
        found = (directory / path).read_bytes()
    except OSError as error:
        raise Objection(f"{path}: {error.strerror}") from None
    require(found == expected, f"{path} is not what the log's frames come to: {what}")


def check_tree(directory, commitments, leaves):
    """Every tile and bundle of the tree, and of the partial ones of smaller sizes those that are still there."""
    level, hashes = 0, leaves
    while hashes:
        for index in range((len(hashes) + 255) // 256):
            tile = hashes[index * 256:(index + 1) * 256]
            widths = {len(tile)}
            partial = directory / (tile_path(level, index, 256) + ".p")
            if partial.is_dir():
                widths |= {int(item.name) for item in partial.iterdir() if item.name.isdigit()}
            for width in (width for width in widths if width <= len(tile)):
                check_file(directory, tile_path(level, index, width), b"".join(tile[:width]), "hashes")
                if level == 0:
                    entries = commitments[index * 256:index * 256 + width]
                    bundle = b"".join(struct.pack(">H", len(entry)) + entry for entry in entries)
                    check_file(directory, tile_path("entries", index, width), bundle, "commitments")
        hashes = [tree_hash(hashes[i:i + 256]) for i in range(0, len(hashes) - 255, 256)]
        level += 1


# Frames.

def read_frame(data, offset, where):
    """A frame: its commitment's fields, and its parts as bytes."""
    require(len(data) - offset >= HEAD, f"{where} ends inside a frame's head")
    magic, version, kind, length, body, group, crc = struct.unpack_from("<4sBBHIQI", data, offset)
    require(magic == b"Bulf" and version == 1 and length == COMMITMENT, f"{where}: no frame begins at {offset}")
    require(crc == crc32c(data[offset:offset + 20]), f"{where}: the header at {offset} has a wrong checksum")
    encoded = data[offset + HEADER:offset + HEAD]
    fields = read_commitment(encoded)
    require(KINDS[kind] == fields["kind"] and body == fields["length"], f"{where}: header and commitment disagree")
    require(group <= fields["frame"], f"{where}: frame {fields['frame']} is in a later group")
    end = offset + HEAD + body + SEAL
    require(end <= len(data), f"{where} ends inside frame {fields['frame']}")
    content = data[offset + HEAD:end - SEAL]
    require(sha256(content) == fields["digest"], f"{where}: the body of frame {fields['frame']} is damaged")
    return dict(fields, encoded=encoded, body=content, seal=data[end - SEAL:end], group=group, end=end,
                whole=data[offset:end])


class Reader:
    def __init__(self, directory, vkey=None, seal_key=None):
        self.directory = directory
        text = (directory / "bulla.toml").read_bytes()
        self.public = self.log_part(text)
        self.log = tomllib.loads(self.public.decode())["log"]
        tomllib.loads(text.decode())
        require(self.log["version"] == 1, "the log is of another format version")
        require(parse_vkey(self.log["vkey"])[0] == self.log["origin"], "the log's key is not of its origin")
        _, self.size, self.root = read_checkpoint((directory / "checkpoint").read_bytes(), vkey or self.log["vkey"])
        self.state = self.read_seal_key(seal_key) if seal_key else None
        self.leaves, self.commitments, self.surplus, self.events = [], [], [], []
        self.next_entry, self.blocks, self.entries, self.pending = 0, 0, 0, 0
        self.previous, self.epoch_frame = bytes(32), None
        self.current, self.allowed = None, set()
        self.erasures = Erasures(self.log.get("erasure_key"))

    @staticmethod
    def log_part(text):
        """What the digest covers: the file up to the line `[settings]`."""
        start = 0
        for line in text.splitlines(keepends=True):
            if line.rstrip() == b"[settings]":
                break
            start += len(line)
        return text[:start]

    def read_seal_key(self, path):
        label, log, state = path.read_text().split()
        require(label == "bulla-seal-key-v1" and log == self.log["id"], "the seal key is of another log")
        return base64.b64decode(state, validate=True)

    def read(self):
        # A file without a byte is no segment.
        files = [path for path in (self.directory / "segments").iterdir() if path.stat().st_size]
        names = sorted(files, key=lambda path: self.segment_order(path.name))
        firsts = [self.segment_order(path.name)[0] for path in names]
        for index, path in enumerate(names):
            following = firsts[index + 1:]
            self.read_segment(path, firsts[index], following[0] if following else None)
        require(len(self.leaves) == self.size, f"the checkpoint covers {self.size} frames, {len(self.leaves)} are there")
        require(tree_hash(self.leaves) == self.root, "the frames do not have the root that the checkpoint signs")
        check_tree(self.directory, self.commitments, self.leaves)
        own = sha256(self.public).hex()
        require(self.current is None or own in self.allowed, "bulla.toml has another [log] than the last epoch")
        self.check_surplus()
        return dict(entries=self.entries, blocks=self.blocks, tree_size=self.size, root=self.root.hex(),
                    pending=self.pending, seals=self.state is not None)

    @staticmethod
    def segment_order(name):
        match = re.fullmatch(r"(\d{20})(?:-([1-9]\d*))?\.seg", name)
        require(match, f"segments/{name} is no segment")
        return int(match[1]), int(match[2] or 0)

    def read_segment(self, path, first, limit):
        """The frames from `first` up to the one that the next segment begins with."""
        data, where, offset = path.read_bytes(), path.name, 0
        if len(self.leaves) < self.size:
            if limit == first:  # A later file of the same first frame stands for this one.
                self.surplus.append((where, 0, data))
                return
            require(first == len(self.leaves), f"{where} does not follow frame {len(self.leaves)}")
        while offset < len(data) and (limit is None or len(self.leaves) < limit) and len(self.leaves) < self.size:
            frame = read_frame(data, offset, where)
            if offset == 0 and frame["kind"] == "epoch" and frame["frame"] < first:
                require(frame["whole"] == self.epoch_frame, f"{where}: the copied epoch frame is not the epoch's")
            else:
                require(offset or frame["kind"] == "epoch", f"{where} does not begin with an epoch frame")
                self.take(frame, where)
            offset = frame["end"]
        if len(self.leaves) < self.size or (limit is not None and limit <= self.size):
            if offset < len(data):
                self.surplus.append((where, offset, data[offset:]))
        else:
            self.pending += len(data) - offset

    def take(self, frame, where):
        number, place = frame["frame"], f"{where}: frame {frame['frame']}"
        require(number == len(self.leaves), f"{place} stands where frame {len(self.leaves)} should")
        require(frame["log"].hex() == self.log["id"] and frame["hash"] == self.log["hash"], f"{place} is of another log")
        require(frame["first"] == self.next_entry, f"{place} does not follow entry {self.next_entry}")
        if frame["kind"] == "epoch":
            self.check_epoch(frame, place)
            self.epoch, self.epoch_frame = number, frame["whole"]
        require(self.epoch_frame and frame["epoch"] == self.epoch, f"{place} is of another epoch")
        if frame["kind"] == "event":
            event = read_event(frame["body"], self.log["id"])
            self.erasures.take(number, event)
            self.events.append(event)
            # The next epoch may be begun with another [log]; the last such event counts.
            if event["event"] == "configured" and event["before"] == self.current:
                self.allowed = {self.current, event["after"]}
        self.check_seal(frame, place)
        self.previous = frame["seal"]
        self.next_entry += frame["entries"]
        if frame["kind"] == "block":
            self.blocks, self.entries = self.blocks + 1, self.entries + frame["entries"]
        self.commitments.append(frame["encoded"])
        self.leaves.append(sha256(b"\0", frame["encoded"]))

    def check_epoch(self, frame, place):
        body = frame["body"]
        require(len(body) >= 136 and body[:4] == b"\1\0\0\0", f"{place} is no epoch of this version")
        config, previous, length = body[68:100], body[100:132], struct.unpack("<I", body[132:136])[0]
        require(self.current is None or config.hex() in self.allowed, f"{place} has another [log], and no event says so")
        self.current, self.allowed = config.hex(), {config.hex()}
        require(previous == self.previous, f"{place} does not continue from the seal before it")
        require(length == len(body) - 136, f"{place} has a wrapped key of another length")

    def check_seal(self, frame, place):
        if self.state is None:
            return
        mac = lambda key, *parts: hmac.new(key, b"".join(parts), hashlib.sha256).digest()
        key = mac(self.state, b"bulla seal v1")
        expected = mac(key, self.previous, struct.pack("<Q", frame["group"]), frame["encoded"])
        require(hmac.compare_digest(expected, frame["seal"]), f"{place} has a seal that does not hold")
        self.state = mac(self.state, b"bulla evolve v1")

    def check_surplus(self):
        """Every byte of a segment that is no frame's needs an event that names its place."""
        for name, offset, data in self.surplus:
            if not data:
                continue
            events = [one for one in self.events if (one.get("segment"), one.get("offset")) == (name, offset)]
            require(events, f"{name}: {len(data)} bytes at {offset} belong to no frame")
            event = events[-1]
            if event["event"] == "recovered":
                same = event["length"] == len(data) and event["sha256"] == sha256(data).hex()
                require(same, f"{name}: the bytes at {offset} are not those that recovery recorded")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", type=pathlib.Path, nargs="+", metavar="directory")
    parser.add_argument("--vkey", help="the log's key, from elsewhere; without it the one in bulla.toml")
    parser.add_argument("--seal-key", type=pathlib.Path, help="the file with the first state of the seal chain")
    arguments = parser.parse_args()
    sound = True
    for directory in arguments.directories:
        try:
            report = Reader(directory, arguments.vkey, arguments.seal_key).read()
        except (Objection, OSError, ValueError, KeyError, TypeError, struct.error) as error:
            sound = False
            print(json.dumps({"not_sound": str(error)}))
            continue
        print(json.dumps(dict(report, anchored=arguments.vkey is not None)))
    sys.exit(0 if sound else 1)


main()
