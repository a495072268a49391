"""Opening, appending, reading, proving, checking, verifying and erasing."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import inspect
import io
import pickle
import shutil
import signal
import threading
import time
import unittest.mock
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import bulla_audit
from bulla_audit import Log, Reader
from common import PATIENCE, Case

ALL = {
    "operation": "update",
    "location": "user_42/email",
    "subject": ["user_42", "user_43"],
    "controller": "example.com",
    "processor": "mailer",
    "purpose": "sending an invoice",
    "actor": "ada",
    "client": "192.0.2.7",
    "stream": "crm",
    "status": 4_294_967_295,
    "duration": 18_446_744_073_709_551_615,
    "size": 18_446_744_073_709_551_615,
    "flags": 4_294_967_295,
    "payload": '{"ticket":4711}',
    "time": 1_793_710_805_250_000_001,
}


class Names(Case):
    def test_all_that_is_exported_is_there_and_documented(self) -> None:
        for name in bulla_audit.__all__:
            thing = getattr(bulla_audit, name)
            if name != "__version__":
                self.assertTrue(thing.__doc__, name)
        self.assertRegex(bulla_audit.__version__, r"^\d+\.\d+\.\d+")

    def test_whatever_a_user_calls_or_reads_is_documented(self) -> None:
        modules = ["", ".asgi", ".django", ".gunicorn", ".handler", ".sqlalchemy", ".structlog"]
        seen = set()
        for module in [importlib.import_module(f"bulla_audit{name}") for name in modules]:
            self.assertTrue(inspect.getdoc(module), module)
            for name in set(module.__all__) - {"__version__"}:
                thing = getattr(module, name)
                self.assertTrue(thing.__doc__, name)
                for member in vars(thing) if inspect.isclass(thing) else []:
                    kind = inspect.getattr_static(thing, member)
                    is_told = callable(kind) or inspect.isdatadescriptor(kind)
                    if is_told and not member.startswith("_"):
                        seen.add(f"{name}.{member}")
                        self.assertTrue(inspect.getdoc(kind), f"{name}.{member}")
        self.assertLessEqual({"Log.close", "Producer.append", "Report.ok", "Receipt.notify", "Handler.lost"}, seen)

    def test_errors_are_of_the_kinds_that_python_has(self) -> None:
        kinds = {"Invalid": ValueError, "Timeout": TimeoutError, "Unavailable": OSError}
        names = ["Invalid", "Timeout", "Closed", "Locked", "Unavailable", "Tampered", "Erased", "NoKey", "Refused"]
        for name in names:
            kind = getattr(bulla_audit, name)
            self.assertTrue(issubclass(kind, bulla_audit.Error), name)
            self.assertTrue(issubclass(kind, kinds.get(name, Exception)), name)
        self.assertTrue(issubclass(bulla_audit.QueryWarning, UserWarning))


class Appending(Case):
    def test_every_field_comes_back_as_it_went_in(self) -> None:
        with Log(self.path) as log, log.producer() as producer:
            producer.append(**ALL)
            producer.append("read")
            producer.append("read", b"\xff\x00", subject=[], payload=b"\xfe", status=0, duration=0, size=0, flags=0)
            producer.append("read", "", subject="", controller="", actor="", payload="", purpose="", stream="")
            producer.append("read", subject=(name for name in ["a", "b"]))
        first, bare, bytes_and_zeros, empty, generated = self.entries()
        self.assertEqual({name: first[name] for name in ALL}, ALL)
        self.assertEqual(first["entry"], 0)
        # What every entry has, and nothing else.
        self.assertEqual(
            {name for name, value in bare.items() if value is not None},
            {"entry", "operation", "time", "stream"} & set(bare),
        )
        self.assertEqual(bytes_and_zeros["location"], b"\xff\x00")
        self.assertEqual(bytes_and_zeros["payload"], b"\xfe")
        self.assertEqual(bytes_and_zeros["subject"], [])
        self.assertEqual([bytes_and_zeros[name] for name in ["status", "duration", "size", "flags"]], [0] * 4)
        self.assertEqual(empty["subject"], [""])
        self.assertEqual([empty[name] for name in ["location", "controller", "actor", "payload", "purpose"]], [""] * 5)
        self.assertEqual(generated["subject"], ["a", "b"])

    def test_times_are_nanoseconds_or_datetimes_with_a_zone(self) -> None:
        zone = timezone(timedelta(hours=1))
        before = time.time_ns()
        with Log(self.path) as log, log.producer() as producer:
            producer.append("read", time=-1)
            producer.append("read", time=datetime(2026, 11, 3, 14, 0, 5, 250_001, tzinfo=zone))
            producer.append("read")
            with self.assertRaisesRegex(bulla_audit.Error, "time"):
                producer.append("read", time=datetime(2026, 11, 3, 14, 0, 5))
            with self.assertRaisesRegex(bulla_audit.Error, "time"):
                producer.append("read", time=datetime(9000, 1, 1, tzinfo=timezone.utc))
        past, given, now = [entry["time"] for entry in self.entries()]
        self.assertEqual(past, -1)
        self.assertEqual(given, 1_793_710_805_250_001_000)
        self.assertTrue(before <= now <= time.time_ns())

    def test_wrong_fields_are_refused_by_name_and_never_by_value(self) -> None:
        wrong = {
            "operation": [5, "", None],
            "location": [5],
            "subject": [5, [5], b"user_42", ["x"] * 65],
            "controller": [5, "secret" * 20_000],
            "actor": [b"secret", "\ud800secret"],
            "payload": [5, {"secret": 1}],
            "status": ["secret", -1, 1 << 32, 0.5],
            "duration": ["secret", -1, 1 << 64],
            "size": [-1, 1 << 64],
            "flags": [-1, 1 << 32],
            "time": ["secret", 1 << 63],
        }
        with Log(self.path) as log, log.producer() as producer:
            for name, values in wrong.items():
                for value in values:
                    with self.subTest(field=name, kind=type(value).__name__):
                        with self.assertRaises(bulla_audit.Invalid) as caught:
                            producer.append(**{"operation": "read", name: value})
                        self.assertIn(name, str(caught.exception))
                        self.assertNotIn("secret", str(caught.exception))
            for name in ["operation", "location", "subject", "actor", "payload"]:
                with self.assertRaisesRegex(bulla_audit.Invalid, f"^`{name}` has surrogates"):
                    producer.append(**{"operation": "read", name: "secret\udc80"})
            with self.assertRaisesRegex(bulla_audit.Invalid, "^`location` has surrogates.* as bytes"):
                producer.append("read", "secret\udc80")
            with self.assertRaisesRegex(bulla_audit.Invalid, "^`subject` has surrogates"):
                producer.append("read", subject=["ada", "secret\udc80"])
            with self.assertRaisesRegex(TypeError, "colour"):
                producer.append("read", colour="red")
            producer.append("read")
        self.assertEqual(len(self.entries()), 1)

    def test_a_subject_that_appends_while_it_is_read_does_not_hang(self) -> None:
        with Log(self.path) as log, log.producer() as producer:

            def subjects() -> object:
                producer.append("inner")
                yield "user_42"

            producer.append("outer", subject=subjects())
        self.assertEqual([entry["operation"] for entry in self.entries()], ["inner", "outer"])

    def test_threads_share_a_producer(self) -> None:
        with Log(self.path) as log, log.producer() as producer:

            def append(thread: int) -> None:
                for number in range(500):
                    producer.append("read", actor=str(thread), flags=number)

            threads = [threading.Thread(target=append, args=[number]) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = self.entries()
        for number in range(8):
            self.assertEqual([entry["flags"] for entry in found if entry["actor"] == str(number)], list(range(500)))
        self.assertEqual(len(found), 4000)

    def test_receipts_tell_when_entries_are_durable(self) -> None:
        told = []
        ready = threading.Event()

        def hear(error: bulla_audit.Error | None) -> None:
            told.append(error)
            ready.set()

        with Log(self.path) as log, log.producer() as producer:
            producer.append("read")
            receipt = producer.flush()
            self.assertIs(receipt.wait(), True)
            self.assertIs(receipt.wait(0), True)
            receipt.checkpointed()
            # Below the checkpoint a reader finds it while the log is open.
            self.assertEqual(len(self.entries()), 1)
            with self.assertRaisesRegex(bulla_audit.Invalid, "`told` has to be callable"):
                receipt.notify(None)
            receipt.notify(hear)
            self.assertTrue(ready.wait(60))
            self.assertEqual(told, [None])
            log.flush()
            self.assertEqual(log.telemetry()["entries"], 1)

    def test_readers_find_what_a_checkpoint_covers(self) -> None:
        with Log(self.path, checkpoint_interval="1 h") as log, log.producer() as producer:
            producer.append("read")
            receipt = producer.flush()
            receipt.wait()
            self.assertEqual(len(self.entries()), 0)
            receipt.checkpointed()
            self.assertEqual(len(self.entries()), 1)
            producer.append("read")
            log.flush()
            self.assertEqual(len(self.entries()), 2)
            producer.append("read")
        self.assertEqual(len(self.entries()), 3)

    def test_what_is_closed_says_so(self) -> None:
        log = Log(self.path)
        producer = log.producer()
        left = log.producer()
        producer.append("read")
        left.append("read")
        self.assertFalse(log.closed)
        self.assertFalse(producer.closed)
        producer.close()
        self.assertTrue(producer.closed)
        with self.assertRaises(bulla_audit.Closed):
            producer.append("read")
        log.close()
        self.assertTrue(log.closed)
        self.assertTrue(left.closed)
        for call in [
            log.producer,
            log.flush,
            left.flush,
            lambda: left.append("read"),
            lambda: left.append_batch([{"operation": "read"}]),
        ]:
            with self.assertRaises(bulla_audit.Closed):
                call()
        # Who closes what is closed has what was wanted.
        producer.close()
        left.close()
        log.close()
        self.assertEqual(len(self.entries()), 2)

    def test_a_log_is_open_once(self) -> None:
        self.open()
        with self.assertRaisesRegex(bulla_audit.Locked, "connect"):
            Log(self.path)

    def test_settings_and_paths_are_checked(self) -> None:
        for name, wrong in {"memory": "no size", "retries": 1 << 40, "linger": -5, "durability": "maybe"}.items():
            with self.assertRaisesRegex(bulla_audit.Invalid, f"^setting `{name}`: "):
                Log(self.path, **{"checkpoint_interval": "1 s", name: wrong})
        with self.assertRaises(bulla_audit.Invalid):
            Log(self.path, colour="red")
        with self.assertRaises(bulla_audit.Unavailable):
            Log(self.place / "nowhere")
        with Log(self.path, memory="64 MiB", linger="5 ms") as log:
            self.assertEqual(log.origin, "example.com/test")
        for wrong in [[5], 0.5, {}, None]:
            with self.assertRaisesRegex(TypeError, "vault_replicas"):
                Log(self.path, vault_replicas=wrong)
        replicas = [self.place / "second", self.place / "third"]
        for replica in replicas:
            replica.mkdir()
        with Log(self.path, vault_replicas=[replicas[0], str(replicas[1])]):
            self.assertTrue(all(any(replica.iterdir()) for replica in replicas))
        # It would count for this process alone, and nobody else would find what it wrote there.
        with self.assertRaisesRegex(bulla_audit.Invalid, "bulla config"):
            Log(self.path, backup_paths=[self.place / "another"])
        with self.assertRaises(bulla_audit.Refused):
            bulla_audit.create(self.path)

    def test_keys_are_not_made_in_the_log_nor_the_log_among_its_keys(self) -> None:
        for log, keys in [("a", "a/keys"), ("a", "a"), ("a/log", "a")]:
            with self.assertRaisesRegex(bulla_audit.Invalid, "who can reach the log must not reach its keys$"):
                bulla_audit.create(self.place / log, keys=self.place / keys)
            self.assertFalse((self.place / "a").exists(), (log, keys))

    def test_nothing_is_pickled_or_copied(self) -> None:
        log = self.open()
        log.listen(self.place / "audit.sock")
        producer = log.producer()
        connection = bulla_audit.connect(self.place / "audit.sock")
        self.addCleanup(connection.close)
        reader = Reader(self.path)
        for thing in [log, producer, connection, producer.flush(), connection.producer(), reader, reader.query()]:
            for attempt in [pickle.dumps, copy.copy, copy.deepcopy]:
                with self.subTest(thing=type(thing).__name__, attempt=attempt.__name__):
                    with self.assertRaisesRegex(TypeError, "connect"):
                        attempt(thing)

    def test_a_log_that_takes_nothing_is_a_timeout_and_loses_nothing(self) -> None:
        listener = self.listen()
        connection = bulla_audit.connect(self.place / "audit.sock", append_timeout=0.2)
        self.addCleanup(connection.close)
        producer = connection.producer()
        listener.send_signal(signal.SIGSTOP)
        staged = 0
        with self.assertRaises(bulla_audit.Timeout):
            while True:
                producer.append("read", payload="x" * 60_000, flags=staged)
                staged += 1
        listener.send_signal(signal.SIGCONT)
        while True:
            try:
                producer.flush().wait()
                break
            except bulla_audit.Timeout:
                pass
        listener.communicate(timeout=PATIENCE)
        self.assertEqual([entry["flags"] for entry in self.entries()], list(range(staged)))

    def test_what_is_shown_of_things_says_how_they_stand(self) -> None:
        log = self.open()
        producer = log.producer()
        self.assertRegex(repr(producer), "^<bulla_audit.Producer: open, log .*audit>$")
        producer.append("secret", "secret", subject="secret", actor="secret", payload="secret")
        receipt = producer.flush()
        self.assertRegex(repr(receipt), "^<bulla_audit.Receipt: (not )?durable( yet)?>$")
        receipt.wait()
        self.assertEqual(repr(receipt), "<bulla_audit.Receipt: durable>")
        producer.close()
        self.assertRegex(repr(producer), "^<bulla_audit.Producer: closed, log .*audit>$")
        log.close()
        checked = bulla_audit.check(Reader(self.path, key=self.key).prove(), key=self.key)
        self.assertRegex(repr(checked), r"^<bulla_audit.Checked: anchored, entries=1, withheld=0, tree_size=\d+>$")
        report = bulla_audit.verify(self.path)
        self.assertRegex(repr(report), r"^<bulla_audit.Report: ok, not anchored, entries=1, tree_size=\d+, f")
        erasure = bulla_audit.erase(self.path, ["secret", "secret too"])
        self.assertRegex(repr(erasure), r"^<bulla_audit.Erasure: erased=1, unknown=1, frame=\d+>$")
        (self.path / "checkpoint").write_bytes(b"")
        report = bulla_audit.verify(self.path)
        self.assertRegex(repr(report), "^<bulla_audit.Report: not ok")
        self.assertRegex(repr(report.findings), "<bulla_audit.Finding: violation: ")
        for thing in [producer, receipt, checked, report, report.findings, erasure]:
            self.assertNotIn("secret", repr(thing))

    def test_what_is_made_natively_cannot_be_made_otherwise(self) -> None:
        for kind in [bulla_audit.Producer, bulla_audit.Connection, bulla_audit.Receipt, bulla_audit.Entries]:
            with self.assertRaises(TypeError):
                kind()


class Telling(Case):
    """Who is told of a receipt is told by a thread that the log waits for."""

    def reopened(self) -> list[int]:
        """The entries of a log that is closed, or is going to be."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                Log(self.path).close()
                return [entry["flags"] for entry in self.entries()]
            except bulla_audit.Locked:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)

    def append(self, log: Log) -> bulla_audit.Producer:
        producer = log.producer()
        for number in range(100):
            producer.append("read", flags=number)
        return producer

    def check(self, act: Callable[[Log, Callable[..., None]], None]) -> list[str]:
        """What is raised where nobody can catch it, while `act` has an end of the log told by its own thread."""
        raised: list[str] = []
        told = threading.Event()
        with unittest.mock.patch("sys.unraisablehook", lambda error: raised.append(repr(error.exc_value))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                act(Log(self.path, linger="1 h"), lambda *_: told.set())
                self.assertTrue(told.wait(PATIENCE))
                self.assertEqual(self.reopened(), list(range(100)))
        return raised

    def test_closing_is_refused_and_done(self) -> None:
        caught: list[Exception] = []

        def act(log: Log, done: Callable[..., None]) -> None:
            def told(_: object) -> None:
                try:
                    log.close()
                except Exception as error:
                    caught.append(error)
                done()

            self.append(log).flush().notify(told)

        self.assertEqual(self.check(act), [])
        self.assertEqual([type(error) for error in caught], [bulla_audit.Invalid])

    def test_letting_go_of_the_last_reference(self) -> None:
        def act(log: Log, done: Callable[..., None]) -> None:
            kept: list[object] = [log, self.append(log)]
            receipt = kept[1].flush()

            def told(_: object) -> None:
                kept.clear()
                done()

            receipt.notify(told)

        self.assertEqual(self.check(act), [])

    def test_collecting_a_cycle(self) -> None:
        gc.disable()
        self.addCleanup(gc.enable)

        def act(log: Log, done: Callable[..., None]) -> None:
            cycle: list[object] = [log, self.append(log)]
            cycle.append(cycle)
            receipt = cycle[1].flush()
            go_on, told_by = threading.Event(), list[threading.Thread]()

            def told(_: object) -> None:
                told_by.append(threading.current_thread())
                if threading.current_thread() is not appending:
                    go_on.wait(PATIENCE)
                    gc.collect()
                done()

            appending = threading.current_thread()
            receipt.notify(told)
            # What was durable before was told at once, by this thread, which had the cycle yet.
            was_told = appending in told_by
            del cycle, log, receipt
            go_on.set()
            if was_told:
                gc.collect()

        self.assertEqual(self.check(act), [])

    def test_closing_while_others_wait_in_the_log(self) -> None:
        def act(log: Log, done: Callable[..., None]) -> None:
            def told(_: object) -> None:
                for call in [log.telemetry, log.close]:
                    with contextlib.suppress(bulla_audit.Error):
                        call()
                done()

            def wait() -> None:
                with contextlib.suppress(bulla_audit.Closed):
                    log.flush()

            producer = self.append(log)
            waiting = [threading.Thread(target=wait) for _ in range(4)]
            for thread in waiting:
                thread.start()
            producer.flush().notify(told)
            for thread in waiting:
                thread.join()

        self.assertEqual(self.check(act), [])

    def test_what_is_being_closed_at_the_exit_is_waited_for(self) -> None:
        self.run_program("""
            import threading
            from bulla_audit import Invalid, Log
            log = Log("audit", linger="1 h")
            producer, other = log.producer(), log.producer()
            for number in range(100):
                other.append("read", flags=number)
            producer.append("read", flags=100)
            told = threading.Event()
            def close(_):
                try:
                    log.close()
                except Invalid:
                    told.set()
            producer.flush().notify(close)
            assert told.wait(100)
            """)
        self.assertEqual(sorted(entry["flags"] for entry in self.entries()), list(range(101)))


class Connecting(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.open()
        self.socket = self.place / "audit.sock"
        self.log.listen(self.socket)

    def test_what_a_connection_appends_is_in_the_log(self) -> None:
        with bulla_audit.connect(self.socket) as connection, connection.producer() as producer:
            self.assertEqual(connection.origin, "example.com/test")
            producer.append(**ALL)
            self.assertEqual(producer.append_batch([{"operation": "read"}] * 1000), 1000)
            receipt = producer.flush()
            self.assertTrue(receipt.wait())
            with self.assertRaises(bulla_audit.Invalid):
                receipt.checkpointed()
        self.assertTrue(connection.closed)
        with self.assertRaises(bulla_audit.Closed):
            connection.producer()
        self.log.close()
        found = self.entries()
        self.assertEqual(len(found), 1001)
        self.assertEqual({name: found[0][name] for name in ALL}, ALL)

    def test_flushing_what_was_closed_is_refused(self) -> None:
        connection = bulla_audit.connect(self.socket)
        producer = connection.producer()
        producer.append("read")
        connection.close()
        with self.assertRaises(bulla_audit.Closed):
            producer.flush()
        self.log.close()
        self.assertEqual(len(self.entries()), 1)

    def test_a_connection_that_the_other_side_ends_says_so(self) -> None:
        connection = bulla_audit.connect(self.socket)
        producer = connection.producer()
        producer.append("read")
        producer.flush().wait()
        self.log.close()
        with self.assertRaisesRegex(bulla_audit.Closed, "connect again"):
            while True:
                producer.append("read")
                producer.flush().wait()
        # It was not this process that closed it.
        self.assertFalse(producer.closed)
        with contextlib.suppress(bulla_audit.Closed):
            connection.close()

    def test_actors_can_be_who_the_kernel_says(self) -> None:
        other = self.place / "peer.sock"
        self.log.close()
        self.log = self.open()
        self.log.listen(other, actor_from_peer=True, mode=0o660, clients=2, datagrams=self.place / "audit.datagrams")
        self.assertEqual(other.stat().st_mode & 0o777, 0o660)
        with bulla_audit.connect(other) as connection, connection.producer() as producer:
            producer.append("read", actor="somebody else")
            producer.flush().wait()
        self.log.close()
        (entry,) = self.entries()
        self.assertRegex(entry["actor"], r"^uid:\d+$")

    def test_a_connection_that_is_let_go_of_with_its_producers_sends_what_they_have(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            producer = bulla_audit.connect(self.socket).producer()
            producer.append("read")
            del producer
            gc.collect()
        self.assertEqual([str(each.message) for each in caught], [])
        self.log.close()
        self.assertEqual(len(self.entries()), 1)

    def test_a_log_that_is_let_go_of_is_warned_of(self) -> None:
        self.log.close()
        with self.assertWarnsRegex(ResourceWarning, "^unclosed log "):
            Log(self.path)
            gc.collect()

    def test_each_producer_of_a_connection_is_a_client(self) -> None:
        self.log.close()
        self.log = self.open()
        self.log.listen(self.socket, clients=2)
        with bulla_audit.connect(self.socket) as connection:
            producers = [connection.producer(), connection.producer()]
            with self.assertRaises(bulla_audit.Unavailable):
                connection.producer()
            del producers

    def test_nobody_listens(self) -> None:
        with self.assertRaises(bulla_audit.Unavailable):
            bulla_audit.connect(self.place / "nowhere.sock")


class Reading(Case):
    def setUp(self) -> None:
        super().setUp()
        with Log(self.path) as log, log.producer() as producer:
            for number in range(1000):
                producer.append(
                    "read" if number % 2 else "update",
                    f"user_{number % 10}/email",
                    subject=f"user_{number % 10}",
                    actor="ada" if number < 500 else "bob",
                    status=200 + number % 3,
                    time=number * 1_000_000_000,
                )

    def count(self, **query: object) -> int:
        return len(self.entries(**query))

    def test_queries_find_what_is_asked_for(self) -> None:
        self.assertEqual(self.count(), 1000)
        self.assertEqual(self.count(subject="user_4"), 100)
        self.assertEqual(self.count(subject=["user_4", "user_5"]), 200)
        self.assertEqual(self.count(operation="read", actor="ada"), 250)
        self.assertEqual(self.count(status=200), 334)
        self.assertEqual(self.count(status=range(201, 203)), 666)
        self.assertEqual(self.count(status=[200, range(202, 203)]), 667)
        self.assertEqual(self.count(location="user_4/email"), 100)
        self.assertEqual(self.count(location=b"user_4/email"), 100)
        self.assertEqual(self.count(prefix={"location": "user_4/"}), 100)
        self.assertEqual(self.count(prefix={"location": ["user_4/", b"user_5/"]}), 200)
        self.assertEqual(self.count(entries=range(10, 20)), 10)
        self.assertEqual(self.count(start=10_000_000_000, end=20_000_000_000), 10)
        zero = datetime.fromtimestamp(0, timezone.utc)
        self.assertEqual(self.count(start=zero + timedelta(seconds=10), end=zero + timedelta(seconds=20)), 10)

    def test_a_query_can_be_read_more_than_once_and_given_up(self) -> None:
        query = Reader(self.path, key=self.key).query(actor="ada")
        self.assertEqual(len(list(query)), 500)
        self.assertEqual(len(list(query)), 500)
        iterator = iter(query)
        self.assertEqual(next(iterator)["entry"], 0)
        del iterator
        self.assertEqual(len(list(query)), 500)

    def test_who_is_not_found_is_warned_of(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(self.count(subject="user_44"), 0)
        self.assertTrue(any(issubclass(each.category, bulla_audit.QueryWarning) for each in caught), caught)

    def test_wrong_queries_are_refused(self) -> None:
        for wrong in [
            {"colour": "red"},
            {"status": "200"},
            {"prefix": {"status": "2"}},
            {"prefix": {"colour": "r"}},
            {"subject": 5},
            {"subject": "\udc80"},
            {"size": range(0, 2**64 + 1)},
            {"size": range(-1, 5)},
            {"size": range(0, 2**64, 2)},
            {"size": range(5, 5)},
            {"size": range(0)},
        ]:
            with self.subTest(wrong=wrong), self.assertRaises(bulla_audit.Invalid):
                self.entries(**wrong)

    def test_wrong_arguments_are_refused_by_their_names(self) -> None:
        proof = Reader(self.path).prove(subject="user_4")
        no_text, another = "\udcff", self.place / "another"
        text, several = [no_text, 5, b"x"], [5, b"x", no_text, [no_text], [5]]
        calls: list[tuple[str, list[Any], Any]] = [
            ("origin", text, lambda wrong: bulla_audit.create(another, origin=wrong)),
            ("recipients", several, lambda wrong: bulla_audit.create(another, recipients=wrong)),
            ("subjects", several, lambda wrong: bulla_audit.erase(self.path, wrong)),
            ("reason", text, lambda wrong: bulla_audit.erase(self.path, "user_4", reason=wrong)),
            ("key", text, lambda wrong: bulla_audit.check(proof, key=wrong)),
            ("policy", text, lambda wrong: bulla_audit.check(proof, policy=wrong)),
            ("key", text, lambda wrong: bulla_audit.verify(self.path, key=wrong)),
            ("policy", text, lambda wrong: bulla_audit.verify(self.path, policy=wrong)),
            ("key", text, lambda wrong: Reader(self.path, key=wrong)),
            ("identity", [5, b"x", [5]], lambda wrong: Reader(self.path, identity=wrong)),
            ("passphrase", text, lambda wrong: Reader(self.path, passphrase=wrong)),
            ("memory", [no_text], lambda wrong: Log(self.path, memory=wrong)),
        ]
        for name, wrongs, call in calls:
            for wrong in wrongs:
                with self.subTest(name=name, wrong=wrong), self.assertRaisesRegex(bulla_audit.Invalid, f"^`{name}` ha"):
                    call(wrong)
        self.assertFalse(another.exists())
        with Log(self.path) as log:
            for wrong in [{"clients": -1}, {"clients": 0}, {"mode": -1}, {"mode": 1 << 40}]:
                with self.subTest(wrong=wrong), self.assertRaises(bulla_audit.Invalid):
                    log.listen(self.place / "audit.sock", **wrong)

    def test_an_export_is_lines_of_json(self) -> None:
        path = self.place / "export.jsonl"
        with path.open("wb") as file:
            self.assertEqual(Reader(self.path, key=self.key).export(file, subject="user_4"), 100)
        lines = path.read_bytes().splitlines()
        self.assertEqual(len(lines), 100)
        self.assertIn(b'"subject":"user_4"', lines[0])

        class Failing:
            def write(self, data: bytes) -> int:
                raise RuntimeError("full")

        with self.assertRaisesRegex(RuntimeError, "full"):
            Reader(self.path, key=self.key).export(Failing())

    def test_a_file_that_takes_a_part_at_a_time_gets_all_of_an_export(self) -> None:
        reader = Reader(self.path, key=self.key)
        whole = io.BytesIO()
        reader.export(whole, subject="user_4")

        class Short(io.RawIOBase):
            def __init__(self, at_a_time: int | None) -> None:
                self.at_a_time, self.taken = at_a_time, b""

            def write(self, data: Any) -> int | None:
                part = data[: self.at_a_time or 0]
                self.taken += part
                return None if self.at_a_time is None else len(part)

        class Silent:
            taken = b""

            def write(self, data: bytes) -> None:
                self.taken += data

        for file in [Short(10), Silent()]:
            self.assertEqual(reader.export(file, subject="user_4"), 100)
            self.assertEqual(file.taken, whole.getvalue())
        for at_a_time in [0, None]:
            with self.assertRaisesRegex(bulla_audit.Unavailable, "part"):
                reader.export(Short(at_a_time), subject="user_4")

        class Strange:
            def __init__(self, said: Any) -> None:
                self.said = said

            def write(self, data: bytes) -> Any:
                return self.said

        for said in [-1, 10**9, 1 << 70, "x", True, 1.5]:
            with (
                self.subTest(said=said),
                self.assertRaisesRegex(bulla_audit.Unavailable, "`file` does not say how many"),
            ):
                reader.export(Strange(said), subject="user_4")

    def test_a_range_may_have_all_numbers_of_64_bits(self) -> None:
        with Log(self.path) as log, log.producer() as producer:
            producer.append("sized", size=(1 << 64) - 1)
        self.assertEqual([entry["size"] for entry in self.entries(size=range(1 << 64))], [(1 << 64) - 1])
        self.assertEqual(len(self.entries(size=range((1 << 63) + 5, 1 << 64))), 1)
        self.assertEqual(self.entries(size=range(0, (1 << 64) - 1)), [])

    def test_a_prefix_that_changes_while_it_is_read_is_as_it_was(self) -> None:
        prefix: dict[str, Any] = {}

        def names() -> Any:
            prefix["actor"] = "nobody"
            yield "user_4"

        prefix["subject"] = names()
        self.assertEqual(len(self.entries(prefix=prefix)), 100)

    def test_what_is_proven_is_checked_with_the_key_alone(self) -> None:
        proof = Reader(self.path, key=self.key).prove(subject="user_4")
        for given in [proof, proof.encode()]:
            checked = bulla_audit.check(given, key=self.key)
            self.assertTrue(checked.anchored)
            self.assertEqual(checked.entries, len(checked.disclosed))
            self.assertEqual(sum(entry["subject"] == ["user_4"] for entry in checked.disclosed), 100)
        unanchored = bulla_audit.check(proof)
        self.assertFalse(unanchored.anchored)
        place = len(proof) // 2
        other = "A" if proof[place] != "A" else "B"
        with self.assertRaises((bulla_audit.Tampered, bulla_audit.Invalid)):
            bulla_audit.check(proof[:place] + other + proof[place + 1 :], key=self.key)
        strange = bulla_audit.create(self.place / "other", origin="example.com/test")
        with self.assertRaises(bulla_audit.Tampered):
            bulla_audit.check(proof, key=strange)

    def test_a_part_is_not_answered_as_if_it_were_the_log(self) -> None:
        def append(location: str) -> None:
            with self.open() as log:
                log.producer().append("read", location=location)

        def read() -> list[dict[str, object]]:
            return list(Reader(self.path, key=self.key).query())

        append("1")
        older = self.place / "older"
        shutil.copytree(self.path, older)
        append("2")
        settings = self.path.with_name("audit.keys") / "settings.toml"
        self.assertEqual(["1", "2"], [entry["location"] for entry in read()[-2:]])
        # A path on which the log may have come further is not there.
        settings.write_text(f"[settings]\nbackup_paths = [{str(self.place / 'missing')!r}]\n")
        with self.assertRaisesRegex(bulla_audit.Unavailable, "missing"):
            read()
        self.assertFalse(bulla_audit.verify(self.path, key=self.key).ok)
        settings.unlink()
        shutil.rmtree(self.path)
        older.rename(self.path)
        with self.assertRaisesRegex(bulla_audit.Unavailable, "an older copy"):
            read()
        self.assertFalse(bulla_audit.verify(self.path, key=self.key).ok)

    def test_keys_that_lie_elsewhere_are_verified_with_where_they_are_named(self) -> None:
        keys = self.place / "elsewhere"
        log, older = self.place / "log", self.place / "older"
        key = bulla_audit.create(log, keys=keys)
        for location in ["1", "2"]:
            with Log(log, keys=keys) as opened:
                opened.producer().append("read", location=location)
            if location == "1":
                shutil.copytree(log, older)
        self.assertTrue(bulla_audit.verify(log, key=key, keys=keys).ok)
        # The keys alone know that an older copy ends too early.
        self.assertTrue(bulla_audit.verify(older, key=key).ok)
        self.assertFalse(bulla_audit.verify(older, key=key, keys=keys).ok)
        # What is named and is not there is a slip, which must not pass for a log without keys.
        identity = keys / "identity.age"
        typo = self.place / "typo"
        with self.assertRaisesRegex(bulla_audit.Refused, "^the key directory .*/typo: "):
            bulla_audit.verify(log, key=key, keys=typo)
        with self.assertRaisesRegex(bulla_audit.Refused, "^the key directory .*/typo: "):
            Reader(log, key=key, keys=typo, identity=identity, withhold_personal=True)
        self.assertEqual(len(list(Reader(log, key=key, identity=identity, withhold_personal=True).query())), 2)
        with self.assertRaisesRegex(bulla_audit.Refused, '^the key directory "": '):
            bulla_audit.verify(log, key=key, keys="")
        typo.touch()
        with self.assertRaisesRegex(bulla_audit.Unavailable, "^the key directory .*/typo: "):
            bulla_audit.verify(log, key=key, keys=typo)

    def test_a_log_is_verified_with_public_data(self) -> None:
        report = bulla_audit.verify(self.path, key=self.key)
        self.assertTrue(report.ok)
        self.assertTrue(report.anchored)
        self.assertEqual(report.entries, 1000)
        self.assertEqual([finding for finding in report.findings if finding.severity == "violation"], [])
        segment, *_ = sorted(self.path.rglob("*.seg"), key=lambda path: -path.stat().st_size) or [None]
        self.assertIsNotNone(segment, sorted(self.path.rglob("*")))
        damaged = bytearray(segment.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        segment.write_bytes(damaged)
        report = bulla_audit.verify(self.path, key=self.key)
        self.assertFalse(report.ok)
        self.assertTrue(any(finding.severity == "violation" and finding.text for finding in report.findings))

    def test_a_policy_and_a_pin_bind_a_log(self) -> None:
        witness = "witness.example+e6557821+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK"
        proof = Reader(self.path, key=self.key).prove(subject="user_4")
        for policy in [f"log {self.key}\nquorum none\n", "quorum none\n"]:
            self.assertTrue(bulla_audit.verify(self.path, key=self.key, policy=policy).anchored)
            self.assertTrue(bulla_audit.check(proof, key=self.key, policy=policy).anchored)
        unasked = bulla_audit.verify(self.path, key=self.key, policy=f"witness w {witness}\nquorum none\n")
        self.assertEqual((unasked.ok, unasked.witnessed), (True, None))
        for policy in ["quorum", "quorum none\n", f"witness w {witness}\nquorum w\n"]:
            with self.assertRaisesRegex(bulla_audit.Invalid, "^`policy`: "):
                bulla_audit.verify(self.path, policy=policy)
            with self.assertRaisesRegex(bulla_audit.Invalid, "^`policy`: "):
                bulla_audit.check(proof, policy=policy)
        strange = bulla_audit.create(self.place / "other", origin="example.com/test")
        # With a key and without: it takes nothing from a policy that names another log.
        for key in [None, self.key]:
            report = bulla_audit.verify(self.path, key=key, policy=f"log {strange}\nquorum none\n")
            self.assertFalse(report.ok or report.anchored)
            with self.assertRaises(bulla_audit.Tampered):
                bulla_audit.check(proof, key=key, policy=f"log {strange}\nquorum none\n")

        pin = self.place / "audit.pin"
        with self.assertRaises(bulla_audit.Invalid):
            bulla_audit.verify(self.path, pin=pin)
        report = bulla_audit.verify(self.path, key=self.key, pin=pin)
        self.assertTrue(report.ok and report.pin_made)
        self.assertEqual((report.pinned, report.witnessed), (report.tree_size, None))
        report = bulla_audit.verify(self.path, pin=pin)
        self.assertTrue(report.ok and not report.pin_made)
        self.assertFalse(bulla_audit.verify(self.place / "other", pin=pin).ok)
        (self.place / "another.pin.lock").mkdir()
        with self.assertRaises(bulla_audit.Unavailable) as raised:
            bulla_audit.verify(self.path, key=self.key, pin=self.place / "another.pin")
        found = raised.exception.report
        self.assertTrue(found.ok and found.anchored and found.pinned is None)
        self.assertEqual(found.tree_size, report.tree_size)
        with self.assertRaises(bulla_audit.Refused):
            bulla_audit.verify(self.path, key=self.key, pin=self.path / "pin")

    def test_who_was_erased_is_gone(self) -> None:
        erasure = bulla_audit.erase(self.path, ["user_4", "user_44"], reason="request of 2026-03-01")
        self.assertEqual(erasure.erased, 1)
        self.assertEqual(erasure.unknown, ["user_44"])
        self.assertTrue(erasure.certificate)
        withheld = [entry for entry in self.entries() if entry.get("withheld")]
        self.assertEqual({entry["withheld"] for entry in withheld}, {"erased"})
        self.assertEqual(len(withheld), 100)
        self.assertEqual(self.count(subject="user_5"), 100)
        self.assertTrue(bulla_audit.verify(self.path, key=self.key).ok)

    def test_a_log_that_is_open_is_erased_in_as_well(self) -> None:
        with Log(self.path):
            self.assertEqual(bulla_audit.erase(self.path, "user_4").erased, 1)
        self.assertEqual(sum(entry.get("withheld") == "erased" for entry in self.entries()), 100)

    def test_a_log_without_erasure_refuses_it(self) -> None:
        bulla_audit.create(self.place / "other", erasure=False)
        with self.assertRaises(bulla_audit.Refused):
            bulla_audit.erase(self.place / "other", "user_4")
        with self.assertRaises(bulla_audit.Invalid):
            bulla_audit.create(self.place / "third", recipients=["nobody"])

    def test_what_is_personal_can_be_withheld(self) -> None:
        reader = Reader(self.path, key=self.key, withhold_personal=True)
        found = list(reader.query())
        self.assertEqual({entry["withheld"] for entry in found}, {"not-given"})
        self.assertEqual({entry.get("subject") for entry in found}, {None})
        self.assertEqual(len(list(reader.query(operation="read"))), 500)
        with self.assertRaises(bulla_audit.Invalid):
            reader.query(subject="user_4")

    def test_keys_are_needed(self) -> None:
        keys = Path(f"{self.path}.keys")
        elsewhere = self.place / "elsewhere"
        keys.rename(elsewhere)
        with self.assertRaises(bulla_audit.NoKey):
            self.entries()
        self.assertEqual(len(list(Reader(self.path, key=self.key, keys=elsewhere).query())), 1000)
