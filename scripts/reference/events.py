"""Events: which fields each has, and what an erasure's order says of it."""

import json
import re

from . import ed25519
from .basics import require
from .notes import canonical_base64, parse_note, parse_vkey

REMAINS = {"shared-fields", "copies", "key-backups", "medium"}
FILTERS = {"subject", "stream", "operation", "processor", "time", "entries"}
MOST = 1 << 20


def number(value):
    return type(value) is int and 0 <= value < 1 << 64


def text(value):
    return isinstance(value, str)


def ascending(value):
    """Numbers, 1 to 4,096 of them, each above the one before."""
    rises = isinstance(value, list) and all(map(number, value)) and all(a < b for a, b in zip(value, value[1:]))
    return rises and 1 <= len(value) <= 4096


def texts(value):
    return isinstance(value, list) and all(map(text, value))


def digest(value):
    return text(value) and re.fullmatch(r"[0-9a-f]{64}", value, re.ASCII)


def keys(value):
    """Names of keys of [log] that can change, one at least, each once."""
    key = re.compile(r"recipients|heartbeat|fields\.[a-z]+", re.ASCII)
    return texts(value) and value and len(set(value)) == len(value) and all(map(key.fullmatch, value))


def some_of(names):
    return lambda value: texts(value) and set(value) <= names and len(set(value)) == len(value)


def segment(value):
    return text(value) and re.fullmatch(r"[0-9]{20}(-[1-9][0-9]*)?\.seg", value, re.ASCII)


def form(value):
    return text(value) and re.fullmatch(r"[a-z0-9-]{1,32}", value, re.ASCII)


FIELDS = {
    "recovered": dict(segment=segment, next_frame=number, offset=number, length=number, sha256=digest, adopted=number),
    "abandoned": dict(segment=segment, next_frame=number, offset=number, reason=text),
    "configured": dict(before=digest, after=digest, changed=keys),
    "erased": dict(numbers=ascending, carried_out=ascending, order=text, remains=some_of(REMAINS)),
    "held": dict(number=number),
    "released": dict(number=number, held=number),
    "exported": dict(entries=number, filters=some_of(FILTERS), format=form),
    "heartbeat": {},
}


def once(pairs):
    require(len(dict(pairs)) == len(pairs), "a field of the event is there twice")
    return dict(pairs)


def read_event(body, log):
    """What an event says, of the log with this id."""
    require(len(body) <= MOST, f"the event has over {MOST} bytes")
    event = json.loads(body.decode(), object_pairs_hook=once)
    require(isinstance(event, dict) and event.get("event") in FIELDS, "the event is of no kind that there is")
    fields = FIELDS[event["event"]]
    require(event.keys() - {"event"} == fields.keys(), f"the event has other fields than {', '.join(fields)}")
    for name, fits in fields.items():
        require(fits(event[name]), f"`{name}` of the event is not what it has to be")
    if event["event"] == "erased":
        check_erasure(event, log)
    if event["event"] == "configured":
        require(event["before"] != event["after"], "the event tells of a change to what was there")
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


class Erasures:
    """What the erasures of a log have to be, beside each other and beside its holds."""

    def __init__(self, vkey):
        self.vkey, self.orders, self.held = vkey, {}, {}

    def take(self, frame, event):
        if event["event"] == "held":
            self.held[frame] = event["number"]
        if event["event"] == "released" and self.held.get(event["held"]) == event["number"]:
            del self.held[event["held"]]
        if event["event"] == "erased":
            self.check(frame, event)

    def check(self, frame, event):
        require(self.vkey, f"frame {frame} erases, and the log has no key that could order it")
        name, key_id, public = parse_vkey(self.vkey)
        body, signatures = parse_note(event["order"].encode(), "the order")
        found = [signature[4:] for of, signature in signatures if of == name and signature[:4] == key_id]
        signed = len(found) == 1 and ed25519.verify(public, body.encode(), found[0])
        require(signed, f"frame {frame} has an order that the log's erasure key did not sign")
        whom = (event["numbers"], event["carried_out"])
        require(self.orders.setdefault(body, whom) == whom, f"the order in frame {frame} was carried out before, for others")
        held = set(event["numbers"]) & set(self.held.values())
        require(not held, f"frame {frame} erases {sorted(held)}, who were held, and not released")
