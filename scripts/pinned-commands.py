#!/usr/bin/env python3
"""Writes down the commands of the redis-server that is installed: crates/bulla-proxy/src/command/pinned.rs.

    scripts/pinned-commands.py

It starts the server on a Unix socket in a temporary directory, asks it `COMMAND`, and ends it. A test holds the file against
the server that is installed, where that is of the version that the file is of.
"""

import pathlib
import re
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "crates/bulla-proxy/src/command"


def flags(table):
    """The words of a table in description.rs, and the names of their bits."""
    source = (FOLDER / "description.rs").read_text()
    table = re.search(rf"const {table}:.*?= \[(.*?)\];", source, re.S).group(1)
    return re.findall(r'\("([^"]+)", (\w+)\)', table)


def ask(path, *words):
    """The reply to a command, of a server that may not listen yet."""
    end = time.monotonic() + 10
    while True:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
                continue
            client.sendall("".join([f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]).encode())
            with client.makefile("rb") as replies:
                return reply(replies)


def reply(replies):
    """One reply of RESP2."""
    kind, line = replies.read(1), replies.readline()[:-2]
    if kind == b"+":
        return line.decode()
    if kind == b":":
        return int(line)
    if kind == b"$":
        return replies.read(int(line) + 2)[:-2].decode()
    if kind == b"*":
        return [reply(replies) for _ in range(int(line))]
    raise ValueError(kind + line)


def bits(words, table):
    """An expression for flags."""
    return " | ".join(name for word, name in table if word in words) or "0"


def pairs(values):
    """A map as RESP2 has it."""
    return dict(zip(values[::2], values[1::2]))


def spec(values):
    """An expression for a key specification."""
    values = pairs(values)
    begin, find = pairs(values["begin_search"]), pairs(values["find_keys"])
    at, keys = pairs(begin["spec"]), pairs(find["spec"])
    begin = {
        "index": lambda: f"index({at['index']})",
        "keyword": lambda: f"keyword(\"{at['keyword']}\", {at['startfrom']})",
        "unknown": lambda: "Begin::Unknown",
    }[begin["type"]]()
    find = {
        "range": lambda: f"range({keys['lastkey']}, {keys['keystep']}, {keys['limit']})",
        "keynum": lambda: f"number({keys['keynumidx']}, {keys['firstkey']}, {keys['keystep']})",
        "unknown": lambda: "Find::Unknown",
    }[find["type"]]()
    return f"spec({bits(values['flags'], flags('KEY_FLAGS'))}, {begin}, {find})"


def lines(commands):
    """A line for each command, a container before its subcommands."""
    for name, _, words, _, _, _, categories, _, specs, subcommands in sorted(commands):
        specs = ", ".join(map(spec, specs))
        yield f'    command("{name}", {bits(words + categories, flags("COMMAND_FLAGS"))}, &[{specs}]),\n'
        yield from lines(subcommands)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        arguments = ["--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        server = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
        try:
            commands = ask(path, "COMMAND")
            version = re.search(r"redis_version:([\d.]+)", ask(path, "INFO", "server")).group(1)
        finally:
            server.kill()
            server.wait()
    (FOLDER / "pinned.rs").write_text(f"""\
//! What Redis {version} answers to `COMMAND`, as far as it is used. Written by `scripts/pinned-commands.py`.

use std::borrow::Cow;
use super::description::*;

const fn command(name: &'static str, flags: u16, specs: &'static [Spec]) -> Description {{
    Description {{ name: Cow::Borrowed(name), flags, specs: Cow::Borrowed(specs) }}
}}

const fn spec(flags: u16, begin: Begin, find: Find) -> Spec {{
    Spec {{ flags, begin, find }}
}}

const fn index(at: u32) -> Begin {{
    Begin::Index(at)
}}

const fn keyword(word: &str, from: i32) -> Begin {{
    match Word::of(word) {{
        Some(word) => Begin::Keyword(word, from),
        None => Begin::Unknown,
    }}
}}

const fn range(last: i32, step: u32, limit: u32) -> Find {{
    Find::Range {{ last, step, limit }}
}}

const fn number(number: u32, first: u32, step: u32) -> Find {{
    Find::Number {{ number, first, step }}
}}

/// The version that they are of.
#[cfg(test)]
pub(super) const VERSION: &str = "{version}";

/// A container comes before its subcommands.
#[rustfmt::skip]
pub(super) static COMMANDS: &[Description] = &[
{"".join(lines(commands))}];
""")


main()
