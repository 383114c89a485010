"""Context of an encoder beside its table: the source, and the sink's options.

The format `op` needs none of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # a process whose formats are others does not load it
    from walstream.formats.debezium import DebeziumOptions, SinkTurn
    from walstream.formats.encodings.subject import SchemaId, Strategy

EMBEDDED: Final = frozenset({"schema", "table", "committime"})


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """Origin of a source's ops."""

    host: str = "unknown"  # as its connection string names it
    database: str = ""
    system_identifier: int = 0
    slot: str = ""  # the source's own, also while a copy of it is read


@dataclass(frozen=True, slots=True)
class Context:
    """The same for all tables of a source, in one sink."""

    origin: SourceOrigin = SourceOrigin()
    embed: frozenset[str] = EMBEDDED  # what `tungsten` writes of these
    debezium: "DebeziumOptions | None" = None  # of the formats of that name
    # the sink's own; None: each table has one
    turn: "SinkTurn | None" = field(default=None, compare=False)
    backfill: bool = False  # of a task that reads existing rows
    encoding: str = "json"
    subjects: "Strategy" = "topic"  # how a registry's subjects are named
    # of a task, which asks no registry: schemas' ids by `SubjectSchema.digest`
    ids: "Mapping[str, SchemaId]" = field(
        default_factory=dict, compare=False, repr=False
    )
