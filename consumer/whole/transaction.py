"""A transaction of the source as an application handles it: whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from consumer.op import Op
from walstream.lsn import Lsn, show


class Ops(Protocol):
    """Ops in their order in the transaction; those of a large one lie on disk.

    They may be looked at again, while the handler runs.
    """

    def __iter__(self) -> Iterator[Op]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class WholeTransaction:
    """One transaction of the source, as far as topics that are read have its tables.

    Backfilled rows come as one, too, with `snapshot`: some of a partition's at a time,
    behind the transactions up to `lsn` and before those after it. So does the Truncate
    ahead of them.
    """

    lsn: Lsn  # of its commit
    ops: Ops
    snapshot: bool = False
    end_lsn: Lsn = 0  # the byte behind the commit
    xid: int | None = None
    commit_micros: int = 0  # since 1970
    parked: int = 0  # records that were too large for their topics: not among `ops`

    @property
    def commit_time(self) -> datetime:
        return datetime.fromtimestamp(self.commit_micros / 1_000_000, UTC)

    def __repr__(self) -> str:
        """Return which one it is; its values belong in no log."""
        what = "backfilled rows" if self.snapshot else "transaction"
        return f"<{what} {show(self.lsn)}, {len(self.ops)} ops>"
