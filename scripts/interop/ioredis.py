"""ioredis, whose package has no tests: what a driver does with it (`ioredis.mjs`), and what comes of it, to the letter."""

import json
import shutil

from common import HERE, compared, installed, must, run


def install(folder):
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    must(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)


def suites(bulla, program="redis-server", before=""):
    folder = installed("ioredis", ["package.json", "package-lock.json"], install)

    def tests(place):
        output = place.folder / "output"
        run(["node", HERE / "ioredis.mjs", place.port, folder], output=output, limit=300)
        return outcomes(output)

    yield compared(f"ioredis{before}", tests, bulla, program)


def outcomes(output):
    """What each part of a driver came to, which is in its name: what came to something else is missing."""
    told = {}
    for line in output.read_text(errors="replace").splitlines():
        if line.startswith("["):
            name, outcome, what = json.loads(line)
            told[f"{name}: {what[:2000]}"] = outcome
    return told
