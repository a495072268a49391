#!/usr/bin/env python3
"""Makes an access log in the combined format, from a seed: the traffic of a small site, and the odd lines of real logs.

    python3 vectors/access/make.py            writes access.log beside it, and refused.json: which lines are none
    python3 vectors/access/make.py --check    fails where they differ

Addresses are those set aside for documentation. No line is anybody's.
"""

import json
import pathlib
import random
import sys
from datetime import datetime, timedelta, timezone

LINES = 600
# Whose entries are asked for; others' addresses begin or end like it.
SUBJECT = "192.0.2.135"
CLIENTS = (
    [SUBJECT] * 4
    + ["192.0.2.13", "192.0.2.1", "203.0.113.192", "192.0.2.135.example.net", "host.192.0.2.135"]
    + [f"198.51.100.{host}" for host in range(2, 30)]
    + ["2001:db8::7", "2001:db8:0:1::192.0.2.135", "::1", "localhost", "-"]
)
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5",
    "ExampleBot/2.1 (+https://bot.example/about.html)",
    "curl/8.9.1",
    "-",
]
PAGES = ["/", "/about", "/feed.xml", "/favicon.ico", "/robots.txt", "/images/logo.png", "/style.css?v=3"]


def at(moment, offset=0):
    zone = timezone(timedelta(minutes=offset))
    return moment.astimezone(zone).strftime("%d/%b/%Y:%H:%M:%S %z")


def line(client, moment, request, status, size, referer="-", agent="-", identity="-", user="-"):
    fields = [client, identity, user, f"[{moment}]", f'"{request}"', str(status), str(size), f'"{referer}"']
    return " ".join(fields + [f'"{agent}"']).encode()


def ordinary(chance, moment):
    page = chance.choice(PAGES + [f"/posts/{chance.randrange(40)}", f"/search?q=w{chance.randrange(9)}&p=%20"])
    status = chance.choice([200] * 12 + [304, 304, 301, 404, 206, 500])
    size = "-" if status == 304 else chance.randrange(60_000)
    referer = chance.choice(["-", "-", "https://www.example/", "https://search.example/?q=a+b"])
    method = chance.choice(["GET"] * 15 + ["HEAD", "POST"])
    request = f"{method} {page} HTTP/{chance.choice(['1.1', '1.1', '1.0', '2.0'])}"
    return line(chance.choice(CLIENTS), at(moment), request, status, size, referer, chance.choice(AGENTS))


