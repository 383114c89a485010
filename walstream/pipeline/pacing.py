"""Pace of one stream's loop: when it rests, for how long, and what wakes it."""

import select
from collections.abc import Sequence
from typing import Final, Protocol

from walstream.pipeline.rate_limit import RateLimit
from walstream.pipeline.shutdown import Waker
from walstream.telemetry import runtime

IDLE_S: Final = 0.5
_ROOM_S: Final = 0.01  # between two looks for room, which wakes nobody
_IN_FLIGHT_S: Final = 0.001
_STUCK_S: Final = 0.05  # between two looks at a Kafka that delivers nothing
_STUCK_AFTER_S: Final = 0.5
_FEW: Final = 100  # frames: less than that is less than a turn costs
_LITTLE: Final = 16 << 10  # bytes: more than that in few frames is a busy socket
_GATHER_S: Final = 0.0005  # in which a busy server fills no socket's buffer
_FAR_S: Final = 0.0015  # an answer that takes longer comes over a network
_FAR_ANSWERS: Final = 2  # as long as so many take, few frames gather, or
_FAR_GATHER_S: Final = 0.005
_LONG_AGO: Final = float("-inf")


class Readable(Protocol):
    """Stream that the loop reads from."""

    def fileno(self) -> int: ...


class Pace:
    """Decides after each turn whether the loop goes on or rests."""

    def __init__(self, source: Readable, limit: RateLimit | None = None) -> None:
        """`limit` is what may hold the stream though there is room."""
        self._source = source
        self._limit = limit
        self._monotonic = runtime.current().monotonic
        self._sleep = runtime.current().sleep
        self._poller = runtime.current().poller
        self._worked = False  # in the last turn
        self._few_at = _LONG_AGO  # when the last turn that took frames took few
        self._in_flight = 0
        self._progress_at = 0.0

    def go_on(self, frames: Sequence[bytes], *, ended: bool = False) -> bool:
        """End a turn that took `frames`; return whether it may rest.

        That is if it `ended` all that it had to do, and the source has no more.

        A server sends each frame by itself. A whole turn for each frame takes the CPU
        from the server: so after two turns with few frames the loop lets them gather.
        The first ones after a silence never wait.
        """
        few = 0 < len(frames) < _FEW and sum(map(len, frames)) < _LITTLE
        if few and self._worked:
            self._sleep(_GATHER_S)
        rests = few and ended and not self._worked and self._is_drained()
        self._worked = not rests
        self._few_at = self._monotonic() if few else _LONG_AGO
        return rests

    def _is_drained(self) -> bool:
        """Return whether the source is known to have no more."""
        return bool(getattr(self._source, "drained", False))

    def rest(  # noqa: PLR0913 - keywords
        self,
        waker: Waker,
        *,
        readable: bool,
        in_flight: int,
        due_s: float,
        room: bool = True,
        answer_s: float = 0.0,
    ) -> None:
        """End a turn that found nothing to do: sleep until there may be work.

        The first such turn does not sleep: sinks send what they have at once when
        nothing else came.

        `answer_s` is how soon Kafka answers. Where that is far away, a few frames are
        not read as they come: what arrives meanwhile shares a turn, and comes later by
        two answers' time at most. The first ones after a silence never wait.
        """
        if self._worked:
            self._worked = False
            return
        held_s = self._limit.wait_s if self._limit is not None else 0.0
        if readable and not held_s and getattr(self._source, "holds", False):
            return  # the hold has just ended, and no socket tells of what it held
        if held_s:
            due_s = min(due_s, held_s)
        if not room:
            due_s = min(due_s, _ROOM_S)
        now = self._monotonic()
        look_s = self._look_s(now, in_flight)
        timeout_s = look_s if in_flight else min(IDLE_S, due_s)
        far_s = (
            min(_FAR_ANSWERS * answer_s, _FAR_GATHER_S) if answer_s > _FAR_S else 0.0
        )
        timeout_s = max(timeout_s, far_s)
        gather_s = far_s - (now - self._few_at)
        waiting = self._poller()
        waiting.register(waker, select.POLLIN)
        if gather_s > 0.0:
            timeout_s = gather_s
        elif readable and not held_s:
            waiting.register(self._source, select.POLLIN)
        for descriptor, _ in waiting.poll(timeout_s * 1000):
            if descriptor == waker.fileno():
                waker.rest()

    def lift(self) -> None:
        """Let the limit hold nothing from now on: the stream ends."""
        if self._limit is not None:
            self._limit.lift()

    def _look_s(self, now: float, in_flight: int) -> float:
        """Return the wait: short while deliveries arrive, long while Kafka is stuck."""
        if in_flight != self._in_flight:
            self._in_flight = in_flight
            self._progress_at = now
        stuck = now - self._progress_at > _STUCK_AFTER_S
        return _STUCK_S if stuck else _IN_FLIGHT_S
