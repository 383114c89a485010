"""Preflight: room for the slot and its stream, and the reader of a taken slot.

What is missing may come back by itself: walstream waits, and says what would help.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from walstream.errors import PermissionLacking, Repair, Transient, WalstreamError
from walstream.postgres import privileges
from walstream.postgres import slot as slots
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.selection import Unselectable
from walstream.postgres.slot import Slot
from walstream.telemetry.human import few

_SPARE: Final = 4  # more than the one that is missing: each needs a restart

# A slot whose WAL is gone is of no use to anybody.
_SLOTS: Final = """
SELECT current_setting('max_replication_slots')::int, count(*),
  coalesce(array_agg(slot_name::text ORDER BY slot_name)
    FILTER (WHERE wal_status = 'lost' AND NOT active), '{}'),
  coalesce(array_agg(slot_name::text ORDER BY slot_name)
    FILTER (WHERE wal_status IS DISTINCT FROM 'lost' AND NOT active), '{}')
FROM pg_replication_slots
"""
# The function, not the view: everybody may see how many there are.
_SENDERS: Final = """
SELECT current_setting('max_wal_senders')::int, count(*) FROM pg_stat_get_wal_senders()
"""


def lacking(
    connection: Connection, *, slot: bool
) -> Iterator[tuple[str, WalstreamError]]:
    """Yield what is missing for a stream, and before it for a new slot."""
    if slot:
        yield from _slots(connection)
    yield from _senders(connection)


def _slots(connection: Connection) -> Iterator[tuple[str, WalstreamError]]:
    row = connection.execute(_SLOTS).fetchone() or (1, 0, [], [])
    most, taken, lost, idle = row
    if taken < most:
        return
    if lost:
        repair = drop(lost[0])
        hint = f"slot {lost[0]!r} is useless: its WAL is gone"
    else:
        repair = _raise("max_replication_slots", most)
        hint = "every slot is in use"
        if idle:
            hint = (
                f"no client reads {few(idle)} now: if none will, walstream slots drop "
                f"{idle[0]}"
            )
    yield (
        "free-slot",
        Transient(
            f"all {most} replication slots of the server are taken",
            hint=hint,
            repair=repair,
        ),
    )


def _senders(connection: Connection) -> Iterator[tuple[str, WalstreamError]]:
    most, taken = connection.execute(_SENDERS).fetchone() or (1, 0)
    if taken >= most:
        yield (
            "free-sender",
            Transient(
                f"all {most} WAL senders of the server are busy",
                hint="each stream and each replica needs one",
                repair=_raise("max_wal_senders", most),
            ),
        )


def drop(slot: str) -> Repair:
    """Drop a slot of the source's server."""
    return Repair(command=f"walstream slots drop {slot} --source {{source}}")


def _raise(setting: str, now: int) -> Repair:
    return Repair(
        sql=f"ALTER SYSTEM SET {setting} = {now + _SPARE};", then="restart PostgreSQL"
    )


def in_use(connection: Connection, slot: Slot, *, adopt: bool) -> Transient:
    """Return who holds the slot, which has to be let go first."""
    who = slots.holder(connection, slot.active_pid or 0)
    run = "walstream run --adopt-slot" if adopt else "walstream run"
    return Transient(
        f"slot {slot.name!r} is in use by {who}",
        hint="stop that one, or end its session",
        repair=Repair(
            sql=f"SELECT pg_terminate_backend({slot.active_pid});",
            # an instance that waits for the slot holds the state folder
            then=f"or, unless walstream runs: {run} --take-over, which also ends it",
        ),
    )


def backfilled_by(connection: Connection, slot: str, pid: int) -> Transient:
    """Return who sends existing rows under a slot that has no reader meanwhile."""
    return Transient(
        f"an instance backfills under slot {slot!r}: {slots.holder(connection, pid)}",
        hint="wait until its backfill has ended, or stop it: its rows are older than "
        "those of the stream",
        repair=Repair(
            sql=f"SELECT pg_terminate_backend({pid});",
            then="stop that instance first: it begins its backfill again",
        ),
    )


def check(
    connection: Connection, capture: Capture, facts: Mapping[str, TableFacts]
) -> None:
    """Refuse a start that could not create its publications and its slot."""
    for _, obstacle in obstacles(connection, capture, facts):
        raise obstacle


def obstacles(
    connection: Connection, capture: Capture, facts: Mapping[str, TableFacts]
) -> Iterator[tuple[str, WalstreamError]]:
    """Yield all that stands in the way, each with a code, the first met first."""
    for obstacle in capture.obstacles(connection, privileges.look(connection), facts):
        what = "missing"
        if isinstance(obstacle, PermissionLacking):
            what = "right"
        elif isinstance(obstacle, Unselectable):
            what = "selection"
        yield f"publication-{what}", obstacle
    yield from lacking(connection, slot=True)
