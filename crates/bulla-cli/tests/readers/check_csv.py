"""Checks that a CSV export says what the export as JSON lines says: check_csv.py FILE.csv FILE.jsonl

Python's csv module cannot tell an absent field from an empty one, DuckDB can.
"""

import base64
import csv
import json
import sys

import duckdb
import expected

HEADER = expected.COLUMNS[:-1] + ["location_base64", "payload_base64"] + expected.COLUMNS[-1:]


def value(name, cell):
    if cell is None or name == "operation":
        return cell
    if name in expected.NUMBERS:
        assert cell == str(int(cell)), cell
        return int(cell)
    if name == "time":
        return expected.nanoseconds(cell)
    if name == "subject":
        return json.loads(cell) if cell.startswith("[") else [cell]
    return cell.encode() if name in ["location", "payload"] else cell


def row(cells):
    cells = dict(zip(HEADER, cells, strict=True))
    row = {name: value(name, cells[name]) for name in expected.COLUMNS}
    for name in ["location", "payload"]:
        encoded = cells[name + "_base64"]
        if encoded is not None:
            assert row[name] is None, cells
            row[name] = base64.b64decode(encoded, validate=True)
    return row


def main(path, jsonl):
    wanted = expected.entries(expected.lines(jsonl))

    csv.field_size_limit(1 << 30)
    with open(path, encoding="utf-8", newline="") as text:
        records = list(csv.reader(text, strict=True))
    assert records.pop(0) == HEADER
    absent = [row([cell or None for cell in record]) for record in records]
    empty_is_absent = [{name: None if value in ["", b""] else value for name, value in row.items()} for row in wanted]
    expected.same("csv", absent, empty_is_absent)

    columns = ", ".join(f"{name}: 'VARCHAR'" for name in HEADER)
    query = f"""
        FROM read_csv($path, auto_detect = false, header = true, columns = {{{columns}}},
            delim = ',', quote = '"', escape = '"', new_line = '\\r\\n', nullstr = '', allow_quoted_nulls = false,
            max_line_size = 40000000)"""
    found = duckdb.execute(query, {"path": path})
    assert [column[0] for column in found.description] == HEADER
    expected.same("DuckDB", [row(cells) for cells in found.fetchall()], wanted)


main(*sys.argv[1:])
