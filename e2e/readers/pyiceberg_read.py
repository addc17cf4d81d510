"""Read whole Iceberg tables by PyIceberg; their names come on standard input.

usage: read.py OUT CATALOG_NAME CATALOG_FILE
"""

import decimal
import sys

from pyiceberg.catalog.sql import SqlCatalog
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
    path, name, file = sys.argv[1:]
    catalog = SqlCatalog(name, uri="sqlite:///" + file)
    with open(path, "w", encoding="utf-8") as out:
        for table in sys.stdin.read().split():
            t = catalog.load_table(table)
            write(out, table, types_of(t.schema().fields), t.scan().to_arrow())


main()
