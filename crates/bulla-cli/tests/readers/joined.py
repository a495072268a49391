"""A row of a Parquet export, in the form that `expected` has."""


def joined(row, microseconds):
    """A row with the two forms of bytes, of numbers and of times as one. Of `time` what `microseconds` makes of it is looked at."""
    exact = row.pop("time_nanoseconds")
    assert microseconds(row["time"]) == exact // 1000, row
    row["time"] = exact
    for name in ["duration", "size"]:
        other = row.pop(name + "_digits")
        if other is not None:
            assert row[name] is None and int(other) >= 2**63, row
            row[name] = int(other)
    for name in ["location", "payload"]:
        other = row.pop(name + "_bytes")
        if other is not None:
            assert row[name] is None, row
            row[name] = bytes(other)
        elif row[name] is not None:
            row[name] = row[name].encode()
    return row