def odd(moment):
    """Lines that are of the format, each in its own way."""
    now = at(moment)
    yield line(SUBJECT, now, "GET / HTTP/1.1", 200, 0, user="ada")
    yield line(SUBJECT, now, "GET /it's HTTP/1.1", 200, 17, identity="id", user="ada@example.org")
    yield line(SUBJECT, now, "GET /a b  c HTTP/1.1", 404, 1)
    yield line(SUBJECT, now, r'GET /\"quoted\" HTTP/1.1', 404, 1, r'\"', r"ends in a backslash \\")
    yield line(SUBJECT, now, r"GET /\xff\x16 HTTP/1.1", 400, 1, "", "")
    yield line(SUBJECT, now, "GET /grüße/日本?😀 HTTP/1.1", 200, 9, "https://bücher.example/", "ägent 😀")
    yield line(SUBJECT, now, "GET /LATIN HTTP/1.1", 200, 9).replace(b"LATIN", b"caf\xe9 \xfe\xff")
    yield line(SUBJECT, now, "GET /TAB HTTP/1.1", 200, 9, "a\tb\x7f", "\x01\x1b[1m{[1]}").replace(b"TAB", b"\t\0")
    yield line(SUBJECT, now, "GET /" + "a%2F" * 2_000 + " HTTP/1.1", 414, 1, "https://www.example/" + "r" * 3_000)
    yield line(SUBJECT, now, "OPTIONS * HTTP/1.1", 204, "-")
    yield line(SUBJECT, now, "CONNECT www.example:443 HTTP/1.1", 405, 0)
    yield line(SUBJECT, now, "GET https://www.example/ HTTP/1.1", 400, 0)
    yield line(SUBJECT, now, "PROPFIND / HTTP/1.1", 499, 18446744073709551615)
    yield line(SUBJECT, now, "\\x16\\x03\\x01 / HTTP/3", 4294967295, 1)
    yield line("xn--bcher-kva.example", at(moment, 345), "GET / HTTP/1.1", 200, 1)
    yield line(SUBJECT, at(moment - timedelta(days=1), -570), "GET /late HTTP/1.1", 200, 1)
    yield line(SUBJECT, "29/Feb/2024:23:59:59 +0000", "GET /leap HTTP/1.1", 200, 1)
    yield line(SUBJECT, "31/Dec/1969:23:59:59 -0001", "GET /unset-clock HTTP/1.1", 200, 1)
    yield line(SUBJECT, now, "GET /carriage-return HTTP/1.1", 200, 1) + b"\r"
    yield line(SUBJECT, now, "GET /twice HTTP/1.1", 200, 1)
    yield line(SUBJECT, now, "GET /twice HTTP/1.1", 200, 1)
    # Requests that are none, or of HTTP/0.9; what servers are told to put before a line and behind it.
    whole = line(SUBJECT, now, "GET / HTTP/1.1", 200, 1, agent="cut off")
    yield line(SUBJECT, now, "-", 408, "-")
    yield line(SUBJECT, now, "", 400, 0)
    yield line(SUBJECT, now, "GET /http-0.9", 200, 1)
    yield line(SUBJECT, now, r"\x16\x03\x01\x02", 400, 1)
    yield line(SUBJECT, now, "GET / HTTP/1.1", "-", 1)
    yield whole + b" 0.003"
    yield whole + b' "198.51.100.7, 10.0.0.1" - rt=0.023 "a \\" b"'
    yield b"www.example:80 " + line("198.51.100.9", now, "GET / HTTP/1.1", 200, 1)


def refused(moment):
    """Lines that are not, and why."""
    now = at(moment)
    whole = line(SUBJECT, now, "GET / HTTP/1.1", 200, 1, agent="cut off")
    time = "the time is not DD/Mon/YYYY:HH:MM:SS ±HHMM"
    yield whole[:-1], "the user agent has no closing quote"
    yield whole[:-8], "the user agent has no closing quote"
    yield whole[:whole.index(b" 200")], "there is no space after the request"
    yield whole[:20], time
    yield b"", "the line is empty"
    yield line(SUBJECT, now, "GET / HTTP/1.1", "ok", 1), "the status is neither - nor a whole number from 0 to 4294967295"
    yield whole.replace(b"cut", b'"cut"'), "there is no space after the user agent"
    yield line(SUBJECT, "30/Feb/2026:01:02:03 +0000", "GET / HTTP/1.1", 200, 1), time
    yield whole.replace(b"cut", b"\xff"), "the user agent is not UTF-8"
    yield b"\0" * 40, "the identity is missing"


def make():
    chance = random.Random(135)
    moment = datetime(2026, 3, 28, 22, 0, tzinfo=timezone.utc)
    special = [(text, None) for text in odd(moment)] + list(refused(moment))
    places = set(chance.sample(range(LINES - 1), len(special)))
    special.reverse()
    lines, reasons = [], {}
    for number in range(LINES):
        moment += timedelta(seconds=chance.randrange(-1, 60))
        text, reason = special.pop() if number in places else (ordinary(chance, moment), None)
        lines.append(text)
        if reason is not None:
            reasons[number + 1] = reason
    # The last has no end, as where a server is writing it.
    log = b"\n".join(lines)
    return {"access.log": log, "refused.json": (json.dumps(reasons, ensure_ascii=False, indent=1) + "\n").encode()}


def main():
    here = pathlib.Path(__file__).parent
    for name, content in make().items():
        if "--check" in sys.argv[1:]:
            assert (here / name).read_bytes() == content, f"{name} is not what this script makes"
        else:
            (here / name).write_bytes(content)


if __name__ == "__main__":
    main()
