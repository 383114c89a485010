"""How a slot is, as its server measured it: a record, which needs no psycopg."""

from dataclasses import dataclass

from walstream.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Health:
    """What a slot costs its server, and how far the server is."""

    retained_wal: int  # bytes that cannot be removed for it
    wal_status: str | None
    safe_wal_size: int | None  # bytes until it is invalidated; None: no limit
    flush_lsn: Lsn
    lost: str | None = None  # why it cannot be read any more
    synchronous: str = ""  # that commits wait for us; "": they do not
    # what its server wrote to disk since its statistics began
    spill_txns: int = 0
    spill_bytes: int = 0
    spilled: int | None = None  # bytes of that on disk now; None: not to be known
