"""Entries as JSON lines, byte for byte as `bulla export --format jsonl` has them."""

from __future__ import annotations

import base64
import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from .rows import Row

ORDER = (
    "location", "subject", "controller", "processor", "purpose", "actor", "client", "stream", "status", "duration",
    "size", "flags", "payload",
)  # fmt: skip

# What a terminal obeys, of what JSON leaves alone.
OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def time_text(nanoseconds: int) -> str:
    """RFC 3339, UTC, with as many digits of the second as there are."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    whole = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return whole.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def line(number: int, row: Row, withheld: Optional[str] = None) -> bytes:
    """An entry, with a newline."""
    found: dict[str, Any] = {"entry": number, "time": time_text(row.time), "operation": row.operation.decode()}
    for name in ORDER:
        if name not in row.values:
            continue
        value = row.values[name]
        if isinstance(value, int):
            found[name] = value
        elif name == "subject":
            names = [it.decode() for it in value]
            found[name] = names[0] if len(names) == 1 else names
        else:
            try:
                found[name] = value.decode()
            except UnicodeDecodeError:
                found[f"{name}_base64"] = base64.b64encode(value).decode()
    if withheld is not None:
        found["withheld"] = withheld
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return OBEYED.sub(lambda one: f"\\u{ord(one[0]):04x}", text).encode() + b"\n"
