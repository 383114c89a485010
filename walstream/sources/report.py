"""Report of a worker to its supervisor: a line of JSON, written and read here alone.

A line has the fields of `WorkerReport`, those of the source's own report among them,
and what the process counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from walstream.pipeline.outage import Outage
from walstream.pipeline.state_document import StateDocument
from walstream.postgres.capture_report import CaptureReport
from walstream.postgres.slot_health import SlotHealth
from walstream.telemetry.counts import ProcessCounts, SourceCounts
from walstream.telemetry.json_codec import (
    Document,
    dumps,
    loads,
    read,
    read_all,
    read_optional,
    shallow,
)
from walstream.telemetry.tally import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """The last error of a source; its state folder keeps it in the same form."""

    at: float = 0.0  # unix seconds
    error: str = ""
    hint: str = ""
    repair: str = ""  # a command
    exit_code: int = 1
    final: bool = False  # it ended the source until an operator acts
    renewable: bool = False  # another password or certificate may cure it
    sql: str = ""  # statements that repair it
    then: str = ""  # what an operator does after them


LAST_ERROR: Final = StateDocument("error", ErrorReport)


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """Answer of a worker to a request."""

    problem: str  # "" is done
    exit_code: int  # that a problem stands for
    # what was found, where that was asked: the first tables, and how many there are
    tables: tuple[str, ...] = ()
    count: int | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)  # why


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkReport:
    """One sink of a source; None is not counted there."""

    waiting: bool = False
    handler_waits: bool = False
    outage: Outage | None = None
    in_flight: int | None = None  # records
    dropped: int | None = None  # ops without a topic, since the stream began
    records: int | None = None  # that its target took
    left_out: int | None = None  # records that it had already
    errors: int | None = None  # how often its target was away
    skipped: int | None = None
    failed: int | None = None
    parked: int | None = None
    tables: Counts = field(default_factory=dict)
    parked_now: int = 0  # by this run


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillReport:
    """A backfill that runs."""

    rows_before: int = 0  # of tables that earlier jobs finished
    tables: int  # not finished
    chunks: int
    chunks_done: int
    rows: int
    bytes: int  # of keys and values, delivered
    rows_per_s: float
    share: float  # of the bytes to read, 0 to 1
    left_s: float | None  # about
    waits: str = ""  # why chunks are put back, where none gets through
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BackfillLeft:
    """Rest of a backfill, as stored in the state folder."""

    lsn: int
    tables: tuple[str, ...]  # not finished
    replace: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    rows: int = 0  # delivered, of finished tables
    failed: Mapping[str, str] = field(default_factory=dict)  # given up, and why
    where: Mapping[str, str] = field(default_factory=dict)  # conditions, cut short


@dataclass(frozen=True, slots=True)
class IncrementalReport:
    """A table whose old rows come in beside the stream."""

    rows: int  # delivered
    state: str  # waiting | reading | done | error
    error: str  # why it does not go on, or ""
    remark: str = ""  # what it waits for, or ""
    where: str = ""  # the condition of the rows, cut short; "": all


@dataclass(frozen=True, slots=True)
class DetachedReport:
    """A sink that is not in its source's stream."""

    phase: str
    slot: str  # the copy
    since: float  # unix seconds
    why: str
    waits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReport:
    """A source that streams, or a detached sink of one."""

    resume: str | None = None  # LSN
    ops: int = 0
    delivered: int = 0
    ops_per_s: float | None = None
    delivered_per_s: float | None = None
    lag_s: float | None = None
    retained_wal: int | None = None
    alarm: str = ""
    backfill: BackfillReport | None = None  # while one runs
    sinks: Mapping[str, SinkReport] = field(default_factory=dict)
    current_at: float | None = None  # unix seconds: all was delivered then
    lag_bytes: int | None = None
    held_by: str = ""  # the limit that holds the stream now, by its key
    health: SlotHealth | None = None
    received: int | None = None  # LSN up to which the server has sent
    turn_s: float | None = None  # since the loop's last turn began
    beside: Mapping[str, IncrementalReport] | None = None  # by table
    away: Mapping[str, DetachedReport] = field(default_factory=dict)  # by sink
    backfill_record: BackfillLeft | None = None
    slot: str = ""  # of a detached sink
    capture: CaptureReport | None = None
    until: str = ""  # LSN at which it ends

    @property
    def lasting(self) -> "StreamReport":
        """Return what of it lasts when its process has ended."""
        return StreamReport(
            resume=self.resume,
            ops=self.ops,
            delivered=self.delivered,
            current_at=self.current_at,
            health=self.health,
            received=self.received,
            beside=self.beside,
            away=self.away,
            backfill_record=self.backfill_record,
            capture=self.capture,
        )


