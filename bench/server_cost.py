"""What a run costs the servers: CPU of the slot's walsender, and of the broker.

A machine that is full gives rows a second by the CPU of all three together: a reader
that takes each row at once makes the walsender pay for it, one that sends small
requests the broker.
"""

from contextlib import suppress
from dataclasses import dataclass

import psutil

from bench.place import Place
from bench.watch import Figure


@dataclass
class ServerCost:
    """CPU of both servers while one reader of a slot runs."""

    place: Place
    slot: str
    sender_s: float = 0.0  # of its whole life: it has served this reader alone
    _broker_began_s: float = 0.0
    _sender: psutil.Process | None = None

    def mark(self) -> None:
        """Count the broker's from here on."""
        self._broker_began_s = self._broker_s()

    def look(self) -> None:
        """See what the walsender used; of one that has ended, the last look counts."""
        if self._sender is None:
            query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name ="
            told = self.place.sql(f"{query} '{self.slot}'")
            if not told.isdigit():
                return
            with suppress(psutil.NoSuchProcess):
                self._sender = psutil.Process(int(told))
        if self._sender is not None:
            with suppress(psutil.NoSuchProcess):
                self.sender_s = sum(self._sender.cpu_times()[:2])

    def complete(self, figure: Figure, rows: int) -> Figure:
        """Add what both used until now."""
        self.look()
        if self._sender is None:
            raise SystemExit(f"who sends from slot {self.slot} was never seen")
        figure.sender_us_per_row = self.sender_s * 1e6 / rows
        broker_s = self._broker_s() - self._broker_began_s
        figure.broker_us_per_row = broker_s * 1e6 / rows
        return figure

    def _broker_s(self) -> float:
        return sum(psutil.Process(self.place.kafka.pid).cpu_times()[:2])
