"""One connection of the listener: nobody may be slow, silent or many.

uvicorn closes a connection that is idle after an answer, once all of that was taken.
Here one is cut off too whose request does not come whole in time, and whose answer is
not taken; and the oldest that waits makes room when there are too many.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from walstream.telemetry import runtime

HEAD_S: Final = 5.0
ANSWER_S: Final = 20.0  # longer than uvicorn lets one be idle
MOST: Final = 100  # connections


class PatientProtocol(H11Protocol):
    """Patient for some seconds."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._answered = False  # and nothing was asked since
        self.aborted = False
        self.since = runtime.monotonic()

    @property
    def waits(self) -> bool:
        """Return whether no request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end_after(HEAD_S)
        # one that was cut off is forgotten only later, and holds no place till then
        others = [
            one
            for one in self.connections
            if isinstance(one, PatientProtocol) and not one.aborted
        ]
        if len(others) > MOST:
            idle = [one for one in others if one.waits and one is not self]
            min(idle or others, key=lambda one: one.since).abort()

    def data_received(self, data: bytes) -> None:
        if self._answered:
            self._answered = False
            self._end_after(HEAD_S)
        waited = self.waits
        super().data_received(data)
        if waited and not self.waits:
            self._end_after(ANSWER_S)

    def on_response_complete(self) -> None:
        """Wait on: the answer may not be taken yet, or the next one be under way."""
        self._answered = True
        self._end_after(ANSWER_S)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset()
        super().connection_lost(exc)

    def abort(self) -> None:
        """End it, whatever is under way."""
        self.aborted = True
        self._unset()
        self.transport.abort()

    def _end_after(self, seconds: float) -> None:
        self._unset()
        self._deadline = self.loop.call_later(seconds, self.abort)

    def _unset(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
