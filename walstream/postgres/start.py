"""The start table: what LMDB, the slot and the server say together, and what to do.

Pure. Every row that would lose or mix changes stops with both LSNs and the repair.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from walstream.errors import RESET, HistoryError, Repair, SlotLost, WalstreamError
from walstream.lsn import Lsn, parse, show
from walstream.ports import Position
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot


class Step(Enum):
    """What to do next; a stop is an error instead."""

    CREATE = "create publication and slot"
    ADOPT = "take the slot as it is"
    STREAM = "stream from the position"
    WAIT = "the slot is in use"


@dataclass(frozen=True, slots=True)
class Stored:
    """What the state folder knows."""

    position: Position | None = None
    intent: bool = False  # noted before publication and slot were created
    consistent_point: Lsn | None = None  # of the slot that the intent led to


@dataclass(frozen=True, slots=True)
class Decision:
    step: Step
    resume: Lsn = 0  # for STREAM and ADOPT


_GAP: Final = "the changes in between will not be in Kafka"


def decide(
    source: str, stored: Stored, slot: Slot | None, server: Server, *, adopt: bool
) -> Decision:
    """Decide by the start table (docs/operations.md); raise where it says stop.

    The timeline is checked apart, by `check_timeline`: it needs the server's history.
    """
    reset = RESET.of_source(source)
    if slot is not None:
        check_ours(slot, server)
    if stored.position is not None:
        return _resume(stored.position, slot, server, reset)
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
    if stored.intent or adopt:
        step = Step.WAIT if slot.active_pid else Step.ADOPT
        return Decision(step, confirmed)
    raise HistoryError(
        f"slot {slot.name!r} is there (confirmed {show(confirmed)}), but the state"
        " folder knows nothing of it",
        hint="restore the state folder; or walstream run --adopt-slot, which streams"
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
            hint="going on would take it from whoever made it",
            repair=Repair(then="give the source another `slot`"),
        )
    if slot.two_phase:
        # its transactions come at PREPARE, before it is known that they are committed
        raise HistoryError(
            f"slot {slot.name!r} has two_phase on: it would give out what is prepared,"
            " and may be rolled back",
            hint="walstream makes none such; whoever reads it relies on that",
            repair=Repair(
                then="give the source another `slot`; PostgreSQL 18 also turns it off,"
                " over a connection with replication=database: ALTER_REPLICATION_SLOT"
                f" {slot.name} (TWO_PHASE false)"
            ),
        )


def _resume(
    position: Position, slot: Slot | None, server: Server, reset: Repair
) -> Decision:
    resume = position.resume
    if position.system_identifier != server.system_identifier:
        raise HistoryError(
            f"the position {show(resume)} belongs to the server"
            f" {position.system_identifier}, this is {server.system_identifier}",
            hint=f"correct the dsn; if the change is meant, reset the source: {_GAP}",
            repair=reset,
        )
    if position.database != server.database:
        raise HistoryError(
            f"the position {show(resume)} belongs to the database"
            f" {position.database!r}, this is {server.database!r}",
            hint=f"correct the dsn; if the change is meant, reset the source: {_GAP}",
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
    if resume > server.flush_lsn:
        raise HistoryError(
            f"the position {show(resume)} lies beyond the server's WAL, which ends at"
            f" {show(server.flush_lsn)}: the server's history changed",
            hint=_GAP,
            repair=reset,
        )
    return Decision(Step.WAIT if slot.active_pid else Step.STREAM, resume)


def _read_by_another(slot: Slot, resume: Lsn, reset: Repair) -> SlotLost:
    """Say who has the slot: an instance that goes on is not to be reset."""
    what = (
        f"slot {slot.name!r} is confirmed to {show(slot.confirmed_flush_lsn or 0)},"
        f" beyond the position {show(resume)}"
    )
    if slot.active_pid:
        return SlotLost(
            f"{what}: another instance reads it now (pid {slot.active_pid})",
            hint="that one goes on, and nothing is missing: leave this one stopped. Two"
            " instances of one source need one state folder between them",
            repair=Repair(
                command="walstream slots",  # names who reads it
                then="remove this instance, or its copy of the state folder",
            ),
        )
    return SlotLost(
        f"{what}: someone else read it, or the state folder is an old copy",
        hint="if another instance took the slot over, start that one, with its state"
        f" folder, and leave this one stopped; if nothing did, {_GAP}",
        repair=reset,
    )


def check_timeline(
    source: str, position: Position, server: Server, history: str
) -> None:
    """Refuse a timeline that branched off below the position.

    `history` is the timeline history file of the server's timeline: a line for each
    older timeline, its number and the LSN at which it was left.
    """
    for line in history.splitlines():
        fields = line.split("\t")
        if len(fields) < 2 or not fields[0].strip().isdigit():  # noqa: PLR2004 - number, LSN
            continue
        if int(fields[0]) == position.timeline:
            left = _parse(fields[1])
            if left >= position.resume:
                return
            raise HistoryError(
                f"timeline {position.timeline} was left at {show(left)}, below the"
                f" position {show(position.resume)}: the server's history changed",
                hint=_GAP,
                repair=RESET.of_source(source),
            )
    raise HistoryError(
        f"the position is on timeline {position.timeline}, which is not in the history"
        f" of the server's timeline {server.timeline}",
        hint=_GAP,
        repair=RESET.of_source(source),
    )


def _parse(text: str) -> Lsn:
    try:
        return parse(text)
    except ValueError:
        raise WalstreamError(f"timeline history: {text!r} is no LSN") from None
