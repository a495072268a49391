"""The entries of an export as JSON lines, in the form that other readers' rows are brought into."""

import base64
import gc
import json
import re
from datetime import datetime, timedelta

# A million small objects that live to the end: looking for garbage among them takes longer than all else.
gc.disable()

COLUMNS = [
    "entry", "time", "operation", "location", "subject", "controller", "processor", "purpose", "actor", "client",
    "stream", "status", "duration", "size", "flags", "payload", "withheld",
]  # fmt: skip
NUMBERS = {"entry", "status", "duration", "size", "flags"}


def nanoseconds(text):
    """RFC 3339 in UTC to nanoseconds since the epoch; Python's own times end at microseconds."""
    whole, fraction = re.fullmatch(r"(.{19})(?:\.(\d+))?Z", text).groups()
    seconds = (datetime.fromisoformat(whole) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    return seconds * 10**9 + int((fraction or "").ljust(9, "0"))


def compared(count):
    """The places of the rows that are compared: all; of very many, some, and those around the end of a full row group."""
    if count <= 20_000:
        return range(count)
    full = 128 * 1024
    return [place for place in range(count) if place % 29 == 0 or abs(place % full - full // 2) > full // 2 - 100]


def lines(path):
    """The lines of an export, as they are."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return list(file)


def entries(lines):
    """Each line: all columns, `None` for absent, bytes as bytes, the time in nanoseconds, subjects as a list."""
    return [entry(json.loads(line)) for line in lines]


def entry(line):
    row = {name: line.pop(name, None) for name in COLUMNS}
    row["time"] = nanoseconds(row["time"])
    if isinstance(row["subject"], str):
        row["subject"] = [row["subject"]]
    for name in ["location", "payload"]:
        encoded = line.pop(name + "_base64", None)
        if encoded is not None:
            row[name] = base64.b64decode(encoded, validate=True)
        elif row[name] is not None:
            row[name] = row[name].encode()
    assert not line, f"unknown fields: {line}"
    return row


def same(reader, rows, expected):
    assert len(rows) == len(expected), f"{reader}: {len(rows)} rows, not {len(expected)}"
    for row, wanted in zip(rows, expected):
        assert row == wanted, f"{reader}: {row}\nis not\n{wanted}"
    print(f"{reader}: {len(rows)} rows")
