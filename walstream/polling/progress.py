"""How far one table is polled: a document in LMDB, written after delivery alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from walstream.errors import StateDamaged
from walstream.gaps import GapLedger
from walstream.ports import Positions

PREFIX: Final = "poll/"


def document_name(table: str) -> str:
    """Name the document of a table, as configured."""
    return PREFIX + table


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a table's ledger of missing keys may hold, and for how long."""

    timeout_s: float
    most: int  # intervals


class Progress:
    """One table's position, and its missing keys below it."""

    def __init__(
        self,
        positions: Positions,
        table: str,
        bounds: Bounds,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.now = now
        self._positions = positions
        self._name = document_name(table)
        stored = positions.read(self._name) or {}
        self.key: int | None = stored.get("key")  # None: nothing was delivered yet
        self.rows: int = stored.get("rows", 0)  # delivered, repeats too
        self.given_up: int = stored.get("given_up", 0)  # keys that never came
        self.at: float | None = stored.get("at")  # when a row was last delivered
        try:
            self.gaps = GapLedger.of(
                stored.get("gaps", []), bounds.timeout_s, bounds.most
            )
        except ValueError as error:
            raise StateDamaged(
                f"the missing keys of table {table!r} cannot be read: {error}",
                hint="walstream positions reset SOURCE begins anew",
            ) from None

    def delivered(self, rows: int) -> None:
        """Count rows."""
        self.rows += rows
        if rows:
            self.at = self.now()

    def store(self) -> None:
        """Make it durable."""
        self._positions.write(
            {
                self._name: {
                    "key": self.key,
                    "rows": self.rows,
                    "given_up": self.given_up,
                    "at": self.at,
                    "gaps": self.gaps.document(),
                }
            }
        )
