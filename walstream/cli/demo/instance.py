"""The real `walstream run` as a child process, and the worker that it supervises."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from walstream.errors import Transient
from walstream.testing.servers.process import Child, alive, descendants

SLOT: Final = "walstream_demo"
_CONFIGURATION: Final = """\
# Made by `walstream demo`, which deletes it at its end.
state = "{folder}/state"

[http]
listen = ""

[sources.shop]
kind = "postgres"
dsn = "{dsn}"
slot = "{slot}"
publication = "{slot}"
tables = ["shop.*"]
backfill = "never"
sinks = ["kafka"]

[sinks.kafka]
kind = "kafka"
topic_partitions = 3
[sinks.kafka.producer]
"bootstrap.servers" = "{bootstrap}"
"""
_RUN: Final = "from walstream.cli.main import main; main()"
_WORKER: Final = b"walstream.service.worker_main"
_POLL_INTERVAL_S: Final = 0.005
_GONE_TIMEOUT_S: Final = 5.0


def configure(folder: Path, dsn: str, bootstrap: str) -> Path:
    """Write the configuration file as a user would."""
    path = folder / "walstream.toml"
    text = _CONFIGURATION.format(folder=folder, dsn=dsn, slot=SLOT, bootstrap=bootstrap)
    path.write_text(text, "utf-8")
    return path


class Walstream:
    """One `walstream run -c FILE`, which ends with us."""

    def __init__(self, configuration: Path) -> None:
        self.log = configuration.with_name("walstream.log")
        command: list[str | Path] = [
            sys.executable,
            "-c",
            _RUN,
            "run",
            "-c",
            configuration,
        ]
        # none of the caller's own settings may reach into the demo
        foreign = ("WALSTREAM_", "PG")
        self._child = Child(
            command,
            log=self.log,
            environment={
                name: text
                for name, text in os.environ.items()
                if not name.startswith(foreign)
            },
        )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def worker(self) -> int | None:
        """The process that streams, None while there is none."""
        return next((pid for pid in descendants(self.pid) if _is_worker(pid)), None)

    def check(self) -> None:
        if not self._child.running:
            raise Transient(f"walstream run ended; its log ends with:\n{self.log_end}")

    @property
    def log_end(self) -> str:
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-5:])

    def kill_worker(self) -> int:
        """SIGKILL the worker; give its pid when it is gone."""
        worker = self.worker
        if worker is None:
            raise Transient(f"there is no worker to kill; the log:\n{self.log_end}")
        os.kill(worker, signal.SIGKILL)
        deadline = time.monotonic() + _GONE_TIMEOUT_S
        while alive(worker):
            if time.monotonic() > deadline:
                raise Transient(f"worker {worker} does not die")
            time.sleep(_POLL_INTERVAL_S)
        return worker

    def drain(self, timeout_s: float) -> int | None:
        """SIGTERM it; give its exit code, None when it did not end in time."""
        self._child.send(signal.SIGTERM)
        self._child.wait(timeout_s)
        return self._child.exit_code

    def close(self) -> None:
        self._child.kill()


def _is_worker(pid: int) -> bool:
    with suppress(OSError):
        return _WORKER in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
