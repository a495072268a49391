"""`context` and `bind`, through the handler."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading

from bulla_audit import Log, bind, context, unbind
from bulla_audit.handler import Handler
from common import Case


class Context(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = Log(self.path)
        self.addCleanup(self.log.close)
        self.logger = logging.Logger("orders")
        self.logger.addHandler(Handler(self.log))

    def found(self, *names: str) -> list[tuple[object, ...]]:
        self.log.close()
        return [tuple(entry.get(name) for name in names) for entry in self.entries()]

    def test_every_field_that_a_context_takes(self) -> None:
        fields = {
            "operation": "read",
            "location": "user_42/email",
            "subject": ["user_42"],
            "controller": "example.com",
            "processor": "mailer",
            "purpose": "support",
            "actor": "ada",
            "client": "192.0.2.7",
            "stream": "crm",
            "status": 200,
            "duration": 5,
            "size": 6,
            "flags": 7,
        }
        with context(**fields):
            self.logger.info("inside")
        self.logger.info("outside")
        self.log.close()
        inside, outside = self.entries()
        self.assertEqual({name: inside[name] for name in fields}, fields)
        self.assertEqual((outside["operation"], outside["location"]), ("info", "orders"))
        self.assertFalse(
            {"subject", "actor", "status"} & {name for name, value in outside.items() if value is not None}
        )

    def test_nested_contexts_add_and_what_is_nearer_counts(self) -> None:
        with context(actor="ada", purpose="support"):
            with context(actor="bob", client="192.0.2.7"):
                self.logger.info("1")
                self.logger.info("2", extra={"actor": "eve"})
                with context(actor=None):
                    self.logger.info("3", extra={"client": None})
            self.logger.info("4")
        self.logger.info("5")
        bob = ("bob", "support", "192.0.2.7")
        wanted = [bob, ("eve", *bob[1:]), bob, ("ada", "support", None), (None, None, None)]
        self.assertEqual(self.found("actor", "purpose", "client"), wanted)

    def test_subjects_that_can_be_read_once_are_those_of_every_entry(self) -> None:
        with context(subject=(name for name in ["a", "b"])):
            self.logger.info("1")
            self.logger.info("2")
        token = bind(subject=iter(["c"]))
        self.logger.info("3")
        self.logger.info("4")
        unbind(token)
        self.assertEqual(self.found("subject"), [(["a", "b"],)] * 2 + [(["c"],)] * 2)

    def test_a_context_ends_with_an_exception_and_can_be_used_again(self) -> None:
        of_ada = context(actor="ada")
        with self.assertRaises(ZeroDivisionError), of_ada:
            raise ZeroDivisionError
        self.logger.info("1")
        with of_ada, context(actor="bob"), of_ada:
            self.logger.info("2")
        self.logger.info("3")
        self.assertEqual(self.found("actor"), [(None,), ("ada",), (None,)])

    def test_what_is_bound_holds_until_it_is_taken_back(self) -> None:
        def act() -> None:
            outer = bind(actor="ada")
            inner = bind(purpose="support")
            self.logger.info("1")
            unbind(inner)
            self.logger.info("2")
            unbind(outer)
            self.logger.info("3")
            with self.assertRaises(RuntimeError):
                unbind(outer)
            with context(client="192.0.2.7"):
                bind(actor="bob")
                self.logger.info("4")
            self.logger.info("5")

        contextvars.Context().run(act)
        wanted = [("ada", "support"), ("ada", None), (None, None), ("bob", None), (None, None)]
        self.assertEqual(self.found("actor", "purpose"), wanted)

    def test_what_is_no_field_is_refused_at_once(self) -> None:
        for name in ["colour", "payload", "time", "extra"]:
            for kind in [context, bind]:
                with self.assertRaisesRegex(TypeError, name):
                    kind(**{name: "x"})

    def test_tasks_have_the_context_in_which_they_were_made(self) -> None:
        async def task(name: str, barrier: asyncio.Event) -> None:
            with context(actor=name):
                await barrier.wait()
                await asyncio.to_thread(self.logger.info, "in a thread")
                bind(actor=name + " later")
                self.logger.info("in the task")

        async def all_of_them() -> None:
            barrier = asyncio.Event()
            with context(purpose="support"):
                tasks = [asyncio.create_task(task(str(number), barrier)) for number in range(20)]
            await asyncio.sleep(0)
            barrier.set()
            await asyncio.gather(*tasks)
            self.logger.info("outside")

        asyncio.run(all_of_them())
        found = self.found("actor", "purpose")
        wanted = [(str(number), "support") for number in range(20)]
        wanted += [(f"{number} later", "support") for number in range(20)]
        self.assertEqual(sorted(found[:-1]), sorted(wanted))
        self.assertEqual(found[-1], (None, None))

    def test_threads_begin_with_none_and_take_one_along_where_it_is_copied(self) -> None:
        with context(actor="ada"):
            plain = threading.Thread(target=contextvars.Context().run, args=[self.logger.info, "plain"])
            copied = threading.Thread(target=contextvars.copy_context().run, args=[self.logger.info, "copied"])
        for thread in [plain, copied]:
            thread.start()
            thread.join()
        self.assertEqual(self.found("payload", "actor"), [("plain", None), ("copied", "ada")])
