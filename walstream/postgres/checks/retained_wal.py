"""WAL that slots hold: ours, and those of others on the same server."""

from collections.abc import Iterator, Sequence
from typing import Final

from walstream.config import PostgresSource
from walstream.errors import SINK_AGAIN, Repair
from walstream.finding import Finding, note, warning
from walstream.postgres import preflight, slot_inventory, spill
from walstream.postgres.checks.context import ServerContext
from walstream.postgres.slot_inventory import SlotFacts
from walstream.telemetry.human import size

_MIB: Final = 1 << 20
_NEAR: Final = 5  # less than a fifth of the limit is left
_FILLS: Final = "the server's disk fills with WAL until PostgreSQL stops"


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at every slot of the server."""
    alarm = seen.source.alarm_retained_wal
    limit = _limit(seen)
    for slot in slot_inventory.every(seen.connection):
        if slot.name == seen.source.slot:
            yield from of_ours(slot, alarm, _limits(seen.source))
            yield from of_danger(slot, limit)
        elif slot.name in seen.source.slots and slot.invalidation:
            yield of_copy(slot, slot.invalidation)
        elif slot.name not in seen.wanted.sibling_slots:
            yield from of_another(slot, alarm)
    if seen.source.alarm_spill and not spill.visible(seen.connection):
        yield _unseen(seen)


def _unseen(seen: ServerContext) -> Finding:
    """Return a message that files of large transactions may fill the disk unseen."""
    row = seen.connection.execute("SELECT quote_ident(current_user)").fetchone()
    role = row[0] if row else "walstream"
    return note(
        "spill-unseen",
        f"slot {seen.source.slot}",
        f"role {role} may not see its files of large transactions",
        "they can fill the disk, and `alarm_spill` cannot warn without that right",
        Repair(sql=f"GRANT EXECUTE ON FUNCTION pg_ls_replslotdir(text) TO {role};"),
    )


def _limit(seen: ServerContext) -> int:
    row = seen.connection.execute(
        "SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size'"
    ).fetchone()
    return row[0] * _MIB if row else -1


def _limits(source: PostgresSource) -> list[str]:
    """Name what limits the source's stream."""
    limits = {
        "max_rows_per_second": source.max_rows_per_second,
        "max_bytes_per_second": source.max_bytes_per_second,
    }
    return [key for key, limit in limits.items() if limit]


def of_ours(
    slot: SlotFacts, alarm: int, limits: Sequence[str] = ()
) -> Iterator[Finding]:
    """Yield when our slot holds more than it should; `limits` may be why."""
    if slot.held_bytes <= alarm:
        return
    if slot.reader is None:
        why = f"no client reads the slot: {_FILLS}"
        repair = Repair(command="walstream run")
    else:
        held = f", or is held by {' and '.join(limits)}" if limits else ""
        why = f"its reader does not keep up, or waits for Kafka{held}: {_FILLS}"
        repair = Repair(command="walstream status", then="find out what it waits for")
    yield warning(
        "retained-wal",
        f"slot {slot.name}",
        f"holds {size(slot.held_bytes)} of WAL, more than `alarm_retained_wal`"
        f" ({size(alarm)})",
        why,
        repair,
    )


def of_danger(slot: SlotFacts, limit: int) -> Iterator[Finding]:
    """Yield when our slot is about to be lost to max_slot_wal_keep_size."""
    if slot.invalidation or limit < 0 or slot.safe_wal_size is None:
        return
    if slot.wal_status != "unreserved" and slot.safe_wal_size * _NEAR > limit:
        return
    left = size(max(0, slot.safe_wal_size))
    wanted = -(-2 * max(limit, slot.held_bytes) // _MIB)
    yield warning(
        "slot-in-danger",
        f"slot {slot.name}",
        f"is lost after {left} more of WAL: max_slot_wal_keep_size is {size(limit)}",
        "a lost slot is a gap: changes that were not read never reach Kafka",
        Repair(
            sql=f"ALTER SYSTEM SET max_slot_wal_keep_size = '{wanted}MB';\n"
            "SELECT pg_reload_conf();",
            then="let walstream read what the slot retains",
        ),
    )


def of_copy(slot: SlotFacts, invalidation: str) -> Finding:
    """Return the loss of a detached sink's slot, which is a copy of ours."""
    return warning(
        "lost-slot",
        f"slot {slot.name}",
        f"can no longer be read: {invalidation}",
        "a sink that is detached streams from it, and lacks changes for good; the "
        "source's other sinks stream on",
        SINK_AGAIN,
    )


def of_another(slot: SlotFacts, alarm: int) -> Iterator[Finding]:
    """Yield when another's slot is a danger to the server, and so to us."""
    subject = f"slot {slot.name}"
    if slot.invalidation:
        yield warning(
            "lost-slot",
            subject,
            f"can no longer be read: {slot.invalidation}",
            "it takes one of the server's slots and is useless",
            preflight.drop(slot.name),
        )
    elif slot.held_bytes > alarm and slot.reader is None:
        yield warning(
            "idle-slot",
            subject,
            f"({slot.what}) holds {size(slot.held_bytes)} of WAL, and no client reads "
            "it",
            f"{_FILLS}, and this stream with it",
            # its reader may only be down: no command that ends it for good
            Repair(
                then="start its reader; or, if it is no longer needed: walstream slots "
                f"drop {slot.name}"
            ),
        )
    elif slot.held_bytes > alarm:
        yield note(
            "slow-slot",
            subject,
            f"({slot.what}) holds {size(slot.held_bytes)} of WAL, though a client "
            "reads it",
            _FILLS,
            Repair(then="find out why its reader does not keep up"),
        )
