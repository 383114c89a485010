"""Findings about standbys: whether a promoted one would have all that was sent.

A slot with `failover` is there after a promotion (PostgreSQL 17 and later). Only where
`synchronized_standby_slots` names the slot of the standby is nothing decoded before
that standby has it.
"""

from collections.abc import Iterator
from typing import Final

from walstream.errors import Repair
from walstream.finding import Finding, note, warning
from walstream.postgres import quoting
from walstream.postgres.checks.context import ServerContext

_HAS_FAILOVER: Final = 170000
_RELOAD: Final = "SELECT pg_reload_conf();"
_SETTING: Final = "synchronized_standby_slots"

_SLOTS: Final = """
SELECT slot_name, slot_type = 'physical', failover FROM pg_replication_slots
WHERE NOT temporary ORDER BY slot_name
"""


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at what a failover would find."""
    wanted = seen.source.failover
    if seen.server.version < _HAS_FAILOVER:
        if wanted:
            yield _has_none(seen.server.version)
        return
    rows = seen.connection.execute(_SLOTS).fetchall()
    ours = any(name == seen.source.slot and failover for name, _, failover in rows)
    if not (wanted or ours):
        return
    row = seen.connection.execute(f"SHOW {_SETTING}").fetchone()
    physical = [name for name, is_physical, _ in rows if is_physical]
    yield from of_standbys(row[0] if row else "", physical)


def _has_none(version: int) -> Finding:
    return note(
        "failover",
        "server",
        f"PostgreSQL {version // 10000} keeps no slot on its standbys",
        "`failover` has no effect: after a promotion the slot is gone, which is a gap",
        Repair(then="upgrade to PostgreSQL 17, or remove `failover`"),
    )


def of_standbys(setting: str, physical: list[str]) -> Iterator[Finding]:
    """Compare synchronized_standby_slots with the existing physical slots."""
    named = {part.strip().strip('"') for part in setting.split(",")} - {""}
    if missing := sorted(named.difference(physical)):
        yield warning(
            "standby-slots",
            "server",
            f"{_SETTING} names {', '.join(missing)}, and there is no such physical"
            " slot",
            "PostgreSQL sends nothing from a slot with `failover` until that slot "
            "exists",
            Repair(then=f"create it, or remove it from {_SETTING}"),
        )
    if named:
        return
    if physical:
        value = quoting.text(",".join(physical))
        repair = Repair(
            sql=f"ALTER SYSTEM SET {_SETTING} = {value};\n{_RELOAD}",
            then="name only the slots of standbys that may be promoted: the stream"
            " waits for each of them",
        )
    else:
        repair = Repair(
            then="give the standby that may be promoted a physical slot"
            f" (primary_slot_name), and name that in {_SETTING}"
        )
    yield warning(
        "standby-slots",
        "server",
        f"{_SETTING} is empty: changes are sent before a standby has them",
        "after a promotion the new primary may lack what Kafka has: the source then "
        "stops, and has to start again with all rows",
        repair,
    )
