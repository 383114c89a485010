"""The supervisor's hand on the driver: it listens, and starts the process on demand.

The socket outlives each driver: who connects while there is none waits in its backlog,
and that starts the next one.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from typing import Final

import structlog

from walstream.config import Config
from walstream.driver import wire
from walstream.retry import Backoff

_END_S: Final = 6.0
_HEALTHY_S: Final = 30.0
_log = structlog.get_logger()


class Keeper:
    """Starts a driver when somebody connects; nothing in it blocks but `close`."""

    def __init__(self, config: Config, selector: selectors.BaseSelector) -> None:
        self._config = config
        self._selector = selector
        self._listener = wire.listen()
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff(0.2, 10.0)
        self._started_at = 0.0
        self._start_at = 0.0
        self._listening = False
        self.address = wire.address(self._listener)
        self._level: str = config.log_level

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def tick(self) -> None:
        """See whether the driver ended, and listen while there is none."""
        now = time.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            self._drop()
            if now - self._started_at > _HEALTHY_S:
                self._backoff.reset()
            self._start_at = now + (self._backoff.next() if code else 0.0)
        if self._process is None and not self._listening and now >= self._start_at:
            self._listening = True
            self._selector.register(self._listener, selectors.EVENT_READ, self._start)

    def _start(self) -> None:
        """Start a driver: somebody waits to be accepted."""
        self._selector.unregister(self._listener)
        self._listening = False
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "walstream.driver"],
            stdin=subprocess.PIPE,
            stdout=2,  # standard error: py4j and what it starts may print
            pass_fds=[self._listener.fileno()],
        )
        self._process = process
        self._started_at = time.monotonic()
        order = {
            "parent": os.getpid(),
            "listener": self._listener.fileno(),
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
        """Have this driver, and those after it, log from this level on."""
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
        if self._listening:
            self._selector.unregister(self._listener)
            self._listening = False
        self._listener.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._drop()
