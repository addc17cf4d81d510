"""Change rows of an Iceberg table as some other writer would, by PyIceberg: rows are
deleted, copied and altered in one transaction that knows nothing of Lakeweir. When
another commit comes first, all of it is done again on top of that.

usage: edit.py CATALOG_URI WAREHOUSE NAMESPACE TABLE KEY_COLUMN < edits.json
"""
import json
import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import In


def edit(table, key, edits):
    keys = sorted({k for e in edits for k in e.get("keys", [])})
    found = table.scan(row_filter=In(key, keys)).to_arrow()
    rows = {r[key]: r for r in found.to_pylist()}
    gone, new = set(), []
    for e in edits:
        of = [rows[k] for k in e["keys"]]
        match e["do"]:
            case "delete":
                gone.update(e["keys"])
            case "copy":
                new.extend({**r, **e.get("set", {})} for r in of)
            case "set":
                gone.update(e["keys"])
                new.extend({**r, **e["set"]} for r in of)
            case "swap":
                gone.update(e["keys"])
                a, b = of
                c = e["column"]
                new.extend([{**a, c: b[c]}, {**b, c: a[c]}])
            case other:
                raise ValueError(other)
    with table.transaction() as tx:
        if gone:
            tx.delete(In(key, sorted(gone)))
        if new:
            tx.append(pa.Table.from_pylist(new, schema=found.schema))


uri, warehouse, namespace, name, key = sys.argv[1:]
catalog = SqlCatalog("lakeweir", uri=uri, warehouse=warehouse)
edits = json.load(sys.stdin)
for attempt in range(100):
    try:
        edit(catalog.load_table((namespace, name)), key, edits)
        break
    except (CommitFailedException, ValidationException):
        if attempt == 99:
            raise
