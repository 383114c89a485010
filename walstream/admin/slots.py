"""The slots of the servers that are configured: whose they are, and dropping one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from walstream.config import Config, PostgresSource
from walstream.errors import (
    RESET,
    SINK_AGAIN,
    ConfigError,
    Repair,
    StateDamaged,
    Transient,
    WalstreamError,
)
from walstream.finding import Finding
from walstream.lsn import Lsn
from walstream.postgres import preflight
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, session
from walstream.postgres.slot_inventory import SlotFacts, every
from walstream.postgres.snapshot_holder import backfilling
from walstream.sources.postgres.stored_state import INTENT
from walstream.state.store import LmdbStore
from walstream.status.instance import streaming
from walstream.telemetry import runtime
from walstream.telemetry.json_types import SystemIdentifier

_GIVEN: Final = ""  # in place of a source's name: the DSN of the command line


@dataclass(frozen=True, slots=True)
class ServerSlots:
    """One server, or the reason why it could not be asked."""

    sources: list[str]  # configured, that read this server
    system_identifier: SystemIdentifier | None
    version: str | None
    standby: bool
    slots: list[SlotFacts]  # those that hold most first
    problem: Finding | None = None


@dataclass(frozen=True, slots=True)
class Slots:
    at: datetime
    servers: list[ServerSlots]


@dataclass(frozen=True, slots=True)
class Where:
    """Scope of the servers to ask: all that are configured, or one of them."""

    config: Config | None  # None: there is only the DSN
    dsn: str = field(default="", repr=False)  # a server, configured or not
    source: str = ""  # only this one's server

    @property
    def sources(self) -> dict[str, PostgresSource]:
        return self.config.postgres_sources if self.config else {}

    @property
    def asked(self) -> Iterable[tuple[str, str]]:
        """Yield the DSNs to ask, by source."""
        if self.dsn:
            yield _GIVEN, self.dsn
        for name, source in self.sources.items():
            yield name, source.dsn

    def wants(self, server: ServerSlots) -> bool:
        if self.dsn:
            return _GIVEN in server.sources
        return not self.source or self.source in server.sources


@dataclass(frozen=True, slots=True)
class Dependent:
    """A source, or a detached sink: its position is worth nothing without the slot."""

    source: str
    resume: Lsn | None  # None: not known, or nothing was delivered yet
    problem: str = ""  # why it is not known
    sink: str = ""  # that is detached; "": it is the source itself


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss that comes with dropping a slot."""

    slot: SlotFacts
    server: ServerSlots
    dependents: list[Dependent]


def look(where: Where) -> Slots:
    """Look at every server once. Raises nothing that a server does."""
    _check_source(where)
    found = [server for server, _ in _ask_all(where) if where.wants(server)]
    return Slots(
        datetime.fromtimestamp(runtime.time(), UTC),
        [_named(server) for server in found],
    )


def drop(where: Where, name: str, consent: Callable[[Loss], bool]) -> Loss | None:
    """Drop a slot that nobody reads; give what went with it, None: no consent."""
    _check_source(where)
    server, dsn, slot = _find(where, name)
    _check_droppable(where, server, slot)
    _check_backfill(dsn, name)
    loss = Loss(slot, _named(server), _dependents(where, server, slot))
    if not consent(loss):
        return None
    with session(dsn) as connection:
        if server.system_identifier != servers.look(connection).system_identifier:
            raise ConfigError("the dsn now leads to another server: nothing was done")
        slots.drop(connection, name)
    return loss


def _check_source(where: Where) -> None:
    if where.source and where.config:
        where.config.postgres_source(where.source)


def _ask_all(where: Where) -> list[tuple[ServerSlots, str]]:
    """Ask each server once; give it with a DSN that leads there."""
    asked: list[tuple[ServerSlots, str]] = []
    for name, dsn in where.asked:
        server = _ask(where, name, dsn)
        known = next((one for one, _ in asked if _same(one, server)), None)
        if known is None:
            asked.append((server, dsn))
        else:
            known.sources.append(name)
    return [(_with_owners(where, server), dsn) for server, dsn in asked]


def _same(one: ServerSlots, other: ServerSlots) -> bool:
    # a standby has the identifier of its primary, and slots of its own
    return (
        one.system_identifier is not None
        and one.system_identifier == other.system_identifier
        and one.standby == other.standby
    )


def _ask(where: Where, name: str, dsn: str) -> ServerSlots:
    try:
        with session(dsn) as connection:
            server = servers.look(connection)
            return ServerSlots(
                sources=[name],
                system_identifier=server.system_identifier,
                version=_version(connection),
                standby=server.in_recovery,
                slots=every(connection),
            )
    except WalstreamError as error:
        subject = f"source {name}" if name else "the dsn"
        problem = Finding.of(error, "server", subject, error.final_hint)
        if where.config is not None:
            scrub = where.config.secrets.scrub
            problem = replace(problem, what=scrub(problem.what), why=scrub(problem.why))
        return ServerSlots([name], None, None, standby=False, slots=[], problem=problem)


