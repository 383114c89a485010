"""One course, run whole in the simulation and on real servers: the same history."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import orjson

from tests.simulation import installation as simulated_ports
from tests.simulation.checker import fold
from tests.simulation.installation import PARTITIONS
from tests.simulation.kafka import Record
from tests.simulation.real.comparison import Differs, difference
from tests.simulation.real.course import Course, Fault
from tests.simulation.real.installation import Installation
from tests.simulation.real.statements import StatementWriter, bare, create
from tests.simulation.run import Run
from tests.simulation.tables import SimTable, WalTransaction
from tests.simulation.world import Violation
from tests.support.deadline import wait_until
from walstream.op import Kind

Records = dict[str, dict[int, list[Record]]]
_READ_LATER: Final = "and values read from the table later"


@dataclass
class SimulatedCourse:
    """A course that ran in the simulation."""

    course: Course
    writers: list[StatementWriter] = field(default_factory=list)

    def __post_init__(self) -> None:
        with simulated_ports.installed():
            self._run = run = Run(self.course.schedule())
            run.server.writer = self._writer
            outcome = run.run()
        if outcome.violation or outcome.stopped:
            raise Violation(outcome.violation or outcome.stopped)
        self.transactions = [
            one
            for one in run.server.wal
            if isinstance(one, WalTransaction)
            and any(shapes for shapes, _ in one.frames)
        ]

    def _writer(self, tables: list[SimTable], lsn: int, seed: int) -> StatementWriter:
        self.writers.append(StatementWriter(tables, lsn, seed))
        return self.writers[-1]

    def tables(self) -> list[str]:
        """Give the SQL of the tables, as they were at first."""
        return [
            line
            for table in self._run.server.tables
            for line in create(SimTable(table.oid, table.name))
        ]

    @property
    def commits(self) -> dict[int, int]:
        return {one.lsn: at for at, one in enumerate(self.transactions)}

    def records(self) -> Records:
        return {
            name: dict(enumerate(topic.partitions))
            for name, topic in self._run.cluster.topics.items()
        }

    def rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {one.name: dict(one.rows) for one in self._run.server.tables}

    def wanted(self, transactions: int) -> set[tuple[str, int, int, int]]:
        """Name the records of the first so many: topic, partition (-1: any), name."""
        wanted = set()
        for at, one in enumerate(self.transactions[:transactions]):
            for op in one.expected:
                for sink, parts in PARTITIONS.items():
                    everywhere = op.kind is Kind.TRUNCATE
                    for part in range(parts) if everywhere else (-1,):
                        wanted.add((f"{sink}.{op.table}", part, at, op.seq_id))
        return wanted


@dataclass
class Program:
    """A course on both."""

    course: Course
    real: Installation
    done: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Raise Differs at the first difference."""
        self.simulated = SimulatedCourse(self.course)
        self.real.begin(self.simulated.tables())
        faults = list(self.course.faults)
        for at, writer in enumerate(self.simulated.writers):
            self._commit(writer)
            while faults and faults[0].behind == at:
                self._fail(faults.pop(0))
        self._see_confirmed()
        self.real.learn()
        self.real.settle(len(self._wanted_parts()))
        assert self.real.walstream.terminate() == 0, self.real.walstream.text
        self._see_confirmed()
        self._compare()

    def _commit(self, writer: StatementWriter) -> None:
        session = self.real.real.take(0)
        self.real.real.write(session, writer)
        self.real.real.end_of(session, "COMMIT")
        self.done += ["commit", *(f"  {one}" for one in writer.statements)]

    def _fail(self, fault: Fault) -> None:
        self.done.append(f"{fault.name} {fault.moment}")
        real = self.real
        before, confirmed, end = real.reader.ends(), real.confirmed(), real.real.end

        def idle() -> bool:  # all that is committed was confirmed: nothing more comes
            return real.confirmed() >= end

        moments = {
            "at once": lambda: True,
            "record": lambda: real.reader.ends() > before or idle(),
            "confirmation": lambda: real.confirmed() > confirmed or idle(),
        }
        wait_until(moments[fault.moment], 60, fault.moment)
        real.fail(fault.name)
        self._see_confirmed()

    def _wanted_parts(self) -> set[tuple[str, int, int, int]]:
        return self.simulated.wanted(len(self.simulated.transactions))

    def _see_confirmed(self) -> None:
        """See that what is confirmed is in Kafka, in every sink."""
        confirmed = self.real.confirmed()
        self.real.learn()
        places = self.real.places
        below = int(places.of(confirmed))
        found = set()
        for topic, parts in self.real.records().items():
            for part, records in parts.items():
                for record in records:
                    document = orjson.loads(record.value or b"")
                    at = places.commits.get(document["lsn"], -1)
                    found |= {
                        (topic, one, at, document["seq_id"]) for one in (part, -1)
                    }
        lacks = self.simulated.wanted(below) - found
        if lacks:
            raise Differs(
                f"confirmed, and not in Kafka: {sorted(lacks)[:5]}{self._after}"
            )

    @property
    def _after(self) -> str:
        return "\nafter\n  " + "\n  ".join(self.done)

    def _compare(self) -> None:
        model = told(self.simulated.records(), self.simulated.commits, self._later())
        truth = told(self.real.records(), self.real.places.commits, self._later())
        if model != truth:
            raise Differs(f"records\n{difference(model, truth)}{self._after}")
        rows = self.real.real.rows()
        if self.simulated.rows() != rows:
            raise Differs(
                f"tables\n{difference(self.simulated.rows(), rows)}{self._after}"
            )
        self._fold(rows)

    def _later(self) -> set[int]:
        """Give the transactions of which a value is read from the table."""
        return {at for at, one in enumerate(self.simulated.transactions) if one.reads}

    def _fold(self, rows: dict[str, dict[str, dict[str, Any]]]) -> None:
        """Who reads the real topics ends with the real tables."""
        topics = {
            name: SimpleNamespace(partitions=list(parts.values()))
            for name, parts in self.real.records().items()
        }
        cluster: Any = SimpleNamespace(topics=topics)
        for sink in PARTITIONS:
            for table, wanted in rows.items():
                found = fold(cluster, f"{sink}.public.{table}")
                # a column that was added later is NULL where nobody wrote it
                names = next(iter(wanted.values()), {})
                folded = {
                    key: {name: _bare(row.get(name)) for name in names}
                    for key, row in found.items()
                }
                if folded != wanted:
                    raise Differs(
                        f"topic {sink}.public.{table} folds to {folded}, the table has"
                        f" {wanted}{self._after}"
                    )


