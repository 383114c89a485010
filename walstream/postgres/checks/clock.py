"""The server's clock against this machine's."""

from collections.abc import Iterator
from typing import Final

from walstream.errors import Repair
from walstream.finding import Finding, warning
from walstream.postgres.checks.context import ServerContext
from walstream.telemetry import runtime

_TOLERATED_S: Final = 2.0
now = runtime.time


def look(seen: ServerContext) -> Iterator[Finding]:
    """Ask for the time, and measure how long the answer took."""
    before = now()
    row = seen.connection.execute(
        "SELECT extract(epoch FROM clock_timestamp())::float8"
    ).fetchone()
    after = now()
    if row is not None:
        yield from of_clocks(before, row[0], after)


def of_clocks(before: float, theirs: float, after: float) -> Iterator[Finding]:
    """Compare clocks; theirs was read at some time between our two readings."""
    ahead = theirs - after
    behind = before - theirs
    if (apart := max(ahead, behind)) > _TOLERATED_S:
        way = "ahead of" if ahead > behind else "behind"
        yield warning(
            "clock",
            "server",
            f"the server's clock is {apart:.1f} s {way} this machine's",
            "lags and record timestamps come from the server's commit times",
            Repair(then="synchronise both clocks, with chrony or systemd-timesyncd"),
        )
