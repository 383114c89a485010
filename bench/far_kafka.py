"""A real Kafka that is reached directly, and over links on which answers take longer.

Each link has a listener of its own, which names the link's port as its address. So who
comes over a link stays on it, whatever the broker tells of itself, and who comes
directly (readers, checks) waits for nothing.
"""

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from bench.latency import percentile
from walstream.testing.servers import LocalKafka
from walstream.testing.servers.port import HOST, free_port

_ASK_EVERY_S: Final = 0.05
_LONGEST_S: Final = 60.0
_NAMED: Final = struct.Struct("!ihhih")  # size, ApiVersions, 0, correlation id, nobody
_API_VERSIONS: Final = _NAMED.pack(10, 18, 0, 1, -1)
_SIZE: Final = struct.Struct("!i")


@dataclass
class RoundTrip:
    """How long requests over one link waited for their answers."""

    median_ms: float
    p99_ms: float
    least_ms: float
    asked: int


class Link:
    """The process of one link, and what it takes over it to be answered."""

    def __init__(self, answer_ms: int) -> None:
        self.answer_ms = answer_ms
        self.port = free_port()  # what the listener is known by
        self.listener_port = free_port()
        self.took: list[tuple[float, float]] = []  # asked at, seconds until the answer
        self._over = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def sent(self) -> int:
        """Bytes that clients sent over it until now."""
        return int(self._told("?"))

    def round_trip(self, since: float = 0.0) -> RoundTrip:
        """Reckon from what was asked since then, by time.monotonic."""
        found = sorted(took * 1e3 for at, took in [*self.took] if at >= since)
        if not found:
            raise SystemExit(f"nothing was answered over the link of {self.answer_ms}")
        return RoundTrip(
            percentile(found, 50), percentile(found, 99), found[0], len(found)
        )

    def _told(self, order: str) -> str:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise SystemExit("the link does not run")
        if order:
            process.stdin.write(f"{order}\n")
            process.stdin.flush()
        return process.stdout.readline().strip()

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "bench.link", "--port", str(self.port)]
        command += ["--to-port", str(self.listener_port)]
        command += ["--answer-ms", str(self.answer_ms)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._told("") != "ready":
            raise SystemExit(f"the link of {self.answer_ms} ms does not start")
        self._asking = threading.Thread(target=self._ask, daemon=True)
        self._asking.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._asking.join(_LONGEST_S)
        if self._process is not None:
            self._process.communicate(timeout=_LONGEST_S)

    def _ask(self) -> None:
        """Ask the broker for its versions, again and again, by one connection."""
        with socket.create_connection((HOST, self.port), _LONGEST_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection.makefile("rb") as answers:
                while not self._over.wait(_ASK_EVERY_S):
                    began = time.monotonic()
                    connection.sendall(_API_VERSIONS)
                    (size,) = _SIZE.unpack(answers.read(_SIZE.size))
                    answers.read(size)
                    self.took.append((began, time.monotonic() - began))


class FarKafka(LocalKafka):
    """A broker with a listener for each link, and the links themselves."""

    def __init__(
        self, answers_ms: Sequence[int], *, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(settings=settings)
        self.links = [Link(answer_ms) for answer_ms in answers_ms]
        self._opened = ExitStack()

    def _configure(self) -> None:
        own = [("PLAINTEXT", self._ports[0], self._ports[0])]
        far = [
            (f"FAR{one.answer_ms}", one.listener_port, one.port) for one in self.links
        ]
        heard = [f"{name}://{HOST}:{port}" for name, port, _ in own + far]
        heard.append(f"CONTROLLER://{HOST}:{self._ports[1]}")
        told = [f"{name}://{HOST}:{port}" for name, _, port in own + far]
        names = ["CONTROLLER", *(name for name, _, _ in own + far)]
        self.settings |= {
            "listeners": ",".join(heard),
            "advertised.listeners": ",".join(told),
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in names
            ),
        }
        super()._configure()

    def __enter__(self) -> Self:
        super().__enter__()
        for link in self.links:
            self._opened.enter_context(link)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()
        super().__exit__(kind, error, traceback)
