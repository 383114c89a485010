"""`python -m consumer mirror` as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.support.deadline import wait_until


class Mirror:
    """The mirror of some topics in a process; killed and started again at will."""

    def __init__(
        self,
        target: str,
        bootstrap: str,
        topics: Sequence[str],
        folder: Path,
        *more: str,
    ) -> None:
        """`more` are arguments of the command."""
        self._log_path = folder / "mirror.log"
        self._command = [
            *(sys.executable, "-m", "consumer", "mirror", *topics),
            *("--group", topics[0], "--kafka", bootstrap, "--target", target),
            *(
                "-X",
                "fetch.wait.max.ms=10",
                "-X",
                "topic.metadata.refresh.interval.ms=500",
            ),
            # a member that comes back is the same: no wait for its session's end
            *("-X", "group.instance.id=mirror", "-v"),
            *more,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def start(self) -> None:
        self._log = self._log_path.open("ab")
        self._process = subprocess.Popen(
            self._command, stdout=self._log, stderr=self._log
        )

    @property
    def text(self) -> str:
        return self._log_path.read_text("utf-8", errors="replace")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self._process is not None
        assert self._log is not None
        assert self._process.poll() is None, self.text
        os.kill(self._process.pid, number)
        self._log.close()
        return self._process.wait(60)

    def until(self, holds: Callable[[], object], timeout_s: float, what: str) -> None:
        """Wait, and fail with the log as soon as the process ends."""

        def look() -> object:
            assert self._process is not None
            assert self._process.poll() is None, self.text
            return holds()

        try:
            wait_until(look, timeout_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text[-8000:]}") from None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
