"""Tiles of the log's tree and entry bundles, by the paths of C2SP tlog-tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional, Union

from . import trees
from .commitments import LENGTH
from .refused import Refused

Level = Union[int, str]


def path(level: Level, index: int, width: int) -> str:
    """Where a tile or entry bundle (level `entries`) of so many hashes or entries lies."""
    digits = f"{index:03d}"
    digits = digits.rjust(-(-len(digits) // 3) * 3, "0")
    groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    named = "/".join(["x" + group for group in groups[:-1]] + groups[-1:])
    return f"tile/{level}/{named}" + (f".p/{width}" if width < 256 else "")


def parsed(name: str) -> tuple[Level, int, int]:
    """What the tile of this path is; refuses a path of none."""
    parts = name.split("/")
    level = read_level(parts[1]) if len(parts) > 2 else None
    width: Optional[int] = 256
    if len(parts) > 3 and parts[-2].endswith(".p"):
        width = decimal(parts.pop())
        parts[-1] = parts[-1][:-2]
    if level is not None and width is not None and all(is_group(part.lstrip("x")) for part in parts[2:]):
        index = int("".join(part.lstrip("x") for part in parts[2:]))
        leaves = (256 * index + width) << (0 if level == "entries" else 8 * int(level))
        if leaves <= 1 << 64 and 1 <= width <= 256 and path(level, index, width) == name:
            return level, index, width
    raise Refused("tile", f"`{name}` is the path of no tile")


def is_group(part: str) -> bool:
    return len(part) == 3 and part.isascii() and part.isdigit()


def decimal(text: str) -> Optional[int]:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 and str(int(text)) == text else None


def read_level(text: str) -> Optional[Level]:
    number = decimal(text)
    return text if text == "entries" else number if number is not None and number < 8 else None


def slices(size: int) -> Iterator[tuple[int, int, int]]:
    """Level, index and width of every tile of a tree of this size, but the empty ones."""
    level = 0
    while size:
        for index in range(-(-size // 256)):
            yield level, index, min(256, size - 256 * index)
        size >>= 8
        level += 1


def contents(leaves: list[bytes]) -> dict[tuple[int, int, int], bytes]:
    """What every tile of the tree over these leaves must be."""
    found, nodes = {}, leaves
    level = 0
    while nodes:
        for index in range(-(-len(nodes) // 256)):
            part = nodes[256 * index : 256 * index + 256]
            found[(level, index, len(part))] = b"".join(part)
        nodes = [trees.root(nodes[at : at + 256]) for at in range(0, len(nodes) & ~255, 256)]
        level += 1
    return found


def bundle(commitments: list[bytes]) -> bytes:
    """An entry bundle of these commitments."""
    return b"".join(LENGTH.to_bytes(2, "big") + commitment for commitment in commitments)


def unbundled(data: bytes, width: int) -> list[bytes]:
    """The commitments of a bundle of so many; refuses what is none."""
    step = LENGTH + 2
    if len(data) != width * step or any(data[at : at + 2] != LENGTH.to_bytes(2, "big") for at in range(0, len(data), step)):
        raise Refused("entry bundle", f"is not {width} entries of {LENGTH} bytes")
    return [data[at + 2 : at + step] for at in range(0, len(data), step)]
