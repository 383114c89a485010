"""Model of `status`, as in its JSON (docs/schemas/status.json)."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from walstream.sources.postgres.backfill.status import BackfillStatus
from walstream.status.sql import TableStatus


@dataclass(frozen=True, slots=True)
class LastError:
    """The last thing that went wrong; it may be long over."""

    at: datetime
    error: str
    hint: str
    repair: str  # a command, or ""
    exit_code: int
    stopped: bool  # did it end the source until an operator acts?
    sql: str = ""  # statements that repair it, or ""
    then: str = ""  # what an operator does after them, or ""


@dataclass(frozen=True, slots=True)
class SinkStatus:
    name: str
    kind: str
    state: str  # delivering | waiting | stopped | detached | dropped
    in_flight: int | None  # records
    dropped: int | None  # ops without a topic, since the stream began
    # since the last reset: ops that handlers gave nothing for, or failed at, and
    # records that were too large for their topic
    skipped: int | None = None
    failed: int | None = None
    parked: int | None = None
    # since this worker began: records that the target took, those that it had already,
    # and how often it was away
    sent: int | None = None
    left_out: int | None = None
    errors: int | None = None
    tables: dict[str, dict[str, int]] = field(default_factory=dict)  # the same by table
    risks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SlotStatus:
    name: str
    retained_wal: int  # bytes
    wal_status: str | None
    safe_wal_size: int | None  # bytes until the server gives it up; null: no limit
    synchronous: bool = False  # commits wait for who reads it
    # transactions too large for the server's memory, and the bytes of them that it
    # wrote to disk since its statistics began; and the bytes on disk now; null: this
    # role may not see them
    spill_txns: int = 0
    spill_bytes: int = 0
    spilled: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureLimitStatus:
    """A table, or a pattern of `tables`, that is not captured whole."""

    reason: str
    sql: str  # statements that repair it, or ""


@dataclass(frozen=True, slots=True)
class TableBackfill:
    """A table whose old rows come in beside the stream."""

    rows: int  # delivered
    state: str  # waiting | reading | done | error
    error: str  # why it does not go on, or ""
    remark: str = ""  # how it goes: what it waits for, or ""
    where: str = ""  # the condition of its rows, cut short; "": all rows


@dataclass(frozen=True, slots=True)
class SourceStatus:
    name: str
    kind: str
    # streaming | backfilling | polling | starting | waiting | silent | lent | failed
    # | stopped | new
    state: str
    exit_code: int  # 0, or what `run` ended with, or would wait for (5)
    problems: list[str]  # why it is red; empty: it is not
    resume: str | None  # LSN
    server_lsn: str | None
    lag_bytes: int | None
    lag_s: float | None
    ops: int  # or rows of a sql source: read since the last reset
    delivered: int
    ops_per_s: float | None
    delivered_per_s: float | None
    slot: SlotStatus | None
    backfill: BackfillStatus | None
    last_error: LastError | None
    risks: list[str]
    sinks: list[SinkStatus]
    beside: dict[str, TableBackfill] = field(default_factory=dict)
    tables: dict[str, TableStatus] = field(default_factory=dict)  # polled ones
    # of a kafka source: that its group has not passed on; null: not known
    lag_records: int | None = None
    poisoned: dict[str, int] = field(default_factory=dict)  # no ops: records by cause
    # of a postgres source that runs: publications that it reads, and what is left out
    # by table or pattern: at most 50 of them, and how many more there are
    publications: list[str] = field(default_factory=list)
    limits: dict[str, CaptureLimitStatus] = field(default_factory=dict)
    more_limits: int = 0
    held_by: str = ""  # the key of the limit that holds its stream now, or ""


@dataclass(frozen=True, slots=True)
class Status:
    at: datetime
    pid: int | None  # of the running instance; null: none runs
    started_at: datetime | None
    exit_code: int  # the highest of its sources
    sources: list[SourceStatus]


@cache
def adapter() -> TypeAdapter[Status]:
    """Make what reads and writes it: when it is needed, since that takes a while."""
    return TypeAdapter(Status)
