"""One thing that is asked of the database beside the stream; nothing blocks."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import structlog

from walstream.errors import Transient
from walstream.telemetry import runtime

_AGAIN_S: Final = 1.0
_log = structlog.get_logger()

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class QueryResult(Generic[Told]):
    """Result of a query; it may be empty."""

    value: Told


class Question(Generic[Told]):
    """Asked in a thread until it is answered.

    What passes (no session is free) is waited for: a new stream would send all before
    it once more. What lasts is raised.
    """

    def __init__(
        self,
        start: Callable[..., Future[Any]],
        about: str,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._start = start
        self._about = about
        self._clock = clock
        self._asked: Future[Any] | None = None
        self._next = 0.0
        self.refused = False  # and not answered since

    @property
    def open(self) -> bool:
        """Return whether an answer is owed."""
        return self._asked is not None or self.refused

    def ask(
        self, task: Callable[..., Told], *arguments: Any
    ) -> QueryResult[Told] | None:
        """Ask, if it is not asked already; None: come again for the answer."""
        if self._asked is None:
            if self._clock() >= self._next:
                self._asked = self._start(task, *arguments)
            return None
        if not self._asked.done():
            return None
        asked, self._asked = self._asked, None
        error = asked.exception()
        if isinstance(error, Transient):
            self._next = self._clock() + _AGAIN_S
            if not self.refused:
                self.refused = True
                _log.warning(
                    f"waiting: {self._about} cannot be read now",
                    error=str(error.args[0]),
                    hint="walstream asks again each second",
                )
            return None
        self.refused = False
        return QueryResult(asked.result())
