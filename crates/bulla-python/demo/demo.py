"""Appends to a log, reads one person's entries back, and proves them to whoever has the log's public key.

`make wheel` builds the package: pip install target/wheels/bulla_audit-*.whl && python demo.py audit
"""

import logging
import sys

import bulla_audit
from bulla_audit.handler import Handler

directory = sys.argv[1] if len(sys.argv) > 1 else "audit"
key = bulla_audit.create(directory, origin="example.com/demo-python")
print(f"verify with: bulla verify {directory} --key {key}")

ENTRIES = 100_000
with bulla_audit.Log(directory) as log:
    with log.producer() as producer:
        users = (f"user_{number % 1000}" for number in range(ENTRIES - 1))
        producer.append_batch(
            {"operation": "read", "location": f"{user}/email", "subject": user, "purpose": "support", "status": 200}
            for user in users
        )
        producer.flush().wait()  # until all of it is durable

    # The same from a program that logs already.
    audit = logging.getLogger("audit")
    audit.addHandler(Handler(log))
    with bulla_audit.context(actor="ada", purpose="fulfilling a request"):
        audit.warning("exported", extra={"operation": "export", "location": "user_42/all", "subject": "user_42"})

reader = bulla_audit.Reader(directory, key=key)
of_one = list(reader.query(subject="user_42"))
last = of_one[-1]
print(f"{len(of_one)} entries of user_42, the last: {last['operation']} {last['location']!r} by {last['actor']}")

proof = reader.prove(subject="user_42")
checked = bulla_audit.check(proof, key=key)
signed = "signed by the log" if checked.anchored else "signed by nobody that is known"
print(f"proven with {len(proof)} bytes: {checked.entries} entries, {signed}")

report = bulla_audit.verify(directory, key=key)
print(f"verified with public data alone: {'nothing is missing or altered' if report.ok else report.findings}")

of_all = sum(1 for _ in reader.query())
print(f"{ENTRIES} entries went in, {of_all} came back")
sys.exit(of_all != ENTRIES or not checked.anchored or not report.ok)
