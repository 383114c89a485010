"""The clock of a producer's turns: it shows a process that was stopped meanwhile."""

import time

from walstream.errors import Restart


class TurnClock:
    """Reads the wall clock once a turn.

    The wall clock, which a suspended machine's monotonic one may not follow. When it
    is set forward the stream begins again for nothing.
    """

    def __init__(self) -> None:
        self.now_ms = 0  # of this turn; 0: before the first

    def turn(self) -> int:
        """Give how long the last turn is ago, in milliseconds; 0 at the first."""
        before_ms, self.now_ms = self.now_ms, int(time.time() * 1000)
        return self.now_ms - (before_ms or self.now_ms)


def stood_still(still_ms: int) -> Restart:
    """Make the error of a process that was stopped for so long, as its clock says.

    Somebody else may go on from the position by then: what was under way was purged,
    and comes again unless it did already.
    """
    return Restart(
        f"this process stood still for {still_ms / 1000:.0f} s: what was under way to"
        " Kafka is given up, and sent again from the position"
    )
