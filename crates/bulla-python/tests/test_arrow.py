"""Query results as other people's libraries take them through Arrow's C stream interface."""

from __future__ import annotations

import gc
from typing import Any

import bulla_audit
import duckdb
import pandas
import polars
import pyarrow as pa
from bulla_audit import Log, Reader
from common import Case


class Arrow(Case):
    def setUp(self) -> None:
        super().setUp()
        with Log(self.path) as log, log.producer() as producer:
            for number in range(5000):
                producer.append(
                    "read",
                    f"user_{number % 10}/email",
                    subject=[f"user_{number % 10}", "user_all"],
                    status=number,
                    duration=number if number % 2 else (1 << 64) - 1 - number,
                    time=number,
                    payload=b"\xff" if number == 77 else "text",
                )
            producer.append("bare", time=5000)

    def query(self, **query: Any) -> Any:
        return Reader(self.path, key=self.key).query(**query)

    def test_pyarrow_has_every_entry_and_every_absence(self) -> None:
        table = pa.table(self.query())
        self.assertEqual(table.num_rows, 5001)
        rows = table.to_pylist()
        for row, entry in zip(rows, self.query(), strict=True):
            for name in ["entry", "operation", "subject", "controller", "status"]:
                self.assertEqual(row[name], entry.get(name), entry)
            self.assertEqual(row["time_nanoseconds"], entry["time"])
            # What does not fit a signed integer, and what is no text, has a column of its own.
            digits = row["duration_digits"]
            self.assertEqual(row["duration"] if digits is None else int(digits), entry.get("duration"))
            for name in ["location", "payload"]:
                self.assertEqual(row[name] if row[f"{name}_bytes"] is None else row[f"{name}_bytes"], entry.get(name))

    def test_the_index_of_a_data_frame_is_refused_with_the_way_out(self) -> None:
        frame = pandas.DataFrame({"operation": ["read", "read", "erase", "read"], "subject": ["a", "b", "c", "d"]})
        chosen = frame[frame["operation"] == "read"]
        with Log(self.path) as log, log.producer() as producer:
            with self.assertRaisesRegex(bulla_audit.Invalid, r"reset_index\(drop=True\)"):
                producer.append_batch(chosen)
            self.assertEqual(producer.append_batch(chosen.reset_index(drop=True)), 3)

    def test_a_stream_can_be_taken_again_given_up_and_outlive_its_query(self) -> None:
        query = self.query(status=range(100))
        self.assertEqual(pa.table(query).num_rows, 100)
        reader = pa.RecordBatchReader.from_stream(query)
        del query
        gc.collect()
        self.assertEqual(reader.read_all().num_rows, 100)
        given_up = pa.RecordBatchReader.from_stream(self.query())
        given_up.read_next_batch()
        del given_up
        never_begun = self.query().__arrow_c_stream__()
        del never_begun
        gc.collect()
        self.assertEqual(pa.table(self.query(status=range(10))).num_rows, 10)

    def test_a_stream_that_was_begun_is_refused_in_a_forked_child(self) -> None:
        with Log(self.path) as log, log.producer() as producer:
            # More blocks than are read ahead.
            for number in range(20):
                producer.append("read", flags=number)
                producer.flush().wait()
        stream = pa.RecordBatchReader.from_stream(Reader(self.path, key=self.key).query())
        rows = stream.read_next_batch().num_rows
        self.assertRegex(self.in_child(lambda: sum(batch.num_rows for batch in stream)), "the process that opened it, not to its child")
        self.assertEqual(rows + sum(batch.num_rows for batch in stream), 5021)

    def test_nothing_found_has_the_columns_all_the_same(self) -> None:
        empty = pa.table(self.query(status=1 << 20))
        self.assertEqual(empty.num_rows, 0)
        self.assertEqual(empty.schema, pa.table(self.query(status=1)).schema)

    def test_its_schema_is_its_own_whatever_is_asked_for(self) -> None:
        # The interface lets who answers leave another schema alone.
        own = pa.table(self.query(status=1)).schema
        other = pa.schema([("colour", pa.int8())])
        for asked in [own, other]:
            self.assertEqual(pa.RecordBatchReader.from_stream(self.query(status=1), asked).schema, own)

    def test_pandas(self) -> None:
        frame = pandas.DataFrame.from_arrow(self.query())
        self.assertEqual(len(frame), 5001)
        self.assertEqual(int(frame["status"].sum()), sum(range(5000)))
        self.assertEqual(frame["operation"].value_counts().to_dict(), {"read": 5000, "bare": 1})

    def test_pandas_keeps_integers_of_which_some_are_absent(self) -> None:
        with Log(self.path) as log, log.producer() as producer:
            producer.append("exact", duration=(1 << 60) + 1, time=6000)
        table = pa.table(self.query(start=5000))
        frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
        self.assertEqual(frame["duration"].tolist(), [pandas.NA, (1 << 60) + 1])
        floats = pandas.DataFrame.from_arrow(table)[["operation", "duration"]]
        with Log(self.path) as log, log.producer() as producer:
            self.assertEqual(producer.append_batch(frame[["operation", "duration"]]), 2)
            with self.assertRaisesRegex(bulla_audit.Invalid, "duration"):
                producer.append_batch(floats)

    def test_polars(self) -> None:
        frame = polars.DataFrame(self.query())
        self.assertEqual(frame.height, 5001)
        self.assertEqual(frame["status"].sum(), sum(range(5000)))
        self.assertEqual(frame["subject"].list.len().drop_nulls().unique().to_list(), [2])
        self.assertEqual(frame["duration_digits"][0], str((1 << 64) - 1))

    def test_duckdb(self) -> None:
        entries = self.query()
        found = duckdb.sql("SELECT count(*), sum(status), max(duration) FROM entries").fetchall()
        self.assertEqual(found, [(5001, sum(range(5000)), 4999)])
        people = "SELECT unnest(subject) AS person, count(*) FROM entries GROUP BY person ORDER BY person"
        self.assertEqual(
            duckdb.sql(people).fetchall(),
            [("user_0", 500), *((f"user_{n}", 500) for n in range(1, 10)), ("user_all", 5000)],
        )

    def test_what_was_read_is_appended_to_another_log(self) -> None:
        other = self.place / "other"
        key = bulla_audit.create(other)
        with Log(other) as log, log.producer() as producer:
            self.assertEqual(producer.append_batch(self.query()), 5001)
        before = [{**entry, "entry": 0} for entry in self.query()]
        after = [{**entry, "entry": 0} for entry in Reader(other, key=key).query()]
        self.assertEqual(before, after)
