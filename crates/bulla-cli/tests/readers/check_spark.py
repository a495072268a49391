"""Checks that Spark, at its defaults, reads of a Parquet export what the export as JSON lines says:
check_spark.py FILE.parquet FILE.jsonl"""

import sys

import expected
from joined import joined
from pyspark.sql import SparkSession

TYPES = {
    "entry": "bigint", "time": "timestamp", "time_nanoseconds": "bigint", "operation": "string", "location": "string",
    "subject": "array<string>", "controller": "string", "processor": "string", "purpose": "string", "actor": "string",
    "client": "string", "stream": "string", "status": "bigint", "duration": "bigint", "size": "bigint", "flags": "bigint",
    "payload": "string", "location_bytes": "binary", "payload_bytes": "binary", "duration_digits": "string",
    "size_digits": "string", "withheld": "string",
}  # fmt: skip


def main(path, jsonl):
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.read.parquet(path)
    assert dict(frame.dtypes) == TYPES, frame.dtypes
    # As a number, since what PySpark makes of a time is in the machine's own zone.
    rows = frame.selectExpr("*", "unix_micros(time) AS microseconds").drop("time").withColumnRenamed("microseconds", "time")
    rows = [row.asDict() for row in rows.orderBy("entry").collect()]
    expected.same("Spark", [joined(row, int) for row in rows], expected.entries(expected.lines(jsonl)))
    print(f"swept: Spark {session.version}, {len(rows)} rows")


main(*sys.argv[1:])
