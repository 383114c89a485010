"""The driver, as a worker sees it: orders go there, outcomes come back."""

import contextlib
import select
import socket
from pathlib import Path
from typing import Final

from walstream.errors import Transient
from walstream.spark.driver import transport
from walstream.spark.driver.messages import Failed, JobOrder, Message
from walstream.telemetry import runtime

_END_S: Final = 5.0  # for what runs to be cancelled


class Driver:
    """A connection to the driver; what it ordered ends when that is closed."""

    def __init__(self, where: str) -> None:
        """`where` is the folder in which the keeper listens."""
        try:
            self._connection = transport.connect(Path(where))
        except OSError as error:
            raise Transient(
                f"Spark's process does not answer: {error.strerror}"
            ) from None
        self.running = False  # what was ordered

    def order(self, order: JobOrder) -> None:
        """Run chunks; `hear` is called for them until it was Failed or Finished."""
        self.running = True
        # Spark's process may only be starting: nobody waits here until it reads
        runtime.start_thread(self._send, "order", order)

    def _send(self, order: JobOrder) -> None:
        with contextlib.suppress(OSError):  # it ended: that is heard
            transport.send(self._connection, order)

    def hear(self, wait_s: float) -> Message | None:
        """Return the next message; None: none came in time."""
        if not select.select([self._connection], [], [], wait_s)[0]:
            return None
        try:
            message: Message = transport.receive(self._connection)
        except (OSError, EOFError):
            message = Failed(
                Transient(
                    "Spark's process ended",
                    hint=(
                        "it may have been killed, or out of memory; walstream starts "
                        "it again"
                    ),
                )
            )
        if not hasattr(message, "number"):
            self.running = False
        return message

    def close(self) -> None:
        """Leave; what still runs is ended, and that is waited for."""
        if self.running:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)
                self._connection.settimeout(_END_S)
                while self._connection.recv(1 << 16):
                    pass
        self._connection.close()
