#!/usr/bin/env python3
"""Makes the vectors of the vault: its files and the entries of its database, by the standard library alone.

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


def hkdf(salt, key, information):
    """32 bytes of HKDF-SHA-256 (RFC 5869)."""
    return hmac.digest(hmac.digest(salt, key, "sha256"), information + b"\x01", "sha256")


def secret(name):
    return hashlib.sha256(b"vault vectors: " + name.encode()).digest()


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
    for number, name in [(0, "alice"), (4095, ""), (4096, "Zoë <zoe@example.org>"), (8200, "x" * 300)]:
        pseudonym = hmac.digest(pseudonym_key, b"bulla vault pseudonym v1" + log + name.encode(), "sha256")[:16]
        bucket = 5 if pseudonym[0] < 0x80 else 9
        key = secret(f"subject key {number}")
        nonce = struct.pack("<Q", number) + bytes(4)
        row = gcm_siv_seal(row_keys[number >> 12], nonce, b"bulla vault row v1" + log + nonce[:8], key + pseudonym)
        mask = aes(index_keys[bucket], bytes(255 - byte for byte in pseudonym))[:8]
        subjects.append({
            "subject": name,
            "number": number,
            "key": key.hex(),
            "pseudonym": pseudonym.hex(),
            "row": row.hex(),
            "index_key": (struct.pack(">I", bucket) + aes(index_keys[bucket], pseudonym)).hex(),
            "index_value": bytes(a ^ b for a, b in zip(nonce[:8], mask)).hex(),
        })
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
        "meta": with_check(b"bullaVM1" + log + struct.pack("<QQI", generation, 8201, 10)).hex(),
        "changes": with_check(b"bullaVC1" + struct.pack("<Q", 77) + bytes(range(8))).hex(),
        "erasing": with_check(b"bullaVE1" + bytes([1, 0, 0, 0]) + struct.pack("<IQQ", 2, 17, 2**40)).hex(),
        "buckets": [{
            "first": first,
            "id": bucket,
            "value": struct.pack("<III", bucket, 2, crc32c(struct.pack("<III", first, bucket, 2))).hex(),
        } for first, bucket in [(0, 5), (0x8000, 9)]],
        "subjects": subjects,
        "field_pseudonym_key": field_key.hex(),
        "field_pseudonyms": field_pseudonyms,
    }


def main():
    # RFC 8452, appendix C.2: key 01 00…, nonce 03 00…, additional data 01, text 02 00 00 00 00 00 00 00.
    example = gcm_siv_seal(b"\x01" + bytes(31), b"\x03" + bytes(11), b"\x01", b"\x02" + bytes(7))
    assert example.hex() == "1de22967237a813291213f267e3b452f02d01ae33e4ec854", example.hex()
    assert crc32c(b"123456789") == 0xe3069283
    text, path = json.dumps(make(), indent=1, ensure_ascii=False) + "\n", DIRECTORY / "vault.json"
    if "--check" not in sys.argv:
        path.write_text(text)
    elif not path.is_file() or path.read_text() != text:
        sys.exit("not what this script makes: vault.json")


if __name__ == "__main__":
    main()
