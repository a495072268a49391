"""Hashes, keyed hashes and key derivation, by their names in docs/format.md."""

from __future__ import annotations

import hashlib
import hmac

HASHES = {1: hashlib.sha256, 2: hashlib.sha3_256}
NAMES = {"sha256": 1, "sha3-256": 2}


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def mac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.new(key, data, hashlib.sha256).digest()


def extract(salt: bytes, key: bytes) -> bytes:
    """HKDF-Extract (RFC 5869)."""
    return mac(salt, key)


def expand(key: bytes, information: bytes, length: int) -> bytes:
    """HKDF-Expand (RFC 5869)."""
    out = block = b""
    for number in range(1, -(-length // 32) + 1):
        block = mac(key, block + information + bytes([number]))
        out += block
    return out[:length]


def hkdf(salt: bytes, key: bytes, information: bytes, length: int) -> bytes:
    return expand(extract(salt, key), information, length)


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def crc_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


CRC_TABLE = crc_table()

MASK = (1 << 64) - 1


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4 under a key of 16 bytes."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    state = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turned(word: int, bits: int) -> int:
        return (word << bits | word >> (64 - bits)) & MASK

    def rounds(count: int) -> None:
        a, b, c, d = state
        for _ in range(count):
            a = (a + b) & MASK
            b = turned(b, 13) ^ a
            a = turned(a, 32)
            c = (c + d) & MASK
            d = turned(d, 16) ^ c
            a = (a + d) & MASK
            d = turned(d, 21) ^ a
            c = (c + b) & MASK
            b = turned(b, 17) ^ c
            c = turned(c, 32)
        state[:] = [a, b, c, d]

    whole = len(data) & ~7
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for at in range(0, whole + 8, 8):
        word = int.from_bytes(data[at : at + 8] if at < whole else last, "little")
        state[3] ^= word
        rounds(2)
        state[0] ^= word
    state[2] ^= 0xFF
    rounds(4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def padme(length: int) -> int:
    """The Padmé length: `length` rounded up so that it says little."""
    if length < 2:
        return length
    exponent = length.bit_length() - 1
    kept = exponent.bit_length()
    step = 1 << (exponent - kept)
    return -(-length // step) * step
