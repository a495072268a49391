#!/usr/bin/env python3
"""Runs suites of other projects through `bulla proxy`, and holds what they tell against direct runs and against `known.toml`.

    scripts/interop/run.py BULLA [SUITE...]
"""

import importlib
import os
import pathlib
import sys

from common import Failed, PLACE, counted, known, say, surprises

# In the order in which they have found most.
SUITES = ["redis_py", "tcl", "go_redis", "ioredis", "jedis", "promtool", "valkey"]


def main(bulla, *names):
    # Suites that read the time, or open sockets, have nothing of what else is set here.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    PLACE.mkdir(parents=True, exist_ok=True)
    rows, bad = [], []
    for name in names or SUITES:
        try:
            for found in importlib.import_module(name).suites(pathlib.Path(bulla).resolve()):
                surprising = surprises(found, known(found.suite))
                rows.append((found, surprising))
                for line in surprising:
                    say(f"{found.suite}: {line}")
                bad += surprising
        except Failed as error:
            say(f"{name} failed: {error}")
            bad.append(name)
    for found, surprising in rows:
        differ, entries = len(found.differs), found.entries
        print(f"swept: {found.suite}: {counted(found.tests)}; {differ} differ from a direct run, {len(surprising)} not as known; {entries} entries")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
