"""`walstream run` as a process of its own, on a configuration made for one test.

`Walstream` writes the file, starts the command in a process group of its own, reads its
log and ends it. What reached Kafka is `tests.support.oracles.topic_reader`'s business.

    with Walstream(database.dsn, kafka.bootstrap, tmp_path, prefix) as walstream:
        ...                           # it streams
        assert walstream.terminate() == 0
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import psutil
from psycopg.conninfo import conninfo_to_dict

from tests.support.deadline import wait_until
from tests.support.programs import fork
from walstream.status.instance import streaming

SOURCE: Final = "app"
SINK: Final = "kafka"
_COMMAND: Final = Path(sys.executable).with_name("walstream")
_WORKERS: Final = {"walstream.service.worker_main", str(fork.SERVER)}
_START_S: Final = 60.0
_END_S: Final = 60.0  # half of it is a drain's own, and what follows

Entry = dict[str, Any]
"""One line of the log, from its JSON."""


@dataclass
class Walstream:
    """One source and one sink; what the test changes of them is merged in.

    The slot is named after the database, since a server's slots share one space of
    names; topics are `<prefix><schema>.<table>`.
    """

    dsn: str
    bootstrap: str
    folder: Path  # holds the configuration, the state and the logs of every start
    prefix: str
    source: Mapping[str, Any] = field(default_factory=dict)
    sink: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # sinks
    top: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()  # of `walstream run`, when used as a context
    program: Path = _COMMAND  # another installation's
    forks: fork.ForkServer | None = None  # of its own, with any environment

    def __post_init__(self) -> None:
        self.starts = 0
        self._process: subprocess.Popen[bytes] | fork.Forked | None = None
        self._stderr: IO[bytes] | None = None
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def slot(self) -> str:
        found = self.source.get("slot") or conninfo_to_dict(self.dsn).get("dbname")
        return str(found)

    @property
    def state(self) -> Path:
        """Folder of the source's LMDB."""
        return self.folder / "state" / SOURCE

    @property
    def configuration(self) -> Path:
        return self.folder / "walstream.toml"

    def document(self) -> dict[str, Any]:
        """Give the configuration as it will be written."""
        producer = {"bootstrap.servers": self.bootstrap}
        sink = {"kind": "kafka", "topic": self.prefix + "{schema}.{table}"}
        source = {"kind": "postgres", "dsn": self.dsn, "slot": self.slot}
        fed = [SINK, *self.others]
        others = {
            name: {"kind": "kafka", "producer": producer, **other}
            for name, other in self.others.items()
        }
        return {
            "state": str(self.folder / "state"),
            "http": {"listen": ""},
            **self.top,
            "sources": {
                SOURCE: {**source, "backfill": "never", "sinks": fed, **self.source}
            },
            "sinks": {SINK: {**sink, "producer": producer, **self.sink}, **others},
        }

    def start(self, *flags: str) -> Self:
        """Write the configuration as it is now, and run; back at once."""
        assert not self.running
        self.configuration.write_text(toml(self.document()), "utf-8")
        self.starts += 1
        self._close_log()
        self._process = self._launch(["run", "-c", str(self.configuration), *flags])
        return self

    def _launch(
        self, arguments: Sequence[str]
    ) -> subprocess.Popen[bytes] | fork.Forked:
        server = self.forks or (None if self.environment else fork.SHARED.server())
        if server is not None:
            return server.start(
                *arguments,
                stdout=self.log_path,
                environment={**os.environ, **self.environment},
            )
        self._stderr = self.log_path.open("wb")
        return subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )

    def streaming(self) -> Self:
        """Wait until it streams; fail with its log when it ends instead."""
        return self.until("streaming", _START_S)

    def streaming_said(self) -> Self:
        """Wait until the instance itself says so: its workers report each second."""
        folder = self.state.parent
        wait_until(lambda: SOURCE in streaming(folder).workers, 10, "it says so")
        return self

    def until(self, text: str, timeout_s: float = _START_S) -> Self:
        """Wait until some entry of this start's log holds the text."""
        deadline = time.monotonic() + timeout_s
        while not self.said(text):
            if not self.running and not self.said(text):
                raise AssertionError(f"ended before {text!r}:\n{self.text}")
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {timeout_s} s: {text!r}:\n{self.text}"
                )
            time.sleep(0.02)
        return self

    def until_said(self, text: str, times: int) -> Self:
        """Wait until so many entries of this start's log hold the text."""
        wait_until(lambda: len(self.said(text)) >= times, _START_S, f"{text}: {times}")
        return self

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the supervisor, which leads the process group."""
        assert self._process is not None
        return self._process.pid

    def workers(self) -> list[int]:
        """Find the workers that run now; Spark's process is none."""
        return [
            child.pid
            for child in psutil.Process(self.pid).children()
            if _WORKERS.intersection(_command_of(child))
        ]

    def processes(self, word: str) -> list[psutil.Process]:
        """Find those below it that have a word in their command line."""
        family = psutil.Process(self.pid).children(recursive=True)
        return [one for one in family if any(word in part for part in _command_of(one))]

    def drivers(self) -> list[psutil.Process]:
        """Find Spark's drivers that run now: children of the supervisor.

        What a driver starts has its command line, too, between its fork and its exec.
        """
        children = psutil.Process(self.pid).children()
        return [one for one in children if "walstream.spark.driver" in _command_of(one)]

    def worker_pid(self) -> int:
        """Find the one worker; wait for it where it is being started."""
        found: list[int] = []

        def look() -> bool:
            found[:] = self.workers()
            return bool(found)

        wait_until(look, _START_S, "a worker runs")
        return found[0]

    def signal(self, number: int) -> None:
        """Send to the supervisor alone, as an init system does first."""
        os.kill(self.pid, number)

    def terminate(self, timeout_s: float = _END_S) -> int:
        """SIGTERM; give the exit code."""
        if self.running:
            self.signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL the whole group: supervisor and worker at one moment."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def wait(self, timeout_s: float = _END_S) -> int:
        """Give the exit code of a run that ends by itself."""
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"runs on after {timeout_s} s:\n{self.text}") from None

    def ends_with(self, code: int, *texts: str, timeout_s: float = _END_S) -> None:
        """Claim the exit code, and texts that its output must hold."""
        found = self.wait(timeout_s)
        said = " ".join(
            " ".join(map(str, entry.values())) for entry in self.log
        ) + " ".join(self.text.split())
        assert found == code, f"exit code {found}, not {code}:\n{self.text}"
        for text in texts:
            assert text in said, f"not said: {text!r}:\n{self.text}"

    @property
    def log_path(self) -> Path:
        return self.folder / f"walstream.{self.starts}.log"

    @property
    def text(self) -> str:
        """All that this start wrote."""
        return self.log_path.read_text("utf-8", errors="replace")

    @property
    def log(self) -> list[Entry]:
        """The entries of this start; what is no JSON (a defect's traceback) is not."""
        return [
            json.loads(line)
            for line in self.text.splitlines()
            if line.startswith("{") and line.endswith("}")
        ]

    def said(self, text: str) -> list[Entry]:
        """Give the entries that hold the text in any field."""
        return [
            entry
            for entry in self.log
            if any(text in str(value) for value in entry.values())
        ]

    def _close_log(self) -> None:
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def __enter__(self) -> Self:
        try:
            return self.start(*self.flags).streaming()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.kill()
        self._close_log()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it just ended
        return []


def toml(document: Mapping[str, Any]) -> str:
    """Write nested tables as TOML."""
    return "\n".join(_lines(document, ""))


def _lines(table: Mapping[str, Any], path: str) -> list[str]:
    lines = [f"[{path}]"] if path else []
    nested = {key: part for key, part in table.items() if isinstance(part, Mapping)}
    arrays = {key: part for key, part in table.items() if _is_array(part)}
    for key, scalar in table.items():
        if key not in nested and key not in arrays:
            lines.append(f"{_text(key)} = {json.dumps(scalar, ensure_ascii=False)}")
    for key, part in nested.items():
        lines += _lines(part, f"{path}.{_text(key)}" if path else _text(key))
    for key, parts in arrays.items():
        for part in parts:
            # its own tables are written behind it, under the same path
            lines += [
                f"[{line}]" if line == f"[{path}.{_text(key)}]" else line
                for line in _lines(part, f"{path}.{_text(key)}")
            ]
    return lines


def _is_array(part: Any) -> bool:
    """Tell whether it is an array of tables."""
    return isinstance(part, list) and bool(part) and isinstance(part[0], Mapping)


def _text(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)
