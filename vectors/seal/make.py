#!/usr/bin/env python3
"""Makes the vectors of sealing: whole small logs, by a second implementation of the standard library alone.

    python3 vectors/seal/make.py            writes the .json files beside it
    python3 vectors/seal/make.py --check    fails where they differ

Each log has every key, salt, unit, root, seal and byte worked out here from given secrets and rows. The bodies of its
blocks are another encoder's than Bulla's, so a reader that opens them does not merely read what it wrote.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import struct
import sys

HASHES = {"sha256": (1, hashlib.sha256), "sha3-256": (2, hashlib.sha3_256)}
RECIPIENT = "age1wwwqy5ealr6ts9hg0jj3pgglvfz8zv7n70c57vmgwygh0g39s4tqxqgw8j"
START = 1_700_000_000


# AES-256 (FIPS 197), CTR and GCM (NIST SP 800-38A, D), encryption only.

def _sbox():
    box, p, q = [0x63] * 256, 1, 1
    while True:
        p ^= (p << 1) ^ (0x11b if p & 0x80 else 0)
        p &= 0xff
        for shift in (1, 2, 4):
            q ^= q << shift
        q &= 0xff
        q ^= 0x09 if q & 0x80 else 0
        rotated = [((q << n) | (q >> (8 - n))) & 0xff for n in range(1, 5)]
        box[p] = q ^ rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ 0x63
        if p == 1:
            return box


SBOX = _sbox()


def expand_key(key):
    words = [list(key[i:i + 4]) for i in range(0, 32, 4)]
    round_constant = 1
    for i in range(8, 60):
        word = list(words[-1])
        if i % 8 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= round_constant
            round_constant <<= 1
        elif i % 8 == 4:
            word = [SBOX[b] for b in word]
        words.append([a ^ b for a, b in zip(word, words[i - 8])])
    return [sum(words[i:i + 4], []) for i in range(0, 60, 4)]


def encrypt_block(keys, block):
    double = lambda b: ((b << 1) ^ (0x11b if b & 0x80 else 0)) & 0xff
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 14:
            mixed = []
            for column in range(0, 16, 4):
                c = state[column:column + 4]
                mixed += [double(c[i]) ^ double(c[(i + 1) % 4]) ^ c[(i + 1) % 4] ^ c[(i + 2) % 4] ^ c[(i + 3) % 4]
                          for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def ctr(key, text):
    """AES-256-CTR from a counter of zeros."""
    keys = expand_key(key)
    stream = b"".join(encrypt_block(keys, block.to_bytes(16, "big")) for block in range((len(text) + 15) // 16))
    return bytes(a ^ b for a, b in zip(text, stream))


def gcm_seal(key, nonce, additional, text):
    keys = expand_key(key)
    multiplier = int.from_bytes(encrypt_block(keys, bytes(16)), "big")

    def multiply(x):
        product, y = 0, multiplier
        for bit in range(127, -1, -1):
            product ^= y if (x >> bit) & 1 else 0
            y = (y >> 1) ^ (0xe1 << 120 if y & 1 else 0)
        return product

    counter = lambda n: encrypt_block(keys, nonce + struct.pack(">I", n))
    stream = b"".join(counter(2 + i) for i in range((len(text) + 15) // 16))
    sealed = bytes(a ^ b for a, b in zip(text, stream))
    padded = lambda data: data + bytes(-len(data) % 16)
    hashed = padded(additional) + padded(sealed) + struct.pack(">QQ", 8 * len(additional), 8 * len(sealed))
    tag = 0
    for at in range(0, len(hashed), 16):
        tag = multiply(tag ^ int.from_bytes(hashed[at:at + 16], "big"))
    return sealed + bytes(a ^ b for a, b in zip(tag.to_bytes(16, "big"), counter(1)))


# Ed25519 (RFC 8032), signing.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P


def recover_x(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if x % 2 != sign else x


BASE = (recover_x(BASE_Y, 0), BASE_Y)


def add(p, q):
    product = D * p[0] * q[0] * p[1] * q[1]
    return ((p[0] * q[1] + q[0] * p[1]) * pow(1 + product, P - 2, P) % P,
            (p[1] * q[1] + p[0] * q[0]) * pow(1 - product, P - 2, P) % P)


def times(point, scalar):
    result = (0, 1)
    while scalar:
        result = add(result, point) if scalar & 1 else result
        point, scalar = add(point, point), scalar >> 1
    return result


def compress(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def ed25519(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254
    public = compress(times(BASE, scalar))

    def sign(message):
        nonce = int.from_bytes(hashlib.sha512(digest[32:] + message).digest(), "little") % ORDER
        point = compress(times(BASE, nonce))
        challenge = int.from_bytes(hashlib.sha512(point + public + message).digest(), "little") % ORDER
        return point + ((nonce + challenge * scalar) % ORDER).to_bytes(32, "little")

    return public, sign


# HKDF (RFC 5869) and the seal chain.

def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def derive(secret, random, log, epoch):
    pseudorandom = mac(random, secret)
    output = lambda label: mac(pseudorandom, label, log, struct.pack("<Q", epoch), b"\1")
    return [output(label) for label in (b"bulla body key v1", b"bulla salt key v1", b"bulla key commitment v1")]


class Chain:
    def __init__(self, state):
        self.state, self.previous = state, bytes(32)

    def seal(self, group, commitment):
        key = mac(self.state, b"bulla seal v1")
        self.previous = mac(key, self.previous, struct.pack("<Q", group), commitment)
        self.state = mac(self.state, b"bulla evolve v1")
        return self.previous


# Rows and their columns. This encoder writes every integer column as `packed` of width 64 and every string column as
# `plain`, uncompressed.

def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


SHARED = ["controller", "processor", "purpose"]
NUMBERS = ["status", "duration", "size", "flags"]
PERSONAL = ["location", "client", "actor", "stream", "payload"]
FIELDS = SHARED + NUMBERS + PERSONAL + ["subject"]


def string(value):
    value = value.encode()
    return varint(len(value)) + value


def row(entry):
    presence = sum(1 << bit for bit, field in enumerate(FIELDS) if field in entry)
    out = struct.pack("<Hq", presence, entry["time"]) + string(entry["operation"])
    for field in FIELDS[:-1]:
        if field in entry:
            out += varint(entry[field]) if field in NUMBERS else string(entry[field])
    if "subject" in entry:
        out += varint(len(entry["subject"])) + b"".join(map(string, entry["subject"]))
    return out


def integers(values):
    if not values:
        return b""
    out = b"\1" + varint(0) + varint(1)
    for at in range(0, len(values), 512):
        out += varint(0) + bytes([64]) + b"".join(struct.pack("<Q", v) for v in values[at:at + 512])
    return out


def blob(data):
    return b"\0" + data if data else b""


def strings(values):
    values = [value.encode() for value in values]
    return b"\2" + integers([len(value) for value in values]) + blob(b"".join(values)) if values else b""


def padme(length):
    if length < 2:
        return length
    exponent = length.bit_length() - 1
    kept = exponent.bit_length()
    mask = (1 << (exponent - kept)) - 1
    return (length + mask) & ~mask


def columns(entries):
    out = b"\1" + varint(len(entries)) + varint(0)
    out += integers([entry["time"] % 2**64 for entry in entries]) + strings([e["operation"] for e in entries])
    for field in FIELDS:
        present = [field in entry for entry in entries]
        values = [entry[field] for entry in entries if field in entry]
        if not values:
            out += b"\0"
            continue
        if all(present):
            out += b"\1"
        else:
            bits = bytearray((len(entries) + 7) // 8)
            for index, has in enumerate(present):
                bits[index // 8] |= has << index % 8
            out += b"\2" + blob(bytes(bits))
        if field in NUMBERS:
            out += integers(values)
        elif field == "subject":
            out += integers([len(value) for value in values]) + strings(sum(values, []))
        else:
            out += strings(values)
    return out + bytes(padme(len(out)) - len(out))


# Trees, frames, logs.

def tree(digest, leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else digest(b"").digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return digest(b"\1" + tree(digest, leaves[:split]) + tree(digest, leaves[split:])).digest()


def block_tree(digest, leaves):
    """The tree inside a block: level by level, four neighbours at a time; a last one that is left alone goes up as it is."""
    while len(leaves) > 1:
        fours = [leaves[at:at + 4] for at in range(0, len(leaves), 4)]
        leaves = [four[0] if len(four) == 1 else digest(b"\6" + b"".join(four)).digest() for four in fours]
    return leaves[0]


def commitment(log, hash_id, frame, kind, first_entry, entries, seconds, epoch, units, root, log2, body_length,
               sources_length=0):
    return struct.pack("<BBBBB3s16sQQQqqQQ32sQ", 1, kind, int(kind == 1), hash_id, log2,
                       sources_length.to_bytes(3, "little"), log, frame, first_entry, entries, *seconds, epoch, units,
                       root, body_length)


# Sources: where entries stand, and what a block says of that.

def section(sources):
    """The plaintext of a sources section; a source is its id, its label or none, and its ranges with checks."""
    out = varint(len(sources)) + b"".join(map(source_text, sources))
    return out + bytes(padme(len(out)) - len(out))


def source_text(source):
    out = bytes.fromhex(source["id"])
    label = None if source["label"] is None else bytes.fromhex(source["label"])
    out += varint(0) if label is None else varint(len(label) + 1) + label
    out += varint(len(source["ranges"]))
    end = 0
    for start, next_end, check in source["ranges"]:
        out += varint(start - end) + varint(next_end - start) + struct.pack("<Q", check)
        end = next_end
    return out


def sources_state(sources_key, random, log, leaves, told):
    """What is kept of sources; `told` are those that have not ended, each with the number of the last frame that has something of it."""
    head = b"bullaSR1" + random
    key = mac(mac(random, sources_key), b"bulla sources state v1", log, b"\1")
    text = struct.pack("<Q", len(leaves)) + leaves[-1] + varint(len(told))
    text += b"".join(source_text(source) + varint(frame) for source, frame in told)
    return head + gcm_seal(key, bytes(12), head, text)


def placed(count, places):
    """So many places, of which those in `places` are some: which source, its range, a check."""
    return [dict(zip(("source", "start", "end", "check"), places[at])) if at in places else None for at in range(count)]


ONE, TWO = bytes(range(16)).hex(), bytes(range(255, 239, -1)).hex()
LABELS = {ONE: b"access.log".hex(), TWO: b"".hex()}

# Of each block the places of its entries, the sources that ended before it, and what it says.
SOURCES = [
    dict(places=placed(1, {}), ended=[], sources=[]),
    dict(places=placed(2, {0: (ONE, 0, 100, 7), 1: (ONE, 100, 251, 2**64 - 1)}), ended=[],
         sources=[dict(id=ONE, label=LABELS[ONE], ranges=[[0, 251, 2**64 - 1]])]),
    # Those of one source need not be in order, and some of it were lost.
    dict(places=placed(13, {1: (TWO, 300, 400, 3), 4: (TWO, 5, 6, 1), 5: (TWO, 6, 200, 2),
                            12: (TWO, 2**63, 2**64 - 1, 4)}),
         ended=[ONE],
         sources=[dict(id=ONE, label=None, ranges=[]),
                  dict(id=TWO, label=LABELS[TWO], ranges=[[5, 200, 2], [300, 400, 3], [2**63, 2**64 - 1, 4]])]),
]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def make_log(name, blocks):
    """A log of one epoch; a block is a list of entries."""
    hash_id, digest = HASHES[name]
    secret = lambda label: hashlib.sha256(f"{name} {label}".encode()).digest()
    log, seed, state = secret("log id")[:16], secret("signing seed"), secret("seal key")
    epoch_secret, random = secret("epoch secret"), secret("epoch random")
    public, sign = ed25519(seed)
    origin = f"example.com/{name}"
    key_id = hashlib.sha256(origin.encode() + b"\n\1" + public).digest()[:4]
    checked = lambda line: f"{line} {hashlib.sha256(line.encode()).hexdigest()[:8]}\n"
    text64 = lambda data: base64.b64encode(data).decode()
    vkey = f"{origin}+{key_id.hex()}+{text64(b'%c' % 1 + public)}"
    config = (f'# What this log is. Bulla refuses the log if anything above the line [settings] is edited.\n[log]\n'
              f'version = 1\nid = "{log.hex()}"\norigin = "{origin}"\nvkey = "{vkey}"\nhash = "{name}"\n'
              f'recipients = [\n  "{RECIPIENT}",\n]\nerasure = "off"\n\n')
    settings = ('[settings]\n# How blocks are made; free to edit. What a promise rests on is in settings.toml of the key '
                'directory.\n# writers = 2\n# compression = 1\n')
    body_key, salt_key, key_commitment = derive(epoch_secret, random, log, 0)
    sources_key = secret("sources key")
    section_key = mac(mac(random, sources_key), b"bulla sources v1", log, struct.pack("<Q", 0), b"\1")
    wrapped = bytes(byte ^ 0xa5 for byte in epoch_secret)
    chain = Chain(state)
    segment, leaves, bundle, frames = b"", [], b"", []

    def put(frame, additional, body, **more):
        nonlocal segment, bundle
        encoded = additional + hashlib.sha256(body).digest()
        seal = chain.seal(frame, encoded)
        header = struct.pack("<4sBBHIQ", b"Bulf", 1, encoded[1], len(encoded), len(body), frame)
        segment += header + struct.pack("<I", crc32c(header)) + encoded + body + seal
        leaves.append(hashlib.sha256(b"\0" + encoded).digest())
        bundle += struct.pack(">H", len(encoded)) + encoded
        frames.append(dict(frame=frame, **more, additional_data=additional.hex(), commitment=encoded.hex(),
                           body=body.hex(), group=frame, seal=seal.hex()))

    body = (struct.pack("<I", 1) + random + key_commitment + hashlib.sha256(config.encode()).digest() + bytes(32)
            + struct.pack("<I", len(wrapped)) + wrapped)
    put(0, commitment(log, hash_id, 0, 2, 0, 0, (START, START), 0, 0, bytes(32), 0, len(body)), body, kind="epoch")
    first_entry = 0
    for frame, (entries, told) in enumerate(zip(blocks, SOURCES), 1):
        rows = [row(entry) for entry in entries]
        keys = expand_key(salt_key)
        salts = [encrypt_block(keys, struct.pack("<Q", frame) + struct.pack(">Q", i)) for i in range(len(rows))]
        units = [digest(b"\4" + salt + varint(i) + varint(len(content)) + content).digest()
                 for i, (salt, content) in enumerate(zip(salts, rows))]
        root = digest(b"\2" + struct.pack("<QQ", len(units), 0) + block_tree(digest, units)).digest()
        text = columns(entries)
        log2 = (sum(len(content) + 4 for content in rows) - 1).bit_length()
        seconds = [entry["time"] // 10**9 for entry in entries]
        plain = section(told["sources"]) if told["sources"] else b""
        of_sources = len(plain) + 16 if plain else 0
        additional = commitment(log, hash_id, frame, 1, first_entry, len(rows), (min(seconds), max(seconds)), 0,
                                len(units), root, log2, len(text) + 16 + of_sources, of_sources)
        nonce = struct.pack("<Q4x", frame)
        body = gcm_seal(body_key, nonce, additional, text)
        body += gcm_seal(section_key, nonce, additional, plain) if plain else b""
        put(frame, additional, body, kind="block", entries=entries, rows=[content.hex() for content in rows],
            salts=[salt.hex() for salt in salts], units=[unit.hex() for unit in units], root=root.hex(), **told,
            section=plain.hex())
        first_entry += len(rows)
    head = f"{origin}\n{len(leaves)}\n{text64(tree(hashlib.sha256, leaves))}\n"
    checkpoint = f"{head}\n\u2014 {origin} {text64(key_id + sign(head.encode()))}\n"
    return {
        "hash": name, "origin": origin, "log_id": log.hex(), "signing_seed": seed.hex(), "seal_state": state.hex(),
        "epoch_secret": epoch_secret.hex(), "epoch_random": random.hex(), "seconds": START,
        "body_key": body_key.hex(), "salt_key": salt_key.hex(), "key_commitment": key_commitment.hex(),
        "vkey": vkey, "signing_key": f"PRIVATE+KEY+{origin}+{key_id.hex()}+{text64(b'%c' % 1 + seed)}\n",
        "seal_key": checked(f"bulla-seal-key-v1 {log.hex()} {text64(state)}"), "sources_secret": sources_key.hex(),
        "sources_key": checked(f"bulla-sources-key-v1 {log.hex()} {text64(sources_key)}"),
        "section_key": section_key.hex(), "labels": LABELS,
        "sources_state": sources_state(sources_key, secret("random of what is kept"), log, leaves,
                                       [(SOURCES[-1]["sources"][1], len(blocks))]).hex(),
        "config": config + settings,
        "checkpoint": checkpoint, "frames": frames,
        "files": {
            "bulla.toml": (config + settings).encode().hex(), "checkpoint": checkpoint.encode().hex(),
            f"segments/{0:020}.seg": segment.hex(),
            f"tile/0/000.p/{len(leaves)}": b"".join(leaves).hex(), f"tile/entries/000.p/{len(leaves)}": bundle.hex(),
        },
    }


def entries(count, first):
    for number in range(first, first + count):
        entry = {"time": START * 10**9 + number * 1_234_567_891, "operation": "read" if number % 3 else "delete"}
        if number % 2:
            entry.update(location=f"user_{number}/email", subject=[f"user_{number}"], status=200 + number)
        if number % 4 == 0:
            entry.update(purpose="support", payload="Zürich " * number, duration=2**64 - 1 - number, subject=[])
        if number % 5 == 0:
            entry.update(controller="", processor="shop", client="192.0.2.1", actor="ada", stream="s", size=number,
                         flags=2**32 - 1, subject=["a", "", "c"])
        yield entry


def main():
    assert encrypt_block(expand_key(bytes(range(32))), bytes.fromhex("00112233445566778899aabbccddeeff")).hex() == \
        "8ea2b7ca516745bfeafc49904b496089", "FIPS 197, C.3"
    directory = pathlib.Path(__file__).parent
    wrong = []
    for name in HASHES:
        log = make_log(name, [list(entries(1, 0)), list(entries(2, 1)), list(entries(13, 3))])
        text = json.dumps(log, indent=1, ensure_ascii=False) + "\n"
        path = directory / f"{name}.json"
        if "--check" in sys.argv:
            wrong += [] if path.is_file() and path.read_text() == text else [path.name]
        else:
            path.write_text(text)
    sys.exit(f"not what this script makes: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
