"""The Python package, and what it is compared with: `bulla-bench languages` runs this, one way each time.

    measure.py WAY PLACE SECONDS ENTRIES < entries

The log is `audit` in PLACE. Entries are lines of JSON, with times in nanoseconds since the Unix epoch. A run that appends ends after so many seconds or
so many entries, whichever comes first. It prints how long it took as a JSON object.
"""

import itertools
import json
import logging
import os
import sys
import time

BATCH = 4096
# Calls between looks at the clock.
BETWEEN_LOOKS = 64


class Run:
    """What was done since a moment, and when that is to end."""

    def __init__(self, seconds, entries):
        self.seconds, self.most = seconds, entries
        self.entries = 0
        self.start, self.processor = time.perf_counter(), time.process_time()

    def is_over(self):
        return self.entries >= self.most or time.perf_counter() - self.start >= self.seconds

    def passed(self):
        return {"seconds": time.perf_counter() - self.start, "processor_seconds": time.process_time() - self.processor}


def append(place, batches, run):
    """Appends batches again and again, from opening the log until it is closed."""
    from bulla_audit import Log

    run = run()
    with Log(os.path.join(place, "audit"), append_timeout="120 s") as log:
        with log.producer() as producer:
            for batch in itertools.cycle(batches):
                if run.is_over():
                    break
                run.entries += producer.append_batch(batch)
        log.flush()
    return {"entries": run.entries} | run.passed()


def dicts(place, entries, run):
    return append(place, [entries[first : first + BATCH] for first in range(0, len(entries), BATCH)], run)


def arrow(place, entries, run):
    import pyarrow

    schema = pyarrow.schema(
        {
            "time": pyarrow.timestamp("ns", "UTC"),
            "operation": pyarrow.string(),
            "location": pyarrow.string(),
            "client": pyarrow.string(),
            "status": pyarrow.uint32(),
            "duration": pyarrow.uint64(),
            "size": pyarrow.uint64(),
            "flags": pyarrow.uint32(),
        }
    )
    table = pyarrow.Table.from_pylist(entries, schema=schema)
    return append(place, [table.slice(first, BATCH) for first in range(0, table.num_rows, BATCH)], run)


def call(handler, entries, run):
    """Logs requests again and again, and says how long the calls took."""
    logger = logging.getLogger("requests")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    fields = ("operation", "location", "client", "status")
    calls = [
        (entry["operation"], entry["location"], entry["status"], {field: entry[field] for field in fields})
        for entry in entries
    ]
    calls = [calls[first : first + BETWEEN_LOOKS] for first in range(0, len(calls), BETWEEN_LOOKS)]
    run = run()
    for some in itertools.cycle(calls):
        if run.is_over():
            break
        for operation, location, status, extra in some:
            logger.info("%s %s %d", operation, location, status, extra=extra)
        run.entries += len(some)
    return {"entries": run.entries} | run.passed(), run


def file(place, entries, run):
    handler = logging.FileHandler(os.path.join(place, "calls.log"))
    told, run = call(handler, entries, run)
    handler.close()
    return told | {"closed_seconds": run.passed()["seconds"]}


def handler(place, entries, run):
    from bulla_audit import Log
    from bulla_audit.handler import Handler

    with Log(os.path.join(place, "audit"), append_timeout="120 s") as log:
        handler = Handler(log)
        told, run = call(handler, entries, run)
        handler.close()
        log.flush()
    return told | {"closed_seconds": run.passed()["seconds"]}


def query(place, _, run):
    """Reads the whole log into an Arrow table."""
    import pyarrow
    from bulla_audit import Reader

    run = run()
    table = pyarrow.table(Reader(os.path.join(place, "audit")).query())
    return run.passed() | {"entries": table.num_rows}


if __name__ == "__main__":
    way, place, seconds, most = sys.argv[1:]
    ways = {run.__name__: run for run in (dicts, arrow, file, handler, query)}
    entries = [json.loads(line) for line in sys.stdin.buffer]
    print(json.dumps(ways[way](place, entries, lambda: Run(float(seconds), int(most)))))
