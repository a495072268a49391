"""Events: which fields each has, and what an erasure's order says of it."""

import json
import re

from .basics import require
from .notes import canonical_base64, parse_note

REMAINS = {"shared-fields", "copies", "key-backups", "medium"}
MOST = 1 << 20


def number(value):
    return type(value) is int and 0 <= value < 1 << 64


def text(value):
    return isinstance(value, str)


def ascending(value):
    """Numbers, one at least, each above the one before."""
    return isinstance(value, list) and value and all(map(number, value)) and all(a < b for a, b in zip(value, value[1:]))


def texts(value):
    return isinstance(value, list) and all(map(text, value))


FIELDS = {
    "recovered": dict(segment=text, next_frame=number, offset=number, length=number, sha256=text, adopted=number),
    "abandoned": dict(segment=text, next_frame=number, offset=number, reason=text),
    "configured": dict(before=text, after=text, changed=texts),
    "erased": dict(numbers=ascending, carried_out=ascending, order=text, remains=lambda value: texts(value) and set(value) <= REMAINS),
    "held": dict(number=number),
    "released": dict(number=number),
    "exported": dict(entries=number, filters=texts, format=text),
}


def once(pairs):
    require(len(dict(pairs)) == len(pairs), "a field of the event is there twice")
    return dict(pairs)


def read_event(body, log):
    """What an event says, of the log with this id."""
    require(len(body) <= MOST, f"the event has over {MOST} bytes")
    event = json.loads(body, object_pairs_hook=once)
    require(isinstance(event, dict) and event.get("event") in FIELDS, "the event is of no kind that there is")
    fields = FIELDS[event["event"]]
    require(event.keys() - {"event"} == fields.keys(), f"the event has other fields than {', '.join(fields)}")
    for name, fits in fields.items():
        require(fits(event[name]), f"`{name}` of the event is not what it has to be")
    if event["event"] == "erased":
        check_erasure(event, log)
    return event


def read_order(note):
    """The log's id and the commitments of an order. Its signature is another matter."""
    body, _ = parse_note(note.encode(), "the order")
    lines = body[:-1].split("\n")
    require(len(lines) > 3 and lines[0] == "bulla-erasure-order-v1", "the order is none")
    require(re.fullmatch(r"log [0-9a-f]{32}", lines[1], re.ASCII), "the order is for no log")
    require(re.fullmatch(r"time (0|[1-9][0-9]*)", lines[2], re.ASCII), "the order has no time")
    rest = lines[4 if lines[3].startswith("reason ") else 3:]
    require(1 <= len(rest) <= 4096 and len(set(rest)) == len(rest), "the order names nobody, or somebody twice")
    for line in rest:
        label, _, commitment = line.partition(" ")
        require(label == "subject" and len(canonical_base64(commitment, "a subject")) == 32, "the order is none")
    return lines[1][4:], rest


def check_erasure(event, log):
    """An order is for one log, and for as many people at least as its names that were carried out."""
    ordered_for, subjects = read_order(event["order"])
    require(ordered_for == log, "the order is for another log")
    require(event["carried_out"][-1] < len(subjects), "a name was carried out that the order does not have")
    require(len(event["numbers"]) <= len(event["carried_out"]), "more people were erased than names were carried out")
