"""What walstream's backfill is held against: a bare COPY, Spark alone, Debezium."""

import subprocess
import sys
import time
from typing import Final

from bench import connect
from bench.place import Place
from bench.watch import Figure, Program
from tests.support.servers.maven import jars

_LONGEST_S: Final = 1200.0
_SPARK: Final = (
    # newer ones name a token provider that Maven Central does not have
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
    "org.postgresql:postgresql:42.7.5",
)
_SPARK_OWN: Final = (  # jars that pyspark brings itself
    ("hadoop-", "jsr305-", "lz4-", "scala-", "slf4j-", "snappy-", "spark-tags")
)
_SNAPSHOT: Final = {
    **connect.UNWRAPPED,
    # one table is read by one thread, whatever else is said
    "publication.autocreate.mode": "filtered",
    "snapshot.mode": "initial_only",
    "snapshot.fetch.size": 10_000,
}


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
    brought = [str(jar) for jar in jars(*_SPARK) if not jar.name.startswith(_SPARK_OWN)]
    command = [
        *(sys.executable, "-m", "bench.jdbc"),
        *("--jars", ",".join(brought), "--pages", str(place.pages())),
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
    command = connect.command(
        place, server, {"table.include.list": "public.backlog", **_SNAPSHOT}
    )
    with Program(command, place.folder / f"{server}.log") as program:
        figure = topic.filled(place.rows, program, _LONGEST_S)
        program.complete(figure, place.rows)
    topic.close(place.rows)
    return figure
