"""Events: the bodies of event frames, and what orders of erasures and holds come to."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from . import notes, segments
from .hashes import sha256
from .refused import Refused

MOST = 1 << 20
MOST_NUMBERS = 4096
SHAPES = {
    "recovered": {
        "segment": "segment", "next_frame": "number", "offset": "number", "length": "number", "sha256": "digest",
        "adopted": "number",
    },
    "abandoned": {"segment": "given-up", "next_frame": "number", "offset": "number", "reason": "text"},
    "path-replaced": {"from": "path", "to": "path", "reason": "text"},
    "dropped": {
        "entries": "number", "exact": "flag", "producers": "number", "set_aside": "number", "from": "number", "to": "number",
        "reason": "text",
    },
    "configured": {"before": "digest", "after": "digest", "changed": "keys"},
    "rekeyed": {"before": "digest", "after": "digest", "from": "text", "to": "text", "order": "text"},
    "erased": {"numbers": "numbers", "carried_out": "numbers", "order": "text", "remains": "remains"},
    "held": {"number": "number", "order": "text"},
    "released": {"number": "number", "held": "number", "order": "text"},
    "exported": {"entries": "number", "filters": "filters", "format": "format"},
    "truncated": {"known": "number", "id": "path"},
    "heartbeat": {},
}  # fmt: skip
REMAINS = ("shared-fields", "common-items", "copies", "key-backups", "medium")
FILTERS = (
    "subject",
    "stream",
    "operation",
    "processor",
    "controller",
    "purpose",
    "actor",
    "client",
    "location",
    "status",
    "duration",
    "size",
    "flags",
    "time",
    "entries",
)


def decoded(body: bytes) -> dict[str, Any]:
    """The event that a body is; refuses what is none, which tells of nothing."""
    if len(body) > MOST:
        raise Refused("event", "must be at most 1 MiB")
    event = json_object(body, "event")
    shape = SHAPES.get(event["event"]) if isinstance(event.get("event"), str) else None
    if shape is None:
        raise Refused("event", "must be of one of the kinds that there are")
    if set(event) != {"event", *shape}:
        raise Refused("event", "must have all fields of its kind, and no others")
    for name, wanted in shape.items():
        if not fits(event[name], wanted):
            raise Refused("event", f"`{name}` is not what it must be")
    if event["event"] in ("configured", "rekeyed") and event["before"] == event["after"]:
        raise Refused("event", "the two digests must differ")
    if event["event"] == "path-replaced" and event["from"] == event["to"]:
        raise Refused("event", "the two paths must differ")
    if event["event"] == "dropped" and event["exact"] and event["entries"] == 0:
        raise Refused("event", "some entries must have been dropped, where it is known how many")
    if event["event"] == "dropped" and event["set_aside"] > event["entries"]:
        raise Refused("event", "no more may be set aside than was dropped")
    if event["event"] == "dropped" and event["from"] > event["to"]:
        raise Refused("event", "the first time must not be after the last")
    if event["event"] == "rekeyed" and notes.is_same_key(event["from"], event["to"]):
        raise Refused("event", "the two keys must differ")
    return event


def json_object(data: bytes, structure: str) -> dict[str, Any]:
    """A JSON object; refuses names that are there twice, and what only Python takes for JSON."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise Refused(structure, "must have each field once")
        return dict(pairs)

    def none(text: str) -> Any:
        raise Refused(structure, f"must be JSON, which has no {text}")

    def integer(text: str) -> Any:
        return int(text) if not text.startswith("-") and len(text) <= 20 else float("nan")

    try:
        found = json.loads(data.decode(), object_pairs_hook=once, parse_constant=none, parse_int=integer)
        # The escape of a surrogate alone is in JSON's grammar, and is no character.
        json.dumps(found, ensure_ascii=False).encode()
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise Refused(structure, "must be JSON") from None
    if not isinstance(found, dict):
        raise Refused(structure, "must be a JSON object")
    return found


def is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def fits(value: Any, wanted: str) -> bool:
    if wanted == "number":
        return is_number(value)
    if wanted == "flag":
        return isinstance(value, bool)
    if wanted in ("text", "segment", "given-up", "digest", "path", "format"):
        return isinstance(value, str) and is_text(value) and is_word(value, wanted)
    if not isinstance(value, list):
        return False
    if wanted == "numbers":
        ascending = all(map(is_number, value)) and all(a < b for a, b in zip(value, value[1:]))
        return 1 <= len(value) <= MOST_NUMBERS and ascending
    if not all(isinstance(it, str) for it in value) or len(set(value)) != len(value):
        return False
    if wanted == "keys":
        return bool(value) and all(re.fullmatch(r"recipients|heartbeat|witness_policy|fields\.[a-z]+", it) for it in value)
    return all(it in (REMAINS if wanted == "remains" else FILTERS) for it in value)


