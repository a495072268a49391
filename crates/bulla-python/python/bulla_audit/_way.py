"""The way into a log that a handler, a processor or a middleware has.

Invariants:
- an entry that a receipt is wanted for is appended and flushed on one producer, with the lock held, so that nobody
  else's flush covers it and the receipt says what became of it;
- a producer that takes no more is replaced once, whoever finds it out.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from bulla_audit._native import Closed, Connection, Error, Log, Producer, Receipt, Tampered, Unavailable

Target: TypeAlias = "Producer | Log | Connection | Callable[[], Producer]"
"""Where entries go: a producer, a log or a connection (of which a producer is made), or a function that makes a
producer.
"""

LOGGER = "bulla_audit"
"""The name of the logger by which this package says what it could not record."""

OWN = "bulla_audit_own"
"""An attribute that the records of the package's own have on that logger, by which `Handler` knows them."""

_ways: weakref.WeakSet[Way] = weakref.WeakSet()


class Way:
    """Appends to what it was given. Any thread may use it.

    Of a log or a connection it makes a producer at once, by a function when it first needs one; and another one where
    that takes no more: a connection has ended, as it does when the process that listens is started anew, or this is a
    forked child, in which the function connects.
    """

    __slots__ = ("__weakref__", "_make", "_process", "_producer", "_turn", "_unacknowledged", "lost")

    def __init__(self, target: Target) -> None:
        self._make: Callable[[], Producer] | None = None
        self._producer: Producer | None = None
        if isinstance(target, Producer):
            self._producer = target
        elif isinstance(target, (Log, Connection)):
            self._make = target.producer
            self._producer = target.producer()
        elif callable(target):
            self._make = target
        else:
            raise TypeError(
                f"a Producer, a Log, a Connection or a function that makes a producer, not {type(target).__name__}"
            )
        # The process in which the producer was made.
        self._process = os.getpid()
        self._turn = threading.RLock()
        # What a producer that was replaced had not got acknowledged, until a durable flush or closing has told of it.
        self._unacknowledged: Error | None = None
        self.lost = 0
        """How many entries could not be recorded, where whoever has this goes on without them."""
        _ways.add(self)

    def append(self, fields: Mapping[str, Any]) -> None:
        """Appends an entry. Raises what `Producer.append` does, and what making a producer does."""
        _, replaced = self._appended(fields)
        _say_of(replaced)

    def append_flushed(self, fields: Mapping[str, Any]) -> Receipt:
        """Appends an entry and flushes, without waiting: the receipt covers the entry."""
        replaced = None
        try:
            with self._turn:
                producer, replaced = self._appended(fields)
                return producer.flush()
        finally:
            # Whoever reads standard error may keep this waiting, and nobody else.
            _say_of(replaced)

    def count_lost(self) -> None:
        """Counts an entry that could not be recorded."""
        with self._turn:
            self.lost += 1

    def flush_durable(self) -> None:
        """Flushes, and waits until all is durable. Raises what keeps it from that: once, too, where a producer that was
        replaced since the last time had entries that nobody acknowledged.
        """
        receipt = self.flush()
        if receipt is not None:
            receipt.wait()
        self._tell_unacknowledged()

    def flush(self) -> Receipt | None:
        """Flushes; `None` where there is nothing left to flush: a producer that was closed has written all that it had,
        or whoever closed it was told, and the one of a parent process is the parent's.
        """
        with self._turn:
            producer = self._producer
            if producer is None or self._process != os.getpid():
                return None
            try:
                return producer.flush()
            except Closed:
                if producer.closed:
                    return None
                raise

    def close(self) -> None:
        """Flushes, and closes the producer that was made here. What is appended behind that is `Closed`. Raises, too, what
        a durable flush would of a producer that was replaced.
        """
        with self._turn:
            try:
                self.flush()
            finally:
                producer, self._producer = self._producer, None
                make, self._make = self._make, _closed
                if producer is not None and make is not None:
                    producer.close()
        self._tell_unacknowledged()

    def _appended(self, fields: Mapping[str, Any]) -> tuple[Producer, Error | None]:
        """Appends an entry: the producer that took it, and why that is another one, where somebody is to be told."""
        replaced = None
        producer = self._producer
        if producer is None:
            producer = self._other_than(None)
        try:
            producer.append(**fields)
        except (Closed, Unavailable, Tampered) as error:
            if self._make is None:
                raise
            process = self._process
            producer = self._other_than(producer)
            producer.append(**fields)
            if process == self._process:
                replaced = error
        return producer, replaced

    def _other_than(self, failed: Producer | None) -> Producer:
        """A producer that is not the one that failed."""
        with self._turn:
            producer = self._producer
            # There is none, too, where this was closed meanwhile: making one says so.
            if producer is None or producer is failed:
                assert self._make is not None
                self._producer = made = self._make()
                if producer is not None and self._process == os.getpid():
                    self._note_unacknowledged(producer)
                self._process, producer = os.getpid(), made
            return producer

    def _tell_unacknowledged(self) -> None:
        """Raises once what a producer that was replaced had not got acknowledged."""
        with self._turn:
            unacknowledged, self._unacknowledged = self._unacknowledged, None
        if unacknowledged is not None:
            raise unacknowledged

    def _note_unacknowledged(self, failed: Producer) -> None:
        """Finds out whether a producer that takes no more had entries that may be missing."""
        if failed.closed:
            return
        try:
            # It waits for nothing: whatever was not acknowledged by now never is.
            failed.flush().wait()
        except Error as error:
            self._unacknowledged = error


class _Saying(threading.local):
    depth = 0


_saying = _Saying()


def is_said_again() -> bool:
    """Whether this thread says of what it is saying that it cannot be recorded."""
    return _saying.depth > 1


@contextlib.contextmanager
def saying() -> Iterator[None]:
    """Around what this thread says on standard error, which a program may have put a logger in the place of."""
    _saying.depth += 1
    try:
        yield
    finally:
        _saying.depth -= 1


def say(text: str) -> None:
    """Says something on standard error, and raises nothing, whatever is in the place of that."""
    with contextlib.suppress(Exception), saying():
        if sys.stderr is not None:
            print(f"bulla_audit: {text}", file=sys.stderr)


def _say_of(replaced: Error | None) -> None:
    if replaced is not None:
        lost = "what was appended before and not acknowledged may be missing"
        say(f"{replaced}; entries go on to a new producer: {lost}")


def _closed() -> Producer:
    raise Closed("it was closed: what is to be logged behind that needs another one")


def forget_unacknowledged() -> None:
    """Leaves what producers that were replaced had not got acknowledged to the connections, which tell of it as well."""
    for way in list(_ways):
        way._unacknowledged = None


def _unlock_in_child() -> None:
    # Another thread of the parent may have held them.
    for way in list(_ways):
        way._turn = threading.RLock()
    forget_unacknowledged()


os.register_at_fork(after_in_child=_unlock_in_child)
