"""`append_batch`: dictionaries, Arrow tables and data frames, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import bulla_audit
import pandas
import polars
import pyarrow as pa
from bulla_audit import Log
from common import Case

NAMES = ["operation", "location", "subject", "controller", "processor", "purpose", "actor", "client", "stream"]
NAMES += ["status", "duration", "size", "flags", "payload", "time"]

ROWS: list[dict[str, Any]] = [
    {"operation": "read", "time": 1},
    {
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
        "size": 9_223_372_036_854_775_808,
        "flags": 7,
        "payload": '{"ticket":4711}',
        "time": 1_793_710_805_250_000_001,
    },
    {
        "operation": "delete",
        "location": "",
        "subject": [],
        "controller": "",
        "processor": "",
        "purpose": "",
        "actor": "",
        "client": "",
        "stream": "x",
        "status": 0,
        "duration": 0,
        "size": 0,
        "flags": 0,
        "payload": "",
        "time": 0,
    },
    {"operation": "Ünïcode ✓", "location": "ключ", "subject": ["名前"], "payload": "\0", "time": -1},
]


def sparse(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what is absent, and without what the log has assigned."""
    return {name: value for name, value in entry.items() if value is not None and name != "entry"}


class Batches(Case):
    def appended(self, *batches: Any) -> list[dict[str, Any]]:
        with Log(self.path) as log, log.producer() as producer:
            for batch in batches:
                producer.append_batch(batch)
        return [sparse(entry) for entry in self.entries()]

    def table(self, **types: pa.DataType) -> pa.Table:
        """The rows as a table, with other types for some columns."""
        chosen = {
            **dict.fromkeys(["operation", "location", "controller", "processor", "purpose"], pa.string()),
            **dict.fromkeys(["actor", "client", "stream", "payload"], pa.string()),
            **dict.fromkeys(["status", "flags"], pa.uint32()),
            **dict.fromkeys(["duration", "size"], pa.uint64()),
            "subject": pa.list_(pa.string()),
            "time": pa.timestamp("ns", "UTC"),
            **types,
        }
        return pa.table({name: pa.array([row.get(name) for row in ROWS], chosen[name]) for name in NAMES})

    def same(self, found: list[dict[str, Any]], rows: list[dict[str, Any]] = ROWS) -> None:
        self.assertEqual(len(found), len(rows))
        for entry, row in zip(found, rows):
            wanted = dict(row)
            if "stream" in entry and "stream" not in row:
                self.assertEqual(entry.pop("stream"), "default")
            self.assertEqual(entry, wanted)

    def test_dictionaries(self) -> None:
        with_nones = [{**dict.fromkeys(NAMES), **row} for row in ROWS]
        found = self.appended(ROWS, iter(ROWS), (row for row in ROWS), tuple(ROWS), with_nones, [])
        for start in range(0, len(found), len(ROWS)):
            self.same(found[start : start + len(ROWS)])
        self.assertEqual(len(found), 5 * len(ROWS))

    def test_tables_of_every_type_that_a_field_may_have(self) -> None:
        large = dict.fromkeys(["operation", "location", "actor", "payload"], pa.large_string())
        dictionary = dict.fromkeys(["operation", "actor", "stream"], pa.dictionary(pa.int32(), pa.string()))
        large_lists = {"subject": pa.large_list(pa.large_string())}
        other_numbers = {"status": pa.int64(), "flags": pa.int32()}
        variants = [{}, large, dictionary, large_lists, {"location": pa.binary(), "payload": pa.large_binary()}]
        for types in variants[:4]:
            with self.subTest(types=types):
                self.setUp()
                self.same(self.appended(self.table(**types)))
        self.setUp()
        narrow = self.table().drop_columns(["status", "flags"])
        flags = pa.array([None, 7, 0, None], other_numbers["flags"])
        status = pa.array([None, 5, 0, None], other_numbers["status"])
        found = self.appended(narrow.append_column("status", status).append_column("flags", flags))
        self.same(found, [{**row, **({"status": 5} if row.get("status") else {})} for row in ROWS])

    def test_views_of_text_and_bytes(self) -> None:
        views = dict.fromkeys(["operation", "actor", "payload"], pa.string_view())
        self.same(self.appended(self.table(**views)))

    def test_bytes(self) -> None:
        table = pa.table(
            {"operation": ["a", "b"], "location": pa.array([b"\xff", None]), "payload": pa.array([b"x", b"\0\xfe"])}
        )
        first, second = self.appended(table)
        self.assertEqual((first["location"], first["payload"]), (b"\xff", "x"))
        self.assertEqual(second["payload"], b"\0\xfe")
        self.assertNotIn("location", second)

    def test_readers_batches_chunks_slices_and_empty_ones(self) -> None:
        table = self.table()
        (batch,) = table.to_batches()
        chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1)])
        reader = pa.RecordBatchReader.from_batches(table.schema, [batch, batch])
        found = self.appended(chunked, reader, batch, table.slice(0, 0), table.slice(1, 2), batch.slice(1, 2))
        rows = ROWS + ROWS + ROWS + ROWS + ROWS[1:3] + ROWS[1:3]
        self.same(found, rows)

    def test_columns_in_any_order_with_a_single_subject_and_other_times(self) -> None:
        table = pa.table(
            {
                "time": pa.array([1_500, None], pa.timestamp("ms", "UTC")),
                "subject": pa.array(["user_42", None]),
                "operation": pa.array(["read", "delete"]),
            }
        )
        first, second = self.appended(table)
        self.assertEqual((first["time"], first["subject"]), (1_500_000_000, ["user_42"]))
        self.assertNotIn("subject", second)
        self.assertGreater(second["time"], 1_700_000_000_000_000_000)

    def test_frames_of_polars(self) -> None:
        self.same(self.appended(polars.from_arrow(self.table())))

    def test_frames_of_pandas(self) -> None:
        columns = {
            name: pandas.array([row.get(name) for row in ROWS], "string") for name in ["operation", "location", "actor"]
        }
        times = pandas.to_datetime([row["time"] for row in ROWS], utc=True)
        frame = pandas.DataFrame({**columns, "time": times, "subject": [row.get("subject") for row in ROWS]})
        names = {"operation", "location", "actor", "time", "subject"}
        found = self.appended(frame)
        self.same(found, [{name: value for name, value in row.items() if name in names} for row in ROWS])

    def test_many(self) -> None:
        many = pa.table(
            {
                "operation": ["read"] * 100_000,
                "location": [f"user_{number}/email" for number in range(100_000)],
                "flags": pa.array(range(100_000), pa.uint32()),
            }
        )
        found = self.appended(many)
        self.assertEqual([entry["flags"] for entry in found], list(range(100_000)))
        self.assertEqual(found[99_999]["location"], "user_99999/email")

    def test_how_many_were_appended_is_told(self) -> None:
        with Log(self.path) as log, log.producer() as producer:
            self.assertEqual(producer.append_batch(ROWS), 4)
            self.assertEqual(producer.append_batch(self.table()), 4)
            self.assertEqual(producer.append_batch([]), 0)


