"""Stores positions beside the loop: an fsync holds up neither reading nor feedback."""

import threading
from collections.abc import Callable

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.pipeline.ports import Position


class PositionWriter:
    """A thread that stores one position at a time; `stored` is the last durable one."""

    def __init__(
        self,
        store: Callable[[Position], None],
        wake: Callable[[], None],
        note: Callable[[Lsn, int], None] = lambda _lsn, _time: None,
        admits: Callable[[Lsn], bool] = lambda _lsn: True,
    ) -> None:
        """`note` hears of each transaction that begins: its LSN and commit time.

        `admits` tells whether sinks may be given this commit; else not before the next
        position is stored.
        """
        self.note = note
        self.admits = admits
        self._store = store
        self._wake = wake
        self._wanted: Position | None = None
        self._condition = threading.Condition()
        self._closed = False
        self.stored: Position | None = None
        self.error: WalstreamError | None = None
        self._thread = threading.Thread(target=self._run, name="positions", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Tell whether a position is on its way to the disk."""
        return self._wanted is not None

    def submit(self, position: Position) -> None:
        """Store this one next; only while not busy."""
        with self._condition:
            self._wanted = position
            self._condition.notify()

    def close(self) -> None:
        """End the thread, what it holds stored first."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._wanted or self._closed)
                position = self._wanted
            if position is None:
                return
            try:
                self._store(position)
            except WalstreamError as error:
                self.error = error
            except Exception as error:  # noqa: BLE001 - the loop must hear of any
                self.error = WalstreamError(f"positions cannot be stored: {error}")
            else:
                self.error = None
                self.stored = position
            self._wanted = None
            self._wake()
