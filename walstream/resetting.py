"""Forgetting a source: its position and its slot, so that the next run begins anew."""

import time
from collections.abc import Callable
from pathlib import Path

from walstream.config import Config, PostgresSource
from walstream.control import lent
from walstream.errors import HistoryError, SlotLost, StateDamaged
from walstream.lsn import show
from walstream.positions import LmdbPositions, discard
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slots import released
from walstream.postgres.start import Stored, decide
from walstream.stored import stored_of


def reset(config: Config, name: str, consent: Callable[[str], bool]) -> str:
    """Drop the slot, forget the position; give what was done, in a sentence.

    `consent` is asked with what will be lost, before anything is stopped: a running
    instance lends the source, and begins anew. Where the server's history changed, or
    that cannot be told, the source's epoch grows: its consumers have to agree.
    """
    source = config.postgres_source(name)
    folder = Path(config.state) / name
    with session(source.dsn) as connection:
        servers.look(connection)  # is it there at all?
    if not consent(
        f"Source {name!r} ({_at(folder)}) forgets its position, and slot"
        f" {source.slot!r} is dropped: changes from there to the next start will not"
        " be in Kafka."
    ):
        return "nothing was changed"
    with lent(config, name) as running:
        _reset(folder, name, source)
    if running:
        return f"source {name!r} is reset, and begins anew"
    return f"source {name!r} is reset; the next run begins anew"


def _at(folder: Path) -> str:
    """Say where a source is, before anything is stopped."""
    try:
        with LmdbPositions.beside(folder) as positions:
            position = positions.position() if positions else None
    except StateDamaged:
        return "its state is damaged"
    return show(position.resume) if position else "no position"


def _reset(folder: Path, name: str, source: PostgresSource) -> None:
    stored, epoch = _stored(folder, source)
    with session(source.dsn) as connection:
        server = servers.look(connection)
        slot = released(connection, source.slot)
        if epoch is None:
            epoch = int(time.time())  # lost with the state: above any that was counted
        elif _history_changed(name, stored, slot, server):
            epoch += 1
        slots.drop(connection, source.slot)
    discard(folder)
    with LmdbPositions(folder) as positions:
        positions.write({"epoch": {"number": epoch}})


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


def _stored(folder: Path, source: PostgresSource) -> tuple[Stored, int | None]:
    """Read what can still be believed; a damaged state says nothing."""
    try:
        with LmdbPositions(folder) as positions:
            epoch = (positions.read("epoch") or {}).get("number", 0)
            return stored_of(positions, source.slot), epoch
    except StateDamaged:
        return Stored(), None