class Refused(Case):
    def refused(self, batch: Any, *words: str) -> None:
        """A batch is refused with these words and no value; nothing is staged but what the error counts."""
        with Log(self.path) as log, log.producer() as producer:
            producer.append("before")
            with self.assertRaises(bulla_audit.Invalid) as caught:
                producer.append_batch(batch)
            producer.append("after")
        message = str(caught.exception)
        for word in words:
            self.assertIn(word, message)
        self.assertNotIn("secret", message)
        staged = getattr(caught.exception, "staged", 0)
        self.assertEqual(len(self.entries()), 2 + staged)
        self.assertEqual(self.entries()[-1]["operation"], "after")
        self.assertEqual(staged, 0)
        self.setUp()

    def test_dictionaries_name_the_field_and_the_row(self) -> None:
        good = {"operation": "read"}
        wrong: dict[str, list[Any]] = {
            "operation": [5, "", None],
            "subject": [5, [None], ["x"] * 65],
            "status": ["secret", -1, 1 << 32],
            "duration": [1 << 64, 0.5],
            "payload": [["secret"]],
            "time": ["secret", 1 << 64],
            "actor": ["secret" * 20_000, "\ud800secret", b"secret"],
            "colour": ["secret"],
        }
        for name, values in wrong.items():
            for value in values:
                with self.subTest(field=name, kind=type(value).__name__):
                    self.refused([good, good, {"operation": "read", name: value}, good], name, "2")
        self.refused([good, {"location": "somewhere"}], "operation", "1")
        self.refused([good, 5], "1")
        self.refused(5, "`entries`", "an iterable of dicts")

    def test_what_was_staged_of_a_long_batch_is_told(self) -> None:
        def rows() -> Any:
            for number in range(2000):
                yield {"operation": "read" if number != 1800 else "", "flags": number}

        with Log(self.path) as log, log.producer() as producer:
            with self.assertRaisesRegex(bulla_audit.Invalid, "1800") as caught:
                producer.append_batch(rows())
        staged = caught.exception.staged
        self.assertLessEqual(staged, 1800)
        self.assertEqual([entry["flags"] for entry in self.entries()], list(range(staged)))

    def test_a_dictionary_that_its_own_subjects_change(self) -> None:
        entry: dict[str, Any] = {}

        def subjects() -> Any:
            entry["location"] = "late"
            yield "ada"

        entry.update(subject=subjects(), operation="read", flags=7)
        with Log(self.path) as log, log.producer() as producer:
            self.assertEqual(producer.append_batch([entry]), 1)
        kept = [(each["subject"], each["flags"], each.get("location")) for each in self.entries()]
        self.assertEqual(kept, [(["ada"], 7, None)])

    def test_an_iterable_that_fails(self) -> None:
        def failing() -> Any:
            yield {"operation": "read"}
            raise ZeroDivisionError("mine")

        class Rows:
            def __init__(self, raised: BaseException) -> None:
                self.raised = raised

            def __iter__(self) -> Any:
                raise self.raised

        with Log(self.path) as log, log.producer() as producer:
            with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                producer.append_batch(failing())
            for raised in [KeyError("mine"), KeyboardInterrupt()]:
                for act in [
                    lambda: producer.append_batch(Rows(raised)),
                    lambda: producer.append_batch([{"operation": "read", "subject": Rows(raised)}]),
                    lambda: bulla_audit.create(self.place / "other", recipients=Rows(raised)),
                ]:
                    with self.assertRaises(type(raised)) as caught:
                        act()
                    self.assertIs(caught.exception, raised)
        self.assertEqual(self.entries(), [])

    def test_tables_name_the_column_and_the_row(self) -> None:
        operation = pa.array(["read"] * 3)
        wrong: dict[str, list[pa.Array]] = {
            "operation": [pa.array(["read", None, "read"]), pa.array(["read", "", "read"]), pa.array([1, 2, 3])],
            "status": [
                pa.array([1, -1, 1]),
                pa.array([1, 1 << 32, 1]),
                pa.array([0.5, 0.5, 0.5]),
                pa.array(["secret"] * 3),
            ],
            "subject": [pa.array([["a"], [None], ["b"]]), pa.array([["a"], ["x"] * 65, []]), pa.array([[1], [2], [3]])],
            "actor": [pa.array(["a", "secret" * 20_000, "b"])],
            "time": [pa.array(["secret"] * 3), pa.array([1, 2, 3], pa.timestamp("ns"))],
            "colour": [pa.array(["secret"] * 3)],
        }
        for name, arrays in wrong.items():
            for array in arrays:
                with self.subTest(column=name, type=str(array.type)):
                    self.refused(pa.table({**{"operation": operation}, name: array}), name)
        self.refused(pa.table({"operation": ["read", "read", ""]}), "operation", "2")
        self.refused(pa.table({"location": ["x"]}), "operation")
        self.refused(pa.table([operation, operation], ["operation", "operation"]), "operation")

    def test_of_a_reader_the_batches_before_are_told(self) -> None:
        schema = pa.schema([("operation", pa.string())])
        good = pa.record_batch([pa.array(["read"] * 10)], schema)
        bad = pa.record_batch([pa.array(["read", ""])], schema)
        with Log(self.path) as log, log.producer() as producer:
            with self.assertRaises(bulla_audit.Invalid) as caught:
                producer.append_batch(pa.RecordBatchReader.from_batches(schema, itertools.chain([good, good], [bad])))
        self.assertEqual(len(self.entries()), caught.exception.staged)
        self.assertIn(caught.exception.staged, (0, 20))

    def test_an_array_that_was_taken_already(self) -> None:
        class Once:
            def __init__(self) -> None:
                self.kept = pa.record_batch({"operation": ["read"]}).__arrow_c_array__()

            def __arrow_c_array__(self, requested_schema: object = None) -> Any:
                return self.kept

        once = Once()
        with Log(self.path) as log, log.producer() as producer:
            self.assertEqual(producer.append_batch(once), 1)
            with self.assertRaisesRegex(bulla_audit.Invalid, "taken already"):
                producer.append_batch(once)
        self.assertEqual(len(self.entries()), 1)

    def test_what_is_no_batch(self) -> None:
        for wrong in [5, None, "read", b"read", {"operation": "read"}, [["read"]], pa.array(["read"])]:
            with self.subTest(kind=type(wrong).__name__):
                self.refused(wrong)