def is_word(value: str, wanted: str) -> bool:
    if wanted in ("segment", "given-up"):
        aside = re.fullmatch(r"(.*)\.at-(0|[1-9][0-9]{0,19})(\.[1-9][0-9]{0,19})?", value)
        numbers = [int(number.lstrip(".")) for number in aside.groups()[1:] if number] if aside else []
        is_aside = wanted == "given-up" and aside and all(number < 1 << 64 for number in numbers)
        return segments.named(aside[1] if is_aside else value) is not None
    words = {"digest": "[0-9a-f]{64}", "path": "[0-9a-f]{32}", "format": "[a-z0-9-]{1,32}"}
    return wanted == "text" or re.fullmatch(words[wanted], value) is not None


def is_text(value: str) -> bool:
    """Whether a string has no half of a surrogate pair, which JSON can spell."""
    return not any(0xD800 <= ord(character) < 0xE000 for character in value)


@dataclass(frozen=True)
class Order:
    """An order to erase: the text of its note, and what that says."""

    note: notes.Note
    log_id: bytes
    seconds: int
    reason: Optional[str]
    subjects: tuple[bytes, ...]


def order(text: str) -> Order:
    """An order, whoever signed it; refuses what is none."""
    structure = "erasure order"
    note = notes.note(text)
    rest = note.text[:-1].split("\n")
    log_id, seconds = order_head(rest, "bulla-erasure-order-v1", structure)
    reason = value_of(rest, "reason", structure) if rest and rest[0].startswith("reason ") else None
    if reason is not None and (not 1 <= len(reason.encode()) <= 1024 or any(map(is_control, reason))):
        raise Refused(structure, "the reason must be from 1 to 1,024 bytes without control characters")
    subjects = []
    while rest:
        subjects.append(hash_of(rest, "subject", structure))
    if not 1 <= len(subjects) <= 4096 or len(set(subjects)) != len(subjects):
        raise Refused(structure, "must have from 1 to 4,096 subjects, each once")
    return Order(note, log_id, seconds, reason, tuple(subjects))


def order_head(rest: list[str], version: str, structure: str) -> tuple[bytes, int]:
    """The log id and the time of an order, whose first lines these are; what comes after them is left."""
    if rest.pop(0) != version:
        raise Refused(structure, "must begin with the line of version 1")
    log_id = value_of(rest, "log", structure)
    if not re.fullmatch("[0-9a-f]{32}", log_id):
        raise Refused(structure, "the log id must be 32 hexadecimal digits")
    return bytes.fromhex(log_id), notes.decimal(value_of(rest, "time", structure), structure, "the time must be a decimal number")


def value_of(rest: list[str], name: str, structure: str) -> str:
    """What the next line says, which has to have that name."""
    if not rest or not rest[0].startswith(name + " "):
        raise Refused(structure, f"must have a line `{name}` there")
    return rest.pop(0)[len(name) + 1 :]


def hash_of(rest: list[str], name: str, structure: str) -> bytes:
    found = notes.base64_bytes(value_of(rest, name, structure), structure)
    if len(found) != 32:
        raise Refused(structure, f"the line `{name}` must have a hash of 32 bytes")
    return found


@dataclass(frozen=True)
class HoldOrder:
    """An order to hold, or to release: the text of its note, and what that says; `about` is the line `hold` or `release`."""

    note: notes.Note
    log_id: bytes
    seconds: int
    releases: bool
    about: bytes
    because: bytes


def hold_order(text: str) -> HoldOrder:
    """An order to hold or to release, whoever signed it; refuses what is none."""
    structure = "hold order"
    note = notes.note(text)
    rest = note.text[:-1].split("\n")
    log_id, seconds = order_head(rest, "bulla-hold-order-v1", structure)
    releases = bool(rest) and rest[0].startswith("release ")
    about = hash_of(rest, "release" if releases else "hold", structure)
    because = hash_of(rest, "because", structure)
    if rest:
        raise Refused(structure, "must have five lines")
    return HoldOrder(note, log_id, seconds, releases, about, because)


def order_digest(text: str) -> bytes:
    """By which an order is known: the digest of its text, or of all of it where it is no note."""
    try:
        text = notes.note(text).text
    except Refused:
        pass
    return sha256(text.encode())


def check_hold_order(event: dict[str, Any], log_id: bytes) -> HoldOrder:
    """The order of an event `held` or `released`; refuses one for something else, as far as the event alone shows."""
    found = hold_order(event["order"])
    if found.log_id != log_id:
        raise Refused("hold order", "must be for this log")
    if found.releases != (event["event"] == "released"):
        raise Refused("hold order", "must be to hold where the event holds, and to release where it releases")
    return found


