"""Messages to a driver and its answers; all are pickled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from walstream.config import Config
from walstream.errors import WalstreamError
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone, ChunkPostponed


class JobOrder(Protocol):
    """Chunks, and how their task is made where they are run; picklable."""

    @property
    def source(self) -> str:
        """Whose they are: sources share Spark's cores evenly."""

    @property
    def lock(self) -> str:
        """A file that each task of this machine holds shared."""

    @property
    def chunks(self) -> Sequence[Any]: ...

    @property
    def at_once(self) -> int | None:
        """Return how many chunks may run at a time; None: as many as Spark allows."""

    @property
    def in_process(self) -> bool:
        """Return whether the driver reads them itself, without Spark."""

    def task(self, config: Config, leash: Leash | None) -> Callable[[Any], Any]:
        """Make the task; with a leash it runs on this machine."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Reason why a job ended early."""

    error: WalstreamError


@dataclass(frozen=True, slots=True)
class Finished:
    """Every chunk of the order is done."""


Message = ChunkDone | ChunkPostponed | Failed | Finished
