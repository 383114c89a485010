"""Writes of what counts already: a failed one is made up for by the next."""

from walstream.pipeline.ports import StateStore
from walstream.pipeline.state_document import Entries


class StateWriter:
    """Writer of documents whose owner goes by its memory, stored or not.

    A write that fails may be durable all the same. Who asks again finds that nothing is
    new: without this, what failed would never be stored, and the next process would go
    by something else.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._unwritten: dict[str, object] = {}

    def write(self, documents: Entries) -> None:
        """Write these, and what could not be written before; raises Transient."""
        self._unwritten |= documents
        if self._unwritten:
            self._store.write(self._unwritten)
            self._unwritten = {}
