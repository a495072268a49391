#!/usr/bin/env python3
"""Writes the bodies of event frames that a reader takes, and those that it must refuse (docs/format.md, "Events")."""

import base64
import hashlib
import json
import pathlib

ONE, OTHER = "0a" * 32, "b0" * 32


def verifier(name, last):
    """A key of this name: the base point of Ed25519, or its negative."""
    key = b"\x01" + b"\x58" + b"\x66" * 30 + bytes([last])
    key_id = hashlib.sha256(name.encode() + b"\n" + key).hexdigest()[:8]
    return f"{name}+{key_id}+{base64.b64encode(key).decode()}"


PLACE = dict(segment="00000000000000000007.seg", next_frame=9, offset=4096)
KINDS = [
    dict(event="recovered", **PLACE, length=7, sha256=ONE, adopted=1),
    dict(event="abandoned", **PLACE, reason="no space is left"),
    dict(event="path-replaced", **{"from": "0a" * 16, "to": "b0" * 16}, reason="no space is left"),
    dict(
        event="dropped", entries=7, exact=True, producers=2, set_aside=3, **{"from": 1700000000, "to": 1700000009}, reason="no space is left"
    ),
    dict(event="configured", before=ONE, after=OTHER, changed=["recipients", "heartbeat", "fields.client"]),
    dict(event="rekeyed", before=ONE, after=OTHER, **{"from": "a+…", "to": "b+…"}, order="…"),
    dict(event="erased", numbers=[3, 8], carried_out=[0, 2], order="…", remains=["shared-fields", "copies"]),
    dict(event="held", number=3, order="…"),
    dict(event="released", number=3, held=12, order="…"),
    dict(event="exported", entries=5, filters=["subject", "time"], format="jsonl"),
    dict(event="truncated", known=9, id="0123456789abcdef" * 2),
    dict(event="heartbeat"),
]
RECOVERED, ABANDONED, REPLACED, DROPPED, CONFIGURED, REKEYED, ERASED, HELD, RELEASED, EXPORTED, TRUNCATED, HEARTBEAT = KINDS

# The name of a segment that an opening has set aside.
ASIDE = "00000000000000000017"

# What a member may be, besides what is above.
ALLOWED = [
    (RECOVERED, dict(segment="00000000000000000007-12.seg", next_frame=2**64 - 1, length=0)),
    (ABANDONED, dict(reason="")),
    *((ABANDONED, dict(segment=ASIDE + end)) for end in (".seg.at-9", "-2.seg.at-18446744073709551615", ".seg.at-0.1")),
    (REPLACED, dict(reason="")),
    (DROPPED, {"entries": 0, "exact": False, "producers": 0, "set_aside": 0, "from": 0, "to": 0}),
    (DROPPED, dict(entries=3, reason="")),
    (REKEYED, dict(order="")),
    (REKEYED, {"from": verifier("a", 0x66), "to": verifier("a", 0xE6)}),
    (ERASED, dict(numbers=list(range(4096)), carried_out=list(range(4096)))),
    (ERASED, dict(remains=[])),
    (ERASED, dict(remains=["shared-fields", "common-items", "copies", "key-backups", "medium"])),
    (EXPORTED, dict(filters=[], format="a-0")),
    (TRUNCATED, dict(known=0)),
]

