"""`python -m bench.jdbc`: a table to Kafka by Spark's own means, in one process.

`spark.read.jdbc` by ranges of ctid, JSON by Spark, Spark's Kafka connector. Each topic
named is filled once: the first run is cold, the others find their code compiled.
"""

import argparse
import json
from typing import Any, Final

from pyspark.sql import SparkSession

_PAGES: Final = 2048  # of a range: as large as walstream's chunks
_PRODUCER: Final = {  # as walstream's tasks send
    "acks": "all",
    "compression.type": "lz4",
    "linger.ms": "20",
    "batch.size": "1000000",
    "buffer.memory": str(64 << 20),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.jdbc")
    parser.add_argument("--jars", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--pages", type=int, required=True, help="pages of the table")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("topics", nargs="+")
    wanted = parser.parse_args()
    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]")
        .config("spark.jars", wanted.jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    for topic in wanted.topics:
        _send(spark, wanted, topic)
    spark.stop()


def _send(spark: Any, wanted: Any, topic: str) -> None:
    properties = {
        "user": "postgres",
        "driver": "org.postgresql.Driver",
        "fetchsize": "10000",
    }
    rows = spark.read.jdbc(
        wanted.url,
        "backlog",
        predicates=ranges(wanted.pages),
        properties=properties,
    )
    key = "to_json(array(cast(id AS string))) AS key"
    writer = rows.selectExpr(key, "to_json(struct(*)) AS value").write.format("kafka")
    for name, setting in _PRODUCER.items():
        writer = writer.option(f"kafka.{name}", setting)
    writer.option("kafka.bootstrap.servers", wanted.bootstrap).option(
        "topic", topic
    ).save()
    print(json.dumps({"done": topic}), flush=True)


def ranges(pages: int) -> list[str]:
    lows = range(0, max(pages, 1), _PAGES)
    bounds = [f"ctid >= '({low},0)'::tid" for low in lows]
    inner = [f"{b} AND ctid < '({low},0)'::tid" for b, low in zip(bounds, lows[1:])]  # noqa: B905 - the last is open-ended
    return [*inner, bounds[-1]]


if __name__ == "__main__":
    main()
