"""The types of the compiled part. `docs/python.md` is the reference."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias, TypedDict, final

from typing_extensions import Self

_Path: TypeAlias = str | PathLike[str]
_Text: TypeAlias = str | Iterable[str]
_Numbers: TypeAlias = int | range | Iterable[int | range]

from bulla_audit._errors import (
    Closed as Closed,
    Erased as Erased,
    Error as Error,
    Invalid as Invalid,
    Locked as Locked,
    NoKey as NoKey,
    QueryWarning as QueryWarning,
    Refused as Refused,
    Tampered as Tampered,
    Timeout as Timeout,
    Unavailable as Unavailable,
)

from bulla_audit._types import ArrowArray, ArrowStream, Entry, LoggedEntry, Time

__version__: str

def create(
    directory: _Path,
    *,
    keys: _Path | None = None,
    origin: str | None = None,
    recipients: _Text | None = None,
    erasure: bool = True,
) -> str:
    """Makes an empty log, and returns its public key: keep it where the log is not."""

@final
class Log:
    """A log that this process has open. Any thread may use it."""

    def __new__(cls, directory: _Path, *, keys: _Path | None = None, **settings: str | int | bool | list[_Path]) -> Self: ...
    @property
    def origin(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def producer(self) -> Producer: ...
    def listen(
        self, path: _Path, *, clients: int = 64, mode: int = 0o600, datagrams: _Path | None = None, actor_from_peer: bool = False
    ) -> None: ...
    def flush(self) -> None: ...
    def telemetry(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class Connection:
    """A log that another process has open and listens for. Any thread may use it."""

    @property
    def origin(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def producer(self) -> Producer: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

def connect(path: _Path, *, append_timeout: float = 10.0) -> Connection:
    """Connects to the log that another process has open and listens for at this socket."""

@final
class Producer:
    """A way into a log. Its entries keep their order; threads that share one take turns."""

    @property
    def closed(self) -> bool: ...

    def append(
        self,
        operation: str,
        location: str | bytes | None = None,
        *,
        subject: str | Iterable[str] | None = None,
        controller: str | None = None,
        processor: str | None = None,
        purpose: str | None = None,
        actor: str | None = None,
        client: str | None = None,
        stream: str | None = None,
        status: int | None = None,
        duration: int | None = None,
        size: int | None = None,
        flags: int | None = None,
        payload: str | bytes | None = None,
        time: Time | None = None,
    ) -> None: ...
    def append_batch(self, entries: Iterable[Entry | dict[str, Any]] | ArrowStream | ArrowArray) -> int: ...
    def flush(self) -> Receipt: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class Receipt:
    """What a flush covered, and how far it has come. Any thread may use it."""

    def wait(self, timeout: float | None = None) -> bool: ...
    def checkpointed(self) -> None: ...
    def durable(self) -> Awaitable[None]: ...
    def notify(self, told: Callable[[Error | None], object]) -> None: ...

@final
class Reader:
    """What reads a log. Any thread may use it, and a writer may be at work meanwhile."""

    def __new__(
        cls,
        directory: _Path,
        *,
        key: str | None = None,
        keys: _Path | None = None,
        identity: _Path | Iterable[_Path] | None = None,
        passphrase: str | None = None,
        withhold_personal: bool = False,
    ) -> Self: ...
    def query(
        self,
        *,
        operation: _Text | None = None,
        location: str | bytes | Iterable[str | bytes] | None = None,
        subject: _Text | None = None,
        controller: _Text | None = None,
        processor: _Text | None = None,
        purpose: _Text | None = None,
        actor: _Text | None = None,
        client: _Text | None = None,
        stream: _Text | None = None,
        status: _Numbers | None = None,
        duration: _Numbers | None = None,
        size: _Numbers | None = None,
        flags: _Numbers | None = None,
        prefix: Mapping[str, str | bytes | Iterable[str | bytes]] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        entries: range | None = None,
        allow_lost_keys: bool = False,
    ) -> Entries: ...
    def export(self, file: BinaryIO, *, allow_lost_keys: bool = False, **query: Any) -> int: ...
    def prove(self, **query: Any) -> str: ...

@final
class Entries:
    """What a query asks for. Iterating over it, and each Arrow stream of it, reads the log once, beside what takes it."""

    def __iter__(self) -> Iterator[LoggedEntry]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Checked:
    """What a proof shows that holds."""

    anchored: bool
    entries: int
    withheld: int
    tree_size: int
    disclosed: list[LoggedEntry]

def check(proof: str | bytes, *, key: str | None = None, policy: str | None = None) -> Checked:
    """Checks a proof of entries with the log's public key alone, or by a policy, offline."""

@final
class Finding:
    severity: Literal["violation", "notice"]
    text: str

@final
class Report:
    """What a verification found."""

    ok: bool
    anchored: bool
    entries: int
    blocks: int
    tree_size: int
    pending: int
    witnessed: int | None
    pinned: int | None
    pin_made: bool
    findings: list[Finding]

def verify(
    directory: _Path,
    *,
    key: str | None = None,
    keys: _Path | None = None,
    policy: str | None = None,
    pin: _Path | None = None,
) -> Report:
    """Verifies a log with public data alone."""

@final
class Erasure:
    """What an erasure did."""

    erased: int
    unknown: list[str]
    frame: int
    certificate: str

def erase(
    directory: _Path,
    subjects: str | Iterable[str],
    *,
    reason: str | None = None,
    keys: _Path | None = None,
    authority: _Path | None = None,
) -> Erasure:
    """Erases data subjects: destroys their keys, and has the log tell of it. This cannot be undone."""

def _close_all() -> list[Error]:
    """Closes all that this process has open, and gives the errors of what was not."""

def _parent_listens_at() -> list[tuple[int, int, int]]:
    """The sockets at which the processes listened that this child comes from: each with its device and inode."""
