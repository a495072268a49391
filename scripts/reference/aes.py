"""AES-256-GCM (FIPS 197, NIST SP 800-38D), as it is written there and no faster."""

import struct

from .basics import require

TAG = 16


def _double(byte):
    return byte << 1 ^ (0x11b if byte & 0x80 else 0)


def _times(a, b):
    """In GF(2^8)."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = _double(a), b >> 1
    return product


def _substitute(byte):
    inverse = next((other for other in range(256) if _times(byte, other) == 1), 0)
    rotated = [(inverse << n | inverse >> (8 - n)) & 0xff for n in range(5)]
    return rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4] ^ 0x63


SBOX = [_substitute(byte) for byte in range(256)]
ROUNDS = 14


def expand_key(key):
    words = [key[at:at + 4] for at in range(0, 32, 4)]
    constant = 1
    while len(words) < 4 * (ROUNDS + 1):
        word = words[-1]
        if len(words) % 8 == 0:
            word = bytes(SBOX[byte] for byte in word[1:] + word[:1])
            word, constant = bytes([word[0] ^ constant]) + word[1:], _double(constant)
        elif len(words) % 8 == 4:
            word = bytes(SBOX[byte] for byte in word)
        words.append(bytes(a ^ b for a, b in zip(word, words[-8])))
    return [b"".join(words[at:at + 4]) for at in range(0, len(words), 4)]


def _mix(column):
    a, b, c, d = column
    whole = a ^ b ^ c ^ d
    return [one ^ whole ^ _double(one ^ after) for one, after in ((a, b), (b, c), (c, d), (d, a))]


def encrypt_block(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        state = [SBOX[state[5 * at % 16]] for at in range(16)]
        if number < ROUNDS:
            state = sum((_mix(state[at:at + 4]) for at in range(0, 16, 4)), [])
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def _stream(keys, nonce, length):
    blocks = range(2, 2 + (length + 15) // 16)
    return b"".join(encrypt_block(keys, nonce + struct.pack(">I", number)) for number in blocks)


def _tag(keys, nonce, additional, sealed):
    factor = int.from_bytes(encrypt_block(keys, bytes(16)), "big")
    padded = lambda data: data + bytes(-len(data) % 16)
    hashed = padded(additional) + padded(sealed) + struct.pack(">QQ", 8 * len(additional), 8 * len(sealed))
    total = 0
    for at in range(0, len(hashed), 16):
        total ^= int.from_bytes(hashed[at:at + 16], "big")
        product, power = 0, factor
        for bit in range(127, -1, -1):
            product ^= power if total >> bit & 1 else 0
            power = power >> 1 ^ (0xe1 << 120 if power & 1 else 0)
        total = product
    mask = encrypt_block(keys, nonce + struct.pack(">I", 1))
    return bytes(a ^ b for a, b in zip(total.to_bytes(16, "big"), mask))


def seal(key, nonce, additional, text):
    keys = expand_key(key)
    sealed = bytes(a ^ b for a, b in zip(text, _stream(keys, nonce, len(text))))
    return sealed + _tag(keys, nonce, additional, sealed)


def open_sealed(key, nonce, additional, data):
    require(len(data) >= TAG, "a ciphertext is cut off")
    keys, sealed = expand_key(key), data[:-TAG]
    require(_tag(keys, nonce, additional, sealed) == data[-TAG:], "a ciphertext does not decrypt under its key")
    return bytes(a ^ b for a, b in zip(sealed, _stream(keys, nonce, len(sealed))))
