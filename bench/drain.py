"""A backlog, and how long each reader takes to drain it."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import psutil
import psycopg

from bench import programs
from bench.checked import (
    READERS,
    Checker,
    Read,
    read_envelope,
    read_unwrapped,
    reader_of_avro,
)
from bench.place import Place
from bench.programs import BATCHES, DEBEZIUM, LIMIT, PUBLICATION, TOPIC, Variant
from bench.server_cost import ServerCost
from bench.shapes import Shape
from bench.watch import Figure, Program, Topic

_SENT: Final = (
    "SELECT sent_lsn >= %s FROM pg_stat_replication JOIN pg_replication_slots"
    " ON pid = active_pid WHERE slot_name = %s"
)
_CONFIRMED: Final = (
    "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = %s"
)
_LONGEST_S: Final = 3600.0
_LOOK_EVERY_S: Final = 0.03
_LINGER_MS: Final = 20  # of Debezium: throughput counts

Figures = dict[str, list[Figure]]
_Turn = Callable[["Backlog", int], Figure]


@dataclass
class Wanted:
    """What is run, and how often."""

    runs: int
    variants: list[Variant]
    debezium: bool
    envelopes: bool = False  # of Debezium; else it unwraps rows


@dataclass
class Backlog:
    """Changes that were written after the slots were made."""

    place: Place
    shape: Shape
    checker: Checker
    end: str = ""  # LSN behind the last change

    def write(self) -> None:
        dsn = self.place.postgres.dsn()
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute("SET TimeZone = UTC")
            connection.execute(self.shape.write.encode())
        # the insert position: without synchronous commit the written one lags behind
        self.end = self.place.sql("SELECT pg_current_wal_insert_lsn()")
        self.place.sql("CHECKPOINT")  # flushed, and out of the way of what is measured

    def topic(self, name: str, template: str = TOPIC, partitions: int = 0) -> Topic:
        """Make the topics of a run on slot `name`."""
        suffixes = {
            template.format(schema="public", table=one) for one in self.shape.tables
        }
        names = (f"{name}.{suffix}" for suffix in suffixes)
        return self.place.topic(*names, partitions=partitions)

    def checked(self, topic: Topic, read: Read, *, exact: bool = True) -> None:
        self.checker.check(self.place.kafka.bootstrap, topic.names, read, exact=exact)
        topic.delete()


def measure(
    place: Place, shape: Shape, wanted: Wanted, say: Callable[[str], None]
) -> Figures:
    """Write the backlog, and let each drain it by turns."""
    place.sql(*shape.create, *shape.setup)
    programs.publish(place, shape.tables)
    for run in range(wanted.runs):
        shorts = [variant.short for variant in wanted.variants]
        shorts += ["debezium"] if wanted.debezium else []
        for short in ("limit", "batches", *shorts):
            programs.make_slot(place, f"{short}{run}")
    backlog = Backlog(place, shape, Checker(place.postgres.dsn(), shape))
    say(f"{shape.name}: writing {shape.changes:,} changes; logs in {place.folder}")
    backlog.write()
    place.warm_tables(len(shape.tables))
    figures: Figures = {}

    def note(run: int, name: str, figure: Figure) -> None:
        figures.setdefault(name, []).append(figure)
        say(f"{shape.name}, run {run + 1}: {name}: {figure.rows_per_s:,.0f} rows/s")

    turns: list[tuple[str, _Turn]] = [(LIMIT, limit), (BATCHES, batches)]
    turns += [(one.name, partial(walstream, variant=one)) for one in wanted.variants]
    if wanted.debezium:
        turns.append((DEBEZIUM, partial(debezium, envelopes=wanted.envelopes)))
    for run in range(wanted.runs):
        first = run % len(turns)  # who comes later finds the servers warmer
        for name, turn in turns[first:] + turns[:first]:
            note(run, name, turn(backlog, run))
    return figures


def limit(backlog: Backlog, run: int) -> Figure:
    """Let pg_recvlogical read the backlog into nothing."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [
            backlog.place.postgres.binaries / "pg_recvlogical",
            *("-d", backlog.place.postgres.dsn(), "--slot", f"limit{run}", "--start"),
            *("-f", "/dev/null", "-o", "proto_version=1", "--no-loop"),
            *("-o", f"publication_names={PUBLICATION}", "--endpos", backlog.end),
        ]
    )
    cost = ServerCost(backlog.place, f"limit{run}")
    used = _wait(process, cost)
    took = time.perf_counter() - began
    rows = backlog.shape.changes
    figure = Figure(took, took, rows / took, used * 1e6 / rows)
    figure.sender_us_per_row = cost.sender_s * 1e6 / rows
    return figure


