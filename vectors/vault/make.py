#!/usr/bin/env python3
"""Makes the vectors of the vault: its files and the rows of its database, by the standard library alone.

    python3 vectors/vault/make.py            writes vault.json beside it
    python3 vectors/vault/make.py --check    fails where it differs

AES and GCM are those of vectors/seal/make.py; GCM-SIV is made here, and shown against RFC 8452's own example.
"""

import base64
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


def aes(key, block):
    return seal.encrypt_block(seal.expand_key(key), block)


# AES-256-GCM-SIV (RFC 8452).

def dot(a, b):
    """a * b * x^-128 in POLYVAL's field, both little-endian numbers."""
    product = 0
    for bit in range(128):
        product ^= (a << bit) if (b >> bit) & 1 else 0
    modulus = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1
    # The modulus ends in 1: adding it clears the lowest bit.
    for _ in range(128):
        product = (product ^ (modulus if product & 1 else 0)) >> 1
    return product


def polyval(key, data):
    key, total = int.from_bytes(key, "little"), 0
    for at in range(0, len(data), 16):
        total = dot(total ^ int.from_bytes(data[at:at + 16], "little"), key)
    return total.to_bytes(16, "little")


def gcm_siv_seal(key, nonce, additional, text):
    derived = [aes(key, struct.pack("<I", n) + nonce)[:8] for n in range(6)]
    authentication, encryption = b"".join(derived[:2]), b"".join(derived[2:])
    padded = lambda data: data + bytes(-len(data) % 16)
    hashed = polyval(authentication, padded(additional) + padded(text)
                     + struct.pack("<QQ", 8 * len(additional), 8 * len(text)))
    hashed = bytes(a ^ b for a, b in zip(hashed, nonce + bytes(4)))
    tag = aes(encryption, hashed[:15] + bytes([hashed[15] & 0x7f]))
    counter, stream = struct.unpack("<I", tag[:4])[0], b""
    for n in range((len(text) + 15) // 16):
        stream += aes(encryption, struct.pack("<I", (counter + n) % 2**32) + tag[4:15] + bytes([tag[15] | 0x80]))
    return bytes(a ^ b for a, b in zip(text, stream)) + tag


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def with_check(data):
    return data + struct.pack("<I", crc32c(data))


def expand(key, information, length):
    """HKDF-SHA-256's second half (RFC 5869)."""
    output, block = b"", b""
    while len(output) < length:
        block = hmac.digest(key, block + information + bytes([len(output) // 32 + 1]), "sha256")
        output += block
    return output[:length]


def hkdf(salt, key, information):
    """32 bytes of HKDF-SHA-256 (RFC 5869)."""
    return expand(hmac.digest(salt, key, "sha256"), information, 32)


def siphash(key, data):
    """SipHash-2-4 (Aumasson and Bernstein, 2012)."""
    mask = 2**64 - 1
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]
    turn = lambda x, n: (x << n | x >> (64 - n)) & mask

    def rounds(count):
        for _ in range(count):
            v[0], v[2] = (v[0] + v[1]) & mask, (v[2] + v[3]) & mask
            v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
            v[0] = turn(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
            v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
            v[2] = turn(v[2], 32)

    last = data[len(data) // 8 * 8:]
    words = [data[at:at + 8] for at in range(0, len(data) // 8 * 8, 8)]
    for word in words + [last + bytes(7 - len(last)) + bytes([len(data) & 0xff])]:
        word = int.from_bytes(word, "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def secret(name):
    return hashlib.sha256(b"vault vectors: " + name.encode()).digest()


# Of each sixteenth of the pseudonyms the index leads to whoever has a number below this one.
INDEXED = [4096 + 8 * sixteenth for sixteenth in range(16)]


def make():
    log, generation = secret("log")[:16], 3
    root, pseudonym_key, salt = secret("root"), secret("pseudonym key"), secret("salt")
    row_keys = [secret(f"row key {n}") for n in range(3)]
    index_keys = {5: secret("index key 5"), 9: secret("index key 9")}

    head = b"bullaVK1" + log + struct.pack("<QII", generation, len(row_keys), len(index_keys)) + salt
    text = pseudonym_key + b"".join(row_keys) + b"".join(
        struct.pack("<I", bucket) + key for bucket, key in sorted(index_keys.items()))
    file_key = hkdf(salt, root, b"bulla vault keys v1" + log + struct.pack("<Q", generation))
    keys_file = head + seal.gcm_seal(file_key, bytes(12), head, text)
    root_file = f"bulla-vault-root-v1 {log.hex()} {generation} {base64.b64encode(root).decode()}\n"

    subjects = []
    for number, name in [(0, "alice"), (7, "bob"), (4095, ""), (4096, "Zoë <zoe@example.org>"), (8200, "x" * 300)]:
        pseudonym = hmac.digest(pseudonym_key, b"bulla vault pseudonym v1" + log + name.encode(), "sha256")[:16]
        subjects.append({
            "subject": name,
            "number": number,
            "place": number % 16,
            "key": secret(f"subject key {number}").hex(),
            "pseudonym": pseudonym.hex(),
        })
    rows = []
    for row in sorted({subject["number"] >> 4 for subject in subjects}):
        here = [subject for subject in subjects if subject["number"] >> 4 == row]
        places = {subject["place"]: bytes.fromhex(subject["key"] + subject["pseudonym"]) for subject in here}
        text = struct.pack("<H", sum(1 << place for place in places))
        text += b"".join(places.get(place, bytes(48)) for place in range(16))
        id_ = struct.pack("<Q", row)
        sealed = gcm_siv_seal(row_keys[row >> 8], id_ + bytes(4), b"bulla vault row v2" + log + id_, text)
        rows.append({"id": row, "subjects": here, "row": sealed.hex()})
    places = {}
    for subject in (subject for subject in subjects if subject["number"] < INDEXED[int(subject["pseudonym"][0], 16)]):
        half = bytes.fromhex(subject["pseudonym"])[:8]
        bucket = 5 if half[0] < 0x80 else 9
        keys = expand(index_keys[bucket], b"bulla vault index v2", 48)
        place = siphash(keys[32:], half) & 0xff
        places.setdefault((bucket, place, keys[:32]), []).append((half, subject["number"]))
    index = []
    for (bucket, place, key), entries in sorted(places.items()) + [((5, 0, expand(
            index_keys[5], b"bulla vault index v2", 48)[:32]), [])]:
        id_ = struct.pack("<Q", bucket << 8 | place)
        text = b"".join(half + struct.pack("<I", number) for half, number in sorted(entries))
        index.append({
            "id": bucket << 8 | place,
            "entries": [{"half": half.hex(), "number": number} for half, number in sorted(entries)],
            "row": gcm_siv_seal(key, id_ + bytes(4), b"bulla vault index v2" + log + id_, text).hex(),
        })
    records_key = hkdf(log, pseudonym_key, b"bulla vault records v1")

    def vouched(table, row, content):
        seal_ = hmac.digest(records_key, bytes([table]) + struct.pack("<Q", row) + content, "sha256")
        return (content + seal_[:16]).hex()

    def record(row, content):
        return vouched(1, row, with_check(content))

    field_key = hkdf(log, pseudonym_key, b"bulla vault field pseudonyms v1")
    field_pseudonyms = []
    for bit, value in [(0, b"Example Ltd"), (7, b"\xff\x00"), (8, b"192.0.2.17:443"), (9, "Zoë".encode())]:
        key = hkdf(log, field_key, b"bulla pseudonym key v1" + bytes([bit]))
        field_pseudonyms.append({
            "bit": bit,
            "value": value.hex(),
            "pseudonym": "p-" + hmac.digest(key, value, "sha256")[:16].hex(),
        })
    return {
        "log_id": log.hex(),
        "generation": generation,
        "root": root.hex(),
        "root_file": root_file,
        "keys_file": keys_file.hex(),
        "meta": record(1, b"bullaVM5" + log + struct.pack("<19Q", generation, 8201, *INDEXED, 300) + bytes(range(0xff, 0xff - 32, -1)) + struct.pack("<I", 10)),
        "meta_unfollowed": record(1, b"bullaVM5" + log + struct.pack("<19Q", generation, 8201, *INDEXED, 300) + bytes(range(0xff, 0xff - 32, -1)) + struct.pack("<IQ", 10, 299)),
        "meta_given_up": record(1, b"bullaVM5" + log + struct.pack("<19Q", generation, 8201, *INDEXED, 300) + bytes(range(0xff, 0xff - 32, -1)) + struct.pack("<I", 10) + bytes(16) + bytes([1] * 16)),
        "meta_unfollowed_and_given_up": record(1, b"bullaVM5" + log + struct.pack("<19Q", generation, 8201, *INDEXED, 300) + bytes(range(0xff, 0xff - 32, -1)) + struct.pack("<IQ", 10, 299) + bytes(16) + bytes([1] * 16)),
        "erasing": record(2, b"bullaVE3" + bytes([1, 0, 0, 0, 2, 0, 0, 0]) + bytes(range(32)) + struct.pack("<QQ", 17, 2**40)),
        "not_erasing": record(2, b"bullaVE3" + bytes(8 + 32)),
        "changes": record(4, b"bullaVC2" + struct.pack("<Q", 77) + bytes(range(8))),
        "skipped": record(5, b"bullaVS2" + struct.pack("<QQQQ", 9, 4096, 4097, 8200)),
        "buckets": [{
            "first": first,
            "id": bucket,
            "end": end,
            "row": vouched(4, first, struct.pack("<II", bucket, end)),
        } for first, bucket, end in [(0, 5, 0x8000), (0x8000, 9, 0x10000)]],
        "rows": rows,
        "index": index,
        "subjects": subjects,
        "field_pseudonym_key": field_key.hex(),
        "field_pseudonyms": field_pseudonyms,
    }


def main():
    # RFC 8452, appendix C.2: key 01 00…, nonce 03 00…, additional data 01, text 02 00 00 00 00 00 00 00.
    example = gcm_siv_seal(b"\x01" + bytes(31), b"\x03" + bytes(11), b"\x01", b"\x02" + bytes(7))
    assert example.hex() == "1de22967237a813291213f267e3b452f02d01ae33e4ec854", example.hex()
    assert crc32c(b"123456789") == 0xe3069283
    # The example of SipHash's authors.
    assert siphash(bytes(range(16)), bytes(range(15))) == 0xa129ca6149be45e5
    text, path = json.dumps(make(), indent=1, ensure_ascii=False) + "\n", DIRECTORY / "vault.json"
    if "--check" not in sys.argv:
        path.write_text(text)
    elif not path.is_file() or path.read_text() != text:
        sys.exit("not what this script makes: vault.json")


if __name__ == "__main__":
    main()
