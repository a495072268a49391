#!/usr/bin/env python3
"""Makes the vector of personal records: a file that was made and appended to, by the standard library alone.

    python3 vectors/personal/make.py            writes personal.json beside it
    python3 vectors/personal/make.py --check    fails where it differs

AES and GCM are those of vectors/seal/make.py.
"""

import hashlib
import hmac
import importlib.util
import json
import pathlib
import struct
import sys

DIRECTORY = pathlib.Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("seal", DIRECTORY.parent / "seal" / "make.py")
seal = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(seal)

LOG = bytes(range(16))
RANDOM = bytes(range(64, 96))
DIGEST_KEY = bytes(range(128, 160))
SUBJECTS = {5: bytes([5]) * 32, 70000: bytes([7]) * 32}
# What the file was made with, and what was appended since: the record with an id and a data subject, or none with that id.
MADE = [(1, 5, "ada has a"), (2, 70000, "bob has b"), (2**40, 5, "")]
APPENDED = [[(3, 70000, "bob has c"), (1, None, None)], [(2, 70000, "bob has d")]]


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(key, information):
    """HKDF-Expand (RFC 5869) of 32 bytes."""
    return mac(key, information + b"\x01")


class File:
    def __init__(self):
        self.header = b"bullaPR1" + LOG + RANDOM
        self.codes = expand(mac(RANDOM, DIGEST_KEY), b"bulla personal records v1" + LOG)
        self.chain = mac(self.codes, b"\x00" + self.header)
        self.frames, self.given, self.heads = b"", 0, [bytes(72), bytes(72)]

    def change(self, changes):
        content = b""
        for record, subject, text in changes:
            if subject is None:
                content += b"\x00" + struct.pack("<Q", record)
                continue
            number = struct.pack("<Q", subject)
            key = expand(SUBJECTS[subject], b"bulla personal record v1" + LOG + RANDOM + number)
            nonce = struct.pack("<QI", self.given, 0)
            sealed = seal.gcm_seal(key, nonce, struct.pack("<Q", record), text.encode())
            content += b"\x01" + struct.pack("<Q", record) + number + struct.pack("<I", len(sealed)) + sealed
            self.given += 1
        self.chain = mac(self.codes, b"\x01" + self.chain + content)
        self.frames += struct.pack("<I", len(content)) + content + self.chain

    def cover(self, place):
        head = struct.pack("<Q", 1536 + len(self.frames)) + self.chain
        self.heads[place] = head + mac(self.codes, b"\x02" + head)

    def bytes(self):
        first = self.header.ljust(512, b"\x00") + self.heads[0].ljust(512, b"\x00") + self.heads[1].ljust(512, b"\x00")
        return first + self.frames


def make():
    file = File()
    file.change(MADE)
    file.cover(0)
    for number, changes in enumerate(APPENDED):
        file.change(changes)
        file.cover(1 - number % 2)
    change = lambda record, subject, text: {"id": record, "subject": subject, "text": text}
    return {
        "log_id": LOG.hex(),
        "random": RANDOM.hex(),
        "digest_key": DIGEST_KEY.hex(),
        "subjects": [{"number": number, "key": key.hex()} for number, key in SUBJECTS.items()],
        "made": [change(*it) for it in MADE],
        "appended": [[change(*it) for it in changes] for changes in APPENDED],
        "file": file.bytes().hex(),
        "records": ["", "bob has d", "bob has c"],
    }


def main():
    text, path = json.dumps(make(), indent=1, ensure_ascii=False) + "\n", DIRECTORY / "personal.json"
    if "--check" not in sys.argv:
        path.write_text(text)
    elif not path.is_file() or path.read_text() != text:
        sys.exit("not what this script makes: personal.json")


if __name__ == "__main__":
    main()
