"""Model of an audit, as `positions audit --json` prints it."""

from dataclasses import dataclass
from datetime import datetime

from walstream.finding import Finding
from walstream.kafka.delivery_audit import TopicAudit
from walstream.kafka.delivery_verdict import Agreement
from walstream.postgres.slot_inventory import SlotFacts
from walstream.status.positions.model import ServerFacts, StateFacts, Verdict
from walstream.telemetry.json_types import ShownLsn


@dataclass(frozen=True, slots=True)
class WalGap:
    """Range of WAL whose changes can no longer be sent."""

    begins: ShownLsn
    ends: ShownLsn
    why: str


@dataclass(frozen=True, slots=True)
class SinkAudit:
    """One sink beside its position."""

    sink: str
    verdict: Agreement
    text: str
    position: ShownLsn | None  # the slot's, where the state folder has none
    up_to: ShownLsn | None  # the furthest change beyond it; null: none was found
    topics: list[TopicAudit]


@dataclass(frozen=True, slots=True)
class SourceAudit:
    """All sides of one source."""

    source: str
    verdict: Agreement  # the worst of its sinks, and of the gap
    start: Verdict
    state: StateFacts | None  # null: it cannot be believed, or not be read
    slot: SlotFacts | None
    server: ServerFacts | None
    missing: WalGap | None
    sinks: list[SinkAudit]
    problems: list[Finding]


@dataclass(frozen=True, slots=True)
class Audit:
    """Result of `positions audit`."""

    at: datetime
    exit_code: int
    verdict: Agreement  # the worst of the sources
    sources: list[SourceAudit]
