"""A run of one program, watched from outside: a topic that fills, and its processes.

Every program is measured alike: by the records that a topic holds, and by the CPU and
memory of the whole process tree.
"""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import psutil
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
)

from walstream.errors import WalstreamError
from walstream.kafka.topic_reader import TopicReader

_LOOK_EVERY_S: Final = 0.05
_SAMPLE_EVERY_S: Final = 0.25  # looks at every process of the machine


@dataclass
class Figure:
    """What a run of a backfill took."""

    wall_s: float  # from the start of the process to the last record
    sending_s: float  # from the first records seen to the last
    rows_per_s: float  # while sending
    cpu_us_per_row: float = 0.0  # all its processes
    rss_mb: float = 0.0  # the highest sum over its processes
    sender_us_per_row: float = 0.0  # CPU of the slot's walsender
    broker_us_per_row: float = 0.0  # CPU of Kafka's broker; 0: it had no part


class Topic:
    """A topic made for one run, or several, and how many records they hold."""

    def __init__(
        self, bootstrap: str, partitions: int, name: str, *others: str
    ) -> None:
        self.name = name
        self.names = [name, *others]
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        new = [NewTopic(one, partitions) for one in self.names]
        for made in self._client.create_topics(new).values():
            made.result(60)
        # asking for many partitions is work for the broker
        self._look_every_s = max(_LOOK_EVERY_S, partitions * len(self.names) / 2000)
        self._reader = TopicReader({"bootstrap.servers": bootstrap})
        self._until_led()

    def _until_led(self) -> None:
        """Wait: a topic that was just made may have no leader yet."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.held()
            except WalstreamError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def held(self) -> int:
        bounds = self._reader.bounds(self.names)
        return sum(bound.end - bound.first for bound in bounds.values())

    def delete(self) -> None:
        """Give the room back."""
        self._reader.close()
        for gone in self._client.delete_topics(self.names).values():
            gone.result(60)

    def filled(
        self,
        rows: int,
        program: "Program",
        timeout_s: float,
        begin: Callable[[], None] = lambda: None,
    ) -> Figure:
        """Wait until it holds all rows; call `begin` when it has the first."""
        first, seen_first = 0.0, 0
        deadline = time.monotonic() + timeout_s
        while (held := self.held()) < rows:
            now = time.perf_counter()
            if held and not seen_first:
                first, seen_first = now, held
                begin()
            running = program.running
            if not running and self.held() < rows:
                raise SystemExit(f"{self.name}: {held} of {rows}\n{program.log_end()}")
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.name}: {held} of {rows} in {timeout_s} s")
            time.sleep(self._look_every_s)
        last = time.perf_counter()
        # all came between two looks: the start counts, since nothing better is known
        sending = last - (first if seen_first else program.began)
        return Figure(last - program.began, sending, (held - seen_first) / sending)

    def close(self, rows: int, *, exact: bool = True) -> None:
        """Refuse a run that sent rows twice; not `exact`: markers take offsets, too."""
        held = self.held()
        self._reader.close()
        if held < rows or (exact and held != rows):
            raise SystemExit(f"{self.name}: {held} records of {rows} rows")


class Program:
    """A process with all its children; ends with its block."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        told: Path = Path(os.devnull),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Have it read `told`, and write to `log`."""
        self._log = log
        self._marked_s = 0.0
        self.began = time.perf_counter()
        with log.open("wb") as output, told.open("rb") as orders:
            self._process = subprocess.Popen(
                command,
                stdin=orders,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
            )
        self._cpu: dict[tuple[int, float], float] = {}
        self._rss = 0
        self._looking = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def age_s(self) -> float:
        return time.perf_counter() - self.began

    def wait(self, timeout_s: float = 60) -> int:
        return self._process.wait(timeout_s)

    def log_end(self) -> str:
        text = self._log.read_text("utf-8", errors="replace")
        return "\n".join(text.splitlines()[-30:])

    def log_text(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def used_s(self) -> float:
        """Give the CPU that all its processes used until now."""
        self._look()
        return sum(self._cpu.values())

    def mark(self) -> None:
        """Count the CPU from here on: the start is done."""
        self._marked_s = self.used_s()

    def since_mark_s(self) -> float:
        return self.used_s() - self._marked_s

    @property
    def rss_mb(self) -> float:
        """The highest sum over all its processes."""
        return self._rss / 1e6

    def until_said(self, words: str, timeout_s: float = 60.0) -> None:
        """Wait until these words are in its log."""
        deadline = time.monotonic() + timeout_s
        while words not in self.log_text():
            if not self.running or time.monotonic() > deadline:
                raise SystemExit(f"never said: {words}\n{self.log_end()}")
            time.sleep(0.005)

    def complete(self, figure: Figure, rows: int) -> Figure:
        """Add what the processes used until now."""
        figure.cpu_us_per_row = self.since_mark_s() * 1e6 / rows
        figure.rss_mb = self.rss_mb
        return figure

    def _watch(self) -> None:
        while self.running:
            self._look()
            time.sleep(_SAMPLE_EVERY_S)

    def _look(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess), self._looking:
            root = psutil.Process(self._process.pid)
            self._sample([root, *root.children(recursive=True)])

    def _sample(self, family: list[psutil.Process]) -> None:
        rss = 0
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                rss += member.memory_info().rss
                used = sum(member.cpu_times()[:2])
                self._cpu[member.pid, member.create_time()] = used
        self._rss = max(self._rss, rss)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            family = psutil.Process(self._process.pid).children(recursive=True)
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
        self._process.wait()
        self._watcher.join()
