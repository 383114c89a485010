"""A container engine: the one that answers, or one that is started here.

Started here it has folders of its own, and lasts as long as it is used; its images are
stand-ins, since a registry may be out of reach.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.deadline import wait_until

ROOT: Final = Path(__file__).parents[3]
_STOP_S: Final = 60


class Engine:
    """An engine, as the client sees it."""

    def __init__(self, host: str, *, ours: bool) -> None:
        self.environment = {**os.environ, "DOCKER_HOST": host}
        self.ours = ours  # started here

    def run(
        self, *words: str, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run the client to its end; `check` fails with what it says."""
        done = subprocess.run(
            ["docker", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def says(self, *words: str) -> str:
        return self.run(*words).stdout.strip()

    def answers(self) -> bool:
        return self.run("version", check=False).returncode == 0

    def has(self, image: str) -> bool:
        return self.run("image", "inspect", image, check=False).returncode == 0


def lacking() -> str:
    """Say why there is no engine to test with, or ""."""
    if not shutil.which("docker"):
        return "no container engine: apt-get install docker.io"
    if subprocess.run(
        ["docker", "compose", "version"], capture_output=True, check=False
    ).returncode:
        return "docker has no compose: apt-get install docker-compose-v2"
    if _answering() is not None:
        return ""
    if os.geteuid() != 0 or not shutil.which("dockerd", path=_path()):
        return "no container engine answers, and none can be started here"
    absent = [name for name in ("debootstrap",) if not shutil.which(name, path=_path())]
    return f"apt-get install {' '.join(absent)}" if absent else ""


@contextmanager
def started(folder: Path) -> Iterator[Engine]:
    """Give the engine that answers, or start one for the time being."""
    if (found := _answering()) is not None:
        yield found
        return
    folder.mkdir(parents=True, exist_ok=True)
    engine = Engine(f"unix://{folder}/docker.sock", ours=True)
    command = [
        *("dockerd", "-H", engine.environment["DOCKER_HOST"]),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "pid")),
    ]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env={**os.environ, "PATH": _path()}, stdout=out, stderr=out
        )
    try:
        wait_until(
            lambda: process.poll() is not None or engine.answers(),
            60,
            "dockerd answers",
        )
        assert process.poll() is None, log.read_text("utf-8")[-4000:]
        yield engine
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answering() -> Engine | None:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    engine = Engine(host, ours=False)
    return engine if engine.answers() else None


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin"
