"""The suite of Redis itself, in Tcl, from the source package of the distribution, as it runs against a server elsewhere."""

import re
import shutil
import tarfile

from common import Failed, checked, compared, from_debian, installed, must, run

# The release is that of the distribution's stable suite, which has the same upstream sources whatever is mended in the package.
SUITE, SOURCE = "bookworm", "redis_7.0.15.orig.tar.gz"
DIGEST = "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982"
# Units that start servers of their own, whatever they are told.
LEFT_OUT = ("integration/", "unit/cluster", "unit/printver", "unit/tls", "unit/oom-score-adj", "unit/shutdown", "unit/violations")
# Saving and replication need the server's own files and connections; what is slow, the project's own external runs leave out, too.
TAGS = "-slow -needs:repl -needs:save"


def install(folder):
    from_debian(folder, SUITE, "source", "--download-only", "redis")
    with tarfile.open(checked(folder / SOURCE, DIGEST)) as archive:
        archive.extractall(folder, filter="data")
    source = folder / "redis-7.0.15"
    for program in ("redis-server", "redis-cli", "redis-benchmark"):
        (source / "src" / program).symlink_to(must(["which", program]).strip())


def suites(bulla):
    source = installed("tcl", ["tcl.py"], install) / "redis-7.0.15"
    suite = ["tclsh", "tests/test_helper.tcl"]
    units = [it for it in must([*suite, "--list-tests"], cwd=source).split() if not it.startswith(LEFT_OUT)]

    def tests(place):
        outcomes = {}
        # It leaves files behind, and removes those of others.
        own = place.folder / "suite"
        shutil.copytree(source / "tests", own / "tests", symlinks=True)
        shutil.copytree(source / "src", own / "src", symlinks=True, ignore=lambda folder, names: [it for it in names if not it.startswith("redis-") or "." in it])
        base = 10_000 + place.port % 20_000
        for unit in units:
            # Some leave settings behind.
            place.server.renew()
            output = place.folder / unit.replace("/", "-")
            command = [*suite, "--host", "127.0.0.1", "--port", place.port, "--baseport", base, "--single", unit, "--durable", "--tags", TAGS]
            try:
                run(command, output=output, limit=180, cwd=own)
            except Failed:
                outcomes[f"{unit}: does not end"] = "failed"
            outcomes |= told(unit, output.read_text(errors="replace"))
        return outcomes

    # It expects that the server gets what two connections sent in the order in which they sent it.
    yield compared("Redis's own, Tcl", tests, bulla, top="workers = 1")


def told(unit, text):
    """What each test of a unit came to."""
    kinds = {"ok": "passed", "err": "failed", "exception": "failed", "skip": "skipped", "ignore": "skipped"}
    outcomes = {}
    for kind, line in re.findall(r"^\[(\w+)\]: (.*)$", re.sub(r"\x1b\[[0-9;]*m", "", text), re.MULTILINE):
        if kind in kinds:
            name = re.sub(r" \(\d+ ms\)$| in tests/\S+$|: Tag: .*$", "", line)
            name = f"{unit}: {name}"
            outcomes[name] = "failed" if outcomes.get(name) == "failed" else kinds[kind]
    return outcomes
