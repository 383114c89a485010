"""The ids of one sink that a state folder keeps, of one registry."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from walstream.config.registry import Registry
from walstream.formats.encodings.subject import SchemaId, SubjectSchema
from walstream.kafka.registry.stored_schema import SCHEMAS, StoredSchema, document_of
from walstream.pipeline.ports import StateStore


class IdStore:
    """Reads and writes them; from several threads.

    It reads the folder each time: a detached sink's own worker adds some meanwhile.
    """

    def __init__(self, sink: str, told: Registry, positions: StateStore) -> None:
        self._sink: Final = sink
        self._registry: Final = told.identity
        self._positions = positions
        self._guard = threading.Lock()
        self._one_writer = threading.Lock()
        self._unwritten: dict[str, object] = {}

    def find(self, schema: SubjectSchema) -> StoredSchema | None:
        """Return what is kept of a schema; None: nothing of this registry."""
        found = document_of(self._sink, schema).read(self._positions)
        return found if found and found.registry == self._registry else None

    def keep(self, schema: SubjectSchema, found: SchemaId) -> None:
        """Keep the id of a schema; it is on disk when this returns.

        Who comes while others write has its entry in the next write: a source's first
        start learns thousands, and each write is an fsync.
        """
        with self._guard:
            self._unwritten |= self._entry(schema, found)
        with self._one_writer:
            with self._guard:
                batch, self._unwritten = self._unwritten, {}
            if batch:  # else another one's write had it
                self._write(batch)

    def _write(self, batch: dict[str, object]) -> None:
        try:
            self._positions.write(batch)
        except BaseException:
            with self._guard:  # those whose entries are in it are to see that, too
                self._unwritten = batch | self._unwritten
            raise

    def replace(self, found: Iterable[tuple[SubjectSchema, SchemaId]]) -> None:
        """Keep these, and doubt all others: the registry is another one."""
        entries: dict[str, object] = {}
        for name, kept in SCHEMAS.read_all(self._positions).items():
            if name.startswith(f"{self._sink}/") and kept.registry == self._registry:
                entries |= SCHEMAS.of(name).entry(replace(kept, doubted=True))
        for schema, number in found:
            entries |= self._entry(schema, number)
        self._positions.write(entries)

    def _entry(self, schema: SubjectSchema, found: SchemaId) -> dict[str, object]:
        where = schema.subject, self._registry
        kept = StoredSchema(found.number, *where, text=found.text)
        return document_of(self._sink, schema).entry(kept)
