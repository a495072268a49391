"""Hooks for gunicorn: the arbiter has the log open and listens, its workers connect to it.

In `gunicorn.conf.py`:

    from bulla_audit.gunicorn import hooks

    globals().update(hooks("audit", socket="audit.sock"))

In the application, `bulla_audit.gunicorn.producer` is what handlers and middlewares take as their target:

    app.add_middleware(bulla_audit.asgi.Middleware, target=bulla_audit.gunicorn.producer)

A log has one writer, and a server has many processes. So the arbiter opens the log before it forks, and listens at a
local socket; each worker connects after it was forked. With a preloaded application (`preload_app`), too: a producer is
made when it is first needed, in the worker that needs it.

**What happens when a process ends.** A worker that ends in order sends what it has, and waits until it is durable; what
keeps anything from that is in gunicorn's error log. What a worker is killed with (SIGKILL, a timeout's SIGABRT) and has
not sent, of the last 20 ms, is lost; what it was acknowledged is in the log. The arbiter closes the log at its end,
when its workers are gone: all is durable and signed. An arbiter that is killed (SIGKILL, the kernel short of memory)
takes the log with it. What it had acknowledged is durable, and the next one to open the log recovers it; workers notice
that their connections ended, record nothing from then on (a middleware that refuses what is unrecordable responds 503)
and end themselves. Until the last of them has ended, the log is locked: they
were forked with its lock.

**In production better have `bulla append audit --listen /run/audit/audit.sock` as a service of its own**, and only
connect: `hooks(socket="/run/audit/audit.sock")`. Then the log stays open while the server is stopped, started anew or
upgraded (with the log in the arbiter, USR2 fails: the new arbiter finds it locked by the old one), the server's user
can neither read the log's keys nor write its files, and no worker is forked from a process that has the log's threads.
When that service is started anew, workers connect to it again by themselves, at the next entry. A worker
that starts while it is away responds, too: until the service listens again with a 503, where a middleware refuses.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bulla_audit._native import Connection, Error, Invalid, Log, Producer, connect

__all__ = ["hooks", "producer"]


class _State:
    """What this process has: the arbiter the log, its workers a connection."""

    arbiter: int | None = None
    log: Log | None = None
    socket: str | None = None
    append_timeout: float = 10.0
    connection: Connection | None = None
    process: int | None = None
    slow: tuple[float, type[Error], tuple[Any, ...]] | None = None
    """Until when nobody tries to connect, and what became of the last time."""


def hooks(
    directory: str | os.PathLike[str] | None = None,
    *,
    socket: str | os.PathLike[str],
    keys: str | os.PathLike[str] | None = None,
    clients: int | None = None,
    append_timeout: float = 10.0,
    **settings: str | int | bool,
) -> dict[str, Callable[..., None]]:
    """Server hooks, by their names, for the configuration of gunicorn.

    With a `directory` the arbiter opens the log that is there, with its `keys` and `settings` as `Log` takes them, and
    listens at `socket`. `clients` may be connected at once, 64 by default: each producer of each worker is one, and
    while workers are replaced there are twice as many. Without a `directory` somebody else does all that, and `keys`,
    `clients` and `settings` are refused.

    `append_timeout` is the one of the workers' connections, with a `directory`, too: the seconds that `connect` takes.
    So long a worker waits at most, and its event loop with it, where the log answers nothing or takes nothing; a second
    at least where it connects. Whoever wants to connect within a second after somebody has waited for that in vain is
    told the same at once.

    Whoever has hooks of these names (`on_starting`, `post_fork`, `worker_exit`, `on_exit`) calls them from there.
    Errors end the start of gunicorn: `TypeError` for what is refused, `Invalid` for a timeout that is none, what `Log`
    and `Log.listen` raise, and without a `directory` what `connect` does. A worker that cannot connect later, in the place of another one, starts all the same, and says so in gunicorn's
    error log: it connects when it has something to record, and until it can, that cannot be recorded.
    """
    path = os.path.abspath(os.fspath(socket))
    if not isinstance(append_timeout, (int, float)) or not 0 <= append_timeout <= 1 << 63:
        raise Invalid("`append_timeout` has to be a number of seconds, 0 or more")
    given = [name for name, value in [("keys", keys), ("clients", clients)] if value is not None]
    given.extend(settings)
    if directory is None and given:
        raise TypeError(f"without a `directory` the arbiter opens no log, of which these are settings: {', '.join(given)}")

    def on_starting(server: Any) -> None:
        """Opens the log, and listens."""
        _State.arbiter, _State.socket = os.getpid(), path
        if directory is None:
            # Said once, at the start: a worker that starts later may find the service away for a while.
            connect(path, append_timeout=append_timeout).close()
        else:
            log = Log(directory, keys=keys, **settings)
            log.listen(path, clients=64 if clients is None else clients)
            _State.log = log

    def post_fork(server: Any, worker: Any) -> None:
        """Connects the worker, where somebody listens: else it does so when it needs a producer."""
        _State.socket, _State.append_timeout = path, append_timeout
        if directory is not None:
            threading.Thread(target=_end_without, args=[server.pid], name="bulla-arbiter", daemon=True).start()
        try:
            with _in_turn():
                _connection()
        except Error as error:
            worker.log.error("bulla_audit: nothing can be recorded until this worker can connect: %s", error)

    def worker_exit(server: Any, worker: Any) -> None:
        """Waits until all that the worker has appended is durable."""
        if _State.connection is not None and _State.process == os.getpid():
            try:
                _State.connection.close()
            except Error as error:
                worker.log.error("bulla_audit: not all that this worker has appended is known to be durable: %s", error)

    def on_exit(server: Any) -> None:
        """Closes the log: everything is written, synced and signed."""
        if _State.log is not None:
            _State.log.close()

    return {"on_starting": on_starting, "post_fork": post_fork, "worker_exit": worker_exit, "on_exit": on_exit}


def producer() -> Producer:
    """A new producer of this worker. Handlers and middlewares take the function itself, and call it when they need one.

    Raises `RuntimeError` where gunicorn runs without the hooks, or where this is the arbiter, whose producer would be
    of no use to its workers; and what `connect` does.
    """
    with _in_turn():
        return _connection().producer()


@contextmanager
def _in_turn() -> Iterator[None]:
    """Lets nobody wait for what has just kept somebody else waiting in vain: the requests that an event loop has would do
    so one after the other.
    """
    if _State.slow is not None:
        until, kind, told = _State.slow
        if time.monotonic() < until:
            raise kind(*told)
    began = time.monotonic()
    try:
        yield
    except Error as error:
        now = time.monotonic()
        # Whoever does not answer is waited for so long at the least, and what fails otherwise does so at once.
        if now - began >= 1:
            _State.slow = now + 1, type(error), error.args
        raise


def _end_without(arbiter: int) -> None:
    """Ends this worker in order when its arbiter is gone, and with it the log: not all kinds of workers look for it."""
    while os.getppid() == arbiter:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _connection() -> Connection:
    if _State.socket is None:
        raise RuntimeError("gunicorn runs without these hooks: globals().update(hooks(…)) in gunicorn.conf.py")
    if _State.arbiter == os.getpid():
        raise RuntimeError(
            "this is the arbiter: give `bulla_audit.gunicorn.producer` itself, which is called in the workers"
        )
    if _State.connection is None or _State.process != os.getpid():
        _State.connection, _State.process = connect(_State.socket, append_timeout=_State.append_timeout), os.getpid()
    return _State.connection