def told(records: Records, commits: dict[int, int], later: set[int]) -> list[str]:
    """Say what is in topics, each record once, by the order of transactions.

    Raises Differs for an order that no replay explains, or another record of a name.
    """
    lines: list[str] = []
    for topic in sorted(records):
        for part in sorted(records[topic]):
            if not records[topic][part]:
                continue
            lines += [
                f"{topic} {part}",
                *_partition(records[topic][part], commits, later),
            ]
    return lines


def _partition(
    records: list[Record], commits: dict[int, int], later: set[int]
) -> list[str]:
    seen: dict[tuple[int, int], str] = {}
    last = (-1, -1)
    for record in records:
        document = orjson.loads(record.value or b"{}")
        name = commits.get(document.pop("lsn"), -1), document["seq_id"]
        line = f"  {name[0]} {_line(record, document, name[0] in later)}"
        if name not in seen and name < max(seen, default=name):
            raise Differs(f"{name} comes first behind {max(seen)}")
        if seen.setdefault(name, line) != line:
            raise Differs(f"{name} is {line} and {seen[name]}")
        if name > last and any(last < one < name for one in seen):
            raise Differs(f"{name} follows {last}: what was between is passed over")
        last = name
    return [seen[name] for name in sorted(seen)]


def _line(record: Record, document: dict[str, Any], reads: bool) -> str:
    key = (record.key or b"").decode()
    if reads:  # what the table had when it was asked
        op = document["op"]
        kind = op if isinstance(op, str) else next(iter(op))
        return f"{document['seq_id']} {key} {kind} {_READ_LATER}"
    return f"{key} {orjson.dumps(_bare(document)).decode()}"


def _bare(value: Any) -> Any:
    """Take off what makes values large."""
    if isinstance(value, str):
        return bare(value)
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if isinstance(value, dict):
        return {key: _bare(one) for key, one in value.items()}
    return value
