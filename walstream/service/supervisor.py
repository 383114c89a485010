"""The supervisor: one worker process a source, started again when it dies.

Holds the signals and the control socket. The first SIGTERM or SIGINT drains, the second
ends at once; SIGHUP has the configuration read again. A worker that dies is started
again with backoff; one that ends with 2, 3 or 4 needs an operator and is not, until its
source was lent and came back, or the configuration was read again.
"""

import os
import selectors
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from walstream.config import Config, Secrets
from walstream.config.run_options import Options
from walstream.errors import Transient
from walstream.service.config_changes import ConfigReader, Reloaded
from walstream.service.control_server import ControlServer
from walstream.service.fleet import Fleet
from walstream.service.http.listeners import Listeners
from walstream.service.reloader import Reloader
from walstream.service.signal_inbox import SignalInbox
from walstream.service.stats_log import StatsLog
from walstream.service.systemd import Notifier
from walstream.service.worker_order import WorkerRequest
from walstream.sources.report import WorkerAnswer
from walstream.spark.driver.spawner import DriverSpawner
from walstream.state.control_message import ErrorAnswer, ReloadAnswer
from walstream.state.lock import FolderLock
from walstream.status.instance import Instance
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.status import of_run
from walstream.status.worker_state import WorkerState
from walstream.telemetry import logs, runtime

_TICK_S: Final = 0.5
_AT_ONCE_S: Final = 1.0
_NO_SOURCE: Final = "it has no such source: the configuration may have gained it since"


@dataclass(frozen=True, slots=True)
class TerminalWatch:
    """Terminal on which the state of every source is shown."""

    # called at each turn: by source, and whether all drain
    show: Callable[[Mapping[str, WorkerState], bool], None]
    terminal: int  # its descriptor


