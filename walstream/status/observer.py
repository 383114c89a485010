"""What is known of sources beside the reports of a running instance.

`walstream status` asks state folders and servers (`walstream.status.lookup`); the
instance itself asks nobody: its workers told it what they know.
"""

from typing import Final, Protocol

from walstream.config import Config, KafkaSource, PostgresSource, SqlSource
from walstream.errors import WalstreamError
from walstream.postgres.slot_health import (
    Health,
)
from walstream.sources.postgres.backfill.record import Record
from walstream.sources.postgres.detached.record import BACK, Note
from walstream.status.detached import AwaySight
from walstream.status.kafka import GroupSight
from walstream.status.kafka import Kept as KeptRecords
from walstream.status.postgres import Kept
from walstream.status.report import Told
from walstream.status.sql import (
    Kept as KeptPolls,
)

_FIGURES: Final = ("ops", "delivered", "current_at", "poisoned")


class Eyes(Protocol):
    """Tells of a source what its report does not."""

    config: Config

    def kept(self, name: str, told: Told) -> Kept:
        """Give what is kept of a postgres source."""

    def polls(self, name: str, source: SqlSource) -> KeptPolls:
        """Give what is kept of a sql source."""

    def chained(
        self, name: str, source: KafkaSource, told: Told
    ) -> tuple[KeptRecords, GroupSight]:
        """Give what is kept of a kafka source, and how far its group is."""

    def health(
        self, source: PostgresSource, told: Told
    ) -> tuple[Health | None, WalstreamError | None]:
        """Tell how the slot is, or why that cannot be known."""

    def stale(self, told: Told) -> bool:
        """Tell whether `health` is of some time ago."""

    def away(
        self, source: PostgresSource, name: str, kept: Kept, told: Told
    ) -> dict[str, AwaySight]:
        """Tell how each sink is that is not in the stream."""


class ToldEyes:
    """Asks nobody: what the instance itself was told has to do."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def kept(self, name: str, told: Told) -> Kept:
        del name
        return Kept(
            figures={key: told[key] for key in _FIGURES if told.get(key) is not None},
            backfill=Record.of(told.get("backfill_record")),
            away={
                sink: Note(one["phase"], one["slot"], one["since"], one["why"], 0)
                for sink, one in told.get("away", {}).items()
            },
        )

    def polls(self, name: str, source: SqlSource) -> KeptPolls:
        del name, source
        return KeptPolls()

    def chained(
        self, name: str, source: KafkaSource, told: Told
    ) -> tuple[KeptRecords, GroupSight]:
        del name, source
        figures = {key: told[key] for key in _FIGURES if key in told}
        return KeptRecords(figures), GroupSight(asked=False)

    def health(
        self, source: PostgresSource, told: Told
    ) -> tuple[Health | None, WalstreamError | None]:
        del source
        if not (found := told.get("health")):
            return None, None
        # what was streamed since it was asked, the server had
        flush_lsn = max(found["flush_lsn"], told.get("received") or 0)
        return Health(**{**found, "flush_lsn": flush_lsn}), None

    def stale(self, told: Told) -> bool:
        return told["pid"] is None or bool(told["silent"])

    def away(
        self, source: PostgresSource, name: str, kept: Kept, told: Told
    ) -> dict[str, AwaySight]:
        del source
        found = {}
        for sink, note in kept.away.items():
            if note.phase != BACK:
                own = told.get("workers_away", {}).get(f"{name}/{sink}") or {}
                held = (own.get("health") or {}).get("retained_wal")
                error = (own.get("error") or {}).get("error", "")
                found[sink] = AwaySight(note, held, error)
        return found
