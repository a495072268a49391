"""What the reference scripts share: how they object, and SHA-256."""

import hashlib


class Objection(Exception):
    """What was read is not what the format says."""


def require(holds, what):
    if not holds:
        raise Objection(what)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()
