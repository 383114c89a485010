"""Progress of one polled table: a document in LMDB, written only after delivery."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from walstream.config import PolledTable, SqlSource
from walstream.errors import StateDamaged, WalstreamError
from walstream.pipeline.ports import StateStore
from walstream.pipeline.state_document import StateDocuments
from walstream.sources.report import TableReport
from walstream.sources.sql.gap_clock import Clock, ClockReading
from walstream.sources.sql.gap_ledger import GapLedger
from walstream.telemetry import runtime


@dataclass(frozen=True, slots=True)
class GapBounds:
    """Limits of a table's ledger of missing keys."""

    timeout_s: float
    most: int  # intervals


def bounds_of(rules: PolledTable) -> GapBounds:
    """Take them from the configuration."""
    return GapBounds(rules.gap_timeout, rules.max_gaps)


@dataclass(frozen=True, slots=True)
class Horizon:
    """Keys up to `key` were drawn before `at`: it was visible then."""

    key: int
    at: float  # as the progress's own clock tells


@dataclass(frozen=True, slots=True)
class Trouble:
    """Reason why a table is blocked, and its repair."""

    error: str = ""  # "": it does
    hint: str = ""
    repair: str = ""  # SQL, or a command


NO_TROUBLE: Final = Trouble()


@dataclass(frozen=True, slots=True)
class PolledTableDocument:
    """Progress of a polled table, as stored."""

    key: int | None = None  # None: nothing was delivered yet
    rows: int = 0  # delivered, repeats too
    given_up: int = 0  # keys that never came
    at: float | None = None  # unix seconds, when a row was last delivered
    error: str = ""  # as in `Trouble`
    hint: str = ""
    repair: str = ""
    origin: str = ""  # of the table's keys; "": unknown
    column: str = ""  # of the key; "": unknown
    restarted: bool = False  # its keys start anew: an operator says where to go on
    horizon: tuple[int, float] | None = None  # as in `Horizon`
    clock: ClockReading | None = None
    gaps: list[object] = field(default_factory=list)  # as `GapLedger.document` writes


POLLED: Final = StateDocuments("poll/", PolledTableDocument)
"""By the table's name in the configuration."""


class TableProgress:
    """One table's position, and its missing keys below it."""

    def __init__(
        self,
        positions: StateStore,
        table: str,
        bounds: GapBounds,
        now: Callable[[], float] | None = None,
        *,
        column: str = "",
    ) -> None:
        """`now` stands for the clock by which missing keys grow old.

        Its keys are those of a `column`: those of another one start again.
        """
        self.timeout_s = bounds.timeout_s
        self._positions = positions
        self._document = POLLED.of(table)
        stored = self._document.read(positions) or PolledTableDocument()
        self._clock = Clock(stored.clock, bounds.timeout_s)
        self.now = now or self._clock.now
        self.key = stored.key
        self.rows = stored.rows
        self.given_up = stored.given_up
        self.at = stored.at
        self.trouble = Trouble(stored.error, stored.hint, stored.repair)
        self.origin = stored.origin
        self.restarted = stored.restarted
        self._column = column
        self.former = ""  # column, of which the position is a key
        if self.key is not None and stored.column not in {"", column}:
            self.restarted, self.former = True, stored.column
        self.horizon = Horizon(*stored.horizon) if stored.horizon else None
        self.store_s = 0.0  # how long storing took, all in all
        try:
            self.gaps = GapLedger.of(stored.gaps, bounds.timeout_s, bounds.most)
        except ValueError as error:
            raise StateDamaged(
                f"the missing keys of table {table!r} cannot be read: {error}",
                hint="walstream positions reset SOURCE starts from scratch",
            ) from None

    def delivered(self, rows: int) -> None:
        """Count rows."""
        self.rows += rows
        if rows:
            self.at = runtime.time()

    def rewind(self, to: int) -> None:
        """Go back, as an operator wished: what lies above is read again.

        Going back to the position itself says that its keys are those of before.
        """
        if self.key is None or to > self.key:
            raise WalstreamError(f"key {to} is not below the stored {self.key}")
        self._begin_at(to)
        self.gaps.forget_above(to)
        self.store()

    def begin_anew(self, key: int, origin: str = "") -> None:
        """Continue after this key; forget the known keys of a former table."""
        self._begin_at(key)
        self.origin = origin
        self.gaps.clear()
        self.store()

    def _begin_at(self, key: int) -> None:
        self.key = key
        self.origin, self.horizon, self.trouble = "", None, NO_TROUBLE
        self.restarted, self.former = False, ""

    def store(self) -> None:
        """Make it durable."""
        began = runtime.perf_counter()
        horizon = self.horizon
        now = PolledTableDocument(
            key=self.key,
            rows=self.rows,
            given_up=self.given_up,
            at=self.at,
            error=self.trouble.error,
            hint=self.trouble.hint,
            repair=self.trouble.repair,
            origin=self.origin,
            restarted=self.restarted,
            column=self.former or self._column,
            horizon=(horizon.key, horizon.at) if horizon else None,
            clock=self._clock.reading(),
            gaps=self.gaps.document(),
        )
        self._positions.write(self._document.entry(now))
        self.store_s += runtime.perf_counter() - began

    def report(self) -> TableReport:
        """Return how far it is; times are the wall clock's."""
        gaps, oldest = self.gaps, self.gaps.oldest
        return TableReport(
            key=self.key,
            rows=self.rows,
            at=self.at,
            gaps=len(gaps),
            missing_keys=gaps.keys,
            oldest_gap=oldest and runtime.time() - (self.now() - oldest),
            given_up=self.given_up,
            held=gaps.full,
            error=self.trouble.error,
            hint=self.trouble.hint,
            repair=self.trouble.repair,
        )


def progress_of(source: SqlSource, table: str, positions: StateStore) -> TableProgress:
    """Read how far a configured table is."""
    rules = source.tables[table]
    bounds = bounds_of(rules)
    return TableProgress(positions, table, bounds, column=rules.primary_key)
