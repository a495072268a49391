"""The processor of structlog."""

from __future__ import annotations

import json
from typing import Any

import bulla_audit
import structlog
from bulla_audit import Log, context
from bulla_audit.structlog import Processor
from common import Case


class Structlog(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = Log(self.path)
        self.addCleanup(self.log.close)

    def logger(self, processor: Any, *before: Any) -> tuple[Any, structlog.testing.LogCapture]:
        behind = structlog.testing.LogCapture()
        return structlog.wrap_logger(structlog.PrintLogger(), processors=[*before, processor, behind]), behind

    def found(self) -> list[dict[str, Any]]:
        self.log.close()
        return self.entries()

    def test_an_event_is_an_entry_and_goes_on_as_it_came(self) -> None:
        logger, behind = self.logger(Processor(self.log))
        logger.info("order sent", operation="read", subject="user_42", actor="ada", status=0, order=4711, purpose=None)
        with context(actor="bob", client="192.0.2.7", purpose="support"):
            logger.warning("é", actor="eve")
        first, second = self.found()
        self.assertEqual(
            (first["operation"], first["subject"], first["actor"], first["status"]), ("read", ["user_42"], "ada", 0)
        )
        self.assertEqual(json.loads(first["payload"]), {"event": "order sent", "order": 4711})
        self.assertIsNone(first.get("location"))
        self.assertEqual((second["operation"], second["actor"], second["client"]), ("warning", "eve", "192.0.2.7"))
        self.assertEqual(second["purpose"], "support")
        self.assertEqual(second["payload"], '{"event": "é"}')
        self.assertEqual(behind.entries[0]["subject"], "user_42")
        self.assertEqual(behind.entries[0]["event"], "order sent")
        self.assertEqual(len(behind.entries), 2)

    def test_what_json_does_not_have_is_given_by_its_repr(self) -> None:
        logger, _ = self.logger(Processor(self.log))
        by = {(1, 2): ({b"x": float("nan")},), 3: None}
        logger.info("é", ratio=float("nan"), all=[float("-inf"), 0.1, {"é": float("inf")}], of={1}, by=by)
        (entry,) = self.found()

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is no JSON")

        wanted = {"event": "é", "ratio": "nan", "all": ["-inf", 0.1, {"é": "inf"}], "of": "{1}"}
        wanted["by"] = {"(1, 2)": [{"b'x'": "nan"}], "3": None}
        self.assertEqual(json.loads(entry["payload"], parse_constant=refuse), wanted)
        self.assertIn("é", entry["payload"])

    def test_names_that_are_no_texts_and_nothing_else(self) -> None:
        logger, _ = self.logger(Processor(self.log))
        logger.info("x", by={(1, 2): 3})
        (entry,) = self.found()
        self.assertEqual(json.loads(entry["payload"]), {"event": "x", "by": {"(1, 2)": 3}})

    def test_what_cannot_be_written_as_json_at_all(self) -> None:
        logger, _ = self.logger(Processor(self.log))
        circle: dict[Any, Any] = {}
        circle["me"] = circle
        tuples: dict[Any, Any] = {}
        tuples[(1, 2)] = [tuples]
        for event in [circle, tuples]:
            with self.assertRaisesRegex(ValueError, "Circular reference"):
                logger.info("x", of=event)
        for by in [{(1,): 1, "(1,)": 2}, {1: "a", "1": "b", (1,): 0}, {None: float("nan"), "null": 2}]:
            with self.assertRaisesRegex(ValueError, "two names"):
                logger.info("x", by=by)
        deep: dict[str, Any] = {"ratio": float("nan")}
        for _ in range(600):
            deep = {"in": deep}
        logger.info("deep", of=deep)
        (entry,) = self.found()
        self.assertIn('"nan"', entry["payload"])

    def test_what_other_processors_add(self) -> None:
        def named(logger: object, method: str, event: dict[str, Any]) -> dict[str, Any]:
            return {**event, "logger": "orders.mail"}

        logger, _ = self.logger(Processor(self.log), named, structlog.processors.format_exc_info)
        try:
            raise ZeroDivisionError("by nought")
        except ZeroDivisionError:
            logger.exception("failed")
        (entry,) = self.found()
        self.assertEqual((entry["operation"], entry["location"]), ("error", "orders.mail"))
        self.assertIn("ZeroDivisionError: by nought", json.loads(entry["payload"])["exception"])

    def test_what_is_dropped_goes_no_further(self) -> None:
        logger, behind = self.logger(Processor(self.log, drop=True))
        logger.info("order sent")
        self.assertEqual(behind.entries, [])
        self.assertEqual(len(self.found()), 1)

    def test_what_json_does_not_have_and_another_way_to_write_it(self) -> None:
        logger, _ = self.logger(Processor(self.log))
        logger.info(
            "x",
            when={
                1,
            },
            then=b"y",
        )
        other, _ = self.logger(Processor(self.log, dumps=lambda rest: repr(sorted(rest)).encode()))
        other.info("x", b=1)
        first, second = [entry["payload"] for entry in self.found()]
        self.assertEqual(json.loads(first), {"event": "x", "when": "{1}", "then": "b'y'"})
        self.assertEqual(second, "['b', 'event']")

    def test_what_cannot_be_recorded(self) -> None:
        processor = Processor(self.log)
        logger, behind = self.logger(processor)
        with self.assertRaises(bulla_audit.Invalid):
            logger.info("x", status="ok")
        self.assertEqual((processor.lost, behind.entries), (0, []))
        passing = Processor(self.log, unrecordable="pass")
        logger, behind = self.logger(passing)
        logger.info("x", status="ok")
        self.assertEqual((passing.lost, len(behind.entries)), (1, 1))
        with self.assertRaisesRegex(ValueError, "unrecordable"):
            Processor(self.log, unrecordable="refuse")
        self.assertEqual(self.found(), [])

    def test_a_durable_flush_and_closing_tell_once_what_a_producer_lost_that_was_replaced(self) -> None:
        for told in [lambda: processor.flush(durable=True), lambda: processor.close()]:
            processor = Processor(self.replaced())
            logger, _ = self.logger(processor)
            logger.info("lost")
            logger.info("after")
            with self.assertRaises(bulla_audit.Closed):
                told()
            processor.flush(durable=True)
            processor.close()

    def test_flushing_and_closing(self) -> None:
        processor = Processor(self.log)
        logger, _ = self.logger(processor)
        logger.info("x")
        processor.flush(durable=True)
        processor.close()
        with self.assertRaises(bulla_audit.Closed):
            logger.info("x")
        self.assertEqual(len(self.found()), 1)