def hold_file(data: bytes) -> HoldOrder:
    """An order to hold or to release with what it commits to; refuses a file that commits to something else."""
    structure = "hold order file"
    if len(data) > MOST:
        raise Refused(structure, "must be at most 1 MiB")
    found = json_object(data, structure)
    salts = found.get("salts")
    subject = {"subject"} & set(found)
    if set(found) != {"order", "by", "reason", "salts"} | subject or not isinstance(salts, dict) or set(salts) != {"because"} | subject:
        raise Refused(structure, "must have all fields of its kind, and no others")
    texts = [found[name] for name in ("order", "by", "reason", *subject)] + list(salts.values())
    if not all(isinstance(it, str) and is_text(it) for it in texts):
        raise Refused(structure, "must have text in its fields")
    read = hold_order(found["order"])
    if not all(1 <= len(found[it].encode()) <= 1024 and not any(map(is_control, found[it])) for it in ("by", "reason")):
        raise Refused(structure, "who and why must be from 1 to 1,024 bytes without control characters")
    if read.releases == bool(subject) or hold_reason(salt_of(salts["because"]), found["by"], found["reason"]) != read.because:
        raise Refused(structure, "the order must commit to who and why")
    if subject and held_subject(salt_of(salts["subject"]), found["subject"]) != read.about:
        raise Refused(structure, "the order must commit to the name")
    return read


def salt_of(text: str) -> bytes:
    salt = notes.base64_bytes(text, "hold order file")
    if len(salt) != 32:
        raise Refused("hold order file", "a salt must have 32 bytes")
    return salt


def held_subject(salt: bytes, name: str) -> bytes:
    return sha256(b"bulla held subject v1\0" + salt + name.encode())


def hold_reason(salt: bytes, by: str, reason: str) -> bytes:
    return sha256(b"bulla hold reason v1\0" + salt + by.encode() + b"\0" + reason.encode())


def check_key_order(event: dict[str, Any], log_id: bytes) -> None:
    """Refuses an event `rekeyed` whose order is none, does not hold, or is for something else."""
    structure = "order of a key"
    note = notes.note(event["order"])
    lines = note.text[:-1].split("\n")
    if len(lines) != 5 or lines[0] != "bulla-erasure-key-order-v1":
        raise Refused(structure, "must have the five lines of version 1")
    values = []
    for name, line in zip(("log", "time", "from", "to"), lines[1:]):
        if not line.startswith(name + " "):
            raise Refused(structure, f"must have a line `{name}` there")
        values.append(line[len(name) + 1 :])
    if values[0] != log_id.hex():
        raise Refused(structure, "must be for this log")
    notes.decimal(values[1], structure, "the time must be a decimal number")
    if values[2:] != [event["from"], event["to"]]:
        raise Refused(structure, "must be for the keys of the event")
    notes.verifier(values[3])
    if not notes.verifier(values[2]).signed(note):
        raise Refused(structure, "must be signed with the key before")


def is_control(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0


def order_file(data: bytes) -> tuple[Order, list[str]]:
    """An order with the names that it commits to; refuses a file whose names are others."""
    structure = "order file"
    if len(data) > MOST:
        raise Refused(structure, "must be at most 1 MiB")
    found = json_object(data, structure)
    if set(found) != {"order", "subjects"} or not isinstance(found["order"], str) or not isinstance(found["subjects"], list):
        raise Refused(structure, "must have `order` and `subjects`")
    read = order(found["order"])
    if len(found["subjects"]) != len(read.subjects):
        raise Refused(structure, "must have the order's subjects, each")
    names = []
    for subject, committed in zip(found["subjects"], read.subjects):
        if not isinstance(subject, dict) or set(subject) != {"subject", "salt"}:
            raise Refused(structure, "a subject must have `subject` and `salt`")
        name, salt = subject["subject"], subject["salt"]
        if not isinstance(name, str) or not is_text(name) or not isinstance(salt, str):
            raise Refused(structure, "a subject must have a name and a salt")
        if committed != subject_commitment(notes.base64_bytes(salt, structure), name):
            raise Refused(structure, "the order does not commit to these names")
        names.append(name)
    return read, names


def subject_commitment(salt: bytes, name: str) -> bytes:
    if len(salt) != 32:
        raise Refused("order file", "a salt must have 32 bytes")
    return sha256(b"bulla erasure order v1\0" + salt + name.encode())


def check_accord(event: dict[str, Any], log_id: bytes) -> Order:
    """The order of an event `erased`; refuses where the two are not in accord."""
    found = order(event["order"])
    if found.log_id != log_id:
        raise Refused("erasure", "the order must be for this log")
    check_places(event["numbers"], event["carried_out"], found)
    return found


def check_places(numbers: Sequence[int], places: Sequence[int], found: Order) -> None:
    if places[-1] >= len(found.subjects):
        raise Refused("erasure", "a place that was carried out must be below the number of the order's subjects")
    if len(numbers) > len(places):
        raise Refused("erasure", "must not be of more data subjects than places")
