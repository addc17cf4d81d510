"""Read whole Iceberg tables by Spark; their names come on standard input.

usage: read.py OUT CATALOG_NAME PROPERTIES JARS
"""

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from normal import write


def types_of(schema, prefix=""):
    types = {}
    for f in schema.fields:
        if isinstance(f.dataType, StructType):
            types.update(types_of(f.dataType, f.name + "."))
        else:
            types[prefix + f.name] = f.dataType.simpleString()
    return types


def main():
    path, name, properties, jars = sys.argv[1:]
    catalog = "spark.sql.catalog." + name
    builder = (
        SparkSession.builder.appName("lakeweir-e2e")
        .master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", jars)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
    )
    for key, value in json.loads(properties).items():
        builder = builder.config(catalog + "." + key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with open(path, "w", encoding="utf-8") as out:
        for table in sys.stdin.read().split():
            try:
                df = spark.table(name + "." + table)
            except Exception as e:  # Spark, py4j and Iceberg each have their own
                print(json.dumps({"table": table, "refused": str(e).splitlines()[0]}), file=out)
                continue
            write(out, table, types_of(df.schema), df.toArrow())
    spark.stop()


main()
