"""The handler of `logging`."""

from __future__ import annotations

import contextlib
import io
import logging
import logging.config
import logging.handlers
import queue
import signal
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import bulla_audit
from bulla_audit import Closed, Log
from bulla_audit.handler import Handler
from common import PATIENCE, Case


class Handling(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = Log(self.path)
        self.addCleanup(self.log.close)
        self.logger = logging.Logger("orders.mail")

    def handle(self, *arguments: Any, **settings: Any) -> Handler:
        handler = Handler(*(arguments or [self.log]), **settings)
        self.logger.addHandler(handler)
        return handler

    def found(self) -> list[dict[str, Any]]:
        self.log.close()
        return self.entries()

    def test_a_record_is_an_entry(self) -> None:
        self.handle()
        self.logger.warning("%d orders of %s", 3, "user_42")
        said = {
            "operation": "read",
            "location": "user_42/orders",
            "subject": ["user_42"],
            "controller": "example.com",
            "processor": "mailer",
            "purpose": "support",
            "actor": "ada",
            "client": "192.0.2.7",
            "stream": "crm",
            "status": 0,
            "duration": 5,
            "size": 6,
            "flags": 7,
        }
        self.logger.info("", extra={**said, "unknown": "left alone"})
        plain, full = self.found()
        self.assertEqual((plain["operation"], plain["location"]), ("warning", "orders.mail"))
        self.assertEqual(plain["payload"], "3 orders of user_42")
        self.assertIsNone(plain.get("subject"))
        self.assertEqual({name: full[name] for name in said}, said)
        self.assertEqual(full["payload"], "")

    def test_levels_of_other_names(self) -> None:
        self.handle()
        self.logger.log(25, "of no name")
        self.logger.exception("of no exception")
        self.logger.critical("x")
        self.assertEqual([entry["operation"] for entry in self.found()], ["level 25", "error", "critical"])

    def test_exceptions_and_stacks_are_part_of_the_payload(self) -> None:
        self.handle()
        try:
            raise ZeroDivisionError("by nought")
        except ZeroDivisionError:
            self.logger.exception("it failed")
            self.logger.info("only told", exc_info=True)
        self.logger.info("with a stack", stack_info=True)
        failed, told, stack = [entry["payload"] for entry in self.found()]
        self.assertTrue(failed.startswith("it failed\nTraceback (most recent call last):\n"), failed)
        self.assertTrue(failed.endswith("ZeroDivisionError: by nought"), failed)
        self.assertIn("ZeroDivisionError", told)
        self.assertIn("Stack (most recent call last):", stack)

    def test_formatters_and_filters(self) -> None:
        handler = self.handle()
        handler.setFormatter(logging.Formatter("{levelname}: {message}", style="{"))
        handler.addFilter(lambda record: "secret" not in record.getMessage())
        handler.setLevel(logging.WARNING)
        self.logger.warning("seen")
        self.logger.warning("secret")
        self.logger.info("below")
        self.assertEqual([entry["payload"] for entry in self.found()], ["WARNING: seen"])

    def test_the_time_is_the_records_to_the_nanosecond(self) -> None:
        handler = self.handle()
        times = [0.0, 1_700_000_000.123456789, 1_793_710_805.25, -1.5, 2_147_483_648.000001]
        for created in times:
            record = self.logger.makeRecord("x", logging.INFO, "", 0, "x", (), None)
            record.created = created
            handler.handle(record)
        wanted = [round(Fraction(created) * 1_000_000_000) for created in times]
        self.assertEqual([entry["time"] for entry in self.found()], wanted)

    def test_levels_are_given_by_number_or_by_name(self) -> None:
        waited = []

        class Receipt:
            def wait(self) -> bool:
                waited.append(True)
                return True

        class Producer:
            def append(self, **fields: object) -> None:
                pass

            def flush(self) -> Receipt:
                return Receipt()

        for level in [logging.ERROR, "ERROR"]:
            self.logger.handlers = [Handler(Producer, level="WARNING", durable_level=level)]
            self.logger.info("neither")
            self.logger.warning("only staged")
            self.assertEqual(waited, [])
            self.logger.error("durable")
            self.assertEqual(waited, [True])
            waited.clear()
        with self.assertRaisesRegex(ValueError, "LOUD"):
            Handler(self.log, durable_level="LOUD")
        with self.assertRaises(TypeError):
            Handler(self.log, durable_level=0.5)

    def test_a_producer_that_is_given_stays_open(self) -> None:
        producer = self.log.producer()
        own, given = self.handle(), self.handle(producer)
        self.logger.info("twice")
        own.close()
        given.close()
        for handler in [own, given]:
            handler.flush()
            self.logger.handlers = [handler]
            with self.assertRaises(bulla_audit.Closed):
                self.logger.info("behind its end")
        producer.append("read")
        self.assertEqual(len(self.found()), 3)

    def test_a_function_makes_the_producer_when_it_is_needed(self) -> None:
        made = []

        def make() -> bulla_audit.Producer:
            made.append(self.log.producer())
            return made[-1]

        handler = self.handle(make)
        handler.flush()
        self.assertEqual(made, [])
        self.logger.info("1")
        self.logger.info("2")
        self.assertEqual(len(made), 1)
        handler.close()
        self.assertEqual(len(self.found()), 2)

    def test_other_targets_and_settings_are_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "Producer"):
            Handler("audit")
        with self.assertRaisesRegex(ValueError, "unrecordable"):
            Handler(self.log, unrecordable="drop")

    def test_what_cannot_be_recorded_leaves_the_call(self) -> None:
        handler = self.handle()
        with self.assertRaises(bulla_audit.Invalid):
            self.logger.info("x", extra={"status": "no number"})
        with self.assertRaises(bulla_audit.Invalid):
            self.logger.info("x", extra={"actor": "x" * 65_537})
        with self.assertRaises(TypeError):
            self.logger.info("%d", "no number")
        self.logger.info("x")
        self.assertEqual(handler.lost, 0)
        self.assertEqual(len(self.found()), 1)
        with self.assertRaises(bulla_audit.Closed):
            self.logger.info("x")

    def test_what_cannot_be_recorded_can_be_for_logging(self) -> None:
        handler = self.handle(unrecordable="handle")
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            self.logger.info("x", extra={"actor": "x" * 65_537})
            self.logger.info("%d", "no number")
        self.assertEqual(handler.lost, 2)
        self.assertEqual(told.getvalue().count("--- Logging error ---"), 2)
        self.logger.info("x")
        self.assertEqual(len(self.found()), 1)
        with contextlib.redirect_stderr(told):
            self.logger.info("x")
        self.assertEqual(handler.lost, 3)

    def test_threads(self) -> None:
        self.handle(durable_level=logging.ERROR)

        def act(thread: int) -> None:
            for number in range(200):
                level = logging.ERROR if number % 50 == 49 else logging.INFO
                self.logger.log(level, "x", extra={"actor": str(thread), "flags": number})

        threads = [threading.Thread(target=act, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = self.found()
        for number in range(8):
            self.assertEqual([entry["flags"] for entry in found if entry["actor"] == str(number)], list(range(200)))
        self.assertEqual(len(found), 1600)

    def test_a_handler_that_formats_by_logging_does_not_hang(self) -> None:
        self.handle()
        logger = self.logger

        class Talkative:
            def __str__(self) -> str:
                logger.info("inner")
                return "outer"

        self.logger.info("%s", Talkative())
        self.assertEqual([entry["payload"] for entry in self.found()], ["inner", "outer"])

    def test_a_handler_that_is_closed_while_somebody_logs_says_so(self) -> None:
        for makes in [self.log, self.log.producer]:
            handler = Handler(makes)
            logger = logging.Logger("shop")
            logger.addHandler(handler)
            logger.info("before")

            def closing(handler: Handler = handler) -> Iterator[str]:
                # It has its producer by now, and finds that closed.
                handler.close()
                yield "user_42"

            with self.assertRaisesRegex(Closed, "it was closed"):
                logger.info("beside", extra={"subject": closing()})
        self.log.close()
        self.assertEqual(self.payloads(), ["before", "before"])

    def test_a_logger_of_the_packages_name_is_one_as_any_other(self) -> None:
        self.logger.name = "bulla_audit"
        self.handle()
        self.logger.info("order sent")
        self.assertEqual([entry["location"] for entry in self.found()], ["bulla_audit"])

    def test_behind_a_queue(self) -> None:
        records: queue.Queue[logging.LogRecord] = queue.Queue()
        self.logger.addHandler(logging.handlers.QueueHandler(records))
        listener = logging.handlers.QueueListener(records, Handler(self.log))
        listener.start()
        self.logger.info("through a queue", extra={"subject": "user_42"})
        listener.stop()
        (entry,) = self.found()
        self.assertEqual((entry["payload"], entry["subject"]), ("through a queue", ["user_42"]))

    def test_by_a_dictionary(self) -> None:
        handlers = {
            "audit": {"class": "bulla_audit.handler.Handler", "target": self.log, "durable_level": logging.ERROR}
        }
        loggers = {"by.dictionary": {"handlers": ["audit"], "level": "INFO", "propagate": False}}
        logging.config.dictConfig(
            {"version": 1, "disable_existing_loggers": False, "handlers": handlers, "loggers": loggers}
        )
        self.addCleanup(logging.getLogger("by.dictionary").handlers.clear)
        logging.getLogger("by.dictionary").error("x")
        self.assertEqual([entry["location"] for entry in self.found()], ["by.dictionary"])

    def test_flushing_can_wait_until_all_is_durable(self) -> None:
        handler = self.handle()
        self.logger.info("x")
        handler.flush()
        handler.flush(durable=True)
        self.log.close()
        # Closing has written all that there was.
        handler.flush()
        handler.flush(durable=True)
        handler.close()
        self.assertEqual(len(self.entries()), 1)


class Connected(Case):
    def test_what_a_connection_has_lost_is_said_and_another_goes_on(self) -> None:
        socket = self.place / "audit.sock"
        log = self.open()
        log.listen(socket)
        connection = bulla_audit.connect(socket)
        self.addCleanup(connection.close)
        handler = Handler(connection)
        logger = logging.Logger("orders")
        logger.addHandler(handler)
        logger.info("first")
        handler.flush(durable=True)
        log.close()
        log = self.open()
        log.listen(socket)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            # The end of the connection is found out by a thread.
            number = 0
            while not told.getvalue():
                number += 1
                with contextlib.suppress(bulla_audit.Closed):
                    logger.info("%d", number)
                    handler.flush()
        self.assertRegex(told.getvalue(), r"^bulla_audit: .*connect again; .*may be missing\n$")
        handler.flush(durable=True)
        log.close()
        found = [entry["payload"] for entry in self.entries()]
        self.assertEqual((found[0], found[-1]), ("first", str(number)))

    def test_a_connection_that_nobody_takes_up_again_is_an_error(self) -> None:
        socket = self.place / "audit.sock"
        log = self.open()
        log.listen(socket)
        connection = bulla_audit.connect(socket)

        def close() -> None:
            # What was appended before its end was known is acknowledged to nobody.
            with contextlib.suppress(Closed):
                connection.close()

        self.addCleanup(close)
        handler = Handler(connection)
        logger = logging.Logger("orders")
        logger.addHandler(handler)
        log.close()
        with self.assertRaises(bulla_audit.Error):
            while True:
                logger.info("x")
                handler.flush(durable=True)
        with self.assertRaises(bulla_audit.Error):
            logger.info("x")

    def test_a_connection_that_has_ended_keeps_no_other_handler_from_its_end(self) -> None:
        # `logging` comes behind, as where modules are imported by the alphabet, and goes through its handlers once more at the exit.
        told = self.run_program("""
            import bulla_audit
            from bulla_audit.handler import Handler
            import logging, logging.handlers
            log = bulla_audit.Log("audit")
            log.listen("audit.sock")
            logger = logging.getLogger("orders")
            buffered = logging.handlers.MemoryHandler(1000, target=logging.FileHandler("other.log", mode="w"))
            logger.addHandler(buffered)
            logger.addHandler(Handler(bulla_audit.connect("audit.sock")))
            logger.warning("one")
            log.close()
            """)
        self.assertNotIn("Exception ignored", told.stderr)
        self.assertEqual((self.place / "other.log").read_text(), "one\n")

    def test_what_a_producer_lost_that_was_replaced_keeps_no_other_handler_from_its_end(self) -> None:
        listener = self.listen()
        program = self.start("""
            import sys
            import bulla_audit
            from bulla_audit.handler import Handler
            import logging, logging.handlers
            logger = logging.getLogger("orders")
            logger.addHandler(logging.handlers.MemoryHandler(1000, target=logging.FileHandler("other.log", mode="w")))
            handler = Handler(bulla_audit.connect("audit.sock"))
            logger.addHandler(handler)
            for message in sys.stdin:
                logger.warning(message.strip())
                handler.flush()
                print("sent", flush=True)
            """)

        def log(message: str) -> None:
            print(message, file=program.stdin, flush=True)
            self.assertEqual(program.stdout.readline(), "sent\n")

        log("durable")
        listener.send_signal(signal.SIGSTOP)
        log("lost")
        listener.kill()
        listener.wait()
        self.listen()
        log("after")
        _, told = program.communicate(timeout=PATIENCE)
        self.assertEqual(told.count("closing at exit: Closed: "), 1, told)
        self.assertNotIn("Traceback", told)
        self.assertEqual((self.place / "other.log").read_text(), "durable\nlost\nafter\n")

    def test_what_a_producer_lost_that_was_replaced_is_told_by_closing(self) -> None:
        for flushed in [False, True]:
            handler = Handler(self.replaced())
            logger = logging.Logger("orders")
            logger.addHandler(handler)
            logger.info("lost")
            logger.info("after")
            if flushed:
                with self.assertRaises(bulla_audit.Closed):
                    handler.flush(durable=True)
            with contextlib.redirect_stderr(io.StringIO()) as told:
                handler.close()
                handler.close()
            once = [] if flushed else ["bulla_audit: closing a handler: Closed: lost"]
            self.assertEqual(told.getvalue().splitlines(), once)
            with self.assertRaisesRegex(bulla_audit.Closed, "^it was closed"):
                logger.info("behind its end")

    def test_what_could_not_be_sent_any_more_is_told_when_it_is_flushed(self) -> None:
        listener = self.listen()
        connection = bulla_audit.connect(self.place / "audit.sock", append_timeout=0.2)
        handler = Handler(connection)
        logger = logging.Logger("orders")
        logger.addHandler(handler)
        listener.send_signal(signal.SIGSTOP)
        with self.assertRaises(bulla_audit.Timeout):
            while True:
                logger.info("x" * 60_000)
        listener.kill()
        for what, act in [("flushing", handler.flush), ("closing", handler.close)]:
            with contextlib.redirect_stderr(io.StringIO()) as told:
                act()
            self.assertRegex(told.getvalue(), f"^bulla_audit: {what} a handler: Closed: ")
        with self.assertRaises(bulla_audit.Closed):
            connection.close()

    def test_logging_gets_through_all_handlers_where_one_has_lost_something(self) -> None:
        configured = '{"version": 1, "root": {"handlers": ["new"]}, "handlers": {"new": {"class": "logging.FileHandler", "filename": "new.log"}}}'
        for call in ["logging.shutdown()", f"logging.config.dictConfig({configured})"]:
            listener = self.listen()
            program = self.start(f"""
                import sys
                import bulla_audit
                from bulla_audit.handler import Handler
                import logging, logging.config, logging.handlers
                logger = logging.getLogger("orders")
                logger.addHandler(logging.handlers.MemoryHandler(1000, target=logging.FileHandler("other.log", mode="w")))
                logger.addHandler(Handler(bulla_audit.connect("audit.sock")))
                for message in sys.stdin:
                    logger.warning(message.strip())
                    print("sent", flush=True)
                {call}
                print(open("other.log").read().split(), flush=True)
                """)

            def log(message: str) -> None:
                print(message, file=program.stdin, flush=True)
                self.assertEqual(program.stdout.readline(), "sent\n")

            # Whoever listens has gone by then with what it had not acknowledged, and somebody else listens.
            log("durable")
            listener.send_signal(signal.SIGSTOP)
            log("lost")
            listener.kill()
            listener.wait()
            listener = self.listen()
            log("after")
            out, told = program.communicate(timeout=PATIENCE)
            listener.kill()
            listener.wait()
            self.assertEqual(out, f"{['durable', 'lost', 'after']}\n", told)
            self.assertIn("bulla_audit: closing a handler: Closed: ", told)
            self.assertEqual(program.returncode, 0, told)

    def test_a_handler_is_closed_where_nobody_can_be_told_what_that_fails_with(self) -> None:
        class Broken(io.StringIO):
            def __init__(self, error: Exception) -> None:
                super().__init__()
                self.error = error

            def write(self, text: str) -> int:
                raise self.error

        closed = io.StringIO()
        closed.close()
        for stderr in [Broken(BrokenPipeError()), Broken(RuntimeError()), closed, None]:
            handler = Handler(self.replaced())
            handler.set_name("audit")
            logger = logging.Logger("orders")
            logger.addHandler(handler)
            with contextlib.redirect_stderr(stderr):
                logger.info("lost")
                # That entries go on to a new producer cannot be told either, and the entry is recorded.
                logger.info("after")
                handler.close()
            self.assertNotIn("audit", logging._handlers)

    def test_a_handler_is_closed_where_standard_error_is_a_logger_that_has_it(self) -> None:
        class Logged(io.StringIO):
            def write(self, text: str) -> int:
                for line in text.splitlines():
                    logger.error(line)
                return len(text)

        for unrecordable in ["raise", "handle"]:
            lines = io.StringIO()
            logger = logging.Logger("orders")
            logger.addHandler(logging.StreamHandler(lines))
            handler = Handler(self.replaced(), unrecordable=unrecordable)
            logger.addHandler(handler)
            with contextlib.redirect_stderr(Logged()):
                logger.info("lost")
                logger.info("after")
                handler.close()
                if unrecordable == "handle":
                    before = handler.lost
                    logger.info("behind its end")
                    self.assertGreater(handler.lost, before)
            told = lines.getvalue()
            self.assertIn("\nbulla_audit: closing a handler: Closed: lost\n", told)
            self.assertNotIn("RecursionError", told)

    def test_whoever_reads_standard_error_keeps_nobody_but_who_tells_it_waiting(self) -> None:
        class Waiting(io.StringIO):
            def write(self, text: str) -> int:
                reached.set()
                passed.wait(PATIENCE)
                return len(text)

        reached, passed = threading.Event(), threading.Event()
        self.addCleanup(passed.set)
        handler = Handler(self.replaced(), durable_level="INFO")
        logger = logging.Logger("orders")
        logger.addHandler(handler)
        with contextlib.redirect_stderr(Waiting()):
            logger.info("lost")
            telling = threading.Thread(target=logger.info, args=("after",))
            telling.start()
            self.assertTrue(reached.wait(PATIENCE))
            other = threading.Thread(target=logger.info, args=("beside it",))
            other.start()
            other.join(PATIENCE)
            self.assertFalse(other.is_alive())
            passed.set()
            telling.join(PATIENCE)
            self.assertFalse(telling.is_alive())
        handler.close()

    def test_what_a_producer_lost_that_was_replaced_is_told_by_a_durable_flush(self) -> None:
        listener = self.listen()
        handler = Handler(bulla_audit.connect(self.place / "audit.sock"))
        logger = logging.Logger("orders")
        logger.addHandler(handler)
        logger.info("durable")
        handler.flush(durable=True)
        listener.send_signal(signal.SIGSTOP)
        logger.info("lost")
        handler.flush()
        listener.kill()
        listener.wait()
        listener = self.listen()
        logger.info("after")
        with self.assertRaises(bulla_audit.Closed):
            handler.flush(durable=True)
        handler.flush(durable=True)
        # Where nothing was lost there is nothing to tell of.
        listener.kill()
        listener.wait()
        self.listen()
        logger.info("at last")
        handler.flush(durable=True)


class Durable(Case):
    def test_nobody_flushes_between_an_entry_and_its_receipt(self) -> None:
        flushed = []

        class Receipt:
            def wait(self) -> bool:
                return True

        class Producer:
            def append(self, **fields: object) -> None:
                other.start()
                # It waits until this one has flushed.
                other.join(0.2)

            def flush(self) -> Receipt:
                flushed.append(threading.current_thread())
                return Receipt()

        handler = Handler(Producer, durable_level=logging.ERROR)
        other = threading.Thread(target=handler.flush)
        logger = logging.Logger("orders")
        logger.addHandler(handler)
        logger.error("x")
        other.join()
        self.assertEqual(flushed, [threading.current_thread(), other])

    def test_what_a_durable_call_has_returned_from_outlives_a_kill(self) -> None:
        process = self.start("""
            import logging, sys, time
            from bulla_audit import Log
            from bulla_audit.handler import Handler
            log = Log("audit", linger="1 h")
            logger = logging.Logger("orders")
            logger.addHandler(Handler(log, durable_level=logging.ERROR))
            logger.info("before")
            logger.error("durable")
            logger.info("behind")
            print("returned", flush=True)
            time.sleep(600)
            """)
        self.assertEqual(process.stdout.readline(), "returned\n")
        process.kill()
        process.wait()
        bulla_audit.Log(self.path).close()
        self.assertEqual(self.payloads(), ["before", "durable"])
