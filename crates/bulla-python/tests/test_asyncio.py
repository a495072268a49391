"""`await receipt.durable()`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from typing import Any

import bulla_audit
from bulla_audit import Log
from common import Case


class Durable(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = Log(self.path)
        self.addCleanup(self.log.close)

    def run_on(self, log: Any) -> None:
        async def one(producer: bulla_audit.Producer, number: int) -> None:
            producer.append("read", flags=number)
            self.assertIsNone(await producer.flush().durable())

        async def many() -> None:
            with log.producer() as producer:
                await asyncio.gather(*[one(producer, number) for number in range(1000)])

        asyncio.run(many())

    def test_many_at_once(self) -> None:
        self.run_on(self.log)
        self.log.close()
        self.assertEqual([entry["flags"] for entry in self.entries()], list(range(1000)))

    def test_many_at_once_through_a_connection(self) -> None:
        self.log.listen(self.place / "audit.sock")
        with bulla_audit.connect(self.place / "audit.sock") as connection:
            self.run_on(connection)
        self.log.close()
        self.assertEqual(len(self.entries()), 1000)

    def test_others_go_on_meanwhile(self) -> None:
        async def act() -> None:
            with self.log.producer() as producer:
                producer.append("read")
                receipt = producer.flush()
                waiting = asyncio.ensure_future(receipt.durable())
                turns = 0
                while not waiting.done():
                    await asyncio.sleep(0)
                    turns += 1
                self.assertGreater(turns, 0)
                # It is known already.
                await receipt.durable()
                await asyncio.gather(receipt.durable(), receipt.durable())

        asyncio.run(act())

    def test_it_belongs_to_a_loop_that_runs(self) -> None:
        with self.log.producer() as producer, self.assertRaises(RuntimeError):
            producer.flush().durable()

    def test_cancelling_ends_the_wait_alone(self) -> None:
        async def act() -> None:
            complaints = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
            with self.log.producer() as producer:
                for number in range(100):
                    producer.append("read", flags=number)
                    waiting = asyncio.ensure_future(producer.flush().durable())
                    if number % 2:
                        await asyncio.sleep(0)
                    # On a machine that is busy elsewhere it may be known by then.
                    if not waiting.cancel():
                        await waiting
                        continue
                    with self.assertRaises(asyncio.CancelledError):
                        await waiting
                with self.assertRaises(asyncio.TimeoutError):
                    producer.append("read", flags=100)
                    await asyncio.wait_for(producer.flush().durable(), 0)
                producer.append("read", flags=101)
                await producer.flush().durable()
            await asyncio.sleep(0)
            self.assertEqual(complaints, [])

        asyncio.run(act())
        self.log.close()
        self.assertEqual(len(self.entries()), 102)

    def test_a_loop_that_is_closed_meanwhile_does_no_harm(self) -> None:
        complaints = []
        self.addCleanup(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = complaints.append
        with self.log.producer() as producer:
            for number in range(50):
                loop = asyncio.new_event_loop()

                async def leave() -> None:
                    producer.append("read", flags=number)
                    # Nobody waits for it.
                    producer.flush().durable()

                loop.run_until_complete(leave())
                loop.close()
            producer.append("read", flags=50)
            self.assertTrue(producer.flush().wait())
        gc.collect()
        self.assertEqual(complaints, [])
        self.log.close()
        self.assertEqual(len(self.entries()), 51)

    def test_what_keeps_entries_from_being_durable_is_raised(self) -> None:
        self.log.listen(self.place / "audit.sock")
        connection = bulla_audit.connect(self.place / "audit.sock")
        producer = connection.producer()

        async def act() -> None:
            while True:
                producer.append("read")
                await producer.flush().durable()

        async def both() -> None:
            acting = asyncio.create_task(act())
            await asyncio.sleep(0)
            await asyncio.to_thread(self.log.close)
            await acting

        with self.assertRaises(bulla_audit.Closed):
            asyncio.run(both())
        with contextlib.suppress(bulla_audit.Closed):
            connection.close()
