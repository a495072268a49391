"""`Processor`: what a program logs by structlog goes into the audit log.

In short:

    import structlog
    from bulla_audit import Log
    from bulla_audit.structlog import Processor

    log = Log("audit")
    processors = [structlog.contextvars.merge_contextvars, Processor(log), structlog.processors.JSONRenderer()]
    structlog.configure(processors=processors)
    structlog.get_logger().info("order sent", operation="read", subject="user_42", order=4711)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from bulla_audit._context import NAMES, current
from bulla_audit._way import Target, Way

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

__all__ = ["Processor"]

_NAMES = frozenset(NAMES)


def _with_names(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """The same with names that JSON has: any other is given by its `repr`."""
    if not isinstance(value, (dict, list, tuple)):
        return value
    if any(value is around for around in within):
        raise ValueError("Circular reference detected")
    within = (*within, value)
    if not isinstance(value, dict):
        return [_with_names(of, within) for of in value]
    has = (str, int, float, bool, type(None))
    named = {name if isinstance(name, has) else repr(name): _with_names(of, within) for name, of in value.items()}
    if len(named) < len(value):
        raise ValueError("two names of an event are one as JSON has them")
    return named


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that was written as JSON, each of its names once."""
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("two names of an event are one as JSON has them")
    return named


def _json(event: Mapping[str, Any]) -> str:
    """An event as JSON, what that does not have by its `repr`."""
    dumps = partial(json.dumps, default=repr, ensure_ascii=False)
    try:
        return dumps(event, allow_nan=False)
    except (TypeError, ValueError):
        # Names and numbers that JSON does not have are no objects that a `default` is asked of: numbers are read back as texts.
        try:
            text = dumps(event)
        except TypeError:
            text = dumps(_with_names(event))
        return dumps(json.loads(text, parse_constant=lambda name: repr(float(name)), object_pairs_hook=_once))


class Processor:
    """Makes an entry of each event.

    `target` is a `Producer`, a `Log` or a `Connection`, of which it makes a producer of its own, or a function that
    makes a producer, which is called when one is needed first.

    An event's `operation`, `location`, `subject`, `controller`, `processor`, `purpose`, `actor`, `client`, `stream`,
    `status`, `duration` (nanoseconds), `size` (bytes) and `flags` become the entry's fields, else the context's do
    (`bulla_audit.context`, `bind`). `operation` is else the method's name (`info`), `location` the logger's, where
    `structlog.stdlib.add_logger_name` has put it there. `None` says nothing. All that is left becomes the payload, as a
    JSON object: `event`, and whatever else the event has. `dumps` makes it; by default what JSON does not have is given
    by its `repr`. So the processor stands behind those that render exceptions (`format_exc_info`, `dict_tracebacks`),
    and before the one that renders the whole.

    The event goes on to the next processor as it came. With `drop` it goes no further: `structlog.DropEvent`.

    With `unrecordable="raise"`, the default, what keeps an event from being recorded leaves the logging call; with
    `"pass"` it is counted in `lost`, and the event goes on.

    Any thread may log. A logging call returns when the entry is staged; it is durable a little later by itself. `flush`
    asks for that.
    """

    def __init__(
        self,
        target: Target,
        drop: bool = False,
        *,
        unrecordable: str = "raise",
        dumps: Callable[[Mapping[str, Any]], str | bytes] = _json,
    ) -> None:
        if unrecordable not in ("raise", "pass"):
            raise ValueError('`unrecordable` is "raise" or "pass"')
        self._raises = unrecordable == "raise"
        self._drop = drop
        self._dumps = dumps
        self._way = Way(target)

    @property
    def lost(self) -> int:
        """How many events could not be recorded, and went on."""
        return self._way.lost

    def __call__(self, logger: WrappedLogger, method_name: str, event_dict: EventDict) -> EventDict:
        """Makes an entry of the event."""
        try:
            self._record(method_name, event_dict)
        except Exception:
            if self._raises:
                raise
            self._way.count_lost()
        if self._drop:
            raise structlog.DropEvent
        return event_dict

    def _record(self, method_name: str, event: EventDict) -> None:
        fields = dict(current())
        rest = {}
        for name, value in event.items():
            if name not in _NAMES:
                rest[name] = value
            elif value is not None:
                fields[name] = value
        fields.setdefault("operation", method_name)
        if "location" not in fields and "logger" in event:
            fields["location"] = event["logger"]
        fields["payload"] = self._dumps(rest)
        self._way.append(fields)

    def flush(self, durable: bool = False) -> None:
        """Has everything that was appended written without waiting for more; with `durable` it waits until it is
        durable. Raises what keeps it from that.
        """
        if durable:
            self._way.flush_durable()
        else:
            self._way.flush()

    def close(self) -> None:
        """Flushes, and closes the producer that it made itself. What is logged behind that is refused with `Closed`.

        Raises, once it is closed, what keeps it from flushing, and what was not acknowledged before a connection ended
        where no durable flush has told of that.
        """
        self._way.close()
