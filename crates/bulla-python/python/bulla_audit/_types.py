"""The types of what is given and of what comes back, for annotations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Protocol, TypedDict, Union

Time = Union[datetime, int]
"""A time: a `datetime` with a time zone, or nanoseconds since the Unix epoch."""


class ContextFields(TypedDict, total=False):
    """The fields of an entry that `context` and `bind` take: all but its own payload and time."""

    operation: str | None
    location: str | bytes | None
    subject: str | Iterable[str] | None
    controller: str | None
    processor: str | None
    purpose: str | None
    actor: str | None
    client: str | None
    stream: str | None
    status: int | None
    duration: int | None
    size: int | None
    flags: int | None


class Entry(TypedDict, total=False):
    """One record of one operation on somebody's data, as `append_batch` takes it.

    Absent, zero and empty are three different things; `None` is absent. `operation` must be there. `duration` is in
    nanoseconds, `size` in bytes; both have at most 64 bits, `status` and `flags` have 32.
    """

    operation: str
    location: str | bytes | None
    subject: str | Iterable[str] | None
    controller: str | None
    processor: str | None
    purpose: str | None
    actor: str | None
    client: str | None
    stream: str | None
    status: int | None
    duration: int | None
    size: int | None
    flags: int | None
    payload: str | bytes | None
    time: Time | None


class _Always(TypedDict):
    """What every entry has that is read."""

    entry: int
    time: int
    operation: str


class LoggedEntry(_Always, total=False):
    """An entry as it is read: without what is absent.

    `entry` is its number in the log, `time` are nanoseconds since the Unix epoch, `duration` is in nanoseconds, `size`
    in bytes; `location` and `payload` are `bytes` where they are no UTF-8. `withheld` says why what is personal of it
    is not there.
    """

    location: str | bytes
    subject: list[str]
    controller: str
    processor: str
    purpose: str
    actor: str
    client: str
    stream: str
    status: int
    duration: int
    size: int
    flags: int
    payload: str | bytes
    withheld: Literal["erased", "not-given", "key-lost", "cannot-tell"]


class ArrowStream(Protocol):
    """A table, a reader of record batches, or a data frame: whatever has Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """A record batch: whatever has Arrow's C array interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
