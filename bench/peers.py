"""What walstream's backfill is held against: a bare COPY, Spark alone, Debezium."""

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from bench.watch import Figure, Program, Topic
from walstream.local import LocalKafka, LocalPostgres
from walstream.local.java import find_java
from walstream.local.port import free_port

_LONGEST_S: Final = 1200.0
_SPARK: Final = (
    # newer ones name a token provider that Maven Central does not have
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
    "org.postgresql:postgresql:42.7.5",
)
_SPARK_OWN: Final = (  # jars that pyspark brings itself
    ("hadoop-", "jsr305-", "lz4-", "scala-", "slf4j-", "snappy-", "spark-tags")
)
_CONNECT: Final = "4.1.1"  # what this Debezium is made with
_DEBEZIUM: Final = (
    "io.debezium:debezium-connector-postgres:3.5.0.Final",
    *(
        f"org.apache.kafka:connect-{part}:{_CONNECT}"
        for part in ("runtime", "json", "transforms")
    ),
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4!",
)
_HEAP: Final = "2g"


@dataclass
class Place:
    """Where all of them read and write."""

    postgres: LocalPostgres
    kafka: LocalKafka
    folder: Path
    rows: int
    partitions: int

    def topic(self, name: str) -> Topic:
        return Topic(self.kafka.bootstrap, name, self.partitions)

    def pages(self) -> int:
        with psycopg.connect(self.postgres.dsn()) as connection:
            query = (
                "SELECT pg_relation_size('backlog') / current_setting('block_size')"
                "::int"
            )
            row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0


def copy(place: Place) -> Figure:
    """Read the whole table once, into nothing."""
    began = time.perf_counter()
    subprocess.run(
        [
            *(place.postgres.binaries / "psql", "-q", "-X", "-d", place.postgres.dsn()),
            *("-c", "COPY backlog TO STDOUT", "-o", "/dev/null"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    took = time.perf_counter() - began
    return Figure(took, took, place.rows / took)


def jdbc(place: Place, run: int) -> tuple[Figure, Figure]:
    """Send it by Spark's own means: at the first time, and when it is warm."""
    names = [f"jdbc{run}.cold", f"jdbc{run}.warm"]
    topics = [place.topic(name) for name in names]
    jars = [str(jar) for jar in fetch(*_SPARK) if not jar.name.startswith(_SPARK_OWN)]
    command = [
        *(sys.executable, "-m", "bench.jdbc"),
        *("--jars", ",".join(jars), "--pages", str(place.pages())),
        *("--url", f"jdbc:postgresql://127.0.0.1:{place.postgres.port}/postgres"),
        *("--bootstrap", place.kafka.bootstrap, *names),
    ]
    with Program(command, place.folder / f"jdbc{run}.log") as program:
        cold = topics[0].filled(place.rows, program, _LONGEST_S)
        program.complete(cold, place.rows)
        program.began = time.perf_counter()
        warm = topics[1].filled(place.rows, program, _LONGEST_S)
        program.complete(warm, place.rows)
        warm.cpu_us_per_row -= cold.cpu_us_per_row
        program.wait()
    for topic in topics:
        topic.close(place.rows)
    return cold, warm


def debezium(place: Place, run: int) -> Figure:
    """Let a Kafka Connect of its own make Debezium's initial snapshot."""
    server = f"debezium{run}"
    topic = place.topic(f"{server}.public.backlog")
    folder = place.folder / server
    folder.mkdir()
    worker, connector = folder / "worker.properties", folder / "connector.properties"
    worker.write_text(_lines(_worker(place, folder)), "utf-8")
    connector.write_text(_lines(_connector(place, server)), "utf-8")
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    command: list[str | Path] = [
        *(find_java(), f"-Xmx{_HEAP}", f"-Dlog4j2.configurationFile={logging}"),
        *("-cp", ":".join(map(str, fetch(*_DEBEZIUM)))),
        *("org.apache.kafka.connect.cli.ConnectStandalone", worker, connector),
    ]
    with Program(command, place.folder / f"{server}.log") as program:
        figure = topic.filled(place.rows, program, _LONGEST_S)
        program.complete(figure, place.rows)
    topic.close(place.rows)
    return figure


_LOGGING: Final = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


def _worker(place: Place, folder: Path) -> Mapping[str, object]:
    plain = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": place.kafka.bootstrap,
        "listeners": f"http://127.0.0.1:{free_port()}",
        "key.converter": plain,
        "key.converter.schemas.enable": "false",
        "value.converter": plain,
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "plugin.discovery": "hybrid_warn",
        "producer.acks": "all",
        "producer.compression.type": "lz4",
        "producer.linger.ms": 20,
        "producer.batch.size": 1_000_000,
        "producer.buffer.memory": 64 << 20,
    }


def _connector(place: Place, server: str) -> Mapping[str, object]:
    """Tune it: one table is read by one thread, whatever snapshot.max.threads says."""
    return {
        "name": server,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": 1,
        "database.hostname": "127.0.0.1",
        "database.port": place.postgres.port,
        "database.user": "postgres",
        "database.password": "",
        "database.dbname": "postgres",
        "topic.prefix": server,
        "plugin.name": "pgoutput",
        "slot.name": server,
        "publication.name": server,
        "publication.autocreate.mode": "filtered",
        "table.include.list": "public.backlog",
        "snapshot.mode": "initial_only",
        "snapshot.fetch.size": 10_000,
        "decimal.handling.mode": "string",
        "max.batch.size": 32_768,
        "max.queue.size": 262_144,
        "poll.interval.ms": 10,
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={setting}\n" for name, setting in settings.items())


def fetch(*coordinates: str) -> list[Path]:
    """Give the jars of Maven coordinates, and what they need."""
    import jgo  # noqa: PLC0415 - slow to import

    artifacts = jgo.resolve("+".join(coordinates))
    return [artifact.resolve() for artifact in artifacts]
