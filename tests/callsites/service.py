"""A program kept running as a service manager does, which judges each of its ends."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from tests.callsites.shim import Tap
from tests.support.programs.fork import ForkServer

LONGEST_S: Final = 90.0
_OPERATOR: Final = {2, 3, 4}  # with which a service manager leaves it alone
_WAITS: Final = 5
_KILLED: Final = -9
_CUT_SHORT: Final = 1  # a worker was killed while it was to end
_DEFECTS: Final = ("Traceback", "a defect")
_LOOK_EVERY_S: Final = 0.02


class Violation(AssertionError):
    """What must hold does not."""


class Program(Protocol):
    """What is started, as a process with a log."""

    environment: Mapping[str, str]
    program: Path
    forks: ForkServer | None

    @property
    def running(self) -> bool: ...
    @property
    def text(self) -> str: ...
    def start(self) -> Self: ...
    def wait(self, timeout_s: float = ...) -> int: ...
    def terminate(self, timeout_s: float = ...) -> int: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class End:
    """How one of its processes ended."""

    code: int
    asked: bool
    struck: bool  # it, or a process of it, was interrupted


class Service:
    """One program: its first processes are tapped, those after a strike are not."""

    def __init__(
        self,
        program: Program,
        tap: Tap,
        environment: Mapping[str, str],
        forks: ForkServer | None = None,
    ) -> None:
        """`forks` starts what is tapped, where it need not be the command itself."""
        self.program = program
        self.ends: list[End] = []
        self._tap = tap
        self._environment = environment
        self._forks = forks
        self._tapped = False
        self._judged = True  # its last end, or there was none

    def start(self) -> None:
        self._tapped = not self._tap.done
        self.program.environment = self._environment if self._tapped else {}
        self.program.forks = self._forks if self._tapped else None
        self.program.start()
        self._judged = False

    def tend(self) -> None:
        """Start it where it does not run: it was stopped, or ended by itself."""
        if self.program.running:
            return
        if not self._judged:
            self._judge(self.program.wait(1), asked=False)
        self.start()

    def stop(self) -> None:
        """Ask it to end, as at a shutdown of the machine."""
        asked = self.program.running
        if not self._judged:
            self._judge(self.program.terminate(), asked=asked)

    def until(
        self, holds: Callable[[], object], what: str, timeout_s: float = LONGEST_S
    ) -> None:
        """Wait, and keep it running; fail when it does not hold in time."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            self.tend()
            if time.monotonic() > deadline:
                raise Violation(f"not within {timeout_s:.0f} s: {what}")
            time.sleep(_LOOK_EVERY_S)

    def _judge(self, code: int, *, asked: bool) -> None:
        self._judged = True
        struck = self._tapped and self._tap.done
        self.ends.append(End(code, asked, struck))
        said = next((word for word in _DEFECTS if word in self.program.text), "")
        if said:
            raise Violation(f"its log says {said!r}")
        if code in _OPERATOR:
            raise Violation(f"exit code {code}: it needs an operator")
        if struck:
            usual = code in {0, _WAITS, _KILLED} or (code == _CUT_SHORT and asked)
        else:
            usual = asked and code == 0
        if not usual:
            how = "when it was asked to end" if asked else "by itself"
            raise Violation(f"exit code {code} {how}")

    def close(self) -> None:
        self.program.close()
