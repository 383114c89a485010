"""The demo's course: servers, stream, load, one crash, and the reckoning."""

import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from walstream.cli.demo import report, shop
from walstream.cli.demo.crash import Crash
from walstream.cli.demo.instance import SLOT, Walstream, configure
from walstream.cli.demo.load import Load
from walstream.cli.demo.screen import Screen, show_ms
from walstream.cli.demo.tally import DemoTally, judge, percentile
from walstream.cli.demo.workload import Trade
from walstream.errors import Transient
from walstream.kafka.topic_reader import TopicReader
from walstream.postgres.connection import session
from walstream.spark.java import (
    find_java,
)
from walstream.testing.servers import LocalKafka, LocalPostgres
from walstream.testing.servers.folder import WorkFolder

_START_TIMEOUT_S: Final = 60.0
_ARRIVE_TIMEOUT_S: Final = 60.0
_DRAIN_TIMEOUT_S: Final = 30.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S: Final = 0.05
_WARM_UP_S: Final = 0.5  # the reader's connections are not what is measured
_CRASH_AFTER: Final = 0.4  # of the time


@dataclass(frozen=True, slots=True)
class DemoOptions:
    seconds: float
    rate: float  # transactions a second
    seed: int
    keep: bool


def play(wishes: DemoOptions, screen: Screen) -> int:
    """Run the demo, whole; give the process's exit code. Leaves nothing behind."""
    with _handlers_restored(), ExitStack() as stack:
        try:
            return _Demo(wishes, screen, stack).run()
        finally:
            # no second Ctrl-C cuts short the cleaning up that the first began
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)


