"""Compare Iceberg tables with expected rows, and say what logs of changes hold.

What to look at comes as JSON on standard input, see verify.go; so does the answer on
standard output. Tables are read by PyIceberg, batch by batch.
"""

import json
import sys
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyiceberg.table import StaticTable

# Expected columns that are times in milliseconds, and what the tables call them.
MILLIS = {"_source_ms": "_source_ts", "from_ms": "valid_from", "to_ms": "valid_to"}
# 9999-12-31, by which a version says that it still holds, unless by NULL.
OPEN = 253402214400000
INSTANT = pa.timestamp("us", tz="UTC")


def differing(got, want):
    """Return the rows that only one of two tables has, and how many times more often (got) or less (want)."""
    sides = [t.append_column("_side", pa.repeat(pa.scalar(n, pa.int64()), t.num_rows)) for t, n in ((got, 1), (want, -1))]
    sums = pa.concat_tables(sides).group_by(want.column_names).aggregate([("_side", "sum")])
    return sums.filter(pc.not_equal(sums["_side_sum"], 0))


def plain(column):
    """Return a column of a table as text, int64, bool or instant: what expected rows are read as."""
    t = column.type
    if pa.types.is_integer(t):
        return column.cast(pa.int64())
    if pa.types.is_timestamp(t):
        return column.cast(INSTANT)
    return column if pa.types.is_boolean(t) else column.cast(pa.string())


def millis(column):
    """Return a table's times as milliseconds, NULL for an end that is still open."""
    ms = pc.divide(column.cast(INSTANT).cast(pa.int64()), 1000)
    return pc.if_else(pc.equal(ms, OPEN), None, ms)


def read(path, columns):
    """Read the columns of a table, by the names that the expected rows have."""
    names = [MILLIS.get(c, c) for c in columns]
    table = StaticTable.from_metadata(path)
    out = []
    for batch in table.scan(selected_fields=tuple(names)).to_arrow_batch_reader():
        out.append(pa.table([millis(batch[n]) if c in MILLIS else plain(batch[n]) for c, n in zip(columns, names)], names=columns))
    return table, pa.concat_tables(out)


def expected(path, like):
    """Read expected rows as the types of a table."""
    fields = [pa.field(f.name, pa.string() if pa.types.is_timestamp(f.type) else f.type) for f in like]
    options = pa.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    table = pa.json.read_json(path, read_options=pa.json.ReadOptions(block_size=16 << 20), parse_options=options)
    return table.select(like.names).cast(like)


def compare(spec):
    """Compare one table with its expected rows."""
    with open(spec["expected"], encoding="utf-8") as lines:
        columns = [c for c in json.loads(lines.readline()) if c not in spec["lacks"]]
    table, got = read(spec["metadata"], columns)
    off = differing(got, expected(spec["expected"], got.schema))
    return {
        "rows": got.num_rows,
        "differing": pc.sum(pc.abs(off["_side_sum"])).as_py() or 0,
        "examples": [str(row) for row in off.slice(0, 3).to_pylist()],
        "written_ms": table.current_snapshot().timestamp_ms,
    }


def log(spec):
    """Say what a log of changes holds; of deleted rows also what they were worth."""
    table = StaticTable.from_metadata(spec["metadata"])
    ops, offsets = {}, []
    for batch in table.scan(selected_fields=("op", "_offset")).to_arrow_batch_reader():
        offsets.append(batch["_offset"])
        for op in batch["op"].value_counts():
            name = op["values"].as_py()
            ops[name] = ops.get(name, 0) + op["counts"].as_py()
    offsets = pa.chunked_array(offsets)
    out = {"ops": ops, "rows": len(offsets), "offsets": pc.count_distinct(offsets).as_py(), "last_offset": pc.max(offsets).as_py()}
    if spec["worth"]:
        # As docs/query-the-lake.md asks; what is half of a key move is not deleted.
        rows = table.scan(row_filter="op = 'd'", selected_fields=("op", "pk", "_other_pk", "before")).to_arrow().to_pylist()
        rows = [r for r in rows if r["_other_pk"] is None]
        worth = {}
        for r in rows:
            worth[r["before"]["currency"]] = worth.get(r["before"]["currency"], 0) + r["before"]["total_minor"]
        out["deleted"], out["worth"] = len({r["pk"]["order_id"] for r in rows}), worth
    return out


def main():
    spec = json.load(sys.stdin)
    out = {"tables": {}, "logs": {}, "versions": {name: version(name) for name in ("pyiceberg", "pyarrow")}}
    for name, table in spec["tables"].items():
        out["tables"][name] = compare(table)
    for name, table in spec["logs"].items():
        out["logs"][name] = log(table)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
