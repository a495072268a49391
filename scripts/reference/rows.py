"""Canonical rows of entries, and the line of JSON that `bulla export` prints for one."""

import base64
import json
import struct
from datetime import datetime, timedelta

from .basics import require

FIELDS = ["controller", "processor", "purpose", "status", "duration", "size", "flags", "location", "client", "actor",
          "stream", "payload", "subject"]
NUMBERS = {"status": 32, "duration": 64, "size": 64, "flags": 32}
MAX_STRING, MAX_PAYLOAD, MAX_SUBJECTS = 1 << 16, 1 << 24, 64
PRINTED = ["location", "subject", "controller", "processor", "purpose", "actor", "client", "stream", "status",
           "duration", "size", "flags", "payload", "withheld"]


class Cursor:
    """Bytes, as they are taken off the front."""

    def __init__(self, data, what):
        self.data, self.at, self.what = data, 0, what

    def take(self, length):
        require(length <= len(self.data) - self.at, f"{self.what} is cut off")
        self.at += length
        return self.data[self.at - length:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            require(value < 2**64 and shift < 70, f"{self.what} has an integer that is too large")
            if byte < 128:
                require(byte or not shift, f"{self.what} has an integer that is not in its shortest form")
                return value
            shift += 7

    def left(self):
        return len(self.data) - self.at


def read_row(data):
    row = Cursor(data, "a row")

    def string(limit=MAX_STRING):
        length = row.varint()
        require(length <= limit, "a row has a field that is too long")
        return row.take(length)

    presence, time = struct.unpack("<Hq", row.take(10))
    require(presence < 1 << len(FIELDS), "a row has an unknown field")
    entry = dict(time=time, operation=string().decode())
    require(entry["operation"], "a row has no operation")
    for bit, field in enumerate(FIELDS):
        if not presence >> bit & 1:
            continue
        if field in NUMBERS:
            entry[field] = row.varint()
            require(entry[field] < 1 << NUMBERS[field], f"a row has a {field} that is too large")
        elif field == "subject":
            count = row.varint()
            require(count <= MAX_SUBJECTS, "a row has too many subjects")
            entry[field] = [string().decode() for _ in range(count)]
        elif field in ("location", "payload"):
            entry[field] = string(MAX_PAYLOAD if field == "payload" else MAX_STRING)
        else:
            entry[field] = string().decode()
    require(not row.left(), "a row has bytes after its last field")
    return entry


def varint_size(value):
    return max((value.bit_length() + 6) // 7, 1)


def size(field, value):
    """How many bytes of a row a field takes."""
    if field in NUMBERS:
        return varint_size(value)
    if field == "subject":
        return varint_size(len(value)) + sum(size(None, name) for name in value)
    length = len(value if isinstance(value, bytes) else value.encode())
    return varint_size(length) + length


def format_time(nanoseconds):
    seconds, rest = divmod(nanoseconds, 10**9)
    text = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return text + (f".{rest:09}".rstrip("0") if rest else "") + "Z"


def to_json(number, entry):
    out = dict(entry=number, time=format_time(entry["time"]), operation=entry["operation"])
    for field in PRINTED:
        if field not in entry:
            continue
        value = entry[field]
        if isinstance(value, bytes):
            try:
                out[field] = value.decode()
            except UnicodeDecodeError:
                out[field + "_base64"] = base64.b64encode(value).decode()
        else:
            out[field] = value[0] if field == "subject" and len(value) == 1 else value
    return json.dumps(out, ensure_ascii=False, separators=(",", ":"))
