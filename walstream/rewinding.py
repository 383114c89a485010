"""Sending again what was sent: a source's position goes back, as far as its slot can.

The transactions from there on come again, under the same (lsn, seq_id).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from walstream.config import Config, PostgresSource
from walstream.control import lent
from walstream.errors import ConfigError
from walstream.lsn import Lsn, show
from walstream.positions import LmdbPositions
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres import timeline
from walstream.postgres.connection import Connection, session
from walstream.postgres.slots import released
from walstream.postgres.start import decide
from walstream.stored import stored_of, window


@dataclass(frozen=True, slots=True)
class Rewind:
    """What is to be sent again."""

    source: str
    resume: Lsn
    to: Lsn


def rewind(
    config: Config, name: str, to: Lsn, consent: Callable[[Rewind], bool]
) -> str:
    """Set a source's position back; give what was done, in a sentence.

    `consent` is asked before anything is stopped. A running instance lends the source,
    and streams on from there; what may have changed meanwhile is checked again.
    """
    source = config.postgres_source(name)
    folder = Path(config.state) / name
    with session(source.dsn) as connection, LmdbPositions.beside(folder) as positions:
        if positions is None:
            raise _nothing(name)
        planned = _plan(positions, name, source, connection, to)
    if planned.resume == to:
        return f"source {name!r} is at {show(to)} already: nothing was changed"
    if not consent(planned):
        return "nothing was changed"
    with (
        lent(config, name) as running,
        session(source.dsn) as connection,
        LmdbPositions(folder) as positions,
    ):
        released(connection, source.slot)
        _plan(positions, name, source, connection, to)
        positions.rewind(to)
    if running:
        return f"source {name!r} is at {show(to)}, and streams again from there"
    return f"source {name!r} is at {show(to)}: the next run streams from there"


def _plan(
    positions: LmdbPositions,
    name: str,
    source: PostgresSource,
    connection: Connection,
    to: Lsn,
) -> Rewind:
    """Compare with the slot and the server; raise what `run` would stop with."""
    # the slot first: while it runs, what is confirmed was stored before
    slot = slots.find(connection, source.slot)
    stored = stored_of(positions, source.slot)
    server = servers.look(connection)
    position = stored.position
    servers.check(server, source.encoding, resuming=position is not None)
    decide(name, stored, slot, server, adopt=False)
    if position is None or slot is None:
        raise _nothing(name)
    timeline.check(source.dsn, name, position, server)
    found = window(positions, position, slot)
    if found is None:
        raise ConfigError(
            f"source {name!r} cannot go back: which columns were its tables' keys"
            f" below {show(position.resume)} is not known any more"
        )
    if not found.holds(to):
        if to > found.newest:
            what = f"lies beyond the position {show(found.newest)}: changes in between"
            what += " would be skipped"
        else:
            what = f"lies below {show(found.oldest)}: what came before cannot be sent"
            what += " again"
        raise ConfigError(
            f"{show(to)} {what}",
            hint=f"source {name!r} can go to any LSN from {show(found.oldest)} to"
            f" {show(found.newest)}; a larger `retain` keeps more from now on",
        )
    return Rewind(name, position.resume, to)


def _nothing(name: str) -> ConfigError:
    return ConfigError(
        f"source {name!r} has no position yet: there is nothing to send again",
        hint="walstream run starts it",
    )
