"""Ctrl-C or SIGTERM ends a run of the tests within seconds, with all that it started.

What was asked for is an end, not an orderly one: fixtures that stop one server after
the other, and drop databases in them, would take minutes, and librdkafka would tell of
each broker that went away. So all processes below are killed, the folders of servers
deleted, and the run is left on the spot; whoever asked sees what had failed until then.

With pytest-xdist each worker does so for itself, and the controller with what is left:
all that has this run's mark in its environment.
"""

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import FrameType
from typing import Final

import psutil
import pytest

from tests.support.servers.small_disk import Disk
from walstream.testing.servers.folder import WorkFolder
from walstream.testing.servers.process import alive, descendants

MARK: Final = "WALSTREAM_TEST_RUN"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_HANDLED_S: Final = 1.0  # by a main thread that can
_WORKERS_END_S: Final = 4.0
_LONGEST_S: Final = 10.0
_ROUNDS: Final = 20


class Interruption:
    """Ends this process, and all that it started, at the first signal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._pid = os.getpid()
        self._is_worker = hasattr(config, "workerinput")
        self._first = threading.Lock()
        self._before = {
            number: signal.signal(number, self._on_signal) for number in _SIGNALS
        }
        # the main thread may be in librdkafka for a minute, where no handler is run
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writing, False)
        threading.Thread(target=self._watch, name="interruption", daemon=True).start()

    @pytest.hookimpl
    def pytest_runtest_setup(self) -> None:
        """Listen; a test before may have ended that."""
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._writing)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _watch(self) -> None:
        while numbers := os.read(self._reading, 64):
            for number in set(numbers) & set(_SIGNALS):
                before = _main_thread()
                time.sleep(_HANDLED_S)
                # else the handler was run: this one, or for a while a test's own
                if _main_thread() == before:
                    self._end(number)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() == self._pid:
            # a second one would run here, on top of the first, and wait for it
            for one in _SIGNALS:
                signal.signal(one, signal.SIG_IGN)
            self._end(number)
        # a fork of this process, which is to end alone
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _end(self, number: int) -> None:
        """Never return: who comes second waits until the process is gone."""
        self._first.acquire()
        last = threading.Timer(_LONGEST_S, os._exit, [128 + number])
        last.daemon = True
        last.start()
        try:
            self._mute()
            self._kill()
            self._delete_folders()
            self._tell(signal.Signals(number))
        finally:
            os._exit(128 + number)

    def _mute(self) -> None:
        """Let nobody hear what librdkafka says of brokers that go away."""
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2) if self._is_worker else (2,):
            os.dup2(nothing, number)

    def _kill(self) -> None:
        if self._is_worker:
            kill(lambda: set(descendants(self._pid)))
            return
        if self._config.pluginmanager.hasplugin("dsession"):
            self._end_workers()
        mark = os.environ[MARK]
        kill(lambda: (set(descendants(self._pid)) | marked(mark)) - {self._pid})

    def _end_workers(self) -> None:
        """Let each worker kill what it started, and delete its folders."""
        workers = psutil.Process(self._pid).children()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.terminate()
        psutil.wait_procs(workers, _WORKERS_END_S)

    def _delete_folders(self) -> None:
        for one in gc.get_objects():
            if isinstance(one, WorkFolder):
                one.delete()
            elif isinstance(one, Disk):
                one.unmount()

    def _tell(self, number: signal.Signals) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or self._is_worker:
            return
        reporter.line("")
        reporter.summary_errors()
        reporter.summary_failures()
        reporter.short_test_summary()
        reporter.write_sep("!", f"{number.name}: ended, with all that was started")
        sys.stdout.flush()


def kill(family: Callable[[], set[int]]) -> None:
    """SIGKILL all processes of a family; back when they are gone."""
    frozen: set[int] = set()
    for _ in range(_ROUNDS):
        # who stands still starts nobody
        born = family() - frozen
        if not born:
            break
        _send(born, signal.SIGSTOP)
        frozen |= born
    _send(frozen, signal.SIGKILL)
    while any(map(alive, frozen)):
        time.sleep(0.02)


def marked(mark: str) -> set[int]:
    """Return the processes that a run with this mark started, itself not among them."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in path.read_bytes():
                found.add(int(path.parent.name))
    return found


def _main_thread() -> tuple[FrameType, int]:
    """Return where the main thread is: the same, while it is in one call of C."""
    number = threading.main_thread().ident
    frame = sys._current_frames()[number or 0]  # noqa: SLF001 - documented, in spite
    return frame, frame.f_lasti


def _send(family: set[int], number: signal.Signals) -> None:
    for pid in family:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # within that of a run that has this one for a test
        os.environ[MARK] = f"{os.environ.get(MARK, '')}/{token_hex(8)}"
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    config.pluginmanager.register(Interruption(config), "interruption")