@contextmanager
def _handlers_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Demo:
    def __init__(self, wishes: DemoOptions, screen: Screen, stack: ExitStack) -> None:
        self._wishes = wishes
        self._screen = screen
        self._stack = stack
        self._servers: list[LocalPostgres | LocalKafka] = []
        self._tally = DemoTally()
        self._trade = Trade(wishes.seed)

    def run(self) -> int:
        self._start_servers()
        self._start_stream()
        self._load = self._new_load()
        self._crash = Crash(self._walstream, self._screen)
        self._show_changes()
        good = self._reckon()
        if self._wishes.keep:
            self._keep()
        return 0 if good else 1

    def _new_load(self) -> Load:
        load = Load(self._dsn, self._trade, self._wishes.rate)
        self._stack.callback(load.stop)
        return load

    def _start_servers(self) -> None:
        screen = self._screen
        find_java()  # before anything is started, or fetched
        postgres = LocalPostgres()
        self._stack.callback(postgres.close)
        self._servers.append(postgres)
        with screen.step("PostgreSQL started") as details:
            postgres.start()
            details.append(f"{postgres.version}, 127.0.0.1:{postgres.port}")
        self._dsn = postgres.dsn()
        with screen.step("Kafka started") as details:
            kafka = LocalKafka()
            self._stack.callback(kafka.close)
            self._servers.append(kafka)
            kafka.start()
            details.append(f"one broker, {kafka.bootstrap}")
        self._bootstrap = kafka.bootstrap

    def _start_stream(self) -> None:
        folder = WorkFolder("demo", None, None)
        self._stack.callback(folder.delete)
        with self._screen.step("Shop created") as details:
            with session(self._dsn) as connection:
                shop.create(connection)
            details.append(f"{len(shop.TABLES)} tables, seed {self._wishes.seed}")
        self._configuration = configure(folder.path, self._dsn, self._bootstrap)
        with self._screen.step("walstream started"):
            self._walstream = Walstream(self._configuration)
            self._stack.callback(self._walstream.close)
            self._reader = TopicReader({"bootstrap.servers": self._bootstrap})
            self._stack.callback(self._reader.close)
            self._wait_for_stream()
        self._screen.say(f"  [dim]as[/] walstream run -c {self._configuration}")
        self._reader.assign(
            {
                partition: bounds.first
                for partition, bounds in self._reader.bounds(shop.TABLES).items()
            }
        )

    def _wait_for_stream(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        with session(self._dsn) as connection:
            while not (
                shop.stream_is_open(connection, SLOT)
                and self._reader.topics().keys() >= set(shop.TABLES)
            ):
                self._walstream.check()
                if time.monotonic() > deadline:
                    raise Transient(
                        "walstream does not stream; its log ends with:\n"
                        + self._walstream.log_end
                    )
                time.sleep(_POLL_S)

    def _show_changes(self) -> None:
        seconds = self._wishes.seconds
        self._screen.say(
            f"\n[bold]A shop writes {self._wishes.rate:g} transactions a second to"
            " PostgreSQL. This is a sample of what arrives in Kafka.[/]"
            "\n[dim]On the right: the time from the commit to the receipt.[/]\n"
        )
        self._reader.poll(_WARM_UP_S)
        self._load.start()
        began = self._began = time.monotonic()
        with self._screen.watching():
            self._watch(lambda: time.monotonic() > began + seconds * _CRASH_AFTER)
            self._crash.happen()
            self._watch(lambda: time.monotonic() > began + seconds)
            # a demo too short for it waits for the restart
            deadline = time.monotonic() + _ARRIVE_TIMEOUT_S
            self._watch(lambda: self._crash.over or time.monotonic() > deadline)

    def _watch(self, done: Callable[[], bool]) -> None:
        """Take what arrives, and show it, until then."""
        while not done():
            self._check()
            self._take()
            self._screen.status(self._status())

    def _check(self) -> None:
        """Raise what ended before its time: the cause first."""
        self._check_servers()
        self._walstream.check()
        self._load.check()

    def _check_servers(self) -> None:
        for server in self._servers:
            if not server.running:
                raise Transient(
                    f"{server.name} ended in the middle of the demo; its log ends"
                    f" with:\n{server.log_end()}"
                )

    def _take(self) -> None:
        records = self._reader.poll(_POLL_S)
        received_ms = time.time() * 1000
        arrivals = [
            arrival
            for record in records
            if (arrival := self._tally.take(record, received_ms))
        ]
        self._crash.look(arrivals)
        self._screen.show(arrivals)

    def _status(self) -> str:
        waiting = max(0, self._load.rows - self._tally.total)
        passed_s = min(time.monotonic() - self._began, self._wishes.seconds)
        state = (
            f"[green]●[/] streaming, worker {self._crash.worker}"
            if self._crash.worker
            else f"[red]●[/] worker down, {waiting:,} changes wait"
        )
        latest = [latency for _, latency in self._tally.latencies[-500:]]
        latency = show_ms(percentile(latest, 50))
        return (
            f"{state}  [dim]│[/]  {self._tally.total:,} changes in Kafka"
            f"  [dim]│[/]  latency {latency}"
            f"  [dim]│[/]  {passed_s:.0f} of {self._wishes.seconds:g} s"
        )

    def _reckon(self) -> bool:
        """Stop, count on both sides, compare, and tell."""
        screen = self._screen
        screen.say()
        self._load.stop()
        self._load.check()
        with session(self._dsn) as connection:
            written = shop.written(connection)
            transactions = shop.transactions(connection)
            contents = shop.contents(connection)
        with screen.step("Load stopped; all that was written looked for in Kafka"):
            deadline = time.monotonic() + _ARRIVE_TIMEOUT_S
            while (written - self._tally.delivered) and time.monotonic() < deadline:
                self._check()
                self._take_quietly()
        drained = self._wishes.keep or self._drain()
        ends = self._reader.bounds(shop.TABLES)
        while not self._reader.reached(ends):
            self._check_servers()
            self._take_quietly()
        verdict = judge(written, contents, self._tally)
        result = report.Result(verdict, transactions, self._tally, self._crash.outage)
        report.show(screen, result)
        return verdict.ok and drained

    def _take_quietly(self) -> None:
        records = self._reader.poll(_POLL_S)
        received_ms = time.time() * 1000
        for record in records:
            self._tally.take(record, received_ms)

    def _drain(self) -> bool:
        """End walstream as an operator does."""
        with self._screen.step("SIGTERM: walstream drained and ended") as details:
            code = self._walstream.drain(_DRAIN_TIMEOUT_S)
            details.append(f"exit code {code}")
        if code != 0:
            self._screen.plain(self._walstream.log_end)
        return code == 0

    def _keep(self) -> None:
        """Go on writing, unwatched, until the user has seen enough."""
        screen = self._screen
        self._load = self._new_load()
        self._load.start()
        screen.say("\n[bold]Everything keeps running, including the load:[/]")
        screen.plain(f"  PostgreSQL     {self._dsn}")
        screen.plain(f"  Kafka          {self._bootstrap}")
        screen.plain(f"  configuration  {self._configuration}")
        screen.plain(f"  log            {self._walstream.log}")
        screen.say("[dim]Enter or Ctrl-C ends it, and deletes everything.[/]")
        while not _enter_pressed():
            self._check()
        self._load.stop()
        self._drain()


def _enter_pressed() -> bool:
    """Wait half a second for it."""
    if not sys.stdin.isatty():
        time.sleep(0.5)
        return False
    ready, _, _ = select.select([sys.stdin], [], [], 0.5)
    return bool(ready) and bool(sys.stdin.readline())
