"""Valkey 8: the drivers of the clients before it, and this project's own tests of the proxy, which ask the server what is right."""

import os
import re

import ioredis
import jedis
from common import Failed, Found, PLACE, ROOT, from_debian, installed, must, run, say

SUITE, MAJOR = "bookworm-backports", "8"
# The tests that start a server.
TESTS = [["--package", "bulla-proxy"], ["--package", "bulla-cli", "--test", "all", "proxy"]]


def install(folder):
    from_debian(folder, SUITE, "download", "valkey-tools", "valkey-server")
    for package in sorted(folder.glob("*.deb")):
        must(["dpkg", "-x", package, folder])
    version = must([folder / "usr/bin/valkey-server", "--version"])
    if f"v={MAJOR}." not in version:
        raise Failed(f"this is about Valkey {MAJOR}, and not about {version}")
    say(f"it is {version.split()[2]}")


def suites(bulla):
    server = installed("valkey", ["valkey.py"], install) / "usr/bin/valkey-server"
    for client in (ioredis, jedis):
        for found in client.suites(bulla, program=server, before=" before Valkey"):
            yield found
    yield own(server)


def own(server):
    """This project's tests. Directly there is nothing: what fails differs."""
    output = PLACE / "runs" / "own tests before Valkey"
    outcomes = {}
    for tests in TESTS:
        command = ["cargo", "test", "--no-fail-fast", *tests]
        run(command, output=output, limit=3000, cwd=ROOT, env=os.environ | {"BULLA_TEST_SERVER": str(server)})
        text = output.read_text(errors="replace")
        kinds = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
        outcomes |= {name: kinds[kind] for name, kind in re.findall(r"^test (\S+) \.\.\. (?:.* )?(ok|FAILED|ignored)", text, re.MULTILINE)}
    if "passed" not in outcomes.values():
        raise Failed(f"no test passed; what was printed is in {output}")
    return Found("own tests before Valkey", outcomes, {name: "failed" for name, kind in outcomes.items() if kind == "failed"}, 0)
