"""Bytes that are read from the front: no read goes past their end, and none allocates what is not there."""

from __future__ import annotations

from .refused import Refused

MASK = (1 << 64) - 1


class Cursor:
    """Reads `data`; what it refuses is refused in the name of `structure`."""

    def __init__(self, data: bytes, structure: str) -> None:
        self.data = data
        self.at = 0
        self.structure = structure

    def left(self) -> int:
        return len(self.data) - self.at

    def refuse(self, rule: str) -> Refused:
        return Refused(self.structure, rule)

    def take(self, length: int) -> bytes:
        if length > self.left():
            raise self.refuse(f"ends {length - self.left()} bytes too early")
        self.at += length
        return self.data[self.at - length : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def signed(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little", signed=True)

    def varint(self) -> int:
        """Unsigned LEB128 of 64 bits in its shortest form."""
        value = 0
        for place in range(10):
            byte = self.u8()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if byte == 0 and place > 0:
                    raise self.refuse("a varint is not in its shortest form")
                if value > MASK:
                    raise self.refuse("a varint does not fit 64 bits")
                return value
        raise self.refuse("a varint is longer than 64 bits need")

    def end(self) -> None:
        if self.left():
            raise self.refuse(f"has {self.left()} bytes after its end")


def varint(value: int) -> bytes:
    """A number as a varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def u16(value: int) -> bytes:
    return value.to_bytes(2, "little")


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")
