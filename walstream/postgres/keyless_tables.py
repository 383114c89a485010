"""Tables of which rows went out under no key, until they have one: kept.

Later changes of such a row come under its key, where readers by key do not find it. So
when a table that was streamed without a key gets one, it has to be read again.
PostgreSQL publishes no update or delete of a table without a replica identity: that its
key was away shows in inserts alone.
"""

from dataclasses import dataclass
from typing import Final

from walstream.pipeline.ports import StateStore
from walstream.pipeline.state_document import StateDocuments

_LACKS: Final = "lacks"  # its rows have no key
_HAS: Final = "has"  # it has one again, and nobody has been told


@dataclass(frozen=True, slots=True)
class KeylessTable:
    """A table of which rows went out under no key, as it is stored."""

    key: str  # _LACKS or _HAS


KEYLESS: Final = StateDocuments("keyless/", KeylessTable)
"""By the table's oid."""


class KeylessTables:
    """Those of one source, by oid; a change is stored before it counts."""

    def __init__(self, positions: StateStore) -> None:
        self._positions = positions
        stored = KEYLESS.read_all(positions)
        self._states = {int(oid): table.key for oid, table in stored.items()}

    def knows(self, oid: int, *, keyed: bool) -> bool:
        """Return whether there is nothing to keep of a table that is described so."""
        lacks = self._states.get(oid) == _LACKS
        return lacks is not keyed

    def meet(self, oid: int, *, keyed: bool) -> None:
        """Note how a table is described, before rows of it go out."""
        if not self.knows(oid, keyed=keyed):
            self._keep(oid, _HAS if keyed else _LACKS)

    def regained(self) -> list[int]:
        """List those that have a key again."""
        return [oid for oid, state in list(self._states.items()) if state == _HAS]

    def told(self, oid: int) -> None:
        """Forget a table, unless its key went once more."""
        if self._states.get(oid) == _HAS:
            self._keep(oid, None)

    def _keep(self, oid: int, state: str | None) -> None:
        table = KeylessTable(state) if state else None
        self._positions.write(KEYLESS.of(str(oid)).entry(table))
        if state:
            self._states[oid] = state
        else:
            self._states.pop(oid, None)
