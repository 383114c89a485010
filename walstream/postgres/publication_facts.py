"""One publication as it was seen: the catalog rows that it is made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from walstream.telemetry.json_codec import LEFT_OUT

OPERATIONS: Final = ("insert", "update", "delete", "truncate")
PART: Final = " part"  # ends a way that lets through some rows or columns only
NAMED: Final = "row"  # begins that of a table that was added by its name
IN_SCHEMA: Final = "schema"
Place = tuple[int, int]
"""Of a version of a row: page and line."""
Files = tuple[int, int, tuple[tuple[int, ...], ...]]
"""A table's file, its TOAST table; oid, file and xmin of each sequence it owns."""


def files_of(file: int, toast: int, sequences: Iterable[Iterable[int]]) -> Files:
    """Return what was read, as `Files`."""
    return file, toast, tuple(tuple(one) for one in sequences)


@dataclass(frozen=True, slots=True)
class Sighting:
    """One publication as it was seen; tables are oids.

    `ways` are how a table is published, each told by its catalog rows.
    """

    oid: int
    operations: frozenset[str]
    via_root: bool
    tables: frozenset[int] = frozenset()  # added by their names
    owner: int | None = None  # None: seen by a walstream that did not ask
    generated: str | None = None  # publish_generated_columns; None: before 18
    xmin: int | None = None  # None: seen by a walstream that kept no marks
    last: Place = (0, 0)  # the highest place of all publications' rows
    ways: Mapping[int, frozenset[str]] = field(default_factory=dict)
    leaves: Mapping[int, Mapping[int, str]] = field(default_factory=dict)  # by root
    schemas: frozenset[str] = frozenset()  # what tells those that are published whole
    unlogged: frozenset[int] = frozenset()  # would be published, but have no WAL
    files: Mapping[int, Files] = field(default_factory=dict)  # but of those by name
    # rewritten since they were made, or made in another schema: what they had then may
    # not have been published; asked only of those that came
    brought: frozenset[int] = field(default=frozenset(), compare=False)
    # these are of now, and not kept
    place: Place = field(default=(0, 0), compare=False, metadata=LEFT_OUT)  # its row's
    places: frozenset[Place] = field(  # of all rows
        default=frozenset(), compare=False, metadata=LEFT_OUT
    )


Sightings = Mapping[str, Sighting]
"""By the publication's name."""