def _version(connection: Connection) -> str:
    number = connection.info.server_version
    return f"{number // 10000}.{number % 10000}"


def _with_owners(where: Where, server: ServerSlots) -> ServerSlots:
    def owners(slot: SlotFacts) -> list[str]:
        named = (name for name in server.sources if name != _GIVEN)
        # a sink that was detached has a copy of its source's
        return [name for name in named if slot.name in where.sources[name].slots]

    return replace(
        server, slots=[replace(slot, sources=owners(slot)) for slot in server.slots]
    )


def _named(server: ServerSlots) -> ServerSlots:
    """Leave out what stands for the DSN of the command line."""
    return replace(server, sources=[name for name in server.sources if name != _GIVEN])


def _find(where: Where, name: str) -> tuple[ServerSlots, str, SlotFacts]:
    wanted = [(server, dsn) for server, dsn in _ask_all(where) if where.wants(server)]
    found = [
        (server, dsn, slot)
        for server, dsn in wanted
        for slot in server.slots
        if slot.name == name
    ]
    if len(found) > 1:
        sources = ", ".join(server.sources[0] for server, _, _ in found)
        raise ConfigError(
            f"{len(found)} servers have a slot {name!r}",
            hint=f"name one with --source, one of: {sources}",
        )
    if not found:
        for server, _ in wanted:
            if server.problem is not None:
                raise Transient(
                    f"slot {name!r} was not found, and not every server could be "
                    f"asked: {server.problem.what}",
                    hint=server.problem.why,
                )
        names = sorted({slot.name for server, _ in wanted for slot in server.slots})
        raise ConfigError(
            f"there is no slot {name!r}",
            hint=f"there are: {', '.join(names) or 'none'}",
        )
    return found[0]


def _check_droppable(where: Where, server: ServerSlots, slot: SlotFacts) -> None:
    again = f"walstream slots drop {slot.name}"
    if slot.synced and server.standby:
        raise ConfigError(
            f"slot {slot.name!r} on this standby is synchronized from its primary",
            hint="drop it there: it disappears here too",
        )
    reader = slot.reader
    if reader is None:
        return
    who = (
        f"pid {reader.pid} ({reader.application or 'no name'} of"
        f" {reader.user or '?'} at {reader.address or 'local'})"
    )
    running = _running(where, slot)
    if running:
        raise Transient(
            f"slot {slot.name!r} is in use by {who}: source {slot.sources[0]!r} of the"
            f" running walstream, process {running}",
            hint=f"stop that first: kill {running}",
            repair=Repair(command=f"kill {running}", then=again),
        )
    end = f"SELECT pg_terminate_backend({reader.pid});"
    raise Transient(
        f"slot {slot.name!r} is in use by {who}",
        hint=f"stop that one, or end its session: {end}",
        repair=Repair(sql=end, then=again),
    )


def _check_backfill(dsn: str, slot: str) -> None:
    """Raise where a first backfill needs the slot, which has no reader meanwhile."""
    with session(dsn) as connection:
        if pid := backfilling(connection, slot):
            raise preflight.backfilled_by(connection, slot, pid)


def _running(where: Where, slot: SlotFacts) -> int | None:
    """Return the process of the instance that reads a slot for one of our sources."""
    if where.config is None:
        return None
    ours = streaming(Path(where.config.state))
    return ours.instance if ours.workers.keys() & set(slot.sources) else None


def _dependents(where: Where, server: ServerSlots, slot: SlotFacts) -> list[Dependent]:
    if where.config is None or server.system_identifier is None:
        return []
    found = []
    for name, sink, folder in _states(Path(where.config.state), where.sources):
        try:
            with LmdbStore.open_read_only(folder) as positions:
                if positions is None:
                    continue
                position = positions.position()
                intent = INTENT.read(positions)
        except StateDamaged:
            continue  # it has to be reset in any case
        except WalstreamError as error:
            if name in slot.sources:
                found.append(Dependent(name, None, str(error.args[0]), sink))
            continue
        if position is None:
            created = intent is not None and intent.consistent_point is not None
            if name in slot.sources and created:
                found.append(Dependent(name, None, sink=sink))
        elif (position.slot, position.system_identifier) == (
            slot.name,
            server.system_identifier,
        ):
            found.append(Dependent(name, position.resume, sink=sink))
    return found


def _states(state: Path, sources: Iterable[str]) -> Iterator[tuple[str, str, Path]]:
    """Yield the folders of sources, and of their sinks that are detached."""
    for name in sources:
        yield name, "", state / name
        for folder in sorted((state / name / "away").glob("*/")):
            yield name, folder.name, folder


def repair_of(dependents: Iterable[Dependent]) -> list[Repair]:
    """Return what cures each source after its slot is gone."""
    return [
        SINK_AGAIN if one.sink else RESET.of_source(one.source) for one in dependents
    ]
