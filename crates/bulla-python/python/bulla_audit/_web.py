"""What the middlewares of web frameworks have in common."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any

from bulla_audit._context import checked, current
from bulla_audit._native import Error
from bulla_audit._way import LOGGER, OWN, Target, Way

_OPERATIONS = {"GET": "read", "HEAD": "read", "POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}

_GIVEN = ("subject", "controller", "processor", "purpose", "actor", "client", "stream", "flags")
"""The fields of which an application says what they are."""

REFUSAL = b"The audit log cannot record this request.\n"
"""What a client is told in place of a response that cannot be recorded."""


def tell_refused(error: Error) -> None:
    """Logs why a request is refused: the kind of the error and its message, and nothing of the request."""
    # A handler of the program's that writes into an audit log has the same trouble.
    with contextlib.suppress(Error):
        message = "a request cannot be recorded: %s: %s"
        logging.getLogger(LOGGER).error(message, type(error).__name__, error, extra={OWN: True})


class Settings:
    """What a middleware was told to do."""

    def __init__(self, target: Target, durable: bool, unrecordable: str, given: Mapping[str, Any]) -> None:
        if unrecordable not in ("refuse", "pass"):
            raise ValueError('`unrecordable` is "refuse" or "pass"')
        for name in given:
            if name not in _GIVEN:
                raise TypeError(f"`{name}` is no field that a request's entry is given; those are {', '.join(_GIVEN)}")
        self.way = Way(target)
        self.durable = durable
        self.refuses = unrecordable == "refuse"
        self.given = {name: value for name, value in given.items() if value is not None}


class Request:
    """A request that is under way."""

    __slots__ = ("_began", "_known", "_method", "_path", "_settings")

    def __init__(self, settings: Settings, method: str, path: str) -> None:
        self._settings = settings
        self._method = method
        self._path = path
        self._known: dict[str, Any] = {}
        self._began = time.perf_counter_ns()

    def unknown(self) -> list[tuple[str, Any]]:
        """The fields that nobody has said anything of yet, with what says it."""
        return [(name, said) for name, said in self._settings.given.items() if name not in self._known]

    def know(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Takes what was found out, `None` being nothing, and gives it in the form that a context takes."""
        known = checked(told)
        self._known.update(known)
        return known

    def entry(self, status: int | None, size: int | None) -> dict[str, Any]:
        """The request's entry: what the application says of it, else what its context does, and how it ended."""
        fields = {**current(), **self._known}
        fields["operation"] = _OPERATIONS.get(self._method, self._method.lower())
        fields["location"] = self._path
        fields["status"] = status
        # The response to HEAD has none of the bytes that its header tells of.
        fields["size"] = None if self._method == "HEAD" else size
        fields["duration"] = time.perf_counter_ns() - self._began
        return fields


def length(header: str | bytes | None) -> int | None:
    """What a `Content-Length` says."""
    return int(header) if header is not None and header.isdigit() else None
