"""Context of an encoder beside its table: the source, and the sink's options.

The format `op` needs none of it.
"""

from dataclasses import dataclass
from typing import Final

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
