"""What is remembered of the publications, from one look to the next: a document.

It is by publication, so that an older walstream reads its part of it, and drops the
rest: what it did not watch must not be believed later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from walstream.postgres.publication_facts import Sighting


@dataclass(frozen=True, slots=True)
class Memory:
    """What was examined last."""

    sightings: Mapping[str, Sighting] = field(default_factory=dict)
    left: frozenset[str] = frozenset()  # as in `continuity`
    altered: "Altered | None" = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read what `document` wrote, or an older walstream."""
        left: frozenset[str] = frozenset()
        altered = None
        for stored in document.values():
            left |= frozenset(stored.get("left", ()))
            if noted := stored.get("altered"):
                altered = Altered(noted["xid"], cls.of(noted["after"]))
        sightings = {name: Sighting.from_json(one) for name, one in document.items()}
        return cls(sightings, left, altered)

    def document(self, main: str) -> dict[str, Any]:
        """Return what is stored; beside the publication `main` stands the rest."""
        written = {name: seen.to_json() for name, seen in self.sightings.items()}
        if self.left:
            written[main]["left"] = sorted(self.left)
        if self.altered is not None:
            after = self.altered.after.document(main)
            written[main]["altered"] = {"xid": self.altered.xid, "after": after}
        return written


@dataclass(frozen=True, slots=True)
class Altered:
    """A change of our own: whether it was committed, its transaction tells."""

    xid: str
    after: Memory
