"""Compare the peer's tables with the expected rows; the last line printed is how many rows differ.

usage: spark-submit verify.py DIR [--history]
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder, history = sys.argv[1], "--history" in sys.argv
spark = (
    SparkSession.builder.config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hadoop")
    .config("spark.sql.catalog.lake.warehouse", folder + "/warehouse")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def expected(name, like, renamed):
    """Read expected rows with the types of a table."""
    milliseconds = set(renamed)
    fields = ", ".join(f"{renamed_of(c, renamed)} {'bigint' if c in milliseconds else t}" for c, t in like.dtypes)
    df = spark.read.schema(fields).json(f"{folder}/expected-{name}.jsonl")
    return df.select(*[F.timestamp_millis(renamed[c]).alias(c) if c in renamed else F.col(c) for c in like.columns])


def renamed_of(column, renamed):
    return renamed.get(column, column)


def differing(got, want):
    return got.exceptAll(want).count() + want.exceptAll(got).count()


total = 0
for table in ("orders", "payments", "refunds"):
    got = spark.table("lake.shop." + table)
    total += differing(got, expected(table, got, {"_source_ts": "_source_ms"}))
if history:
    got = spark.table("lake.shop.orders_history").drop("is_current")
    total += differing(got, expected("versions", got, {"valid_from": "from_ms", "valid_to": "to_ms"}))
spark.stop()
print(total)
