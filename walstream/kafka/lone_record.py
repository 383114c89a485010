"""A large record that is produced alone: its copies are not there twice."""

from collections.abc import Callable
from typing import Any


class Alone:
    """One large record: what follows waits until Kafka has it."""

    def __init__(self) -> None:
        self.produce: Callable[[], bool] | None = None
        self.delivered = False

    def attempt(self) -> bool:
        """Produce it once; tell whether it is delivered."""
        if self.produce is not None and self.produce():
            self.produce = None  # holds the record, which the producer copied
        return self.delivered

    def report(self, report: Callable[..., None], *delivery: Any) -> None:
        """Note that it is delivered, or failed, and report that."""
        self.delivered = True
        report(*delivery)
