"""Binary age files (age-encryption.org/v1) for X25519 recipients, and the identities that open them."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .hashes import hkdf, mac
from .refused import Refused

INTRO = b"age-encryption.org/v1\n"
CHUNK = 65_536
# The longest header, to the end of the line that begins with `---`, and the most stanzas of one.
MOST_HEADER = 65_536
MOST_STANZAS = 1024
CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


class NotForUs(Refused):
    """No identity at hand is one of the file's recipients."""


@dataclass(frozen=True)
class Identity:
    secret: X25519PrivateKey
    public: bytes


def bech32(text: str, prefix: str) -> bytes:
    """The data of a Bech32 string without a limit to its length."""
    if text != text.lower() and text != text.upper():
        raise Refused("age key", "must not mix upper and lower case")
    name, _, data = text.lower().rpartition("1")
    numbers = [CHARSET.find(character) for character in data]
    if name != prefix or len(numbers) < 6 or -1 in numbers:
        raise Refused("age key", f"must begin with {prefix}1 and be Bech32")
    check = 1
    for value in [ord(it) >> 5 for it in name] + [0] + [ord(it) & 31 for it in name] + numbers:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, constant in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= constant if top >> bit & 1 else 0
    if check != 1:
        raise Refused("age key", "the check characters are wrong")
    bits = "".join(f"{number:05b}" for number in numbers[:-6])
    whole = len(bits) & ~7
    if len(bits) - whole > 4 or "1" in bits[whole:]:
        raise Refused("age key", "must have zeros after its last byte")
    return bytes(int(bits[at : at + 8], 2) for at in range(0, whole, 8))


def identities(text: str) -> list[Identity]:
    """The X25519 identities of an identity file: a line each, `#` begins a comment."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        secret = bech32(line.strip(), "age-secret-key-")
        if len(secret) != 32:
            raise Refused("age identity", "must have 32 bytes")
        key = X25519PrivateKey.from_private_bytes(secret)
        found.append(Identity(key, key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)))
    return found


def unpadded(text: str) -> bytes:
    """The bytes of canonical base64 without padding."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise Refused("age file", "base64 is malformed") from None
    if base64.b64encode(data).decode().rstrip("=") != text:
        raise Refused("age file", "base64 must be canonical and without padding")
    return data


@dataclass
class Stanza:
    arguments: list[str]
    body: bytes


def check_stanzas(data: bytes) -> None:
    """Refuses a file with more stanzas than one may have, whatever else it is."""
    stanzas = 0
    for line in re.findall(rb"[^\n]*\n|[^\n]+", data):
        if line.startswith(b"---") and line.endswith(b"\n"):
            break
        stanzas += line.startswith(b"->")
    if stanzas > MOST_STANZAS:
        raise Refused("age file", "the header must have at most 1,024 stanzas")


def header(data: bytes) -> tuple[list[Stanza], bytes, bytes, int]:
    """The stanzas of a file, its MAC, what that is of, and where the header ends."""
    if not data.startswith(INTRO):
        raise Refused("age file", "must begin with the line of version 1")
    at = len(INTRO)
    stanzas: list[Stanza] = []

    def line() -> str:
        nonlocal at
        end = data.find(b"\n", at, MOST_HEADER)
        if end < 0:
            raise Refused("age file", "the header must end, and within 65,536 bytes")
        text, at = data[at:end], end + 1
        if not all(0x20 <= byte < 0x7F for byte in text):
            raise Refused("age file", "the header must be ASCII")
        return text.decode()

    while True:
        start = at
        first = line()
        if first.startswith("--- "):
            return stanzas, unpadded(first[4:]), data[: start + 3], at
        arguments = first.split(" ")[1:]
        if not first.startswith("-> ") or not arguments or "" in arguments:
            raise Refused("age file", "a stanza must begin with `->` and its arguments")
        body = ""
        while True:
            part = line()
            if len(part) > 64:
                raise Refused("age file", "a line of a stanza must be at most 64 characters")
            body += part
            if len(part) < 64:
                break
        if len(stanzas) == MOST_STANZAS:
            raise Refused("age file", "the header must have at most 1,024 stanzas")
        stanzas.append(Stanza(arguments, unpadded(body)))


def file_key(stanzas: Sequence[Stanza], mine: Sequence[Identity]) -> bytes:
    for stanza in stanzas:
        if stanza.arguments[0] != "X25519":
            continue
        if len(stanza.arguments) != 2 or len(stanza.body) != 32:
            raise Refused("age file", "a stanza for X25519 must have a share and 32 bytes")
        share = unpadded(stanza.arguments[1])
        if len(share) != 32:
            raise Refused("age file", "a share must have 32 bytes")
        for identity in mine:
            try:
                shared = identity.secret.exchange(X25519PublicKey.from_public_bytes(share))
            except ValueError:
                raise Refused("age file", "a share must not be of low order") from None
            key = hkdf(share + identity.public, shared, b"age-encryption.org/v1/X25519", 32)
            try:
                return ChaCha20Poly1305(key).decrypt(bytes(12), stanza.body, None)
            except InvalidTag:
                continue
    raise NotForUs("age file", "none of the identities at hand is one of its recipients")


def decrypted(data: bytes, mine: Sequence[Identity]) -> bytes:
    """What a file holds."""
    stanzas, tag, signed, at = header(data)
    key = file_key(stanzas, mine)
    if mac(hkdf(b"", key, b"header", 32), signed) != tag:
        raise Refused("age file", "the header is not the one that was written")
    nonce, rest = data[at : at + 16], data[at + 16 :]
    if len(nonce) != 16:
        raise Refused("age file", "ends before its payload")
    payload = ChaCha20Poly1305(hkdf(nonce, key, b"payload", 32))
    pieces = [rest[at : at + CHUNK + 16] for at in range(0, len(rest), CHUNK + 16)] or [b""]
    parts = []
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        try:
            parts.append(payload.decrypt(number.to_bytes(11, "big") + bytes([last]), piece, None))
        except (InvalidTag, ValueError):
            raise Refused("age file", "a part of the payload does not decrypt") from None
        if last and number and not parts[-1]:
            raise Refused("age file", "the last part of the payload must not be empty")
    return b"".join(parts)
