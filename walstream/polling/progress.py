"""How far one table is polled: a document in LMDB, written after delivery alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from walstream.config import PolledTable, SqlSource
from walstream.errors import StateDamaged, WalstreamError
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


def bounds_of(rules: PolledTable) -> Bounds:
    """Take them from the configuration."""
    return Bounds(rules.gap_timeout, rules.max_gaps)


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
        self.error: str = stored.get("error", "")  # why its next row cannot be sent
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

    def rewind(self, to: int) -> None:
        """Go back, as an operator wished: what lies above is read again."""
        if self.key is None or to > self.key:
            raise WalstreamError(f"key {to} is not below the stored {self.key}")
        self.key = to
        self.gaps.forget_above(to)
        self.store()

    def store(self) -> None:
        """Make it durable."""
        self._positions.write(
            {
                self._name: {
                    "key": self.key,
                    "rows": self.rows,
                    "given_up": self.given_up,
                    "at": self.at,
                    "error": self.error,
                    "gaps": self.gaps.document(),
                }
            }
        )

    def report(self) -> dict[str, Any]:
        """Tell how far it is, as JSON has it."""
        gaps = self.gaps
        return {
            "key": self.key,
            "rows": self.rows,
            "at": self.at,
            "gaps": len(gaps),
            "missing_keys": gaps.keys,
            "oldest_gap": gaps.oldest,
            "given_up": self.given_up,
            "held": gaps.full,
            "error": self.error,
        }


def progress_of(source: SqlSource, table: str, positions: Positions) -> Progress:
    """Read how far a configured table is."""
    return Progress(positions, table, bounds_of(source.tables[table]))
