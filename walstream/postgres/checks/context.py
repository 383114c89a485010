"""Context of an inspection: its input, its result, and what its parts see."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from walstream.config import PostgresSource
from walstream.errors import Repair
from walstream.finding import Finding
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.publication import Publication
from walstream.postgres.publication_memory import StoredPublication
from walstream.postgres.server import Server
from walstream.postgres.start_table import Step, StoredState

_MOST_STATEMENTS: Final = 20  # more would not be read


@dataclass(frozen=True, slots=True)
class ConfiguredSource:
    """One source as it is configured, and what its state folder knows."""

    name: str  # of the source
    source: PostgresSource
    stored: StoredState
    # those read; None before the first start
    publications: Mapping[str, StoredPublication] | None
    running: bool  # our instance streams it now: its hold of the slot is fine
    adopt_slot: bool = False
    read_anew: frozenset[str] = frozenset()  # tables, by the next start, to be replaced
    sibling_slots: frozenset[str] = frozenset()  # of other sources: never "drop it"


@dataclass(frozen=True, slots=True)
class Inspection:
    """Findings: stops first, in the order in which `run` would meet them."""

    findings: list[Finding] = field(default_factory=list)
    captured: dict[str, TableFacts] = field(default_factory=dict)  # now, or once begun
    server: Server | None = None
    foreign_slot: bool = False  # it exists, and no state says that it is ours


@dataclass(slots=True)
class ServerContext:
    """A server that answers, as all parts of an inspection see it."""

    wanted: ConfiguredSource
    connection: Connection
    server: Server
    facts: dict[str, TableFacts]
    capture: Capture
    found: dict[str, Publication]  # ours that are there
    captured: dict[str, TableFacts]
    step: Step | None = None  # that `run` would take; None: it would stop
    foreign_slot: bool = False

    @property
    def source(self) -> PostgresSource:
        return self.wanted.source


def statements(lines: Iterable[str], then: str = "") -> Repair:
    """Make a repair of statements; what is too much to read comes next time."""
    every = list(filter(None, lines))
    if len(every) > _MOST_STATEMENTS:
        more = len(every) - _MOST_STATEMENTS
        then = f"{more} more statements are needed: run walstream check again"
    return Repair(sql="\n".join(every[:_MOST_STATEMENTS]), then=then)
