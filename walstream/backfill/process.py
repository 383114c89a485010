"""The driver, as its worker sees it."""

import contextlib
import pickle
import queue
import subprocess
import sys
import threading
from types import TracebackType
from typing import Final, Self

from walstream.backfill.order import Failed, Message, Order
from walstream.errors import Transient

_LEAVE_S: Final = 5.0


class DriverProcess:
    """Runs one order; ends with the block that it is used in."""

    def __init__(self, order: Order) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "walstream.backfill.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._heard: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        with contextlib.suppress(BrokenPipeError):  # it ended: that is heard
            if self._process.stdin is not None:
                pickle.dump(order, self._process.stdin)
                self._process.stdin.flush()

    def _listen(self) -> None:
        stdout = self._process.stdout
        if stdout is None:
            return
        while True:
            try:
                self._heard.put(pickle.load(stdout))  # noqa: S301 - our own child
            except Exception:  # noqa: BLE001 - whatever cannot be read is its end
                break
        self._heard.put(
            Failed(
                Transient(
                    "Spark's process ended",
                    hint="was it killed, or out of memory? It is started again",
                )
            )
        )

    def hear(self, wait_s: float) -> Message | None:
        """Give the next message; None: none came in time."""
        try:
            return self._heard.get(timeout=wait_s)
        except queue.Empty:
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it, and what it runs: its tasks end with it."""
        self._process.terminate()
        try:
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
