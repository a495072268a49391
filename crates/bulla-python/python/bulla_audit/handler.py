"""`Handler`: what a program logs by `logging` goes into the audit log.

In short:

    import logging
    from bulla_audit import Log
    from bulla_audit.handler import Handler

    log = Log("audit")
    logger = logging.getLogger("audit")
    logger.addHandler(Handler(log))
    logger.warning("order sent", extra={"operation": "read", "subject": "user_42", "purpose": "delivery"})
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bulla_audit._context import NAMES, current
from bulla_audit._native import Error
from bulla_audit._way import LOGGER, OWN, Target, Way, is_said_again, say, saying

__all__ = ["Handler"]

_NANOSECONDS = 1_000_000_000


class Handler(logging.Handler):
    """Makes an entry of each record.

    `target` is a `Producer`, a `Log` or a `Connection`, of which it makes a producer of its own and closes that again,
    or a function that makes a producer, which is called when one is needed first.

    - `operation`: `extra["operation"]`, else the context, else the level's name in lower case
    - `location`: `extra["location"]`, else the context, else the logger's name
    - subject, controller, processor, purpose, actor, client, stream, status, duration (nanoseconds), size (bytes),
      flags: `extra`, else the context
    - `payload`: the message, with the exception's text behind it, or what a formatter that is set makes of the record
    - `time`: the record's `created`, to the nanosecond: a float, which is at most 120 ns beside what the clock said
      (until 2038)

    The context is what `bulla_audit.context` and `bind` say. `None` in `extra` says nothing.

    `unrecordable` says what becomes of a record of which no entry can be made: a field breaks a limit or is of a wrong
    type, the log takes nothing more, the memory for entries stays full for `append_timeout`. With `"raise"` the
    exception leaves the logging call, so that what is not recorded does not go on in silence; with `"handle"` it goes
    to `logging`'s own `handleError`, which prints it with the message unless `logging.raiseExceptions` is false, and is
    counted in `lost`.

    From `durable_level` on, a number or a name as `level` is (`"ERROR"`), a logging call returns when its entry is
    durable; below it, and by default, when it is staged. What is staged is durable a little later by itself.

    What the package itself logs, that a request cannot be recorded, is passed over, on whatever logger the handler is.

    Any thread may log. It takes no lock but for the producer's, so that threads that wait for durable entries share
    their syncs. In a forked child a log's and a connection's handler refuses with `Closed`; one that was made with a
    function which connects goes on.
    """

    def __init__(
        self,
        target: Target,
        level: int | str = logging.NOTSET,
        *,
        unrecordable: str = "raise",
        durable_level: int | str | None = None,
    ) -> None:
        super().__init__(level)
        if unrecordable not in ("raise", "handle"):
            raise ValueError('`unrecordable` is "raise" or "handle"')
        self._raises = unrecordable == "raise"
        # What a logger takes as a level, by number or by name.
        self._durable_level = None if durable_level is None else logging.Logger("", durable_level).level
        self._way = Way(target)

    @property
    def lost(self) -> int:
        """How many records could not be recorded and went to `handleError`."""
        return self._way.lost

    def handle(self, record: logging.LogRecord) -> bool | logging.LogRecord:  # type: ignore[override]
        """Records what the filters let pass, without the handler's lock: producers have their own."""
        if record.name == LOGGER and getattr(record, OWN, False):
            # What says that something cannot be recorded cannot be recorded either.
            return False
        if is_said_again():
            # Standard error is a logger that has this handler: what it says of this one would be said for ever.
            return False
        passed: bool | logging.LogRecord = self.filter(record)
        if passed:
            self.emit(passed if isinstance(passed, logging.LogRecord) else record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Makes an entry of the record. Raises what keeps it from being recorded, unless that is for `handleError`."""
        try:
            self._record(record)
        except Exception:
            if self._raises:
                raise
            self._way.count_lost()
            with saying():
                self.handleError(record)

    def _record(self, record: logging.LogRecord) -> None:
        said = record.__dict__
        fields = {name: said[name] for name in NAMES if name in said and said[name] is not None}
        around = current()
        if around:
            fields = {**around, **fields}
        if "operation" not in fields:
            fields["operation"] = record.levelname.lower()
        if "location" not in fields:
            fields["location"] = record.name
        fields["payload"] = self.format(record)
        # The product of the whole would be rounded to more than a hundred nanoseconds once again.
        seconds = int(record.created)
        fields["time"] = seconds * _NANOSECONDS + round((record.created - seconds) * _NANOSECONDS)
        if self._durable_level is None or record.levelno < self._durable_level:
            self._way.append(fields)
        else:
            self._way.append_flushed(fields).wait()

    def flush(self, durable: bool = False) -> None:
        """Has everything that was appended written without waiting for more; with `durable` it waits until it is
        durable, and raises what keeps it from that.

        Without `durable` that is said on standard error instead: `logging` flushes and closes all handlers one after
        the other (`shutdown`, `dictConfig`, `fileConfig`), and what one raises keeps it from the others. Where the log
        was closed it does nothing: closing has written all that there was, or has raised.
        """
        if durable:
            self._way.flush_durable()
        else:
            _said("flushing a handler", self._way.flush)

    def close(self) -> None:
        """Flushes, and closes the producer that it made itself. What is logged behind that is refused with `Closed`.

        What keeps it from flushing is said on standard error, as `flush` does, and so is what a producer that was
        replaced had not got acknowledged, where no durable flush has told of that.
        """
        try:
            _said("closing a handler", self._way.close)
        finally:
            super().close()


def _said(what: str, act: Callable[[], object]) -> None:
    """Says on standard error what an act fails with."""
    try:
        act()
    except Error as error:
        say(f"{what}: {type(error).__name__}: {error}")
