"""`context` and `bind`, through the handler."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from bulla_audit import Log, bind, context, unbind
from bulla_audit._context import current
from bulla_audit.handler import Handler
from common import PATIENCE, Case


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

    def test_threads_that_share_one_leave_it_in_any_order(self) -> None:
        of_ada = context(actor="ada")
        entered = threading.Barrier(2)
        left = threading.Event()

        def act(name: str, leaves_first: bool) -> str:
            with of_ada, context(client=name), of_ada:
                entered.wait(PATIENCE)
                if not leaves_first:
                    self.assertTrue(left.wait(PATIENCE))
                self.logger.info("%s inside", name)
            self.logger.info("%s outside", name)
            left.set()
            return threading.current_thread().name

        def later(name: str) -> str:
            entered.wait(PATIENCE)
            self.logger.info("%s later", name)
            return threading.current_thread().name

        # Of threads that enter one after the other, the first to enter leaves first, and then the last one does.
        for order in [(True, False), (False, True)]:
            left.clear()
            with ThreadPoolExecutor(2) as pool:
                both = [pool.submit(act, name, first) for name, first in zip("12", order)]
                threads = {one.result(PATIENCE) for one in both}
                self.assertEqual({one.result(PATIENCE) for one in [pool.submit(later, name) for name in "12"]}, threads)
        self.assertEqual(current(), {})
        wanted = [(f"{name} inside", "ada", name) for name in "12"]
        wanted += [(f"{name} {when}", None, None) for name in "12" for when in ["outside", "later"]]
        found = self.found("payload", "actor", "client")
        self.assertEqual(sorted(found, key=str), sorted(wanted * 2, key=str))

    def test_tasks_that_share_one_leave_it_in_any_order(self) -> None:
        of_ada = context(actor="ada")

        async def act(name: str, entered: asyncio.Event, go_on: asyncio.Event, left: asyncio.Event) -> None:
            try:
                with of_ada:
                    entered.set()
                    await go_on.wait()
                    self.logger.info("%s inside", name)
                self.logger.info("%s outside", name)
            finally:
                left.set()

        async def all_of_them() -> None:
            for order in [(0, 1, 2), (2, 1, 0), (1, 0, 2)]:
                events = [tuple(asyncio.Event() for _ in range(3)) for _ in order]
                tasks = []
                # The last one is made within a block of the same object, which ends before it does.
                for name, (entered, go_on, left) in enumerate(events):
                    with of_ada if name == 2 else nullcontext():
                        tasks.append(asyncio.create_task(act(str(name), entered, go_on, left)))
                    await entered.wait()
                for name in order:
                    events[name][1].set()
                    await events[name][2].wait()
                await asyncio.gather(*tasks)
                self.assertEqual(current(), {})

        asyncio.run(all_of_them())
        wanted = [("0 inside", "ada"), ("0 outside", None), ("1 inside", "ada"), ("1 outside", None)]
        wanted += [("2 inside", "ada"), ("2 outside", "ada")]
        self.assertEqual(sorted(self.found("payload", "actor")), sorted(wanted * 3))

    def test_a_block_that_ends_where_it_did_not_begin_is_told_and_leaves_nothing_behind_there(self) -> None:
        of_ada = context(actor="ada")

        def steps() -> Iterator[None]:
            with of_ada:
                yield

        def elsewhere() -> None:
            with context(actor="bob"), self.assertRaises(RuntimeError):
                next(begun, None)
            self.assertEqual(current(), {})

        begun = steps()
        contextvars.Context().run(next, begun)
        contextvars.Context().run(elsewhere)

        def in_a_copy() -> None:
            begun = steps()
            next(begun)
            with self.assertRaises(RuntimeError):
                contextvars.copy_context().run(next, begun, None)
            self.assertEqual(current(), {"actor": "ada"})

        contextvars.Context().run(in_a_copy)

        def out_of_order() -> None:
            outer, inner = steps(), context(actor="bob")
            next(outer)
            with self.assertRaises(RuntimeError), inner:
                next(outer, None)
                self.assertEqual(current(), {})
            self.assertEqual(current(), {})

        contextvars.Context().run(out_of_order)

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
