"""Print every row of an Iceberg table, as PyIceberg reads it, one JSON text a line.

Values are written exactly and without Python's own types in between: numbers and
instants as the integers underneath, decimals as unscaled integers, floats and bytes
as hexadecimal, lists as lists, structs as objects.

usage: read.py CATALOG_URI CATALOG_NAME WAREHOUSE NAMESPACE TABLE [PROPERTY=VALUE ...] [--snapshot=ID] [--filter=EXPRESSION]
"""
import json
import struct
import sys
import uuid
from decimal import Decimal

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog


def canon(arr):
    if isinstance(arr, pa.ChunkedArray):
        return [v for chunk in arr.chunks for v in canon(chunk)]
    if isinstance(arr, pa.ExtensionArray):
        arr = arr.storage
    t = arr.type
    if pa.types.is_struct(t):
        fields = [canon(arr.field(i)) for i in range(t.num_fields)]
        names = [t.field(i).name for i in range(t.num_fields)]
        valid = arr.is_valid().to_pylist()
        return [
            {n: f[i] for n, f in zip(names, fields)} if valid[i] else None
            for i in range(len(arr))
        ]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        offsets, values = arr.offsets.to_pylist(), canon(arr.values)
        valid = arr.is_valid().to_pylist()
        return [values[offsets[i] : offsets[i + 1]] if valid[i] else None for i in range(len(arr))]
    if pa.types.is_timestamp(t) or pa.types.is_time64(t):
        return [None if v is None else str(v) for v in arr.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(t):
        return [None if v is None else str(v) for v in arr.cast(pa.int32()).to_pylist()]
    if pa.types.is_decimal(t):
        return [None if v is None else str(int(v.scaleb(t.scale))) for v in arr.to_pylist()]
    if pa.types.is_float32(t):
        return [None if v is None else struct.pack(">f", v).hex() for v in arr.to_pylist()]
    if pa.types.is_float64(t):
        return [None if v is None else struct.pack(">d", v).hex() for v in arr.to_pylist()]
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t):
        out = []
        for v in arr.to_pylist():
            out.append(None if v is None else (v.bytes if isinstance(v, uuid.UUID) else v).hex())
        return out
    if pa.types.is_integer(t):
        return [None if v is None else str(v) for v in arr.to_pylist()]
    return arr.to_pylist()


def main():
    import decimal

    decimal.getcontext().prec = 80
    uri, name, warehouse, namespace, table = sys.argv[1:6]
    given = [p.split("=", 1) for p in sys.argv[6:]]
    props = {k: v for k, v in given if not k.startswith("--")}
    asked = {k: v for k, v in given if k.startswith("--")}
    scan = {}
    if "--snapshot" in asked:
        scan["snapshot_id"] = int(asked["--snapshot"])
    if "--filter" in asked:
        scan["row_filter"] = asked["--filter"]
    catalog = SqlCatalog(name, uri=uri, warehouse=warehouse, **props)
    t = catalog.load_table((namespace, table)).scan(**scan).to_arrow()
    columns = [canon(t.column(i)) for i in range(t.num_columns)]
    for row in range(t.num_rows):
        print(json.dumps({n: c[row] for n, c in zip(t.column_names, columns)}, sort_keys=True))


main()
