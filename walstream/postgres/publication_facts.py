"""One publication as it was seen: the catalog rows that it is made of, and its JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

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
    place: Place = field(default=(0, 0), compare=False)  # of its own row
    places: frozenset[Place] = field(default=frozenset(), compare=False)  # of all

    def to_json(self) -> dict[str, Any]:
        """Return what is stored; an older walstream reads the first four."""
        return {
            "oid": self.oid,
            "operations": sorted(self.operations),
            "via_root": self.via_root,
            "tables": sorted(self.tables),
            "owner": self.owner,
            "generated": self.generated,
            "xmin": self.xmin,
            "last": list(self.last),
            "ways": {str(oid): sorted(ways) for oid, ways in self.ways.items()},
            "leaves": {
                str(root): {str(leaf): mark for leaf, mark in marks.items()}
                for root, marks in self.leaves.items()
            },
            "schemas": sorted(self.schemas),
            "unlogged": sorted(self.unlogged),
            "files": {str(oid): files for oid, files in self.files.items()},
            "brought": sorted(self.brought),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what was stored, also by a walstream that kept no marks."""
        page, line = stored.get("last", (0, 0))
        ways = stored.get("ways", {})
        return cls(
            oid=stored["oid"],
            operations=frozenset(stored["operations"]),
            via_root=stored["via_root"],
            tables=frozenset(stored["tables"]),
            owner=stored.get("owner"),
            generated=stored.get("generated"),
            xmin=stored.get("xmin"),
            last=(page, line),
            ways={int(oid): frozenset(found) for oid, found in ways.items()},
            leaves={
                int(root): {int(leaf): mark for leaf, mark in marks.items()}
                for root, marks in stored.get("leaves", {}).items()
            },
            schemas=frozenset(stored.get("schemas", ())),
            unlogged=frozenset(stored.get("unlogged", ())),
            files={
                int(oid): files_of(*files)
                for oid, files in stored.get("files", {}).items()
            },
            brought=frozenset(stored.get("brought", ())),
        )


Sightings = Mapping[str, Sighting]
"""By the publication's name."""
