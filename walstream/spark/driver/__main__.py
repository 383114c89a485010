"""The driver's process: a thread for each worker that is connected, and Spark.

Spark starts with the first order that needs it; small ones are read by this process.
Told over stdin, a line of JSON, by the keeper whose socket it inherits; the end of
stdin is the supervisor's. It ends with its supervisor, with its JVM, and when nobody
was connected for a while.
"""

import contextlib
import json
import os
import select
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import structlog

from walstream.config import Config
from walstream.errors import WalstreamError
from walstream.spark import in_process, session
from walstream.spark.driver import transport
from walstream.spark.driver.messages import Failed, Finished, JobOrder
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone, ChunkPostponed
from walstream.spark.parent_death import die_with_parent, take_signals
from walstream.spark.session import SparkRuntime
from walstream.telemetry import logs, runtime

_ALL: Final = 1 << 20
_LOOK_S: Final = 0.5
_IDLE_S: Final = 20.0
_REFUSE_S: Final = 1.0
_STOP_S: Final = 5.0
_log = structlog.get_logger()


class _Left(Exception):
    """The worker that sent the job is gone."""


class Service:
    """Serves workers with one Spark, which starts when it is first needed."""

    def __init__(self, config: Config, listener: socket.socket) -> None:
        self._config = config
        self._listener = listener
        self._spark: SparkRuntime | None = None
        self._starting = threading.Lock()
        self._threads: list[runtime.StartedThread] = []

    def run(self) -> int:
        """Serve until Spark is gone, or nobody was connected for a while."""
        busy_at = runtime.monotonic()
        while self._spark is None or self._spark.alive:
            if select.select([self._listener], [], [], _LOOK_S)[0]:
                connection, _ = self._listener.accept()
                thread = runtime.start_thread(self._serve, "worker", connection)
                self._threads.append(thread)
            self._threads = [one for one in self._threads if one.is_alive()]
            if self._threads:
                busy_at = runtime.monotonic()
            elif runtime.monotonic() - busy_at > _IDLE_S:
                return 0
        for thread in self._threads:  # each hears why
            thread.join(_REFUSE_S)
        return 1

    def _serve(self, connection: socket.socket) -> None:
        """Run one order after the other."""
        with connection, contextlib.suppress(OSError, EOFError, _Left, WalstreamError):
            transport.check_peer(connection)
            while True:
                order = transport.receive(connection)
                transport.send(connection, self._run(order, connection))

    def _run(self, order: JobOrder, connection: socket.socket) -> Failed | Finished:
        try:
            self._run_chunks(order, connection)
        except _Left:
            raise
        except WalstreamError as error:
            return Failed(error)
        except Exception as error:  # noqa: BLE001 - logged scrubbed, not by the interpreter
            _log.exception("the driver failed: a defect")
            return Failed(WalstreamError(f"{type(error).__name__}: a defect"))
        return Finished()

    def _run_chunks(self, order: JobOrder, connection: socket.socket) -> None:
        def see() -> None:
            """Raise when the worker has closed its end: it says nothing meanwhile."""
            if select.select([connection], [], [], 0)[0]:
                raise _Left

        def done(outcome: ChunkDone | ChunkPostponed) -> None:
            try:
                transport.send(connection, outcome)
            except OSError:
                raise _Left from None

        connections = min(order.at_once or _ALL, self._config.spark.connections)
        with contextlib.ExitStack() as stack:
            if order.in_process:
                here = in_process.InProcessRun(order.chunks, connections)
                stack.callback(here.wait)  # after the leash has ended what runs
                leash = stack.enter_context(Leash.of_an_order(Path(order.lock)))
                here.run(order.task(self._config, leash), done, see)
                return
            from walstream.spark import jobs  # noqa: PLC0415 - loads pyspark

            spark = replace(self._started(), pool=order.source, connections=connections)
            tied = None
            if spark.local:
                tied = stack.enter_context(Leash.of_an_order(Path(order.lock)))
            task = order.task(self._config, tied)
            jobs.run(spark, order.chunks, task, done, see)

    def _started(self) -> SparkRuntime:
        """Return Spark; start it, while others wait."""
        with self._starting:
            if self._spark is None:
                configured = self._config.spark
                self._spark = session.start(
                    session.Settings(
                        configured.master,
                        {key: str(text) for key, text in configured.conf.items()},
                        configured.connections,
                    )
                )
            return self._spark

    def stop(self) -> None:
        """Leave a cluster; what runs here ends with this process."""
        spark = self._spark
        if spark is not None and not spark.local and spark.alive:
            leaving = runtime.start_thread(spark.stop, "leave")
            leaving.join(_STOP_S)


def main() -> int:
    """Start Spark, and serve."""
    told = json.loads(sys.stdin.buffer.readline())
    die_with_parent(told["parent"])
    config = Config.from_json(told["config"])
    logs.configure(told["log_level"], config.secrets.scrub)
    take_signals(_leave)
    runtime.start_thread(_end_with_stdin, "stdin")
    with socket.socket(fileno=told["listener"]) as listener:
        service = Service(config, listener)
        try:
            return service.run()
        finally:
            service.stop()


def _leave(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _end_with_stdin() -> None:
    """Follow the keeper's words; its end is ours."""
    for line in sys.stdin.buffer:
        word, _, level = line.decode().strip().partition(" ")
        if word == "log":
            logs.set_level(level)
    os._exit(1)


if __name__ == "__main__":
    code = 0
    with contextlib.suppress(SystemExit):
        code = main()
    logs.STDERR.flush()
    # a JVM that died leaves threads of py4j waiting for it
    os._exit(code)
