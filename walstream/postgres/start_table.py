"""The start table: what LMDB, the slot and the server say together, and what to do.

Pure. Every row that would lose or mix changes stops with both LSNs and the repair.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol

from walstream.errors import (
    RESET,
    ConfigError,
    HistoryError,
    Repair,
    SlotLost,
)
from walstream.lsn import Lsn, show
from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import Given
from walstream.postgres.branch_point import branches_of, check_former, left_at
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot


class Step(Enum):
    """Next step of a start; a stop is an error instead."""

    CREATE = "create publication and slot"
    ADOPT = "use the slot as it is"
    STREAM = "stream from the position"
    WAIT = "the slot is in use"


@dataclass(frozen=True, slots=True)
class StoredState:
    """Facts of the state folder."""

    position: Position | None = None
    intent: bool = False  # noted before publication and slot were created
    origin: str = ""  # the server's and the database's, of the intent; "": not noted
    consistent_point: Lsn | None = None  # of the slot that the intent led to
    given: Given | None = None  # to sinks, as far as is known
    slot: str = ""  # that the source names now, if that is known

    def intended(self, server: Server) -> bool:
        """Return whether the slot was to be created on this server."""
        return self.intent and self.origin in {"", server.origin}


@dataclass(frozen=True, slots=True)
class Decision:
    step: Step
    resume: Lsn = 0  # for STREAM and ADOPT


_GAP: Final = "the changes in between will be missing in Kafka"


def decide(
    source: str, stored: StoredState, slot: Slot | None, server: Server, *, adopt: bool
) -> Decision:
    """Decide by the start table (docs/operations.md); raise where it says stop.

    The timeline is checked apart, by `check_timeline`: it needs the server's history.
    """
    reset = RESET.of_source(source)
    if slot is not None:
        check_ours(slot, server)
    if stored.position is not None:
        named = stored.slot or stored.position.slot
        return _resume(stored.position, named, slot, server, reset)
    if slot is None:
        if stored.consistent_point is not None:
            raise SlotLost(
                "the slot that walstream created at"
                f" {show(stored.consistent_point)} is gone",
                hint=_GAP,
                repair=reset,
            )
        return Decision(Step.CREATE)
    if slot.lost:
        raise SlotLost(
            f"slot {slot.name!r} cannot be read: {slot.lost}", hint=_GAP, repair=reset
        )
    confirmed = slot.confirmed_flush_lsn or 0
    if stored.intended(server) or adopt:
        step = Step.WAIT if slot.active_pid else Step.ADOPT
        return Decision(step, confirmed)
    if slot.active_pid:
        raise ConfigError(
            f"slot {slot.name!r} is read now by {_reader(slot)}, and the state folder "
            "has no record of it",
            hint="is this a second instance? Then give its source another `slot`. To "
            "replace that reader, stop it first; then walstream run --adopt-slot "
            f"streams from {show(confirmed)}, or where it ends, without the rows "
            "before it",
            repair=Repair(
                command="walstream slots",  # names who reads it
                then="give the source another `slot`",
            ),
        )
    raise HistoryError(
        f"slot {slot.name!r} exists (confirmed {show(confirmed)}), but the state "
        "folder has no record of it",
        hint="restore the state folder, or, if the source had another name, move that "
        f"one's in the place of {source}; or walstream run --adopt-slot, which streams"
        f" from {show(confirmed)} without the rows before it; or give the source"
        " another `slot`",
        repair=Repair(command="walstream run --adopt-slot"),
    )


def check_ours(slot: Slot, server: Server) -> None:
    """Refuse a slot that no walstream of this database can have made."""
    problem = None
    if slot.kind != "logical":
        problem = f"is a {slot.kind} slot"
    elif slot.plugin != "pgoutput":
        problem = f"uses the plugin {slot.plugin!r}, not pgoutput"
    elif slot.database != server.database:
        problem = f"belongs to the database {slot.database!r}, not {server.database!r}"
    if problem:
        raise HistoryError(
            f"slot {slot.name!r} {problem}: it is not ours",
            hint="continuing would take it from its owner",
            repair=Repair(then="give the source another `slot`"),
        )
    if slot.two_phase:
        # its transactions come at PREPARE, before it is known that they are committed
        raise HistoryError(
            f"slot {slot.name!r} has two_phase on: it would send prepared "
            "transactions, which may still be rolled back",
            hint="walstream never makes such a slot; its reader relies on it",
            repair=Repair(
                then="give the source another `slot`; or turn it off (PostgreSQL 18), "
                "over a connection with replication=database: "
                f"ALTER_REPLICATION_SLOT {slot.name} (TWO_PHASE false)"
            ),
        )


class SlotHome(Protocol):
    """Server and database of a slot, as a position or an intent names them."""

    @property
    def system_identifier(self) -> int: ...

    @property
    def database(self) -> str: ...


def check_server(
    home: SlotHome, what: str, server: Server, hint: str, repair: Repair
) -> None:
    """Refuse a server, or a database, that it is not about."""
    if home.system_identifier != server.system_identifier:
        raise HistoryError(
            f"{what} belongs to the server {home.system_identifier}, this is"
            f" {server.system_identifier}",
            hint=hint,
            repair=repair,
        )
    if home.database != server.database:
        raise HistoryError(
            f"{what} belongs to the database {home.database!r}, this is"
            f" {server.database!r}",
            hint=hint,
            repair=repair,
        )


def _resume(
    position: Position, named: str, slot: Slot | None, server: Server, reset: Repair
) -> Decision:
    resume = position.resume
    hint = (
        "correct the dsn, or give a renamed database its former name back; if the "
        f"change is meant, reset the source: {_GAP}"
    )
    check_server(position, f"the position {show(resume)}", server, hint, reset)
    check_former(position.timeline, server)
    # before the slot: of a backup that was restored without it LSNs come again, too
    if resume > server.flush_lsn:
        raise HistoryError(
            f"the position {show(resume)} lies beyond the server's WAL, which ends at"
            f" {show(server.flush_lsn)}: the server's history changed",
            hint=_GAP,
            repair=reset,
        )
    if slot is None and named != position.slot:
        raise SlotLost(
            f"the position {show(resume)} belongs to the slot {position.slot!r}, the "
            f"source names {named!r}, which does not exist",
            hint="correct `slot`, or give this source a `state` folder of its own; if"
            f" the change is meant, reset the source: {_GAP}",
            repair=reset,
        )
    if slot is None:
        raise SlotLost(
            f"slot {position.slot!r} is gone; position {show(resume)}, server at"
            f" {show(server.flush_lsn)}",
            hint=_GAP,
            repair=reset,
        )
    if slot.lost:
        raise SlotLost(
            f"slot {slot.name!r} cannot be read ({slot.lost}); position"
            f" {show(resume)}, server at {show(server.flush_lsn)}",
            hint=_GAP,
            repair=reset,
        )
    confirmed = slot.confirmed_flush_lsn or 0
    if position.slot != slot.name:
        raise HistoryError(
            f"the position {show(resume)} belongs to the slot {position.slot!r}, the"
            f" source names {slot.name!r}",
            hint=f"correct `slot`; if the change is meant, reset the source: {_GAP}",
            repair=reset,
        )
    if confirmed > resume:
        raise _read_by_another(slot, resume, reset)
    return Decision(Step.WAIT if slot.active_pid else Step.STREAM, resume)


def check_confirmed(source: str, position: Position, slot: Slot) -> None:
    """Refuse a slot beyond the position; who reads it now is the caller."""
    if (slot.confirmed_flush_lsn or 0) > position.resume:
        idle = replace(slot, active_pid=None)
        raise _read_by_another(idle, position.resume, RESET.of_source(source))


def _reader(slot: Slot) -> str:
    return slot.reader or f"pid {slot.active_pid}"


def _read_by_another(slot: Slot, resume: Lsn, reset: Repair) -> SlotLost:
    """Return who has the slot: an instance that goes on is not to be reset."""
    what = (
        f"slot {slot.name!r} is confirmed to {show(slot.confirmed_flush_lsn or 0)},"
        f" beyond the position {show(resume)}"
    )
    if slot.active_pid:
        return SlotLost(
            f"{what}: another instance reads it now: {_reader(slot)}",
            hint="that one continues and nothing is missing: leave this one stopped. "
            "Instances of one source must share one state folder",
            repair=Repair(
                command="walstream slots",  # names who reads it
                then="remove this instance, or its copy of the state folder",
            ),
        )
    return SlotLost(
        f"{what}: another client read it, or the state folder is an old copy",
        hint="if another instance took over the slot, start that one, with its state "
        f"folder, and leave this one stopped; otherwise {_GAP}",
        repair=reset,
    )


def check_timeline(
    source: str,
    position: Position,
    server: Server,
    history: str,
    given: Given | None = None,
) -> None:
    """Refuse a timeline that branched off below the position, or below what was given.

    `history` is the timeline history file of the server's timeline: a line for each
    older timeline, its number and the LSN at which it was left.
    """
    left = branches_of(history)
    _check_position(source, position, server, left)
    if given is not None and given.timeline != server.timeline:
        _check_given(source, given, server, left)


def _check_position(
    source: str, position: Position, server: Server, left: Mapping[int, Lsn]
) -> None:
    if position.timeline == server.timeline:
        return
    at = left_at(source, position.timeline, server, left)
    if at < position.resume:
        raise HistoryError(
            f"timeline {position.timeline} was left at {show(at)}, below the"
            f" position {show(position.resume)}: the server's history changed",
            hint=_GAP,
            repair=RESET.of_source(source),
        )


def _check_given(
    source: str, given: Given, server: Server, left: Mapping[int, Lsn]
) -> None:
    """Refuse where readers have commits that this server has not.

    Its own next commits have lower LSNs, which readers may take for repeats.
    """
    at = left_at(source, given.timeline, server, left)
    if given.lsn >= at:
        raise HistoryError(
            f"timeline {given.timeline} was left at {show(at)}, but commits up to "
            f"{show(given.lsn)} were sent: readers have changes that this server lost",
            hint="after the reset the rows are sent again; then walstream backfill "
            "'TABLES' --replace also makes readers empty the tables first",
            repair=RESET.of_source(source),
        )
    if given.below > at:
        raise HistoryError(
            f"timeline {given.timeline} was left at {show(at)}; walstream was killed "
            "before it noted how far it sent commits: at least up to "
            f"{show(given.lsn)}, and none from {show(given.below)} on",
            hint="the command names the last change in Kafka. Where that is below "
            f"{show(at)}, readers have nothing that this server lost: continue "
            "with walstream run --accept-timeline. Otherwise: walstream positions "
            f"reset {source}",
            repair=Repair(command=f"walstream positions show {source}"),
        )
