"""The supervisor: one worker process a source, started again when it dies.

Holds the signals and the control socket. The first SIGTERM or SIGINT drains, the second
ends at once. A worker that dies is started again with backoff; one that ends with 2, 3
or 4 needs an operator and is not, until its source was lent and came back.
"""

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from walstream import logs
from walstream.away.note import AWAY
from walstream.config import Config
from walstream.control_server import Answer, ControlServer
from walstream.driver.keeper import Keeper
from walstream.errors import ConfigError
from walstream.http.lines import stats_lines
from walstream.http.listening import listen
from walstream.lock import FolderLock
from walstream.meter import added
from walstream.metrics import ERROR, HINT
from walstream.notifying import Notifier
from walstream.snapshot import Snapshot
from walstream.status import of_run
from walstream.worker_process import GRACE_S, WorkerProcess

if TYPE_CHECKING:
    from walstream.http.face import Face

_TICK_S: Final = 0.5
_AT_ONCE_S: Final = 1.0
_NO_SOURCE: Final = "it has no such source: was it added to the configuration since?"
_log = structlog.get_logger()

Watch = Callable[[Mapping[str, Mapping[str, Any]]], None]
"""Sees every source's last report, by its name."""


class Supervisor:
    """Keeps the workers of all sources running until told to stop."""

    def __init__(
        self,
        config: Config,
        options: dict[str, Any],
        watch: Watch = lambda _reports: None,
    ) -> None:
        """`watch` is called at each turn."""
        self._config = config
        self._watch = watch
        self._selector = selectors.DefaultSelector()
        self._keeper = Keeper(config, self._selector)
        self._options = {**options, "driver": self._keeper.address}
        self.workers = [
            WorkerProcess(config, name, self._options)
            for name in sorted(config.sources)
        ]
        self._away: dict[str, WorkerProcess] = {}  # of detached sinks, by their name
        self._back: dict[str, dict[str, Any]] = {}  # what those counted that are gone
        self._face: Face | None = None
        self._notifier = Notifier()
        self._debug = False  # as it was last asked for, from any thread
        self._level: str = config.log_level
        self._stats_at = time.monotonic() + config.stats_interval
        self._signals = 0  # received
        self._passed_on = 0  # told to the workers
        self._stop_deadline = 0.0
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(
            self._wake_out,
            selectors.EVENT_READ,
            lambda: os.read(self._wake_out, 4096),
        )
        self._started_at = time.time()
        self._control = ControlServer(Path(config.state), self._selector, self)

    def run(self) -> int:
        """Supervise until no source is left; give the highest exit code."""
        lock = FolderLock(Path(self._config.state))
        lock.acquire()
        try:
            sockets = self._listen()
            self._control.open()
            with self._signals_held():
                self._start_due()  # they load their libraries while this loads HTTP's
                self._open_face(sockets)
                while self._goes_on:
                    self._turn()
        finally:
            for worker in self._everyone:
                worker.kill()
            self._keeper.close()
            self._control.close()
            if self._face is not None:
                self._face.close()
            lock.release()
        return max((worker.exit_code or 0 for worker in self.workers), default=0)

    def _listen(self) -> list[socket.socket]:
        """Take the address of HTTP, if there is one to take."""
        if not self._config.http.listen:
            return []
        try:
            return listen(self._config.http.listen)
        except ConfigError as error:
            if "listen" in self._config.http.model_fields_set:
                raise
            # who never asked for an address is not stopped by who has it
            _log.warning("HTTP is off", **{ERROR: str(error.args[0]), HINT: error.hint})
            return []

    def _open_face(self, sockets: list[socket.socket]) -> None:
        if sockets:
            from walstream.http.face import Face  # noqa: PLC0415 - loads uvicorn

            self._face = Face(self._config, sockets, self._set_debug)

    def _set_debug(self, on: bool) -> None:  # noqa: FBT001
        """Have every process log more, or as configured; from any thread."""
        self._debug = on
        self._wake()

    def _follow_level(self) -> None:
        level = "debug" if self._debug else self._config.log_level
        if level != self._level:
            self._level = level
            logs.set_level(level)
            self._keeper.log(level)
            for worker in self._everyone:
                worker.log(level)

    @property
    def _everyone(self) -> list[WorkerProcess]:
        return [*self.workers, *self._away.values()]

    def _follow_sinks(self) -> None:
        """Have a worker for each sink that is detached, as the sources' own say."""
        for worker in self.workers:
            if worker.lent:
                continue
            for sink, told in worker.state.get("away", {}).items():
                own = WorkerProcess(self._config, worker.source, self._options, sink)
                if told["phase"] == AWAY and own.name not in self._away:
                    own.log(self._level)
                    self._away[own.name] = own
        for name, own in list(self._away.items()):
            if own.exit_code is not None and own.pid is None:
                self._back[name] = self._counted(own)
                del self._away[name]  # if the sink is still away, it is started again

    @property
    def _goes_on(self) -> bool:
        """Tell whether a source is left; or, once told to stop, anybody who drains."""
        if any(worker.exit_code is None for worker in self.workers):
            return True
        return bool(self._signals and any(one.pid for one in self._away.values()))

    def _start_due(self) -> None:
        for worker in self._everyone:
            if not self._signals and worker.start_if_due():
                self._selector.register(
                    worker.stdout or 0, selectors.EVENT_READ, worker.hear
                )

    def _turn(self) -> None:
        if not self._signals:
            self._follow_sinks()
        self._start_due()
        self._keeper.tick()
        for key, _ in self._selector.select(_TICK_S):
            key.data()
        for worker in self._everyone:
            stdout = worker.stdout
            worker.reap(stopping=bool(self._signals))
            if stdout is not None and worker.stdout is None:
                self._selector.unregister(stdout)
            worker.hurry()
        self._control.tick()
        self._follow_level()
        self._tell()
        self._notify()
        self._watch({worker.name: worker.state for worker in self.workers})
        self._pass_on_signals()
        if self._signals and time.monotonic() > self._stop_deadline:
            for worker in self._everyone:
                worker.give_up()

    def _counted(self, worker: WorkerProcess) -> dict[str, Any]:
        """Give what a worker counted, with those of its name before it."""
        return cast(
            "dict[str, Any]", added(self._back.get(worker.name, {}), worker.counted())
        )

    def _tell(self) -> None:
        """Put up what is known; log the figures now and then."""
        due = self._config.stats_interval and time.monotonic() >= self._stats_at
        if self._face is None and not due:
            return
        snapshot = self._snapshot()
        if self._face is not None:
            self._face.publish(snapshot)
        if due:
            self._stats_at = time.monotonic() + self._config.stats_interval
            for line in stats_lines(of_run(self._config, snapshot)):
                _log.info("stats", line=line)

    def _notify(self) -> None:
        """Tell systemd that this loop turns, and how the workers' are."""
        if self._notifier.due and not self._signals:
            reports = {worker.name: worker.report() for worker in self.workers}
            hanging = [worker for worker in self._everyone if worker.hangs]
            self._notifier.tell(reports, [worker.name for worker in hanging])
            for worker in hanging:
                worker.end_hanging(self._notifier.patience_s)

    def _snapshot(self) -> Snapshot:
        counted = {worker.name: self._counted(worker) for worker in self._everyone}
        return Snapshot(
            at=time.time(),
            made_at=time.monotonic(),
            pid=os.getpid(),
            started_at=self._started_at,
            stopping=bool(self._signals),
            log_level=self._level,
            sources={worker.name: worker.knowledge() for worker in self.workers},
            away={name: worker.knowledge() for name, worker in self._away.items()},
            counted={**self._back, **counted},
        )

    def status(self) -> dict[str, Any]:
        """Tell how every source is."""
        return {
            "pid": os.getpid(),
            "started_at": self._started_at,
            "stopping": bool(self._signals),
            "sources": {worker.name: worker.report() for worker in self.workers},
            "away": {name: worker.report() for name, worker in self._away.items()},
        }

    def pass_on(self, source: str, word: str, request: dict[str, Any]) -> str:
        """Pass a request on to a source's worker; say why not, or ""."""
        worker = self._worker(source)
        if worker is None:
            return _NO_SOURCE
        return worker.pass_on(word, request)

    def answer(self, source: str, number: int) -> Answer | None:
        """Give what a worker says to a request; None: nothing yet."""
        worker = self._worker(source)
        return None if worker is None else worker.answer(number)

    def lend(self, source: str) -> str:
        """Begin to end a source's worker; say why not, or ""."""
        worker = self._worker(source)
        if worker is None:
            return _NO_SOURCE
        if self._signals:
            return "it is stopping"
        for one in self._everyone:
            if one.source == source:
                one.lend()
        return ""

    def is_lent(self, source: str) -> bool:
        """Tell whether the worker that was asked to end has."""
        own = [one for one in self._everyone if one.source == source]
        return bool(own) and all(one.lent and one.pid is None for one in own)

    def take_back(self, source: str) -> None:
        """Start the worker again."""
        for worker in self._everyone:
            if worker.source == source:
                worker.take_back(stopping=bool(self._signals))

    def _worker(self, source: str) -> WorkerProcess | None:
        return next((one for one in self.workers if one.name == source), None)

    @contextmanager
    def _signals_held(self) -> Iterator[None]:
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Count and wake: a handler may run between any two steps of the loop."""
        self._signals += 1
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_in, b"\0")

    def _pass_on_signals(self) -> None:
        """Tell the workers of the first signal, and of the second."""
        if self._signals == self._passed_on:
            return
        at_once = self._signals > 1
        drain_s = self._config.shutdown_timeout + GRACE_S
        self._stop_deadline = time.monotonic() + (_AT_ONCE_S if at_once else drain_s)
        self._passed_on = self._signals
        self._notifier.stopping(drain_s)
        for worker in self._everyone:
            worker.stop(now=at_once)
