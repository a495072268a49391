"""Closes what is open when the interpreter exits, so that nothing that was appended is lost silently.

The functions that the interpreter calls at its exit are not called in a child of `multiprocessing`, which ends by
`os._exit`: there the finalizers of `multiprocessing` are, those that the child itself has made.
"""

from __future__ import annotations

import atexit

# What is registered first is called last: `logging` flushes its handlers once everything is closed here, and those of a connection that
# has ended have nothing left to tell.
import logging  # noqa: F401
import os
import sys

from bulla_audit import _native, _way

_LAST = -1_000_000
"""The priority of a finalizer that runs behind all others."""


def close_all() -> None:
    """Closes all logs and connections that this process has open, and says on standard error what failed of it."""
    for error in _native._close_all():
        _way.say(f"closing at exit: {type(error).__name__}: {error}")
    # Else a handler would say it again when `logging` closes it behind this.
    _way.forget_unacknowledged()


def _finalize(_: object = None) -> None:
    sys.modules["multiprocessing.util"].Finalize(None, close_all, exitpriority=_LAST)


def _follow_multiprocessing() -> None:
    """Has children of `multiprocessing` close at their exit, where this process may become the parent of one, or be
    one.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return
    # A child forgets the finalizers that it came with, and then calls this.
    util.register_after_fork(close_all, _finalize)
    if sys.modules["multiprocessing.process"].parent_process() is not None:
        _finalize()


def _leave_sockets() -> None:
    """Lets go of a parent's listening sockets in its child: else clients of a parent that is gone would wait for it."""
    sockets = [number for number, *socket in _native._parent_listens_at() if _open_at(number) == socket]
    if sockets:
        # The numbers stay taken: what the child has of its parent's log is never let go of.
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in sockets:
            os.dup2(nothing, number, inheritable=False)
        os.close(nothing)


def _open_at(number: int) -> list[int]:
    """What is open there. It may be no socket any more, where a parent that was a child has closed what it came with."""
    try:
        status = os.fstat(number)
    except OSError:
        return []
    return [status.st_dev, status.st_ino]


atexit.register(close_all)
os.register_at_fork(after_in_child=_leave_sockets)
os.register_at_fork(after_in_child=_follow_multiprocessing)
_follow_multiprocessing()
