"""Model of a source's positions, as `positions show --json` prints it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from walstream.finding import Finding
from walstream.kafka.last_op import LastOp, TopicEnd
from walstream.postgres.slot_inventory import SlotFacts
from walstream.sources.postgres.stored_state import ReplayWindow
from walstream.status.sql import TableStatus
from walstream.telemetry.json_types import ShownLsn, SystemIdentifier


@dataclass(frozen=True, slots=True)
class Intent:
    """A first start that was begun."""

    slot: str
    consistent_point: ShownLsn | None  # null: the slot was not created yet


@dataclass(frozen=True, slots=True)
class StateFacts:
    """Facts of the state folder; empty before the first start."""

    process: str | None = None  # that streams the source now
    resume: ShownLsn | None = None
    previous_resume: ShownLsn | None = None
    system_identifier: SystemIdentifier | None = None
    timeline: int | None = None
    database: str | None = None
    slot: str | None = None
    epoch: int = 0
    key_tables: int = 0  # of which the keys are known
    topics: int = 0
    intent: Intent | None = None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    version: str
    system_identifier: SystemIdentifier
    timeline: int
    database: str
    flush_lsn: ShownLsn
    kept_from: ShownLsn  # its WAL, for sure


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """Facts of the topics' ends."""

    last: LastOp | None  # of this source, the furthest
    topics: list[TopicEnd]
    problems: list[Finding]


class StartOutcome(StrEnum):
    STREAM = "stream"  # it would, from `lsn`
    STREAMING = "streaming"  # a running instance does
    CREATE = "create"  # publication and slot, then stream
    ADOPT = "adopt"  # the slot of a start that was cut short
    POLL = "poll"  # its tables
    POLLING = "polling"  # a running instance does
    CHAIN = "chain"  # pass on where its group is
    CHAINING = "chaining"  # a running instance does
    WAIT = "wait"  # and try again, until that is over
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict: what `run` would do."""

    outcome: StartOutcome
    text: str
    lsn: ShownLsn | None = None  # from where it streams
    problem: Finding | None = None  # of `wait` and `stop`


@dataclass(frozen=True, slots=True)
class Standing:
    """All that is known of one source."""

    source: str
    verdict: Verdict
    state: StateFacts | None  # null: it cannot be believed, or not be read
    slot: SlotFacts | None
    server: ServerFacts | None
    window: ReplayWindow | None  # that a rewind can reach
    topics: TopicFacts
    notes: list[Finding]


@dataclass(frozen=True, slots=True)
class TableStanding:
    """All that is known of one polled table."""

    name: str  # as configured
    start: str  # where it begins without a position
    state: TableStatus  # as it was stored
    oldest_key: int | None  # in the database now; null: none, or it was not asked
    newest_key: int | None


@dataclass(frozen=True, slots=True)
class PolledStanding:
    """All that is known of one sql source."""

    source: str
    verdict: Verdict
    tables: list[TableStanding]
    notes: list[Finding]


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Progress of a group in one partition."""

    topic: str
    partition: int
    stored: int | None  # the offset to go on from; null: it never stored one
    first: int  # offset of the oldest record
    end: int  # offset that the next record will get
    behind: int  # records that wait, about


@dataclass(frozen=True, slots=True)
class ChainedStanding:
    """All that is known of one kafka source: its positions are its group's offsets."""

    source: str
    group: str
    verdict: Verdict
    partitions: list[GroupPlace]
    notes: list[Finding]


@dataclass(frozen=True, slots=True)
class Standings:
    at: datetime
    sources: list[Standing]
    polled: list[PolledStanding] = field(default_factory=list)
    chained: list[ChainedStanding] = field(default_factory=list)
