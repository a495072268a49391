"""What a call is refused or fails for, by what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bulla_audit._native import Report


class Error(Exception):
    """What a call was refused or failed for. Its subclasses say what can be done about it.

    `staged` is how many entries of a batch were staged, from the first on, before `append_batch` failed. `report` is what `verify` found of a log whose pin could
    not be made or advanced.
    """

    staged: int = 0
    report: Report | None = None


class Invalid(Error, ValueError):
    """The input or a setting is wrong: correct it."""


class Timeout(Error, TimeoutError):
    """The memory for staged entries stayed full: try again, or slow down."""


class Closed(Error):
    """The log is closed, or this is a forked child's copy: open it anew, or connect."""


class Locked(Error):
    """Another process has the log open: `connect` to it, or stop it."""


class Unavailable(Error, OSError):
    """The environment failed (I/O, a full disk, a missing path): mend it, then open the log again."""


class Tampered(Error):
    """The log is not what was written, or a proof does not hold: run `bulla verify`."""


class Erased(Error):
    """The data subject was erased: nobody can read this any more."""


class NoKey(Error):
    """No key at hand opens this: bring the right identity."""


class Refused(Error):
    """It is not allowed, or not found."""


class QueryWarning(UserWarning):
    """What a query cannot tell, so that its answer is not taken for more than it is: what is known of data subjects who
    were asked for by name and have no entry that meets the query (a misspelt name must not come to "nothing is held on
    you"), and filters for values that the log's rules leave nothing of.
    """
