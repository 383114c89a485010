"""Forgetting a source: its position and its slot, so that the next run begins anew."""

import time
from collections.abc import Callable
from pathlib import Path

from walstream.config import Config, PostgresSource
from walstream.errors import (
    ConfigError,
    HistoryError,
    SlotLost,
    StateDamaged,
    Transient,
)
from walstream.lock import FolderLock
from walstream.lsn import show
from walstream.positions import LmdbPositions, discard
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.start import Stored, decide


def reset(config: Config, name: str, consent: Callable[[str], bool]) -> str:
    """Drop the slot, forget the position; give what was done, in a sentence.

    `consent` is asked with what will be lost. Where the server's history changed, or
    that cannot be told, the source's epoch grows: its consumers have to agree.
    """
    source = config.sources.get(name)
    if not isinstance(source, PostgresSource):
        known = ", ".join(sorted(config.sources)) or "none"
        raise ConfigError(
            f"there is no postgres source {name!r}", hint=f"configured are: {known}"
        )
    folder = Path(config.state)
    lock = FolderLock(folder)
    lock.acquire(wait_s=0.0)
    try:
        return _reset(folder / name, name, source, consent)
    finally:
        lock.release()


def _reset(
    folder: Path, name: str, source: PostgresSource, consent: Callable[[str], bool]
) -> str:
    stored, epoch = _stored(folder)
    with session(source.dsn) as connection:
        server = servers.look(connection)
        slot = slots.find(connection, source.slot)
        if slot is not None and slot.active_pid is not None:
            raise Transient(
                f"slot {slot.name!r} is in use by"
                f" {slots.holder(connection, slot.active_pid)}",
                hint="stop that one first",
            )
        at = show(stored.position.resume) if stored.position else "no position"
        if not consent(
            f"Source {name!r} ({at}) forgets its position, and slot {source.slot!r} is"
            " dropped: changes from there to the next start will not be in Kafka."
        ):
            return "nothing was changed"
        if epoch is None:
            epoch = int(time.time())  # lost with the state: above any that was counted
        elif _history_changed(name, stored, slot, server):
            epoch += 1
        slots.drop(connection, source.slot)
    discard(folder)
    with LmdbPositions(folder) as positions:
        positions.write({"epoch": {"number": epoch}})
    return f"source {name!r} is reset; the next run begins anew"


def _history_changed(
    name: str, stored: Stored, slot: Slot | None, server: Server
) -> bool:
    """Tell whether LSNs from before the reset mean nothing any more.

    A slot that is gone leaves a gap in the same history.
    """
    if stored.position is not None and stored.position.timeline != server.timeline:
        return True
    try:
        decide(name, stored, slot, server, adopt=True)
    except SlotLost:
        return False
    except HistoryError:
        return True
    return False


def _stored(folder: Path) -> tuple[Stored, int | None]:
    """Read what can still be believed; a damaged state says nothing."""
    try:
        with LmdbPositions(folder) as positions:
            intent = positions.read("intent")
            epoch = (positions.read("epoch") or {}).get("number", 0)
            stored = Stored(positions.position(), intent is not None)
            return stored, epoch
    except StateDamaged:
        return Stored(), None
