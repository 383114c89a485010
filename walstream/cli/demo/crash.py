"""The demo's one crash: SIGKILL for the worker, and how streaming comes back."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from walstream.cli.demo.instance import Walstream
from walstream.cli.demo.screen import Screen
from walstream.cli.demo.tally import Arrival

_LOOK_EVERY_S: Final = 0.1


@dataclass(slots=True)
class DeliveryGap:
    """The span, in ms since 1970, in which nothing could be delivered."""

    begin_ms: float
    end_ms: float = float("inf")

    def delayed(self, committed_ms: float, latency_ms: float) -> bool:
        """Whether it held up this change: under way at its begin, or written in it."""
        return committed_ms + latency_ms >= self.begin_ms and committed_ms < self.end_ms


class Crash:
    def __init__(self, walstream: Walstream, screen: Screen) -> None:
        self.worker = walstream.worker
        self.outage: DeliveryGap | None = None
        self.over = False
        self._walstream = walstream
        self._screen = screen
        self._killed: int | None = None
        self._look_at = 0.0

    def happen(self) -> None:
        """Kill the worker; back when it is gone."""
        begin_ms = time.time() * 1000
        self._killed, self.worker = self._walstream.kill_worker(), None
        self.outage = DeliveryGap(begin_ms)
        self._screen.say(
            f"\n[bold red]✗ kill -9 {self._killed}[/]: [bold]the worker is gone, with"
            " all that it held in memory. The load goes on.[/]"
        )

    def look(self, arrivals: Sequence[Arrival]) -> None:
        """Notice the new worker, and its first record."""
        if self.outage is None or self.over:
            return
        if self.worker is None:
            self._look_for_worker(self.outage)
        elif any(arrival.first_of_producer for arrival in arrivals):
            self.over = True
            self.outage.end_ms = time.time() * 1000
            self._screen.say(
                f"[bold green]✓ it streams[/] {self._since(self.outage)} after the"
                " kill: on from the last position on disk\n"
            )

    def _look_for_worker(self, outage: DeliveryGap) -> None:
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        worker = self._walstream.worker
        if worker is not None and worker != self._killed:
            self.worker = worker
            self._screen.say(
                f"[bold green]✓ worker {worker}[/] was started by walstream"
                f" {self._since(outage)} after the kill"
            )

    def _since(self, outage: DeliveryGap) -> str:
        return f"{time.time() - outage.begin_ms / 1000:.1f} s"
