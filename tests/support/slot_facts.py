"""Facts of a slot, as a test starts from them: nobody reads it, and it is well."""

from typing import Final

from walstream.postgres.slot_inventory import SlotFacts

IDLE: Final = SlotFacts(
    name="s",
    kind="logical",
    plugin="pgoutput",
    database="shop",
    reader=None,
    inactive_since=None,
    wal_status="reserved",
    invalidation=None,
    restart_lsn=1,
    confirmed_lsn=1,
    held_bytes=1,
    lag_bytes=0,
    safe_wal_size=None,
    temporary=False,
    failover=None,
    synced=None,
)
