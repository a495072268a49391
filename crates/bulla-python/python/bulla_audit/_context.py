"""What is so of all entries that are written here: who acts, for what, on whose data.

Invariants:
- the mapping that the variable has is never changed, so that whoever took it may keep it;
- no value in it is `None`, and a `subject` can be used more than once;
- a `context` object has no state of its own: what leaving it takes back is known to the context in which it was entered.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from bulla_audit._types import ContextFields

NAMES = (
    "operation",
    "location",
    "subject",
    "controller",
    "processor",
    "purpose",
    "actor",
    "client",
    "stream",
    "status",
    "duration",
    "size",
    "flags",
)

_current: ContextVar[Mapping[str, Any]] = ContextVar("bulla_audit", default={})

# The objects whose blocks this context is in, each with what takes its fields back, the innermost last. A copy of this context has them too,
# and is no place to end such a block: what takes the fields back does so only where they were added.
_entered: ContextVar[tuple[tuple[context, Token[Mapping[str, Any]]], ...]] = ContextVar(
    "bulla_audit.entered", default=()
)

current = _current.get
"""The fields of the context: a mapping that is not to be changed."""


def checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What fields say, in a form that many entries can take."""
    for name in fields:
        if name not in NAMES:
            raise TypeError(f"`{name}` is no field of a context; the fields are {', '.join(NAMES)}")
    return {
        name: subjects(value) if name == "subject" else value for name, value in fields.items() if value is not None
    }


def subjects(value: Any) -> Any:
    """Data subjects in a form that many entries can take: an iterator would be empty after the first. What is neither a
    text nor iterable stays as it is, and whoever appends an entry with it raises `Invalid`.
    """
    if isinstance(value, (str, bytes)):
        return value
    try:
        each = iter(value)
    except TypeError:
        return value
    return tuple(each)


class context:
    """Adds fields to every entry that the handler, the processor, the middlewares and the events write in its `with`
    block.

        with context(actor="ada", purpose="support"):
            logger.info("looked at the order", extra={"subject": "user_42"})

    The fields are those of `Entry`, but for `payload` and `time`, which are each entry's own. What an entry says itself
    goes before its context, an inner context before the outer ones; `None` says nothing, so that what is further out
    counts. `subject` may be any iterable of texts.

    It follows `contextvars`: an asyncio task has the context in which it was made, `asyncio.to_thread` takes it along,
    and a thread that is started otherwise begins with none. `Producer.append` and `append_batch` write what they are
    given, and look at no context.

    One object may be used again and again: by any threads and tasks at once, and within itself. Leaving it takes back
    what was bound since it was entered.

    Raises `TypeError` where a name is no field. Values are checked when an entry is written. Its block raises
    `RuntimeError` at its end where that is in another context than its beginning (as of a generator that somebody else
    goes on with), or where a block that began before it has ended, which has taken back what it added.
    """

    __slots__ = ("_fields",)

    def __init__(self, **fields: Unpack[ContextFields]) -> None:
        self._fields = checked(fields)

    def __enter__(self) -> None:
        token = _current.set({**current(), **self._fields})
        _entered.set((*_entered.get(), (self, token)))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered = _entered.get()
        for place in reversed(range(len(entered))):
            inside, token = entered[place]
            if inside is self:
                try:
                    _current.reset(token)
                except ValueError:
                    break
                _entered.set(entered[:place])
                return
        raise RuntimeError("the block of a `context` ends in another context than it began, or after one around it")


def bind(**fields: Unpack[ContextFields]) -> Token[Mapping[str, Any]]:
    """Adds fields, as `context` does, for the rest of the current context: of the asyncio task, of the thread, or of
    the `with context` block. Returns what `unbind` takes back.

    Raises `TypeError` where a name is no field.
    """
    return _current.set({**current(), **checked(fields)})


def unbind(token: Token[Mapping[str, Any]]) -> None:
    """Takes a `bind` back, and whatever was bound after it.

    Raises `ValueError` in another context than the one of the `bind`, `RuntimeError` where it was taken back already.
    """
    _current.reset(token)