# What it may not.
WRONG = [
    (RECOVERED, dict(segment="7.seg")),
    (RECOVERED, dict(sha256="0A" * 32)),
    (RECOVERED, dict(sha256="0a" * 31)),
    (RECOVERED, dict(length=-7)),
    (RECOVERED, dict(offset=2**64)),
    (RECOVERED, dict(offset=1.0)),
    (ABANDONED, dict(segment="../settings.toml")),
    (RECOVERED, dict(segment=ASIDE + ".seg.at-9")),
    *((ABANDONED, dict(segment=ASIDE + end)) for end in (".at-9", ".seg.at-", ".seg.at-09", ".seg.at-+9", ".seg.at-18446744073709551616")),
    *((ABANDONED, dict(segment=ASIDE + ".seg.at-9" + end)) for end in (".", ".0", ".01", ".1.1", ".18446744073709551616", "\n")),
    *((ABANDONED, dict(segment=name)) for name in ("17.seg.at-9", "segments/" + ASIDE + ".seg.at-9", "set-aside/" + ASIDE + ".seg.at-9")),
    (ABANDONED, dict(reason=None)),
    (DROPPED, dict(entries=0, set_aside=0)),
    (DROPPED, dict(entries=2)),
    (DROPPED, dict(exact=1)),
    (DROPPED, dict(producers=-1)),
    (DROPPED, {"from": 1.5}),
    (DROPPED, dict(to="1700000009")),
    (DROPPED, dict(to=1699999999)),
    (REPLACED, dict(to="0a" * 16)),
    (REPLACED, dict(to="B0" * 16)),
    (REPLACED, {"from": "0a" * 32}),
    (REPLACED, {"from": "/mnt/audit"}),
    (REPLACED, dict(reason=7)),
    (CONFIGURED, dict(before="zz" * 32)),
    (CONFIGURED, dict(before=OTHER)),
    (CONFIGURED, dict(changed=[])),
    (CONFIGURED, dict(changed=["recipients", "recipients"])),
    (CONFIGURED, dict(changed=["origin"])),
    (CONFIGURED, dict(changed=["fields."])),
    (CONFIGURED, dict(changed=["fields.Client"])),
    (REKEYED, dict(after="0B" * 32)),
    (REKEYED, dict(before=OTHER)),
    (REKEYED, dict(to="a+…")),
    (REKEYED, {"from": verifier("a", 0x66), "to": verifier("b", 0x66)}),
    (REKEYED, dict(order=None)),
    (REKEYED, dict(changed=["erasure_key"])),
    (CONFIGURED, dict(changed=["erasure_key"])),
    (ERASED, dict(numbers=[])),
    (ERASED, dict(numbers=[8, 3])),
    (ERASED, dict(numbers=[3, 3])),
    (ERASED, dict(numbers=[3, True])),
    (ERASED, dict(numbers=list(range(4097)))),
    (ERASED, dict(carried_out=[2, 0])),
    (ERASED, dict(carried_out=list(range(4097)))),
    (ERASED, dict(remains=["copies", "copies"])),
    (ERASED, dict(remains=["everything"])),
    (ERASED, dict(remains=[{"copies": None}])),
    (ERASED, dict(order=7)),
    (HELD, dict(number="3")),
    (HELD, dict(order=None)),
    (RELEASED, dict(order=7)),
    (RELEASED, dict(held=-1)),
    (EXPORTED, dict(filters=["subject", "subject"])),
    (EXPORTED, dict(filters=["alice"])),
    (EXPORTED, dict(format="JSON lines")),
    (EXPORTED, dict(format="")),
    (EXPORTED, dict(format="j" * 33)),
    (HEARTBEAT, dict(event="noted")),
    (HEARTBEAT, dict(event=None)),
    (TRUNCATED, dict(known=-1)),
    (TRUNCATED, dict(known="9")),
    (TRUNCATED, dict(id="0123456789ABCDEF" * 2)),
    (TRUNCATED, dict(id="0a" * 15)),
    (TRUNCATED, dict(id="")),
    (TRUNCATED, dict(id=9)),
]


def body(event):
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def twice(event):
    """Each member a second time."""
    for name, value in event.items():
        yield body(event)[:-1] + "," + body({name: value})[1:]


def without(event):
    """Each member left out."""
    for name in event:
        yield body({key: value for key, value in event.items() if key != name})


def taken():
    for event in KINDS:
        yield body(event)
        yield json.dumps(dict(reversed(event.items())), ensure_ascii=False, indent=2) + "\n"
    for event, members in ALLOWED:
        yield body({**event, **members})
    yield escaped("\U0001f600")


def escaped(reason):
    """An event whose reason is written with JSON's escapes: those of a surrogate alone are no character."""
    return json.dumps({**ABANDONED, "reason": reason})


def refused():
    yield from ["", "null", "[]", "{}", '"heartbeat"', body([HEARTBEAT]), "\ufeff" + body(HEARTBEAT)]
    for event in KINDS:
        yield body({**event, "note": "later"})
        yield body(event) + body(event)
        yield from twice(event)
        yield from without(event)
        # The members in a list, as what they are called says nothing there.
        yield body(list(event.values()))
        yield " \n" + body([event["event"], dict(list(event.items())[1:])])
    yield body(EXPORTED).replace(":5,", ":-0,")
    for event, members in WRONG:
        yield body({**event, **members})
    for reason in ["\ud83d", "\ude00", "\ude00\ud83d", "a\ud83db"]:
        yield escaped(reason)


def write(name, bodies):
    text = json.dumps(list(bodies), ensure_ascii=False, indent=1)
    (pathlib.Path(__file__).parent / name).write_text(text + "\n", encoding="utf-8")


write("taken.json", taken())
write("refused.json", refused())
