"""The supervisor's hand on the driver: it listens, and starts the process on demand.

The socket outlives each driver: who connects while there is none waits in its backlog,
and that starts the next one.
"""

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import structlog

from walstream.config import Config
from walstream.pipeline.backoff import Backoff
from walstream.spark.driver import transport
from walstream.spark.parent_death import signals_held
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

_END_S: Final = 6.0
_HEALTHY_S: Final = 30.0
_AGAIN_S: Final = 10.0
_log = structlog.get_logger()


class DriverSpawner:
    """Starts a driver when a worker connects; nothing in it blocks but `close`."""

    def __init__(self, config: Config, selector: selectors.BaseSelector) -> None:
        self._config = config
        self._selector = selector
        self._folder = Path(config.state)  # also after a reload
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff(0.2, 10.0)
        self._started_at = 0.0
        self._start_at = 0.0
        self._listening = False
        self.address = str(self._folder)
        self._level: str = config.log_level

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def open(self) -> None:
        """Listen, once the folder is ours; try again later where that cannot be."""
        try:
            self._listener = transport.listen(self._folder)
        except OSError as error:
            self._start_at = runtime.monotonic() + _AGAIN_S
            _log.warning(
                "no socket for Spark: nothing is backfilled or polled meanwhile",
                **{ERROR: f"{self._folder / transport.SOCKET}: {error.strerror}"},
            )

    def tick(self) -> None:
        """See whether the driver ended, and listen while there is none."""
        now = runtime.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            self._drop()
            if now - self._started_at > _HEALTHY_S:
                self._backoff.reset()
            self._start_at = now + (self._backoff.next() if code else 0.0)
        if self._process is not None or self._listening or now < self._start_at:
            return
        if self._listener is None:
            self.open()
        if self._listener is not None:
            self._listening = True
            self._selector.register(self._listener, selectors.EVENT_READ, self._start)

    def _start(self) -> None:
        """Start a driver: a worker waits to be accepted."""
        listener = self._listener
        if listener is None:
            return
        self._selector.unregister(listener)
        self._listening = False
        try:
            with signals_held():
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "walstream.spark.driver"],
                    stdin=subprocess.PIPE,
                    stdout=2,  # standard error: py4j and what it starts may print
                    pass_fds=[listener.fileno()],
                )
        except OSError as error:  # no process or memory is left: who connected waits
            self._start_at = runtime.monotonic() + self._backoff.next()
            _log.warning(
                "Spark cannot be started, trying again", **{ERROR: error.strerror}
            )
            return
        self._process = process
        self._started_at = runtime.monotonic()
        order = {
            "parent": os.getpid(),
            "listener": listener.fileno(),
            "config": self._config.to_json(),
            "log_level": self._level,
        }
        self._tell(json.dumps(order))

    def take(self, config: Config) -> None:
        """Start the next driver by this; one that runs with another Spark ends."""
        old, self._config = self._config, config
        if self._process is not None and (
            old.spark != config.spark or old.secrets != config.secrets
        ):
            self._process.terminate()  # who waits for it connects to the next one

    def log(self, level: str) -> None:
        """Make this driver, and those after it, log from this level on."""
        self._level = level
        self._tell(f"log {level}")

    def _tell(self, line: str) -> None:
        process = self._process
        with contextlib.suppress(BrokenPipeError):  # it ended: tick finds that
            if process is not None and process.stdin is not None:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()

    def _drop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process = None

    def close(self) -> None:
        """End the driver, and what it runs."""
        listener, self._listener = self._listener, None
        if listener is not None:
            if self._listening:
                self._selector.unregister(listener)
                self._listening = False
            listener.close()
            with contextlib.suppress(OSError):
                (self._folder / transport.SOCKET).unlink(missing_ok=True)
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._drop()
