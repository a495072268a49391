#!/usr/bin/env python3
"""Makes the vectors of cosignatures, by `cryptography` (OpenSSL) and the specification alone: C2SP tlog-cosignature.

    .venv/bin/python vectors/witness/make.py            writes cosignatures.json beside it
    .venv/bin/python vectors/witness/make.py --check    fails where what is there does not verify, or is not of this script

ML-DSA-44 signs with fresh randomness: so `--check` verifies the signatures that are there, and compares all else.
"""

import base64
import hashlib
import json
import pathlib
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

FILE = pathlib.Path(__file__).parent / "cosignatures.json"
ED25519, ML_DSA_44 = 0x04, 0x06
# The text of the specification's example, which it does not give the keys of.
SOFA = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
EMPTY = "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"


def secret(kind, seed):
    make = Ed25519PrivateKey.from_private_bytes if kind == ED25519 else MLDSA44PrivateKey.from_seed_bytes
    return make(bytes([seed]) * 32)


def message(kind, name, text, time):
    if kind == ED25519:
        return f"cosignature/v1\ntime {time}\n{text}".encode()
    origin, size, root = text.split("\n")[:3]
    sized = lambda text: bytes([len(text.encode())]) + text.encode()
    tree = struct.pack(">QQ", 0, int(size)) + base64.b64decode(root)
    return b"subtree/v1\n\0" + sized(name) + struct.pack(">Q", time) + sized(origin) + tree


def vector(title, kind, name, seed, text, time):
    key = secret(kind, seed)
    public = key.public_key().public_bytes_raw()
    identified = hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]
    signed = message(kind, name, text, time)
    encoded = base64.b64encode(identified + struct.pack(">Q", time) + key.sign(signed)).decode()
    return {
        "name": title,
        "vkey": f"{name}+{identified.hex()}+{base64.b64encode(bytes([kind]) + public).decode()}",
        "text": text,
        "time": time,
        "message": signed.hex(),
        "line": f"\u2014 {name} {encoded}\n",
    }


def vectors():
    witness = "witness.example.com/w1"
    for kind, algorithm in (ED25519, "Ed25519"), (ML_DSA_44, "ML-DSA-44"):
        yield vector(f"{algorithm}: the specification's example", kind, witness, 1, SOFA, 1679315147)
        yield vector(f"{algorithm}: an empty tree, at the time 0", kind, "\u00fcber.example", 2, EMPTY, 0)
        yield vector(f"{algorithm}: a line after the root, at the last time", kind, witness, 1, SOFA + "more\n", 2**63 - 1)
    yield vector("ML-DSA-44: a log's own signature", ML_DSA_44, "example.com/log", 3, EMPTY, 0)


def check():
    there = json.loads(FILE.read_text())
    made = list(vectors())
    assert [{**it, "line": 0} for it in there] == [{**it, "line": 0} for it in made], "other vectors"
    for one, other in zip(there, made):
        begin, _, encoded = one["line"].rstrip("\n").rpartition(" ")
        ours, _, mine = other["line"].rstrip("\n").rpartition(" ")
        data, own = base64.b64decode(encoded), base64.b64decode(mine)
        assert (begin, data[:12], len(data)) == (ours, own[:12], len(own)), one["name"]
        kind = ED25519 if one["name"].startswith("Ed25519") else ML_DSA_44
        public = base64.b64decode(one["vkey"].split("+", 2)[2])[1:]
        seed = next(seed for seed in range(1, 4) if secret(kind, seed).public_key().public_bytes_raw() == public)
        secret(kind, seed).public_key().verify(data[12:], bytes.fromhex(one["message"]))


if sys.argv[1:] == ["--check"]:
    check()
else:
    FILE.write_text(json.dumps(list(vectors()), indent=1) + "\n")