def batches(backlog: Backlog, run: int) -> Figure:
    """Let the walsender send to a reader that costs it as little as any."""
    name, rows = f"batches{run}", backlog.shape.changes
    command = [sys.executable, "-m", "bench.batch_reader", "--slot", name]
    command += ["--dsn", backlog.place.postgres.dsn(), "--publication", PUBLICATION]
    cost = ServerCost(backlog.place, name)
    with Program(command, backlog.place.folder / f"{name}.log") as program:
        program.until_said("reading")
        began = time.perf_counter()
        program.mark()
        wait(backlog, _SENT, name, program)
        took = time.perf_counter() - began
        figure = program.complete(Figure(program.age_s, took, rows / took), rows)
        cost.look()
    figure.sender_us_per_row = cost.sender_s * 1e6 / rows
    return figure


def _wait(process: "subprocess.Popen[bytes]", cost: ServerCost) -> float:
    """Wait for the end; give the CPU seconds."""
    seen = 0.0
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            seen = sum(watched.cpu_times()[:2])
        except psutil.NoSuchProcess:
            break
        cost.look()  # it ends with its reader
        time.sleep(0.01)
    if process.wait():
        raise SystemExit("pg_recvlogical failed")
    return seen


def walstream(backlog: Backlog, run: int, variant: Variant) -> Figure:
    """From when it streams until all is delivered; then it must be confirmed, too."""
    name = f"{variant.short}{run}"
    topic = backlog.topic(name, variant.topic, variant.partitions)
    rows = backlog.shape.changes
    cost = ServerCost(backlog.place, name)
    with programs.walstream(backlog.place, variant, name) as program:
        program.until_said('"streaming"')
        began = time.perf_counter()  # rows flow while processes are looked for
        cost.mark()
        program.mark()
        wait(backlog, _SENT, name, program)  # asks no broker that has work to do
        while topic.held() < rows and program.running:
            time.sleep(_LOOK_EVERY_S)
        if variant.transactional:  # markers take offsets, too
            wait(backlog, _CONFIRMED, name, program)
        took = time.perf_counter() - began
        figure = Figure(program.age_s, took, rows / took)
        cost.complete(program.complete(figure, rows), rows)
        wait(backlog, _CONFIRMED, name, program)
    read = READERS[variant.format]
    if variant.registry:
        read = reader_of_avro(variant.registry)
    backlog.checked(topic, read, exact=not variant.transactional)
    return figure


def wait(backlog: Backlog, query: str, slot: str, program: Program) -> None:
    deadline = time.monotonic() + _LONGEST_S
    dsn = backlog.place.postgres.dsn()
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            told = (backlog.end, slot)
            row = connection.execute(query.encode(), told).fetchone()
            if row and row[0]:
                return
            if not program.running or time.monotonic() > deadline:
                raise SystemExit(f"{slot} is not drained\n{program.log_end()}")
            time.sleep(_LOOK_EVERY_S)


def debezium(backlog: Backlog, run: int, *, envelopes: bool) -> Figure:
    """From its first records to its last: what its start takes does not count."""
    name = f"debezium{run}"
    topic, rows = backlog.topic(name), backlog.shape.changes
    start = partial(programs.debezium, envelopes=envelopes)
    cost = ServerCost(backlog.place, name)
    with start(backlog.place, _LINGER_MS, name) as program:

        def begin() -> None:
            cost.mark()
            program.mark()

        figure = topic.filled(rows, program, _LONGEST_S, begin)
        cost.complete(program.complete(figure, rows), rows)
    backlog.checked(topic, read_envelope if envelopes else read_unwrapped)
    return figure
