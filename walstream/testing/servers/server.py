"""Base of the throw-away servers: a folder, a child process, and a sure end.

A server ends with its `with` block, with `close`, with the interpreter, and, by its
tether, with the interpreter's violent death.
"""

import atexit
import os
import signal
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from walstream.errors import ConfigError, Transient
from walstream.testing.servers.account import Account
from walstream.testing.servers.folder import WorkFolder
from walstream.testing.servers.process import Child, becomes_ready

_LAST_LINES = 15
_PORT_TRIES = 5


class LocalServer(ABC):
    name: str  # in messages and in the folder's name

    def __init__(self, folder: Path | None, account: Account | None = None) -> None:
        self._account = account
        self._folder = WorkFolder(self.name.lower(), folder, account)
        self._child: Child | None = None
        self._maker = os.getpid()
        atexit.register(self._close_at_exit)

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name.lower()}.log"

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        return self._running_child().pid

    def start(self) -> None:
        """Back when it takes connections. A stopped server keeps its port and data."""
        if self.running:
            return
        try:
            self._start()
        except BaseException:
            self.kill()
            raise

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """SIGKILL it with all its processes; back when they are gone."""
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """End it for good, and delete its folder unless that was given."""
        self.kill()
        self._folder.delete()
        atexit.unregister(self._close_at_exit)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _running_child(self) -> Child:
        if self._child is None or not self._child.running:
            raise Transient(f"{self.name} in {self.folder} is not running")
        return self._child

    def _must_reach(self, *paths: Path) -> None:
        for path in paths:
            if self._account is not None and not self._account.may_use(path):
                self._folder.delete()
                raise ConfigError(
                    f"{self.name} runs as {self._account.name}, who may not use {path}"
                )

    def _failure(self, doing: str) -> Transient:
        return Transient(
            f"{self.name} {doing}; the end of {self.log}:\n{self.log_end()}"
        )

    def log_end(self) -> str:
        with suppress(FileNotFoundError):
            lines = self.log.read_text("utf-8", errors="replace").splitlines()
            return "\n".join(lines[-_LAST_LINES:])
        return ""

    def _close_at_exit(self) -> None:
        if os.getpid() == self._maker:  # a forked child exits too, but owns nothing
            self.close()


class SingleProcess(LocalServer):
    """One process, which SIGTERM ends; its ports are chosen at the first start."""

    _placed = False

    def stop(self, timeout_s: float = 30.0) -> None:
        """SIGTERM, and SIGKILL after the time."""
        if self._child is None or not self._child.running:
            return
        self._child.send(signal.SIGCONT)  # frozen, it would not hear
        self._child.send(signal.SIGTERM)
        if not self._child.wait(timeout_s):
            self.kill()

    def freeze(self) -> None:
        """Let it fall silent with its connections open, as a hung machine does."""
        self._running_child().freeze()

    def thaw(self) -> None:
        self._running_child().send(signal.SIGCONT)

    def _start(self) -> None:
        for _ in range(1 if self._placed else _PORT_TRIES):
            if not self._placed:
                self._choose_ports()
            self._child = self._launch()
            if becomes_ready(self._ready, self._child, timeout_s=120.0):
                self._placed = True
                return
            if self._child.running or "Address already in use" not in self.log_end():
                break
        raise self._failure("does not start")

    @abstractmethod
    def _choose_ports(self) -> None: ...

    @abstractmethod
    def _launch(self) -> Child:
        """Start the process, in a folder that is made and configured."""

    @abstractmethod
    def _ready(self) -> bool: ...
