"""The composition root: configuration -> one supervised worker process a source.

Holds the signals. The first SIGTERM or SIGINT drains, the second ends at once. A worker
that dies is started again with backoff; one that ends with 2, 3 or 4 needs an operator
and is not.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, Final

import structlog

from walstream.config import Config, KafkaSink, PostgresSource
from walstream.errors import ConfigError
from walstream.lock import FolderLock
from walstream.metrics import SOURCE
from walstream.retry import Backoff

_NEEDS_OPERATOR: Final = frozenset({2, 3, 4, 5})
_MEMORY_FAULTS: Final = frozenset({-signal.SIGBUS, -signal.SIGSEGV, -signal.SIGABRT})
_HISTORY: Final = 3
_TICK_S: Final = 0.5
_GRACE_S: Final = 10.0  # beyond the drain's own deadline, before a worker is killed
_AT_ONCE_S: Final = 1.0
_HEALTHY_S: Final = 30.0
_RISKS: Final = {
    "insecure": "connections are not protected by verified TLS",
    "at_most_once": "records may be lost: the producer's properties allow it",
}
_WITHOUT_EFFECT: Final = {"alarm_retained_wal", "detach_after"}
_log = structlog.get_logger()


class WorkerProcess:
    """One source's worker, as its supervisor sees it."""

    def __init__(self, config: Config, name: str, options: dict[str, Any]) -> None:
        self.name = name
        self.state: dict[str, Any] = {}
        self.exit_code: int | None = None  # final: it is not started again
        self._config = config
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff(0.2, 30.0)
        self._started_at = 0.0
        self._start_at = 0.0
        self._partial = b""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def stdout(self) -> int | None:
        """What to wait on for its state."""
        process = self._process
        return process.stdout.fileno() if process and process.stdout else None

    def start_if_due(self) -> bool:
        """Start it when it is not running, not finished, and its wait is over."""
        now = time.monotonic()
        if self._process or self.exit_code is not None or now < self._start_at:
            return False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "walstream.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._started_at = now
        self._tell(
            json.dumps(
                {
                    "parent": os.getpid(),
                    "source": self.name,
                    "config": self._config.to_json(),
                    "log_level": self._config.log_level,
                    "options": self._options,
                }
            )
        )
        return True

    def _tell(self, line: str) -> None:
        process = self._process
        if process and process.stdin:
            try:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass  # it has ended: reap finds that

    def stop(self, *, now: bool = False) -> None:
        """Ask it to drain, or to end at once."""
        if self._process is None and self.exit_code is None:
            self.exit_code = 0  # between two tries
        self._tell("now" if now else "stop")

    def kill(self) -> None:
        if self._process:
            self._process.kill()

    def hear(self) -> None:
        """Take in the state that it wrote."""
        if (stdout := self.stdout) is None:
            return
        *lines, self._partial = (self._partial + os.read(stdout, 65536)).split(b"\n")
        if lines:
            self.state = json.loads(lines[-1])

    def reap(self, *, stopping: bool) -> None:
        """See whether it has ended, and decide whether it is started again."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(
                    BrokenPipeError
                ):  # it has ended: nothing to tell any more
                    pipe.close()
        self._process = None
        lived_s = time.monotonic() - self._started_at
        if code in _MEMORY_FAULTS and lived_s < _HEALTHY_S:
            folder = Path(self._config.state) / self.name
            _log.error(
                f"worker died by signal {-code}: the state in {folder} may be damaged",
                **{SOURCE: self.name},
                hint=f"restore {folder}, or: walstream positions reset {self.name}",
            )
            self.exit_code = _HISTORY
        elif code in _NEEDS_OPERATOR or (stopping and code >= 0):
            self.exit_code = code
        elif stopping:
            self.exit_code = 1
        else:
            if lived_s > _HEALTHY_S:
                self._backoff.reset()
            wait_s = self._backoff.next()
            self._start_at = time.monotonic() + wait_s
            _log.error(
                "worker ended, starting it again",
                **{SOURCE: self.name},
                exit_code=code,
                wait_s=round(wait_s, 1),
            )


class Supervisor:
    """Keeps the workers of all sources running until told to stop."""

    def __init__(self, config: Config, options: dict[str, Any]) -> None:
        self._config = config
        self.workers = [
            WorkerProcess(config, name, options) for name in sorted(config.sources)
        ]
        self._signals = 0  # received
        self._passed_on = 0  # told to the workers
        self._stop_deadline = 0.0
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_out, selectors.EVENT_READ)

    def run(self) -> int:
        """Supervise until no source is left; give the highest exit code."""
        lock = FolderLock(Path(self._config.state))
        lock.acquire()
        try:
            with self._signals_held():
                while any(worker.exit_code is None for worker in self.workers):
                    self._turn()
        finally:
            for worker in self.workers:
                worker.kill()
            lock.release()
        return max((worker.exit_code or 0 for worker in self.workers), default=0)

    def _turn(self) -> None:
        for worker in self.workers:
            if not self._signals and worker.start_if_due():
                self._selector.register(
                    worker.stdout or 0, selectors.EVENT_READ, worker
                )
        for key, _ in self._selector.select(_TICK_S):
            if key.data is None:
                os.read(self._wake_out, 4096)
            else:
                key.data.hear()
        for worker in self.workers:
            stdout = worker.stdout
            worker.reap(stopping=bool(self._signals))
            if stdout is not None and worker.stdout is None:
                self._selector.unregister(stdout)
        self._pass_on_signals()
        if self._signals and time.monotonic() > self._stop_deadline:
            for worker in self.workers:
                worker.kill()

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
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_in, b"\0")

    def _pass_on_signals(self) -> None:
        """Tell the workers of the first signal, and of the second."""
        if self._signals == self._passed_on:
            return
        at_once = self._signals > 1
        drain_s = self._config.shutdown_timeout + _GRACE_S
        self._stop_deadline = time.monotonic() + (_AT_ONCE_S if at_once else drain_s)
        self._passed_on = self._signals
        for worker in self.workers:
            worker.stop(now=at_once)


def check_supported(config: Config) -> None:
    """Refuse what this version does not do yet, before anything is created."""
    for name, source in config.sources.items():
        if not isinstance(source, PostgresSource):
            raise ConfigError(
                f"sources.{name}.kind: {source.kind!r} is not in this version",
                hint='only kind = "postgres" streams yet: remove the source',
            )
        if source.backfill != "never":
            raise ConfigError(
                f"sources.{name}.backfill: {source.backfill!r} is not in this version",
                hint=f'set backfill = "never" in [sources.{name}]: the rows that are'
                " there already do not come to Kafka",
            )
        if source.encoding.upper() not in {"", "UTF8", "UTF-8"}:
            raise ConfigError(
                f"sources.{name}.encoding: {source.encoding!r} is not in this version",
                hint='a SQL_ASCII database may be read as "UTF8" alone',
            )
        if source.heartbeat:
            raise ConfigError(
                f"sources.{name}.heartbeat is not in this version",
                hint='leave it "": keepalives move an idle slot',
            )
    used = {sink for source in config.sources.values() for sink in source.sinks}
    for name in sorted(used):
        sink = config.sinks[name]
        if not isinstance(sink, KafkaSink):
            raise ConfigError(
                f"sinks.{name}.kind: {sink.kind!r} is not in this version"
            )
        plain = {
            "format": ("op",),
            "key": ("json", "concat"),
            "on_too_large": ("stop",),
            "tombstones": (False,),
            "strict": (False,),
        }
        for key, allowed in plain.items():
            if getattr(sink, key) not in allowed:
                raise ConfigError(
                    f"sinks.{name}.{key}: {getattr(sink, key)!r} is not in this"
                    " version",
                    hint=f"write {key} = {' or '.join(map(repr, allowed))}",
                )


def tell_risks(config: Config) -> None:
    """Repeat at each start what the configuration gave up, and what it asks in vain."""
    for section, parts in (("sources", config.sources), ("sinks", config.sinks)):
        for name, part in parts.items():
            for key, what in _RISKS.items():
                if getattr(part, key, False):
                    _log.warning(what, key=f"{section}.{name}.{key}")
            for key in _WITHOUT_EFFECT & part.model_fields_set:
                _log.warning(
                    "this key has no effect in this version",
                    key=f"{section}.{name}.{key}",
                )


def run(config: Config, options: Any) -> int:
    """Run all sources until they end; give the process's exit code."""
    check_supported(config)
    tell_risks(config)
    if not config.sources:
        raise ConfigError("no source is configured", hint="add [sources.NAME]")
    return Supervisor(config, asdict(options)).run()
