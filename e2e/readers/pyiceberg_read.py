"""Read whole Iceberg tables by PyIceberg; their names come on standard input.

usage: read.py OUT CATALOG_NAME PROPERTIES
"""

import decimal
import json
import sys

from pyiceberg.catalog import load_catalog
from pyiceberg.types import ListType, StructType

from normal import write

decimal.getcontext().prec = 80


def name_of(t):
    return f"list<{name_of(t.element_type)}>" if isinstance(t, ListType) else str(t)


def types_of(fields, prefix=""):
    types = {}
    for f in fields:
        if isinstance(f.field_type, StructType):
            types.update(types_of(f.field_type.fields, f.name + "."))
        else:
            types[prefix + f.name] = name_of(f.field_type)
    return types


def main():
    path, name, properties = sys.argv[1:]
    catalog = load_catalog(name, **json.loads(properties))
    with open(path, "w", encoding="utf-8") as out:
        for table in sys.stdin.read().split():
            t = catalog.load_table(table)
            write(out, table, types_of(t.schema().fields), t.scan().to_arrow())


main()
