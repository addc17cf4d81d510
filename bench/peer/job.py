"""Fold the reference workload's topics into Iceberg tables, by MERGE (merge on read, format 3).

usage: spark-submit job.py DIR --brokers HOST:PORT --prefix P --batch-rows N [--read-partitions N] [--history]
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

ap = argparse.ArgumentParser()
ap.add_argument("dir")
ap.add_argument("--brokers", required=True)
ap.add_argument("--prefix", required=True)
ap.add_argument("--batch-rows", required=True)
ap.add_argument("--read-partitions", default="")
ap.add_argument("--history", action="store_true")
args = ap.parse_args()

KEYS = {"orders": "order_id", "payments": "payment_id", "refunds": "refund_id"}
COLUMNS = {
    "orders": "order_id string, customer_id string, channel string, country string, status string, currency string,"
    " total_minor bigint, item_count int, placed_at timestamp, updated_at timestamp",
    "payments": "payment_id string, order_id string, status string, amount_minor bigint, currency string, provider string,"
    " method string, authorised_at timestamp, captured_at timestamp, voided_at timestamp",
    "refunds": "refund_id string, order_id string, payment_id string, amount_minor bigint, currency string, reason string,"
    " refunded_at timestamp",
}
NAMES = {table: [c.split()[0] for c in columns.split(",")] for table, columns in COLUMNS.items()}
META = "_op string, _lsn bigint, _tx_id bigint, _source_ts timestamp"
PROPERTIES = """TBLPROPERTIES ('format-version'='3', 'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read',
  'write.delete.mode'='merge-on-read', 'write.parquet.compression-codec'='zstd')"""

spark = (
    SparkSession.builder.appName("peer")
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hadoop")
    .config("spark.sql.catalog.lake.warehouse", args.dir + "/warehouse")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
for table, columns in COLUMNS.items():
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.{table}_cdc ({columns}, {META}, _snapshot string, _partition int, _offset bigint) USING iceberg {PROPERTIES}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.{table} ({columns}, {META}, _from_snapshot boolean) USING iceberg {PROPERTIES}")
if args.history:
    spark.sql(
        "CREATE TABLE IF NOT EXISTS lake.shop.orders_history (order_id string, status string, total_minor bigint, valid_from timestamp,"
        f" valid_to timestamp, is_current boolean, _lsn bigint) USING iceberg {PROPERTIES}"
    )

SOURCE = StructType.fromDDL("lsn bigint, txId bigint, ts_ms bigint, snapshot string")
ENVELOPES = {
    table: StructType(
        [
            StructField("before", StructType.fromDDL(columns)),
            StructField("after", StructType.fromDDL(columns)),
            StructField("source", SOURCE),
            StructField("op", StringType()),
        ]
    )
    for table, columns in COLUMNS.items()
}


def merge_current(s, table):
    """Give each key the row of its last change."""
    key, columns = KEYS[table], NAMES[table] + ["_op", "_lsn", "_tx_id", "_source_ts", "_from_snapshot"]
    s.sql(f"""CREATE OR REPLACE TEMP VIEW latest_{table} AS SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY _from_snapshot ASC, _lsn DESC, _offset DESC) AS _rank
        FROM (SELECT *, _op = 'r' AS _from_snapshot FROM changes_{table})) WHERE _rank = 1""")
    newer = "((s._lsn > t._lsn AND s._from_snapshot = t._from_snapshot) OR (t._from_snapshot AND NOT s._from_snapshot))"
    s.sql(f"""MERGE INTO lake.shop.{table} t USING latest_{table} s ON t.{key} = s.{key}
        WHEN MATCHED AND {newer} AND s._op = 'd' THEN DELETE
        WHEN MATCHED AND {newer} THEN UPDATE SET {", ".join(f"t.{c} = s.{c}" for c in columns)}
        WHEN NOT MATCHED AND s._op <> 'd' THEN INSERT ({", ".join(columns)}) VALUES ({", ".join("s." + c for c in columns)})""")


def merge_history(s):
    """Close and open versions of orders; status and total_minor are tracked."""
    s.sql("""CREATE OR REPLACE TEMP VIEW versions AS
        WITH new AS (SELECT order_id, status, total_minor, _source_ts AS ts, _lsn, _offset, _op FROM changes_orders),
        touched AS (SELECT DISTINCT order_id FROM new),
        open AS (SELECT t.order_id, t.status, t.total_minor, t.valid_from AS ts, t._lsn, CAST(-1 AS bigint) AS _offset, 'open' AS _op
                 FROM lake.shop.orders_history t LEFT SEMI JOIN touched USING (order_id) WHERE t.is_current),
        both AS (SELECT * FROM new UNION ALL SELECT * FROM open),
        lagged AS (SELECT *, lag(_op) OVER w AS p_op, lag(status) OVER w AS p_status, lag(total_minor) OVER w AS p_total
                   FROM both WINDOW w AS (PARTITION BY order_id ORDER BY _offset)),
        begins AS (SELECT * FROM lagged WHERE p_op IS NULL OR _op = 'd' OR p_op = 'd'
                   OR status IS DISTINCT FROM p_status OR total_minor IS DISTINCT FROM p_total),
        ends AS (SELECT *, lead(ts) OVER (PARTITION BY order_id ORDER BY _offset) AS next FROM begins)
        SELECT order_id, status, total_minor, ts AS valid_from, next AS valid_to, next IS NULL AS is_current, _lsn, _op
        FROM ends WHERE _op <> 'd' AND NOT (_op = 'open' AND next IS NULL)""")
    s.sql("""MERGE INTO lake.shop.orders_history t USING versions s
        ON t.order_id = s.order_id AND t._lsn = s._lsn AND t.is_current AND s._op = 'open'
        WHEN MATCHED THEN UPDATE SET t.valid_to = s.valid_to, t.is_current = false
        WHEN NOT MATCHED THEN INSERT (order_id, status, total_minor, valid_from, valid_to, is_current, _lsn)
        VALUES (s.order_id, s.status, s.total_minor, s.valid_from, s.valid_to, s.is_current, s._lsn)""")


def fold(df, batch):
    s = df.sparkSession
    df.persist()
    for table in KEYS:
        e = F.from_json(F.col("value").cast("string"), ENVELOPES[table]).alias("e")
        events = df.filter((F.col("topic") == args.prefix + table) & F.col("value").isNotNull()).select(e, "partition", "offset")
        row = F.when(F.col("e.op") == "d", F.col("e.before")).otherwise(F.col("e.after"))
        changes = events.select(row.alias("row"), "e", "partition", "offset").select(
            *[F.col("row." + c).alias(c) for c in NAMES[table]],
            F.col("e.op").alias("_op"),
            F.col("e.source.lsn").alias("_lsn"),
            F.col("e.source.txId").alias("_tx_id"),
            F.timestamp_millis("e.source.ts_ms").alias("_source_ts"),
            F.col("e.source.snapshot").alias("_snapshot"),
            F.col("partition").alias("_partition"),
            F.col("offset").alias("_offset"),
        )
        changes.persist()
        changes.createOrReplaceTempView("changes_" + table)
        tag = f"{table}-{batch}"  # a batch that is tried again is not appended twice
        if s.sql(f"SELECT 1 FROM lake.shop.{table}_cdc.snapshots WHERE summary['peer.batch'] = '{tag}' LIMIT 1").count() == 0:
            changes.writeTo(f"lake.shop.{table}_cdc").option("snapshot-property.peer.batch", tag).append()
        merge_current(s, table)
        if args.history and table == "orders":
            merge_history(s)
        changes.unpersist()
    df.unpersist()


stream = spark.readStream.format("kafka")
if args.read_partitions:
    stream = stream.option("minPartitions", args.read_partitions)
(
    stream.option("kafka.bootstrap.servers", args.brokers)
    .option("subscribe", ",".join(args.prefix + table for table in KEYS))
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", args.batch_rows)
    .load()
    .writeStream.trigger(availableNow=True)
    .option("checkpointLocation", args.dir + "/checkpoint")
    .foreachBatch(fold)
    .start()
    .awaitTermination()
)
spark.stop()
