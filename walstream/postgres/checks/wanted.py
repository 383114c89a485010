"""What an inspection is asked for, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from walstream.config import PostgresSource
from walstream.finding import Finding
from walstream.postgres.catalog import TableFacts
from walstream.postgres.server import Server
from walstream.postgres.start import Stored


@dataclass(frozen=True, slots=True)
class Wanted:
    """One source as it is configured, and what its state folder knows."""

    name: str  # of the source
    source: PostgresSource
    stored: Stored
    publications: Mapping[str, Any] | None  # those read; None before the first start
    running: bool  # walstream uses the state folder now: its hold of the slot is fine
    adopt_slot: bool = False
    sibling_slots: frozenset[str] = frozenset()  # of other sources: never "drop it"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found: stops first, in the order in which `run` would meet them."""

    findings: list[Finding] = field(default_factory=list)
    captured: dict[str, TableFacts] = field(default_factory=dict)  # now, or once begun
    server: Server | None = None
