"""The normal form of a value, from the Arrow array that a reader of Iceberg gives.

One rule for each lake type, as docs/reference/types.md lists them. Values are taken
from the array itself, without Python's own date and time types in between: those end
at the years 1 and 9999.

    boolean                  true, false
    int, long                the digits
    float, double            the IEEE 754 bits in hexadecimal; nan
    decimal(p, s)            the digits, with exactly s behind the point
    date                     days since 1970-01-01
    time                     microseconds since midnight
    timestamp, timestamptz   microseconds since 1970-01-01 00:00 (UTC)
    uuid                     in lower case, with dashes (Spark shows it as a string)
    binary                   hexadecimal
    string                   itself
    list<x>                  a list of the elements' forms, None for NULL
    struct                   an object of the fields' forms
"""

import json
import struct
import uuid

import pyarrow as pa


def normal(arr):
    """Return the forms of an array's values, None for NULL."""
    if isinstance(arr, pa.ChunkedArray):
        return [v for chunk in arr.chunks for v in normal(chunk)]
    is_uuid = False
    if isinstance(arr, pa.ExtensionArray):
        is_uuid = arr.type.extension_name == "arrow.uuid"
        arr = arr.storage
    t = arr.type
    valid = arr.is_valid().to_pylist()

    if pa.types.is_struct(t):
        names = [t.field(i).name for i in range(t.num_fields)]
        fields = [normal(f) for f in (arr.field(i) for i in range(t.num_fields))]
        return [{n: f[i] for n, f in zip(names, fields)} if valid[i] else None for i in range(len(arr))]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        offsets, values = arr.offsets.to_pylist(), normal(arr.values)
        return [values[offsets[i] : offsets[i + 1]] if valid[i] else None for i in range(len(arr))]

    if pa.types.is_timestamp(t):
        assert t.unit == "us", t
        arr = arr.cast(pa.int64())
    elif pa.types.is_time64(t):
        assert t.unit == "us", t
        arr = arr.cast(pa.int64())
    elif pa.types.is_date32(t):
        arr = arr.cast(pa.int32())
    form = _form(t, is_uuid)
    return [form(v) if v is not None else None for v in arr.to_pylist()]


def _form(t, is_uuid):
    if is_uuid:
        return lambda v: str(uuid.UUID(bytes=v))
    if pa.types.is_boolean(t):
        return lambda v: "true" if v else "false"
    if pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_time64(t) or pa.types.is_date32(t):
        return str
    if pa.types.is_float32(t):
        return lambda v: "nan" if v != v else struct.pack(">f", v).hex()
    if pa.types.is_float64(t):
        return lambda v: "nan" if v != v else struct.pack(">d", v).hex()
    if pa.types.is_decimal(t):
        return lambda v: format(v, "f")
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return lambda v: v
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t):
        return lambda v: v.hex()
    raise TypeError(f"no normal form for {t}")


def write(out, table, types, arrow):
    """Write a table as lines of JSON: its name and types, then each row."""
    print(json.dumps({"table": table, "types": types}), file=out)
    columns = [normal(arrow.column(i)) for i in range(arrow.num_columns)]
    for i in range(arrow.num_rows):
        print(json.dumps({"row": {n: c[i] for n, c in zip(arrow.column_names, columns)}}), file=out)
