"""Memory of the publications between two looks: a document.

It is by publication, so that an older walstream reads its part of it, and drops the
rest: what it did not watch must not be believed later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from walstream.pipeline.state_document import StateDocument
from walstream.postgres.publication_facts import Sighting
from walstream.telemetry.json_codec import recast


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSighting(Sighting):
    """A publication as it is stored; the main one stands for what concerns all."""

    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredAlteration:
    """A change of our own, as it is stored."""

    xid: str
    after: dict[str, StoredSighting]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPublication(StoredSighting):
    """A publication as it is stored, with what concerns all."""

    altered: StoredAlteration | None = None


PUBLICATIONS: Final = StateDocument("publications", dict[str, StoredPublication])
"""By their names."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Last examined state."""

    sightings: Mapping[str, Sighting] = field(default_factory=dict)
    left: frozenset[str] = frozenset()  # as in `continuity`
    altered: "Altered | None" = None

    @classmethod
    def of(cls, stored: Mapping[str, StoredPublication]) -> Self:
        """Return what was stored, also by an older walstream."""
        altered = None
        for one in stored.values():
            if noted := one.altered:
                altered = Altered(noted.xid, cls._of(noted.after))
        return cls._of(stored, altered)

    @classmethod
    def _of(
        cls, stored: Mapping[str, StoredSighting], altered: "Altered | None" = None
    ) -> Self:
        return cls(
            {name: recast(Sighting, one) for name, one in stored.items()},
            frozenset(key for one in stored.values() for key in one.left),
            altered,
        )

    def stored(self, main: str) -> dict[str, StoredPublication]:
        """Return what is stored; beside the publication `main` stands the rest."""
        altered = self.altered and StoredAlteration(
            self.altered.xid,
            {
                name: recast(StoredSighting, seen, left=left)
                for name, seen, left in self.altered.after.parts(main)
            },
        )
        return {
            name: recast(
                StoredPublication,
                seen,
                left=left,
                altered=altered if name == main else None,
            )
            for name, seen, left in self.parts(main)
        }

    def parts(self, main: str) -> list[tuple[str, Sighting, tuple[str, ...]]]:
        """Return the publications, each with what it keeps of `left`."""
        return [
            (name, seen, tuple(sorted(self.left)) if name == main else ())
            for name, seen in self.sightings.items()
        ]


@dataclass(frozen=True, slots=True)
class Altered:
    """A change of our own: whether it was committed, its transaction tells."""

    xid: str
    after: Memory
