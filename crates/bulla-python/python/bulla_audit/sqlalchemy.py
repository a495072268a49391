"""`Audit`: entries of what sessions of SQLAlchemy's ORM create, update and delete, and of what they read.

In short:

    from bulla_audit import Log
    from bulla_audit.sqlalchemy import Audit

    log = Log("audit")
    audit = Audit(log)
    audit.watch(User, subject="name", reads=True)
    audit.watch(Order, subject=lambda order: order.user_name)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, inspect
from sqlalchemy.orm import Session, object_session

from bulla_audit._context import current, subjects
from bulla_audit._way import Target, Way

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as DatabaseConnection
    from sqlalchemy.orm import Mapper, QueryContext, SessionTransaction

__all__ = ["Audit"]


class _Rule:
    """What is written of a class."""

    def __init__(
        self,
        subject: str | Callable[[Any], str | Iterable[str] | None] | None,
        location: Callable[[Any], str | bytes] | None,
    ) -> None:
        self._subject = subject
        self._location = location

    def entry(self, operation: str, target: Any) -> dict[str, Any]:
        fields = {**current(), "operation": operation, "location": self._located(target)}
        said = self._subject
        subject = getattr(target, said) if isinstance(said, str) else said(target) if said is not None else None
        if subject is not None:
            fields["subject"] = subjects(subject)
        return fields

    def _located(self, target: Any) -> str | bytes:
        if self._location is not None:
            return self._location(target)
        mapper = inspect(target).mapper
        key = ",".join(str(value) for value in mapper.primary_key_from_instance(target))
        return f"{mapper.local_table.name}/{key}"


class _Pending:
    """The changes of a session's transaction, which are entries once it is committed.

    What a savepoint began with is told by how many there were then: what came behind goes with it.
    """

    __slots__ = ("entries", "is_committed", "savepoints")

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.savepoints: dict[SessionTransaction, int] = {}
        self.is_committed = False


class Audit:
    """Writes entries of what is done to objects of the classes that are watched, in any session of this process.

    `target` is a `Producer`, a `Log` or a `Connection`, of which it makes a producer of its own, or a function that
    makes a producer, which is called when one is needed first.

    - `create`, `update`, `delete`: a flush inserted, changed or deleted the row of an object, and the session
      committed: one entry a flush and object. The `payload` of an update is JSON with the names of the changed columns'
      attributes: `{"changed": ["email"]}`
    - `read`: an object of a class with `reads=True` was loaded from the database, or loaded again

    The other fields are those of the context (`bulla_audit.context`, `bind`) where the session flushed or loaded.

    **What it promises.** A commit leaves the entries of all that its flushes did, in their order, behind what is
    committed; a rollback, one to a savepoint, and a session that is closed without a commit leave none. Entries are
    staged when `commit` returns: they are durable a little later by itself; `flush(durable=True)` waits for that. A
    process that is killed between the database's commit and that has changes in the database that the log has not.
    Reads are appended at once, and stay when the transaction is rolled back: they were read. Where the session has
    joined a transaction of its connection that somebody else commits, what the session calls a commit counts.

    **What cannot be recorded.** With `unrecordable="raise"`, the default, what keeps an entry from being recorded is
    raised, out of the query, or out of `commit`: the database has committed by then, the rest of the commit's entries
    are tried all the same, and the session can be used. With `"pass"` it is counted in `lost`.

    **What it does not see**, because the session makes no objects of it: statements (`insert`, `update`, `delete` that
    are executed, in bulk or not, `bulk_save_objects` and the like), rows that the database changes by itself (`ON
    DELETE CASCADE`, triggers), rows of secondary tables, queries for columns, and objects that the session has at hand
    when a query finds them again.
    """

    def __init__(self, target: Target, *, unrecordable: str = "raise") -> None:
        if unrecordable not in ("raise", "pass"):
            raise ValueError('`unrecordable` is "raise" or "pass"')
        self._raises = unrecordable == "raise"
        self._way = Way(target)
        self._rules: dict[type[Any], _Rule] = {}
        self._listeners: list[tuple[Any, str, Callable[..., None]]] = []
        self._listen(Session, "after_transaction_create", self._began)
        self._listen(Session, "after_commit", self._committed)
        self._listen(Session, "after_transaction_end", self._ended)

    @property
    def lost(self) -> int:
        """How many entries could not be recorded."""
        return self._way.lost

    def watch(
        self,
        mapped: type[Any],
        *,
        subject: str | Callable[[Any], str | Iterable[str] | None] | None = None,
        location: Callable[[Any], str | bytes] | None = None,
        reads: bool = False,
    ) -> None:
        """Has entries written of a mapped class and of those that inherit from it; a rule for one of these goes before
        its base's.

        `subject` says whose data an object is: the name of an attribute that is a text, or a function of the object,
        which gives a text, several or `None`; of a number give `lambda user: str(user.id)`. `location` says what it is
        called, by default the table's name, a slash and the primary key, such as `users/42`. Both are called in a flush
        or while a row is loaded, so they use what is loaded already, and run no query. With `reads` there are entries
        of what is read, too.

        Raises `sqlalchemy.exc.NoInspectionAvailable` for a class that is not mapped, `ValueError` for one that is
        watched already.
        """
        inspect(mapped)
        if mapped in self._rules:
            raise ValueError(f"{mapped.__name__} is watched already")
        rule = self._rules[mapped] = _Rule(subject, location)

        def created(mapper: Mapper[Any], connection: DatabaseConnection, target: Any) -> None:
            if self._rule_of(target) is rule:
                self._keep(target, rule.entry("create", target))

        def updated(mapper: Mapper[Any], connection: DatabaseConnection, target: Any) -> None:
            if self._rule_of(target) is rule:
                attributes = inspect(target).attrs
                changed = [column.key for column in mapper.column_attrs if attributes[column.key].history.has_changes()]
                # An object of which only what others refer to has changed comes here, too.
                if changed:
                    payload = json.dumps({"changed": changed})
                    self._keep(target, {**rule.entry("update", target), "payload": payload})

        def deleted(mapper: Mapper[Any], connection: DatabaseConnection, target: Any) -> None:
            if self._rule_of(target) is rule:
                self._keep(target, rule.entry("delete", target))

        def loaded(target: Any, context: QueryContext) -> None:
            if self._rule_of(target) is rule:
                self._write([rule.entry("read", target)])

        def refreshed(target: Any, context: QueryContext, attributes: Iterable[str] | None) -> None:
            # An object at hand that a query finds again comes here, too, with all that it lacks, though that may not be
            # loaded now: relationships and deferred columns, as a rule.
            state = inspect(target)
            columns = state.mapper.column_attrs.keys()
            if attributes is None or any(name in attributes and name in state.dict for name in columns):
                loaded(target, context)

        self._listen(mapped, "after_insert", created, propagate=True)
        self._listen(mapped, "after_update", updated, propagate=True)
        self._listen(mapped, "after_delete", deleted, propagate=True)
        if reads:
            self._listen(mapped, "load", loaded, propagate=True)
            self._listen(mapped, "refresh", refreshed, propagate=True)

    def flush(self, durable: bool = False) -> None:
        """Has everything that was appended written without waiting for more; with `durable` it waits until it is
        durable. Raises what keeps it from that.
        """
        if durable:
            self._way.flush_durable()
        else:
            self._way.flush()

    def close(self) -> None:
        """Watches no more, flushes, and closes the producer that it made itself. What is not committed yet leaves no
        entry.

        Raises, once it is closed, what keeps it from flushing, and what was not acknowledged before a connection ended
        where no durable flush has told of that.
        """
        while self._listeners:
            event.remove(*self._listeners.pop())
        self._way.close()

    def _listen(self, target: Any, name: str, listener: Callable[..., None], **how: bool) -> None:
        event.listen(target, name, listener, **how)
        self._listeners.append((target, name, listener))

    def _rule_of(self, target: Any) -> _Rule:
        return next(self._rules[base] for base in type(target).__mro__ if base in self._rules)

    def _pending(self, session: Session) -> _Pending:
        pending: _Pending = session.info.setdefault(self, _Pending())
        return pending

    def _keep(self, target: Any, entry: dict[str, Any]) -> None:
        session = object_session(target)
        assert session is not None, "who is being flushed has a session"
        self._pending(session).entries.append(entry)

    def _began(self, session: Session, transaction: SessionTransaction) -> None:
        if transaction.nested:
            pending = self._pending(session)
            pending.savepoints[transaction] = len(pending.entries)

    def _committed(self, session: Session) -> None:
        if self not in session.info:
            return
        pending = self._pending(session)
        savepoint = session.get_nested_transaction()
        if savepoint is None:
            pending.is_committed = True
        else:
            # What it has done is its parent's now.
            pending.savepoints.pop(savepoint, None)

    def _ended(self, session: Session, transaction: SessionTransaction) -> None:
        if self not in session.info:
            return
        pending = self._pending(session)
        if transaction.nested:
            began = pending.savepoints.pop(transaction, None)
            if began is not None:
                del pending.entries[began:]
        elif transaction.parent is None:
            # The next transaction begins with none, whatever comes of writing these.
            del session.info[self]
            if pending.is_committed:
                self._write(pending.entries)

    def _write(self, entries: list[dict[str, Any]]) -> None:
        failure = None
        for entry in entries:
            try:
                self._way.append(entry)
            except Exception as error:
                self._way.count_lost()
                failure = failure or error
        if failure is not None and self._raises:
            raise failure
