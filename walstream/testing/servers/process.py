"""One server process as our child: started tethered, watched, signalled, killed whole.

The kernel takes the death of the *thread* that forked for the parent's death. So one
thread, which lives as long as the interpreter, starts every server.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from walstream.testing.servers import tether
from walstream.testing.servers.account import Account

_POLL_INTERVAL_S = 0.02


class Child:
    """A running server; its output goes to the end of `log`."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        death_signal: signal.Signals = signal.SIGKILL,
        account: Account | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        ids = account.ids if account else None
        tethered = [
            sys.executable,
            "-I",
            "-S",
            tether.__file__,
            *tether.arguments(os.getpid(), death_signal, ids),
            *map(str, command),
        ]
        with log.open("ab") as output:
            self._process = _in_lasting_thread(
                lambda: subprocess.Popen(  # noqa: S603 - built by this package
                    tethered,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=log.parent,
                    env=environment,
                    # away from the terminal's Ctrl-C: its order of stopping is ours
                    start_new_session=True,
                )
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Of one that ended; negative: the signal that ended it."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def freeze(self) -> None:
        """SIGSTOP; back when all of its threads stand still, or it ended."""
        self.send(signal.SIGSTOP)
        # a thread without a core goes on a while yet: the kernel tells of the last
        with suppress(ChildProcessError):  # it ended before, and was seen to
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self, timeout_s: float = 10.0) -> None:
        """SIGKILL it and all that descend from it; back when all are gone."""
        if not self.running:
            return
        self.freeze()  # no new children while they are counted
        family = descendants(self.pid)
        for pid in [self.pid, *family]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(timeout_s)
        deadline = time.monotonic() + timeout_s
        while any(map(alive, family)) and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)


def descendants(pid: int) -> list[int]:
    """List its children, their children, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (state := _state(int(entry.name))):
            children.setdefault(state[1], []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    state = _state(pid)
    return state is not None and state[0] not in "ZX"


def _state(pid: int) -> tuple[str, int] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the command's name stands in parentheses, and may hold some itself
    state, parent, *_ = text.rpartition(")")[2].split()
    return state, int(parent)


def becomes_ready(ready: Callable[[], bool], child: Child, timeout_s: float) -> bool:
    """Whether it got ready before it ended or the time did."""
    deadline = time.monotonic() + timeout_s
    while child.running and time.monotonic() < deadline:
        if ready():
            return True
        time.sleep(_POLL_INTERVAL_S)
    return False


def unwind_on_sigterm() -> None:
    """Let SIGTERM end the program as an exception does, so that servers are closed.

    Without it they end too, by their tether; only their folders stay until the next
    one sweeps them. Called by programs, in their main thread.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


_Order = tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]


class _Starter:
    """The thread that starts every server of this interpreter."""

    def __init__(self) -> None:
        self.interpreter = os.getpid()
        self._orders: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        # a daemon, so that it outlives the cleaning up at exit
        threading.Thread(target=self._serve, name="starter", daemon=True).start()

    def start(
        self, start: Callable[[], subprocess.Popen[bytes]]
    ) -> subprocess.Popen[bytes]:
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._orders.put((start, answer))
        try:
            return answer.result()
        except BaseException:
            # interrupted while waiting: nobody will ever know this process
            answer.add_done_callback(_kill_if_started)
            raise

    def _serve(self) -> None:
        while True:
            start, answer = self._orders.get()
            try:
                answer.set_result(start())
            except BaseException as error:  # noqa: BLE001 - raised where it was ordered
                answer.set_exception(error)


_starters: list[_Starter] = []  # at most one: the last, of this very process


def _in_lasting_thread(
    start: Callable[[], subprocess.Popen[bytes]],
) -> subprocess.Popen[bytes]:
    # a fork takes no threads along, so the starter of its parent is of no use to it
    if not _starters or _starters[-1].interpreter != os.getpid():
        _starters[:] = [_Starter()]
    return _starters[-1].start(start)


def _kill_if_started(answer: Future[subprocess.Popen[bytes]]) -> None:
    if answer.exception() is None:
        answer.result().kill()
