#!/usr/bin/env python3
"""An independent reading of the combined access-log format, to hold `bulla append --format combined` against.

Prints, for each line of FILE that it accepts, the object that `bulla export` prints for it, without `entry` and
with its keys sorted; and to standard error the number of each line that it refuses. It shares nothing with Bulla
but the mapping that Bulla documents: here are one regular expression and Python's standard library.

    interop/reference_parser.py [--subject-from client] FILE
"""

import argparse
import base64
import json
import re
import sys
from datetime import datetime, timedelta, timezone

QUOTED = rb'"((?:[^"\\]|\\.)*)"'
BEHIND = rb'"(?:[^"\\]|\\.)*"|[^" ][^ ]*'
LINE = re.compile(
    rb"(?:([^ ]+) (?=[^ ]+ [^ ]+ [^ ]+ \[))?([^ ]+) ([^ ]+) ([^ ]+) "
    rb"\[([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}(?::[0-9]{2}){3} [+-][0-9]{4})\] "
    + QUOTED + rb" ([0-9]+|-) ([0-9]+|-) " + QUOTED + rb" " + QUOTED + rb"((?: (?:" + BEHIND + rb"))*)",
    re.DOTALL,
)
REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (.+) ([A-Z]+/[0-9].*)", re.DOTALL)
SIMPLE = re.compile(rb"([A-Z]+) (/.*)", re.DOTALL)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def limited(value, most):
    if len(value) > most:
        raise ValueError("over a limit")
    return value


def entry(line, subject_from=None):
    """The entry of a line as a dictionary; ValueError or OverflowError where it is refused."""
    match = LINE.fullmatch(line.removesuffix(b"\r"))
    if match is None:
        raise ValueError("not the combined format")
    vhost, client, identity, user, time, request, status, size, referer, agent, behind = match.groups()
    whole, simple = REQUEST.fullmatch(request), SIMPLE.fullmatch(request)
    if whole and b" " not in whole[3]:
        method, target, said = whole[1], whole[2], {"protocol": whole[3].decode()}
    elif simple:
        method, target, said = simple[1], simple[2], {}
    else:
        method, target, said = b"invalid", None, {"request": request.decode()}

    moment = datetime.strptime(time.decode(), "%d/%b/%Y:%H:%M:%S %z").astimezone(timezone.utc)
    seconds = (moment - EPOCH) // timedelta(seconds=1)
    if not -(2**63) <= seconds * 10**9 < 2**63 or status != b"-" and int(status) >= 2**32:
        raise ValueError("out of range")

    payload = {**said, "referer": referer.decode(), "agent": agent.decode()}
    if identity != b"-":
        payload["identity"] = identity.decode()
    if vhost is not None:
        payload["vhost"] = vhost.decode()
    if behind:
        payload["extra"] = [(part[1:-1] if part[:1] == b'"' else part).decode() for part in re.findall(BEHIND, behind, re.DOTALL)]
    payload = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    limited(payload.encode(), 16 * 2**20)

    result = {
        "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "operation": limited(method, 2**16).decode(),
        "client": limited(client, 2**16).decode(),
        "payload": payload,
    }
    if status != b"-":
        result["status"] = int(status)
    try:
        if target is not None:
            result["location"] = limited(target, 2**16).decode()
    except UnicodeDecodeError:
        result["location_base64"] = base64.b64encode(target).decode()
    if user != b"-":
        result["actor"] = limited(user, 2**16).decode()
    if size != b"-":
        result["size"] = int(size)
        if result["size"] >= 2**64:
            raise ValueError("out of range")
    if subject_from is not None:
        result["subject"] = result[subject_from]
    return result


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--subject-from", choices=["client"])
    arguments.add_argument("file")
    arguments = arguments.parse_args()
    with open(arguments.file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                accepted = entry(line.removesuffix(b"\n"), arguments.subject_from)
            except (ValueError, OverflowError):
                print(number, file=sys.stderr)
                continue
            text = json.dumps(accepted, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            sys.stdout.buffer.write(text.encode() + b"\n")


if __name__ == "__main__":
    main()
