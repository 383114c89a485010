"""`python -m bench.backfill`: rows that were there before, and who else brings them.

The same table goes to topics of the same broker: by walstream's backfill, by Spark's
own JDBC reader and Kafka connector, by Debezium's initial snapshot. One bare COPY is
the limit. Rates are those of the sending, from the first record to the last; the wall
time has each program's start in it. Ratios count, since machines are noisy.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

import psycopg
from rich.console import Console

from bench import peers
from bench.place import Place, warm
from bench.results import save
from bench.shown import show
from bench.watch import Figure, Program
from walstream.testing.servers import LocalKafka, LocalPostgres

_TABLE: Final = (
    "CREATE TABLE backlog (id bigint PRIMARY KEY, a int, note text, at timestamptz,"
    " amount numeric, name text)"
)
_FILL: Final = (
    "INSERT INTO backlog SELECT j, j % 100, 'some text of about forty characters, yes',"
    " now(), (j % 100) * 1.25, 'name ' || j FROM generate_series(1, {rows}) j"
)
_LONGEST_S: Final = 1200.0
_WALSTREAM, _COPY = "walstream", "COPY"
_COLD, _WARM = "spark.read.jdbc, first", "spark.read.jdbc, warm"
_DEBEZIUM: Final = "Debezium"
_ENDED: Final = re.compile(r'"backfill ended"')

Figures = dict[str, list[Figure]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.backfill")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], metavar="PEER")
    parser.add_argument("--small", action="store_true")
    wanted = parser.parse_args()
    console = Console()
    figures: Figures = {}
    missing: dict[str, str] = {}
    with LocalPostgres() as postgres, LocalKafka() as kafka:
        folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
        place = Place(postgres, kafka, folder, wanted.rows, wanted.partitions)
        console.print(f"writing {wanted.rows} rows; logs in {folder}")
        fill(place)
        warm(place)
        for run in range(wanted.runs):
            measure(place, run, figures, missing, wanted.without)
            console.print(f"run {run + 1} of {wanted.runs} done")
    shown = vars(wanted)
    show(save("backfill", figures, shown, small=wanted.small, missing=missing))


def fill(place: Place) -> None:
    with psycopg.connect(place.postgres.dsn(), autocommit=True) as connection:
        connection.execute(_TABLE)
        connection.execute(_FILL.format(rows=place.rows).encode())
        connection.execute("VACUUM ANALYZE backlog")  # hint bits: no reader sets them
        connection.execute("CHECKPOINT")


def measure(
    place: Place,
    run: int,
    figures: Figures,
    missing: dict[str, str],
    without: list[str],
) -> None:
    """Run each once; what cannot be run is said."""

    def note(what: str, figure: Figure) -> None:
        figures.setdefault(what, []).append(figure)

    note(_COPY, peers.copy(place))
    note(_WALSTREAM, walstream(place, run))
    if "jdbc" in without:
        missing[_WARM] = "left out"
    else:
        try:
            cold, warm = peers.jdbc(place, run)
            note(_COLD, cold)
            note(_WARM, warm)
        except (OSError, RuntimeError) as error:  # Maven's
            missing[_WARM] = str(error)
    if "debezium" in without:
        missing[_DEBEZIUM] = "left out"
    else:
        try:
            note(_DEBEZIUM, peers.debezium(place, run))
        except (OSError, RuntimeError) as error:
            missing[_DEBEZIUM] = str(error)


def walstream(place: Place, run: int) -> Figure:
    """Let `walstream run` backfill and end."""
    folder = place.folder / f"walstream{run}"
    folder.mkdir()
    topic = place.topic(f"walstream{run}.public.backlog")
    configuration = folder / "walstream.toml"
    configuration.write_text(f"""
state = "{folder}/state"
[http]
listen = ""
[spark]
master = "local[2,4]"
[sources.bench]
kind = "postgres"
dsn = "{place.postgres.dsn()}"
slot = "walstream{run}"
backfill = "only"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
topic = "walstream{run}.{{schema}}.{{table}}"
[sinks.kafka.producer]
"bootstrap.servers" = "{place.kafka.bootstrap}"
""")
    command = (Path(sys.executable).with_name("walstream"), "run", "-c", configuration)
    with Program(command, place.folder / f"walstream{run}.log") as program:
        figure = topic.filled(place.rows, program, _LONGEST_S)
        code = program.wait()
    topic.close(place.rows)
    if code != 0 or not _ENDED.search(program.log_text()):
        raise SystemExit(f"walstream run ended with {code}\n{program.log_end()}")
    return program.complete(figure, place.rows)


if __name__ == "__main__":
    main()
