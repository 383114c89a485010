"""Ids of schemas, kept in the state folder: what is known needs no registry."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from walstream.formats.encodings.subject import SchemaId, SubjectSchema
from walstream.pipeline.state_document import (
    StateDocument,
    StateDocuments,
    StoredDocuments,
)


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """The id that a registry gave to a schema."""

    id: int
    subject: str
    registry: str  # an id means nothing to another one
    doubted: bool = False
    """Did another id turn out to be wrong, and was this one not used since?"""
    text: str = ""  # as the registry has it; "": as it was asked for

    @property
    def known(self) -> SchemaId:
        """What records are written by."""
        return SchemaId(self.id, self.text)


SCHEMAS: Final = StateDocuments("schemas/", StoredSchema)
"""By a sink's name and the schema's digest, `SINK/DIGEST`."""


def lent(of: StoredDocuments, sink: str, known: Collection[str]) -> dict[str, object]:
    """Return entries of a sink's ids, but for those of names that are `known`."""
    entries: dict[str, object] = {}
    for name, found in SCHEMAS.read_all(of).items():
        if name.startswith(f"{sink}/") and name not in known:
            entries |= SCHEMAS.of(name).entry(found)
    return entries


def document_of(sink: str, schema: SubjectSchema) -> StateDocument[StoredSchema]:
    """Return the document of a schema."""
    return SCHEMAS.of(f"{sink}/{schema.digest}")
