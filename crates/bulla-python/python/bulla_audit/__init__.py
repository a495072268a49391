"""A tamper-evident, encrypted audit log: who did what to whose data, when and why.

    from bulla_audit import Log

    with Log("audit") as log, log.producer() as producer:
        producer.append("read", "user_42/email", subject="user_42", purpose="fulfilling a request")
        producer.flush().wait()  # It is on the disk.

`create` makes a log, `Log` opens it for appending, in one process; `connect` reaches a log that another process has
open. `Reader` reads, and answers to Arrow; `check` and `verify` need public keys alone. What is still open when the
interpreter exits is closed then: written, synced and signed, and what fails of that is said on standard error.

`bulla_audit.handler` is for `logging`, `bulla_audit.structlog` for structlog, `bulla_audit.asgi`, `bulla_audit.django`,
`bulla_audit.sqlalchemy` and `bulla_audit.gunicorn` for those. `docs/python.md` is the reference.
"""

from bulla_audit import _exit as _exit
from bulla_audit._context import bind, context, unbind
from bulla_audit._native import (
    Checked,
    Closed,
    Connection,
    Entries,
    Erased,
    Erasure,
    Error,
    Finding,
    Invalid,
    Locked,
    Log,
    NoKey,
    Producer,
    QueryWarning,
    Reader,
    Receipt,
    Refused,
    Report,
    Tampered,
    Timeout,
    Unavailable,
    check,
    connect,
    create,
    erase,
    verify,
    __version__,
)
from bulla_audit._types import ArrowArray, ArrowStream, ContextFields, Entry, LoggedEntry

__all__ = [
    "ArrowArray",
    "ArrowStream",
    "Checked",
    "Closed",
    "Connection",
    "ContextFields",
    "Entries",
    "Entry",
    "Erased",
    "Erasure",
    "Error",
    "Finding",
    "Invalid",
    "Locked",
    "Log",
    "LoggedEntry",
    "NoKey",
    "Producer",
    "QueryWarning",
    "Reader",
    "Receipt",
    "Refused",
    "Report",
    "Tampered",
    "Timeout",
    "Unavailable",
    "__version__",
    "bind",
    "check",
    "connect",
    "context",
    "create",
    "erase",
    "unbind",
    "verify",
]