class Supervisor:
    """Keeps the workers of all sources running until told to stop."""

    def __init__(
        self,
        config: Config,
        options: Options,
        watch: TerminalWatch | None = None,
        reader: ConfigReader | None = None,
    ) -> None:
        """Without a `reader` there is no reload."""
        self._watch = watch
        self._selector = selectors.DefaultSelector()
        self._keeper = DriverSpawner(config, self._selector)
        self._fleet = Fleet(config, replace(options, driver=self._keeper.address))
        self._reloader = Reloader(config, reader, self._fleet, self)
        self._secrets = config.secrets.values  # and those of before a reload
        self._faces = Listeners(config, self.set_debug)
        self._notifier = Notifier()
        self._debug = False  # as it was last asked for, from any thread
        self._level: str = config.log_level
        self._stats = StatsLog(config, runtime.monotonic())
        self._signals = (
            SignalInbox(self._selector, watch.terminal)
            if watch
            else SignalInbox(self._selector)
        )
        self._passed_on = 0  # stops that were told to the workers
        self._stop_deadline = 0.0
        self._started_at = runtime.time()
        self._control = ControlServer(Path(config.state), self._selector, self)

    def run(self) -> int:
        """Supervise until no source is left; give the highest exit code."""
        lock = FolderLock(Path(self._config.state))
        lock.acquire_patiently()
        try:
            self._faces.listen()
            self._control.open()
            self._keeper.open()
            with self._signals.held():
                self._start_due()  # they load their libraries while this loads HTTP's
                self._faces.open()
                while self._goes_on:
                    self._turn()
        finally:
            for worker in self._fleet.everyone:
                worker.kill()
            self._keeper.close()
            self._control.close()
            self._faces.close()
            lock.release()
        codes = (worker.exit_code or 0 for worker in self._fleet.workers)
        return max((self._fleet.left_code, *codes))

    def set_debug(self, on: bool) -> str:  # noqa: FBT001
        """Make every process log more, or as configured; from any thread."""
        self._debug = on
        self._signals.wake()
        return self._wanted_level

    @property
    def _config(self) -> Config:
        """What all goes by, as it was read last."""
        return self._reloader.config

    @property
    def _wanted_level(self) -> str:
        return "debug" if self._debug else self._config.log_level

    def _follow_level(self) -> None:
        level = self._wanted_level
        if level != self._level:
            self._level = level
            logs.set_level(level)
            self._keeper.log(level)
            self._fleet.log(level)

    @property
    def _goes_on(self) -> bool:
        """Return whether a source is left; after a stop, whether a worker drains."""
        if any(worker.exit_code is None for worker in self._fleet.workers):
            return True
        return bool(
            self._stopping and any(one.pid for one in self._fleet.away.values())
        )

    @property
    def _stopping(self) -> bool:
        """Return whether it was told to stop."""
        return bool(self._signals.stops)

    def _start_due(self) -> None:
        for worker in self._fleet.everyone:
            may = not self._stopping and self._fleet.may_start(worker)
            if may and worker.start_if_due():
                self._selector.register(
                    worker.stdout or 0, selectors.EVENT_READ, worker.hear
                )

    def _turn(self) -> None:
        if not self._stopping:
            self._fleet.follow_sinks()
        self._start_due()
        self._keeper.tick()
        for key, _ in self._selector.select(_TICK_S):
            key.data()
        for worker in self._fleet.everyone:
            stdout = worker.stdout
            worker.reap(stopping=self._stopping)
            if stdout is not None and worker.stdout is None:
                self._selector.unregister(stdout)
            worker.hurry()
        self._fleet.drop_retired()
        if not self._stopping:
            self._reloader.heed_refusals()
        self._control.tick()
        if not self._stopping and self._signals.take_hangup():
            self._reloader.reload()
        self._follow_level()
        self._tell()
        self._notify()
        if self._watch is not None:
            workers = {one.name: one.state() for one in self._fleet.workers}
            self._watch.show(workers, self._stopping)
        self._pass_on_signals()
        if self._stopping and runtime.monotonic() > self._stop_deadline:
            for worker in self._fleet.everyone:
                worker.give_up()

    def _tell(self) -> None:
        """Put up what is known; log the figures now and then."""
        now = runtime.monotonic()
        due = self._stats.is_due(now)
        if not self._faces.any and not due:
            return
        snapshot = self._snapshot()
        self._faces.publish(snapshot)
        if due:
            self._stats.write(of_run(self._config, snapshot), now)

    def _notify(self) -> None:
        """Notify systemd that this loop turns, and how the workers' are."""
        if self._notifier.due and not self._stopping:
            states = {worker.name: worker.state() for worker in self._fleet.workers}
            hanging = [worker for worker in self._fleet.everyone if worker.hangs]
            self._notifier.tell(states, [worker.name for worker in hanging])
            for worker in hanging:
                worker.end_hanging(self._notifier.patience_s)

    def _snapshot(self) -> InstanceSnapshot:
        return InstanceSnapshot(
            at=runtime.time(),
            made_at=runtime.monotonic(),
            pid=os.getpid(),
            started_at=self._started_at,
            stopping=self._stopping,
            log_level=self._level,
            sources={worker.name: worker.knowledge() for worker in self._fleet.workers},
            away={
                name: worker.knowledge() for name, worker in self._fleet.away.items()
            },
            counted=self._fleet.all_counted(),
        )

    def status(self) -> Instance:
        """Return how every source is."""
        return Instance(
            os.getpid(),
            self._started_at,
            self._stopping,
            {worker.name: worker.state() for worker in self._fleet.workers},
            {name: worker.state() for name, worker in self._fleet.away.items()},
        )

    def pass_on(self, source: str, word: str, request: WorkerRequest) -> str:
        """Pass a request on to a source's worker; say why not, or ""."""
        worker = self._fleet.worker(source)
        if worker is None:
            return _NO_SOURCE
        return worker.pass_on(word, request)

    def answer(self, source: str, number: int) -> WorkerAnswer | None:
        """Return what a worker says to a request; None: nothing yet."""
        worker = self._fleet.worker(source)
        return None if worker is None else worker.answer(number)

    def lend(self, source: str) -> str:
        """Begin to end a source's worker; say why not, or ""."""
        worker = self._fleet.worker(source)
        if worker is None:
            return _NO_SOURCE
        if self._stopping:
            return "it is stopping"
        for one in self._fleet.of_source(source):
            one.lend()
        return ""

    def is_lent(self, source: str) -> bool:
        """Return whether the worker that was asked to end has."""
        own = self._fleet.of_source(source)
        return bool(own) and all(one.drain.lent and one.pid is None for one in own)

    def take_back(self, source: str) -> None:
        """Start the worker again."""
        for worker in self._fleet.of_source(source):
            worker.take_back(stopping=self._stopping)

    def reload(self) -> ReloadAnswer | ErrorAnswer:
        """Go by the configuration as it is now; tell what that changed."""
        if self._stopping:
            return Reloaded("it is stopping", Transient.exit_code).answer
        return self._reloader.reload().answer

    def accept(self, config: Config) -> None:
        """Apply its addresses; raise ConfigError if one is not available."""
        self._faces.follow(config)

    def take(self, config: Config) -> None:
        """Apply the rest of it, which concerns no worker."""
        self._secrets |= config.secrets.values
        logs.configure(self._level, Secrets(self._secrets).scrub)
        self._stats.take(config, runtime.monotonic())
        self._keeper.take(config)

    def _pass_on_signals(self) -> None:
        """Pass the first signal on to the workers, and the second."""
        stops = self._signals.stops
        if stops == self._passed_on:
            return
        at_once = stops > 1
        drain_s = max((one.drain.limit_s for one in self._fleet.everyone), default=0.0)
        self._stop_deadline = runtime.monotonic() + (_AT_ONCE_S if at_once else drain_s)
        self._passed_on = stops
        self._notifier.stopping(drain_s)
        for worker in self._fleet.everyone:
            worker.stop(now=at_once)
