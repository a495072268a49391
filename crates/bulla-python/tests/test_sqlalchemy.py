"""The events of SQLAlchemy's sessions, on SQLite."""

from __future__ import annotations

import json
import threading
from typing import Any

import bulla_audit
import sqlalchemy as sa
from bulla_audit import Log, context
from bulla_audit.sqlalchemy import Audit
from common import Case
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass


class Person(Base):
    __tablename__ = "people"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    email: orm.Mapped[str | None]
    kind: orm.Mapped[str] = orm.mapped_column(default="person")
    orders: orm.Mapped[list[Order]] = orm.relationship(back_populates="person", cascade="all, delete-orphan")
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}


class Employee(Person):
    __mapper_args__ = {"polymorphic_identity": "employee"}


class Order(Base):
    __tablename__ = "orders"
    person_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("people.id"), primary_key=True)
    number: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    what: orm.Mapped[str] = orm.mapped_column(default="book")
    person: orm.Mapped[Person] = orm.relationship(back_populates="orders")


class Unwatched(Base):
    __tablename__ = "unwatched"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)


class Events(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = Log(self.path)
        self.addCleanup(self.log.close)
        self.engine = sa.create_engine(f"sqlite:///{self.place / 'people.db'}", connect_args={"timeout": 100})
        self.addCleanup(self.engine.dispose)
        # The driver is to begin transactions where SQLAlchemy says so, for savepoints.
        sa.event.listen(self.engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        sa.event.listen(self.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        Base.metadata.create_all(self.engine)
        self.audit = self.watch()

    def watch(self, **settings: Any) -> Audit:
        audit = Audit(self.log, **settings)
        self.addCleanup(audit.close)
        audit.watch(Person, subject="name")
        audit.watch(Order, subject=lambda order: [order.person.name] if order.person else None)
        return audit

    def session(self, **settings: Any) -> orm.Session:
        return orm.Session(self.engine, **settings)

    def found(self, *names: str) -> list[tuple[Any, ...]]:
        """What the log has by now."""
        self.audit.flush(durable=True)
        self.log.flush()
        return [tuple(entry.get(name) for name in names) for entry in self.entries()]

    def changes(self) -> list[tuple[Any, ...]]:
        return self.found("operation", "location")

    def test_what_is_committed_has_entries(self) -> None:
        with self.session() as session, context(actor="bob", purpose="support"):
            ada = Person(name="ada", orders=[Order(number=7)])
            session.add_all([ada, Unwatched()])
            session.flush()
            self.assertEqual(self.changes(), [])
            session.commit()
            ada.email = "ada@example.com"
            ada.orders[0].what = "lamp"
            session.commit()
            # Nothing is changed.
            self.assertEqual(ada.email, "ada@example.com")
            ada.email = "ada@example.com"
            session.commit()
            session.delete(ada)
            session.commit()
        wanted = [("create", "people/1", ["ada"]), ("create", "orders/1,7", ["ada"])]
        wanted += [("update", "people/1", ["ada"]), ("update", "orders/1,7", ["ada"])]
        wanted += [("delete", "orders/1,7", ["ada"]), ("delete", "people/1", ["ada"])]
        found = self.found("operation", "location", "subject", "actor", "purpose", "payload")
        self.assertEqual(sorted(entry[:3] for entry in found), sorted(wanted))
        self.assertEqual({entry[3:5] for entry in found}, {("bob", "support")})
        changed = {entry[1]: json.loads(entry[5]) for entry in found if entry[0] == "update"}
        self.assertEqual(changed, {"people/1": {"changed": ["email"]}, "orders/1,7": {"changed": ["what"]}})

    def test_a_durable_flush_and_closing_tell_once_what_a_producer_lost_that_was_replaced(self) -> None:
        self.audit.close()
        for told in [lambda: audit.flush(durable=True), lambda: audit.close()]:
            audit = Audit(self.replaced())
            audit.watch(Person, subject="name")
            for name in ["lost", "after"]:
                with self.session() as session:
                    session.add(Person(name=name))
                    session.commit()
            with self.assertRaises(bulla_audit.Closed):
                told()
            audit.flush(durable=True)
            audit.close()

    def test_what_is_rolled_back_has_none(self) -> None:
        with self.session() as session:
            session.add(Person(name="ada"))
            session.flush()
            session.rollback()
            session.add(Person(name="bob"))
            session.flush()
        with self.assertRaises(ZeroDivisionError), self.session() as session, session.begin():
            session.add(Person(name="eve"))
            session.flush()
            raise ZeroDivisionError
        session = self.session()
        session.add(Person(name="dan"))
        session.flush()
        session.close()
        session.add(Person(name="kim"))
        session.commit()
        session.close()
        self.assertEqual(self.found("operation", "subject"), [("create", ["kim"])])

    def test_a_commit_or_flush_that_fails_has_none(self) -> None:
        with self.session() as session:
            session.add(Person(id=1, name="ada"))
            session.commit()
            session.expunge_all()
            session.add(Person(id=2, name="bob"))
            session.flush()
            session.add(Person(id=1, name="eve"))
            with self.assertRaises(sa.exc.IntegrityError):
                session.commit()
            session.rollback()

            def refuse(connection: Any) -> None:
                raise ZeroDivisionError

            session.add(Person(id=3, name="dan"))
            session.flush()
            sa.event.listen(self.engine, "commit", refuse)
            with self.assertRaises(ZeroDivisionError):
                session.commit()
            sa.event.remove(self.engine, "commit", refuse)
            session.rollback()
            session.add(Person(id=4, name="kim"))
            session.commit()
        self.assertEqual(self.found("operation", "subject"), [("create", ["ada"]), ("create", ["kim"])])

    def test_savepoints(self) -> None:
        with self.session() as session:
            session.add(Person(name="1 stays"))
            with session.begin_nested():
                session.add(Person(name="2 stays"))
                session.flush()
                inner = session.begin_nested()
                session.add(Person(name="3 goes"))
                session.flush()
                inner.rollback()
                session.add(Person(name="4 stays"))
            with self.assertRaises(ZeroDivisionError), session.begin_nested():
                session.add(Person(name="5 goes"))
                with session.begin_nested():
                    session.add(Person(name="6 goes, though released"))
                raise ZeroDivisionError
            outer = session.begin_nested()
            session.begin_nested()
            session.add(Person(name="7 goes with the outer one"))
            session.flush()
            outer.rollback()
            session.add(Person(id=1000, name="8 stays"))
            session.flush()
            session.expunge_all()
            failing = session.begin_nested()
            session.add(Person(name="9 goes"))
            session.flush()
            session.add(Person(id=1000, name="10 goes"))
            with self.assertRaises(sa.exc.IntegrityError):
                session.flush()
            failing.rollback()
            session.add(Person(name="11 stays"))
            session.commit()
            with session.begin_nested():
                session.add(Person(name="12 goes with its session"))
        stays = [f"{number} stays" for number in [1, 2, 4, 8, 11]]
        self.assertEqual([subject for (subject,) in self.found("subject")], [[name] for name in stays])
        with self.session() as session:
            # The database has the same.
            self.assertEqual(
                session.scalars(sa.select(Person.name).order_by(Person.id)).all(), stays[:3] + [stays[3], stays[4]]
            )

    def test_orphans_merges_and_other_ways_of_the_unit_of_work(self) -> None:
        with self.session() as session:
            ada = Person(name="ada", orders=[Order(number=1), Order(number=2)])
            session.add(ada)
            session.commit()
            ada.orders.pop()
            session.commit()
            session.merge(Person(id=ada.id, name="ada", email="new"))
            session.commit()
            # Of this only the list is another.
            ada.orders.append(Order(number=3))
            session.commit()
        changes = self.changes()[3:]
        self.assertEqual(changes, [("delete", "orders/1,2"), ("update", "people/1"), ("create", "orders/1,3")])

    def test_a_rule_for_a_class_goes_before_its_bases(self) -> None:
        self.audit.watch(
            Employee, subject=lambda employee: f"employee {employee.name}", location=lambda employee: "staff"
        )
        with self.session() as session:
            session.add(Employee(name="ada"))
            session.commit()
            session.add(Person(name="bob"))
            session.commit()
        wanted = [("create", "staff", ["employee ada"]), ("create", "people/2", ["bob"])]
        self.assertEqual(self.found("operation", "location", "subject"), wanted)
        with self.assertRaises(ValueError):
            self.audit.watch(Person)
        with self.assertRaises(sa.exc.NoInspectionAvailable):
            self.audit.watch(str)

    def test_reads_of_classes_that_are_marked(self) -> None:
        with self.session() as session:
            session.add_all([Person(name="ada", orders=[Order(number=1)]), Person(name="bob")])
            session.commit()
        self.audit.close()
        self.audit = Audit(self.log)
        self.addCleanup(self.audit.close)
        self.audit.watch(Person, subject="name", reads=True)
        self.audit.watch(Order, subject=lambda order: "nobody")
        before = len(self.changes())
        with self.session() as session, context(actor="eve"):
            people = session.scalars(sa.select(Person).order_by(Person.id)).all()
            self.assertEqual(len(people), 2)
            # They are at hand.
            session.scalars(sa.select(Person)).all()
            session.get(Person, 1)
            session.scalars(sa.select(Order)).all()
            session.refresh(people[1])
            session.execute(sa.select(Person.name)).all()
            session.rollback()
            # What was rolled back is loaded anew.
            self.assertEqual(people[0].name, "ada")
        wanted = [("read", ["ada"]), ("read", ["bob"]), ("read", ["bob"]), ("read", ["ada"])]
        found = self.found("operation", "subject", "actor")[before:]
        self.assertEqual(found, [(*entry, "eve") for entry in wanted])

    def test_statements_are_not_seen(self) -> None:
        with self.session() as session:
            session.execute(sa.insert(Person), [{"name": "ada"}, {"name": "bob"}])
            session.execute(sa.update(Person).values(email="x"))
            session.execute(sa.update(Person).where(Person.name == "ada").values(email="y"))
            session.bulk_save_objects([Person(name="eve")])
            session.bulk_insert_mappings(Person, [{"name": "dan"}])
            session.execute(sa.delete(Person).where(Person.name == "ada"))
            session.commit()
            self.assertEqual(session.scalar(sa.select(sa.func.count()).select_from(Person)), 3)
        self.assertEqual(self.changes(), [])

    def test_what_cannot_be_recorded_is_raised_behind_the_commit(self) -> None:
        with self.session() as session:
            session.add_all([Person(name="x" * 65_537), Person(name="bob")])
            with self.assertRaises(bulla_audit.Invalid):
                session.commit()
            # It can be used, and the database has both.
            self.assertEqual(session.scalar(sa.select(sa.func.count()).select_from(Person)), 2)
            session.add(Person(name="eve"))
            session.commit()
        self.assertEqual(self.audit.lost, 1)
        self.assertEqual(self.found("subject"), [(["bob"],), (["eve"],)])

    def test_what_cannot_be_recorded_can_pass(self) -> None:
        self.audit.close()
        self.audit = self.watch(unrecordable="pass")
        with self.session() as session:
            session.add_all([Person(name="x" * 65_537), Person(name="bob")])
            session.commit()
        self.assertEqual(self.audit.lost, 1)
        self.assertEqual(self.found("subject"), [(["bob"],)])

    def test_a_subject_that_is_no_text_cannot_be_recorded(self) -> None:
        self.audit.close()
        for settings in [{}, {"unrecordable": "pass"}]:
            audit = Audit(self.log, **settings)
            audit.watch(Person, subject="id", reads=True)
            with self.session() as session:
                session.add(Person(name="ada"))
                if settings:
                    session.commit()
                else:
                    with self.assertRaisesRegex(bulla_audit.Invalid, "^`subject` has to be"):
                        session.commit()
                    session.rollback()
                    with self.assertRaisesRegex(bulla_audit.Invalid, "^`subject` has to be"):
                        session.scalars(sa.select(Person)).all()
            self.assertEqual(audit.lost, 1 if settings else 2)
            audit.close()
        self.assertEqual(self.entries_after_close(), [])

    def test_a_deferred_column_is_read_where_it_is_loaded(self) -> None:
        class Letter(Base):
            __tablename__ = "letters"
            id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
            text: orm.Mapped[str] = orm.mapped_column(deferred=True)

        self.addCleanup(Base.metadata.remove, Letter.__table__)
        Base.metadata.create_all(self.engine)
        self.audit.watch(Letter, reads=True)
        with self.session() as session:
            session.execute(sa.insert(Letter), [{"text": "dear"}])
            session.commit()
            (letter,) = session.scalars(sa.select(Letter)).all()
            self.assertEqual(self.changes(), [("read", "letters/1")])
            # It is at hand, and lacks what was not loaded.
            session.scalars(sa.select(Letter)).all()
            session.scalars(sa.select(Letter)).all()
            self.assertEqual(self.changes(), [("read", "letters/1")])
            self.assertEqual(letter.text, "dear")
            self.assertEqual(self.changes(), [("read", "letters/1")] * 2)
            session.expire(letter, ["text"])
            session.scalars(sa.select(Letter).options(orm.undefer(Letter.text))).all()
            self.assertEqual(self.changes(), [("read", "letters/1")] * 3)

    def test_what_is_closed_watches_no_more(self) -> None:
        with self.session() as session:
            session.add(Person(name="ada"))
            session.flush()
            self.audit.close()
            session.commit()
            session.add(Person(name="bob"))
            session.commit()
        self.assertEqual(self.entries_after_close(), [])
        with self.assertRaisesRegex(ValueError, "unrecordable"):
            Audit(self.log, unrecordable="refuse")

    def entries_after_close(self) -> list[dict[str, Any]]:
        self.log.close()
        return self.entries()

    def test_sessions_in_threads(self) -> None:
        def act(thread: int) -> None:
            for number in range(5):
                with self.session() as session, context(actor=str(thread)):
                    session.add(Person(name=f"{thread} {number}"))
                    if number % 2:
                        session.commit()

        threads = [threading.Thread(target=act, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wanted = sorted((str(thread), [f"{thread} {number}"]) for thread in range(4) for number in [1, 3])
        self.assertEqual(sorted(self.found("actor", "subject")), wanted)
