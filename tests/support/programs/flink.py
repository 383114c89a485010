"""Flink's SQL on topics of Debezium's format, in one process until they end."""

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.servers.maven import jars
from walstream.spark.java import (
    find_java,
)

_VERSION: Final = "2.2.1"
_PARTS: Final = (
    *("table-api-java", "table-planner-loader", "table-runtime", "clients", "json"),
    # what these need, which would come in an older version
    *("annotations", "connector-base", "connector-datagen", "core", "core-api"),
    *("datastream-api", "file-sink-common", "hadoop-fs", "metrics-core"),
    *("queryable-state-client-java", "rpc-akka-loader", "rpc-core", "runtime"),
    *("streaming-java", "table-api-java-bridge", "table-common"),
)
_JARS: Final = (
    *(f"org.apache.flink:flink-{part}:{_VERSION}" for part in _PARTS),
    "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4!",
)
_SOURCE: Final = Path(__file__).with_name("Flink.java")
_OPENED: Final = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")
_LONGEST_S: Final = 240
_CREATE: Final = """
CREATE TABLE changes ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}',
  'properties.bootstrap.servers' = '{bootstrap}', 'properties.group.id' = 'flink',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'debezium-json', 'debezium-json.schema-include' = '{schemas}')
"""


def table_of(
    bootstrap: str, topic: str, columns: Sequence[str], *, schemas: bool
) -> Counter[tuple[str, ...]]:
    """Return the rows that the topic's changes come to, each with its number."""
    create = _CREATE.format(
        columns=", ".join(columns),
        topic=topic,
        bootstrap=bootstrap,
        schemas=str(schemas).lower(),
    )
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    classes = ":".join(map(str, jars(*_JARS)))
    java = [str(find_java()), "-Xmx512m", "-XX:TieredStopAtLevel=1", *opened]
    said = subprocess.run(
        [*java, "-cp", classes, str(_SOURCE), create, "SELECT * FROM changes"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_S,
    )
    assert said.returncode == 0, (said.stdout + said.stderr)[-3000:]
    found: Counter[tuple[str, ...]] = Counter()
    for line in said.stdout.splitlines():
        mark, _, rest = line.partition("\t")
        if mark == "row":
            kind, *values = rest.split("\t")
            found[tuple(values)] += 1 if kind in {"+I", "+U"} else -1
    assert min(found.values(), default=0) >= 0, (
        "a row was taken back that was not there"
    )
    return +found
