"""Ed25519 (RFC 8032, section 5.1), with points as extended homogeneous coordinates. Slow, and not for secrets."""

import hashlib

from .basics import require

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def point_add(a, b):
    w, x = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    y, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = x - w, z - y, z + y, x + w
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = point_add(result, point)
        point, scalar = point_add(point, point), scalar >> 1
    return result


def point_decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    require(y < P, "a point of Ed25519 is not in its canonical form")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    require((x * x - square) % P == 0 and not (x == 0 and sign), "a point of Ed25519 is not on the curve")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point_decompress((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def verify(public, message, signature):
    if len(signature) != 64:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    key, point = point_decompress(public), point_decompress(signature[:32])
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = point_multiply(scalar, BASE), point_add(point, point_multiply(challenge, key))
    same = (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0
    return scalar < ORDER and same


def point_compress(point):
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def expand(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254
    return scalar, digest[32:]


def public_key(seed):
    return point_compress(point_multiply(expand(seed)[0], BASE))


def sign(seed, message):
    """For test vectors."""
    scalar, prefix = expand(seed)
    public = point_compress(point_multiply(scalar, BASE))
    nonce = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % ORDER
    point = point_compress(point_multiply(nonce, BASE))
    challenge = int.from_bytes(hashlib.sha512(point + public + message).digest(), "little") % ORDER
    return point + ((nonce + challenge * scalar) % ORDER).to_bytes(32, "little")
