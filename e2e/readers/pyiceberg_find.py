"""Look for every value of Iceberg tables with filters, and say which are not found.

A reader answers a filter from the statistics of files and row groups first, so a
wrong bound hides rows. For every column that can be compared, each distinct value of
the whole table is asked for with =, >= and <=, NULL and NaN with questions of their
own, and the rows are counted. The tables' names come on standard input.

usage: find.py OUT CATALOG_NAME PROPERTIES PREFIX
Only columns whose name starts with PREFIX are asked about.
"""

import json
import sys
import uuid

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNaN, IsNull, LessThanOrEqual
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    FloatType,
    ListType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)


def values(column, t):
    """Return a column's values as the literals of PyIceberg's expressions."""
    arr = pa.concat_arrays([c.storage if isinstance(c, pa.ExtensionArray) else c for c in column.chunks])
    if isinstance(t, (TimestampType, TimestamptzType, TimeType)):
        return arr.cast(pa.int64()).to_pylist()
    if isinstance(t, DateType):
        return arr.cast(pa.int32()).to_pylist()
    if isinstance(t, UUIDType):
        return [None if v is None else uuid.UUID(bytes=v) for v in arr.to_pylist()]
    return arr.to_pylist()


def questions(name, t, all_values):
    """Yield each question about a column with the number of rows that answer it."""
    known = [v for v in all_values if v is not None and v == v]
    nulls, nans = all_values.count(None), sum(v is not None and v != v for v in all_values)
    yield IsNull(name), nulls
    if nans:
        yield IsNaN(name), nans
    for v in set(known):
        if isinstance(t, FloatType) and v in (float("inf"), float("-inf")):
            continue  # PyIceberg takes it for a number beyond the type, which nothing equals
        yield EqualTo(name, v), sum(w == v for w in known)
        if not isinstance(t, (BooleanType, UUIDType, BinaryType)) and not nans:  # where NaN stands is the reader's affair
            yield GreaterThanOrEqual(name, v), sum(w >= v for w in known)
            yield LessThanOrEqual(name, v), sum(w <= v for w in known)


def main():
    path, name, properties, prefix = sys.argv[1:]
    catalog = load_catalog(name, **json.loads(properties))
    with open(path, "w", encoding="utf-8") as out:
        for table in sys.stdin.read().split():
            t = catalog.load_table(table)
            arrow = t.scan().to_arrow()
            asked, wrong = 0, []
            for f in t.schema().fields:
                if isinstance(f.field_type, (StructType, ListType)) or not f.name.startswith(prefix):
                    continue
                for question, want in questions(f.name, f.field_type, values(arrow.column(f.name), f.field_type)):
                    asked += 1
                    try:
                        got = t.scan(row_filter=question, selected_fields=(f.name,)).to_arrow().num_rows
                    except Exception as e:
                        got = f"{type(e).__name__}: {e}"
                    if got != want:
                        wrong.append(f"{f.name} {f.field_type}: {question} finds {got} rows, not {want}"[:400])
            print(json.dumps({"table": table, "asked": asked, "wrong": wrong}), file=out)


main()