@dataclass(frozen=True, slots=True)
class PollRun:
    """A poll that runs."""

    s: float  # seconds
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """A polled table; times are the wall clock's, in unix seconds."""

    key: int | None = None  # up to which all is delivered
    rows: int = 0
    at: float | None = None  # when a row was last delivered
    gaps: int = 0
    missing_keys: int = 0
    oldest_gap: float | None = None
    given_up: int = 0
    held: bool = False
    error: str = ""
    hint: str = ""
    repair: str = ""
    low: int | None = None  # low-watermark, microseconds
    rows_per_s: float | None = None
    poll: PollRun | None = None
    lacks_mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollReport:
    """A source that polls tables."""

    tables: Mapping[str, TableReport] = field(default_factory=dict)
    sinks: Mapping[str, SinkReport] = field(default_factory=dict)

    @property
    def lasting(self) -> "PollReport":
        """Return what of it lasts when its process has ended."""
        return PollReport(tables=self.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayReport:
    """A source that passes on records of other brokers."""

    ops: int = 0
    delivered: int = 0
    ops_per_s: float | None = None
    delivered_per_s: float | None = None
    lag_records: int | None = None
    poisoned: Mapping[str, int] = field(default_factory=dict)  # by cause
    upstream_away: str = ""  # why the upstream brokers do not answer
    unstored: str = ""  # why the group's offsets are not stored
    sinks: Mapping[str, SinkReport] = field(default_factory=dict)

    @property
    def lasting(self) -> "RelayReport":
        """Return what of it lasts when its process has ended."""
        return RelayReport(ops=self.ops, delivered=self.delivered)


SourceReport = StreamReport | PollReport | RelayReport

# each kind of source always writes a field that no other has
_KINDS: Final[Mapping[str, type[SourceReport]]] = {
    "resume": StreamReport,
    "lag_records": RelayReport,
    "tables": PollReport,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """One worker's; empty: it has said nothing."""

    state: str = "starting"
    flowed: bool = False  # this process has streamed or polled, however shortly
    error: ErrorReport | None = None  # the last one
    answers: Mapping[str, WorkerAnswer] = field(default_factory=dict)  # by request
    source: SourceReport | None = None  # None: it has not opened its state yet

    @property
    def stream(self) -> StreamReport | None:
        return self.source if isinstance(self.source, StreamReport) else None

    @property
    def polls(self) -> PollReport | None:
        return self.source if isinstance(self.source, PollReport) else None

    @property
    def relay(self) -> RelayReport | None:
        return self.source if isinstance(self.source, RelayReport) else None

    @property
    def sinks(self) -> Mapping[str, SinkReport]:
        return self.source.sinks if self.source else {}


def encode(report: WorkerReport, counts: ProcessCounts) -> bytes:
    """Return a worker's line."""
    line = {
        **as_document(report),
        "errors": counts.errors,
        "metrics": {
            name: value
            for name, value in shallow(counts.metrics).items()
            if value is not None  # a supervisor of before would add it up
        },
    }
    return dumps(line).encode() + b"\n"


def decode(line: bytes) -> tuple[WorkerReport, ProcessCounts]:
    """Return what a worker's line says; raise ValueError where it is cut."""
    found = loads(line)
    return of_document(found), ProcessCounts(
        metrics=read(SourceCounts, found.get("metrics", {})),
        errors=read_all(int, found.get("errors", {})),
    )


def as_document(report: WorkerReport) -> dict[str, object]:
    """Return a report with the source's own fields among its own."""
    found = shallow(report)
    del found["source"]
    return found | (shallow(report.source) if report.source else {})


def of_document(found: Document) -> WorkerReport:
    """Return the report of what `as_document` gave; raise ValueError."""
    kind = next((kind for name, kind in _KINDS.items() if name in found), None)
    return WorkerReport(
        state=read(str, found.get("state", "starting")),
        flowed=read(bool, found.get("flowed", False)),
        error=read_optional(ErrorReport, found.get("error")),
        answers=read_all(WorkerAnswer, found.get("answers", {})),
        source=read(kind, found) if kind else None,
    )
