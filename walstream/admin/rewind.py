"""Sending again what was sent: a source's position goes back, as far as its slot can.

The transactions from there on come again, under the same (lsn, seq_id). A time stands
for the LSN of the first transaction that was not committed before it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from walstream.config import Config, PostgresSource
from walstream.errors import ConfigError
from walstream.formats import timestamp
from walstream.kafka import delivery_era
from walstream.kafka.replay_mark import replay_entry
from walstream.lsn import Lsn, show
from walstream.pipeline.commit_times import TimeIndex
from walstream.pipeline.ports import Position
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres import timeline
from walstream.postgres.connection import Connection, session
from walstream.postgres.publication_memory import PUBLICATIONS
from walstream.postgres.server import Server
from walstream.postgres.slot_inventory import released
from walstream.postgres.start_table import decide
from walstream.postgres.wal_search import copied
from walstream.sources.postgres.detached.detached_sink import AWAY, DETACHED
from walstream.sources.postgres.stored_state import (
    ReplayWindow,
    stored_of,
    window,
)
from walstream.state.control import lent
from walstream.state.store import LmdbStore

To = Lsn | datetime
"""Where to begin again: a time has an offset."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Range to send again."""

    source: str
    resume: Lsn
    to: Lsn


@dataclass(frozen=True, slots=True)
class _Place:
    """Position of a source, and how far back it can go."""

    name: str
    source: PostgresSource
    server: Server
    position: Position
    window: ReplayWindow


def rewind(config: Config, name: str, to: To, consent: Callable[[Rewind], bool]) -> str:
    """Set a source's position back; give what was done, in a sentence.

    `consent` is asked before anything is stopped. A running instance lends the source,
    and streams on from there; what may have changed meanwhile is checked again.
    """
    source = config.postgres_source(name)
    folder = Path(config.state) / name
    with (
        session(source.dsn) as connection,
        LmdbStore.open_read_only(folder) as positions,
    ):
        if positions is None:
            raise _nothing(name)
        place = _look(positions, name, source, connection)
        lsn = to if isinstance(to, int) else _find(positions, place, to)
    _check(place, lsn)
    resume = place.position.resume
    if resume == lsn:
        return f"source {name!r} is at {show(lsn)} already: nothing was changed"
    if not consent(Rewind(name, resume, lsn)):
        return "nothing was changed"
    with (
        lent(config, name) as running,
        session(source.dsn) as connection,
        LmdbStore(folder) as positions,
    ):
        released(connection, source.slot)
        _check(_look(positions, name, source, connection), lsn)
        # what is sent again is not to be left out, since it is there
        again = {**delivery_era.ended(positions), **replay_entry()}
        positions.rewind(lsn, again)
    if running:
        return f"source {name!r} is at {show(lsn)}, and streams again from there"
    return f"source {name!r} is at {show(lsn)}: the next run streams from there"


def _look(
    positions: LmdbStore, name: str, source: PostgresSource, connection: Connection
) -> _Place:
    """Compare with the slot and the server; raise what `run` would stop with."""
    for sink, note in DETACHED.read_all(positions).items():
        if note.phase == AWAY:
            raise ConfigError(
                f"sink {sink!r} of source {name!r} is detached, and would get none "
                "of the changes",
                hint="walstream status shows what it waits for; rewind when it is back",
            )
    # the slot first: while it runs, what is confirmed was stored before
    slot = slots.find(connection, source.slot)
    stored = stored_of(positions, source.slot)
    server = servers.look(connection)
    position = stored.position
    servers.check(
        server,
        source.encoding,
        resuming=position is not None,
        allow_synchronous=source.allow_synchronous,
    )
    decide(name, stored, slot, server, adopt=False)
    if position is None or slot is None:
        raise _nothing(name)
    timeline.check(source.dsn, name, position, stored.given, server)
    found = window(positions, position, slot)
    if found is None:
        raise ConfigError(
            f"source {name!r} cannot go back: the keys of its tables below "
            f"{show(position.resume)} are no longer known"
        )
    return _Place(name, source, server, position, found)


def _check(place: _Place, to: Lsn) -> None:
    """Refuse an LSN that is out of reach."""
    found = place.window
    if found.holds(to):
        return
    if to > found.newest:
        what = f"lies beyond the position {show(found.newest)}: changes in between"
        what += " would be skipped"
    else:
        what = f"lies below {show(found.oldest)}: what came before cannot be sent"
        what += " again"
    raise _refused(place.name, found, f"{show(to)} {what}")


def _find(positions: LmdbStore, place: _Place, to: datetime) -> Lsn:
    """Find the first transaction that was not committed before a time."""
    index = TimeIndex.of(positions)
    names = PUBLICATIONS.read(positions)
    wanted, newest = timestamp.of(to), place.window.newest
    with copied(place.source.dsn, place.source.slot) as copy:
        # the slot may have moved since it was looked at; this copy does not
        oldest = max(place.window.oldest, copy.oldest)
        reach = index.reach(oldest, newest) if index else None
        within = replace(place.window, oldest=oldest).timed(reach)
        if index is None or reach is None or not names:
            what = "no commit time is known of the changes that can be sent again"
            raise _refused(place.name, within, what)
        first, last = reach
        said = timestamp.rfc3339(wanted)
        if wanted < first:
            what = f"not everything committed at {said}, or soon after, can be sent"
            raise _refused(place.name, within, f"{what} again")
        found = None
        if wanted <= last:
            found = copy.first(
                wanted,
                index.look(wanted, oldest),
                newest,
                server=place.server,
                names=sorted(names),
            )
        if found is None:
            what = f"no transaction up to the position was committed at {said} or later"
            raise _refused(place.name, within, what)
        return found


def _refused(name: str, found: ReplayWindow, what: str) -> ConfigError:
    """Return what can be reached instead."""
    reach = f"any LSN from {show(found.oldest)} to {show(found.newest)}"
    if found.first_time and found.last_time:
        first, last = map(timestamp.of, (found.first_time, found.last_time))
        reach += f", or any time from {timestamp.rfc3339(first)} to"
        reach += f" {timestamp.rfc3339(last)}"
    return ConfigError(
        what,
        hint=f"source {name!r} can go to {reach}; a larger `retain` keeps more WAL "
        "from now on",
    )


def _nothing(name: str) -> ConfigError:
    return ConfigError(
        f"source {name!r} has no position yet: there is nothing to send again",
        hint="walstream run starts it",
    )
