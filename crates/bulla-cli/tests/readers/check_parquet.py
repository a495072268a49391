"""Checks that a Parquet export says what the export as JSON lines says, and with the types that it should have:
check_parquet.py FILE.parquet FILE.jsonl"""

import json
import sys

import duckdb
import expected
import pandas
import pyarrow
import pyarrow.parquet
from joined import joined

LABEL = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
SCHEMA = pyarrow.schema(
    [
        pyarrow.field("entry", pyarrow.int64(), nullable=False),
        pyarrow.field("time", pyarrow.timestamp("us", tz="UTC"), nullable=False),
        pyarrow.field("time_nanoseconds", pyarrow.int64(), nullable=False),
        pyarrow.field("operation", LABEL, nullable=False),
        ("location", pyarrow.string()),
        ("subject", pyarrow.list_(pyarrow.field("element", pyarrow.string(), nullable=False))),
        ("controller", LABEL),
        ("processor", LABEL),
        ("purpose", LABEL),
        ("actor", LABEL),
        ("client", LABEL),
        ("stream", LABEL),
        ("status", pyarrow.int64()),
        ("duration", pyarrow.int64()),
        ("size", pyarrow.int64()),
        ("flags", pyarrow.int64()),
        ("payload", pyarrow.string()),
        ("location_bytes", pyarrow.binary()),
        ("payload_bytes", pyarrow.binary()),
        ("duration_digits", pyarrow.string()),
        ("size_digits", pyarrow.string()),
        ("withheld", LABEL),
    ]
)
DUCKDB = {
    "entry": "BIGINT", "time": "TIMESTAMP WITH TIME ZONE", "time_nanoseconds": "BIGINT", "operation": "VARCHAR", "location": "VARCHAR",
    "subject": "VARCHAR[]", "controller": "VARCHAR", "processor": "VARCHAR", "purpose": "VARCHAR", "actor": "VARCHAR",
    "client": "VARCHAR", "stream": "VARCHAR", "status": "BIGINT", "duration": "BIGINT", "size": "BIGINT",
    "flags": "BIGINT", "payload": "VARCHAR", "location_bytes": "BLOB", "payload_bytes": "BLOB",
    "duration_digits": "VARCHAR", "size_digits": "VARCHAR", "withheld": "VARCHAR",
}  # fmt: skip
LABELS = [field.name for field in SCHEMA if field.type == LABEL]


def of_pyarrow(path, count, wanted):
    file = pyarrow.parquet.ParquetFile(path)
    assert file.schema_arrow.equals(SCHEMA), file.schema_arrow
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    assert all(0 < group.num_rows <= 128 * 1024 for group in groups)
    codecs = {group.column(index).compression for group in groups for index in range(group.num_columns)}
    assert codecs <= {"ZSTD"}, codecs
    table = pyarrow.parquet.read_table(path)
    table.validate(full=True)
    assert table.num_rows == count, f"pyarrow: {table.num_rows} rows, not {count}"
    table = table.take(pyarrow.array(expected.compared(count), pyarrow.int64()))
    table = table.set_column(1, "time", table["time"].cast(pyarrow.int64()))
    expected.same("pyarrow", [joined(row, int) for row in table.to_pylist()], wanted)
    about = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    del about["ARROW:schema"]
    print(json.dumps({"row_groups": len(groups), "about": about}))


def of_pandas(path, count, wanted):
    frame = pandas.read_parquet(path, dtype_backend="numpy_nullable")
    kinds = {
        "entry": "Int64", "time": "datetime64[us, UTC]", "time_nanoseconds": "Int64", "status": "Int64", "duration": "Int64",
        "size": "Int64", "flags": "Int64", "location": "string", "payload": "string",
    } | {name: "category" for name in LABELS}  # fmt: skip
    for name, kind in kinds.items():
        assert str(frame.dtypes[name]) == kind, f"{name}: {frame.dtypes[name]}, not {kind}"
    assert len(frame) == count, f"pandas: {len(frame)} rows, not {count}"
    frame = frame.iloc[list(expected.compared(count))].copy()
    frame["time"] = frame["time"].astype("int64")
    columns = {
        name: [
            list(value) if name == "subject" and value is not None else None if value is pandas.NA or value != value else value
            for value in (frame[name].astype(object) if name in LABELS else frame[name]).tolist()
        ]
        for name in frame.columns
    }
    rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    expected.same("pandas", [joined(row, int) for row in rows], wanted)


def of_duckdb(path, count, wanted):
    found = duckdb.execute("DESCRIBE FROM read_parquet(?)", [path]).fetchall()
    assert {name: kind for name, kind, *_ in found} == DUCKDB
    found = duckdb.execute("SELECT * REPLACE (epoch_us(time) AS time) FROM read_parquet(?) ORDER BY entry", [path])
    names = [column[0] for column in found.description]
    rows = found.fetchall()
    assert len(rows) == count, f"DuckDB: {len(rows)} rows, not {count}"
    rows = [joined(dict(zip(names, rows[place])), int) for place in expected.compared(count)]
    expected.same("DuckDB", rows, wanted)


def main(path, jsonl):
    lines = expected.lines(jsonl)
    count, wanted = len(lines), expected.entries(lines[place] for place in expected.compared(len(lines)))
    of_pandas(path, count, wanted)
    of_duckdb(path, count, wanted)
    of_pyarrow(path, count, wanted)


main(*sys.argv[1:])
