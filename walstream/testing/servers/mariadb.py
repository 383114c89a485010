"""A throw-away MariaDB, from the binaries of Debian's package.

One user, who may do everything, over TCP. Speaks no SQL but the one that makes that
user: connecting is its callers' business.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from walstream.errors import ConfigError
from walstream.testing.servers.account import server_account
from walstream.testing.servers.port import HOST, free_port
from walstream.testing.servers.process import Child
from walstream.testing.servers.server import SingleProcess

USER: Final = "walstream"
_SETTINGS: Final = {
    "bind-address": HOST,
    "skip-name-resolve": "1",
    "character-set-server": "utf8mb4",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "32M",
    "innodb-doublewrite": "0",
    # written at each commit, so that a killed server loses nothing, but not synced: a
    # machine that dies has no use for a throw-away server's data
    "innodb-flush-log-at-trx-commit": "2",
}
_SYSTEM_FOLDERS: Final = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
_INSTALL_TIMEOUT_S: Final = 120.0
_GREETING: Final = 10  # protocol version, after the packet's length and number


@dataclass(frozen=True, slots=True)
class Binaries:
    server: Path
    installer: Path


class LocalMariadb(SingleProcess):
    name = "MariaDB"

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._binaries = find_binaries()
        super().__init__(folder, server_account())
        self.settings = dict(settings or {})  # as changed, from the next start on
        self.user = USER
        self.password = secrets.token_hex(8)
        self._port = 0
        self._must_reach(self.folder, self._binaries.server)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def host(self) -> str:
        return HOST

    @property
    def port(self) -> int:
        return self._port

    @property
    def socket_path(self) -> Path:
        return self.data / "mariadb.sock"

    def url(self, database: str = "") -> str:
        """SQLAlchemy's, for PyMySQL."""
        server = f"{self.user}:{self.password}@{self.host}:{self.port}"
        return f"mysql+pymysql://{server}/{quote(database, safe='')}"

    def _choose_ports(self) -> None:
        self._port = free_port()

    def _launch(self) -> Child:
        self._configure()
        if not (self.data / "mysql").exists():
            self._install()
        return self._child_of(self._binaries.server)

    def _install(self) -> None:
        # --force: without asking the resolver for this machine's name
        child = self._child_of(self._binaries.installer, "--force", "--skip-test-db")
        self._child = child
        if not child.wait(_INSTALL_TIMEOUT_S) or child.exit_code:
            raise self._failure("cannot make its data folder")

    def _configure(self) -> None:
        settings = {
            **_SETTINGS,
            "datadir": str(self.data),
            "port": str(self._port),
            "socket": self.socket_path.name,  # within datadir: a path may be too long
            "pid-file": str(self.folder / "mariadb.pid"),
            # whichever server starts deletes the temporary tables that it finds there
            "tmpdir": str(self.folder),
            **self.settings,
        }
        self._write(self._configuration, render(settings))
        self._write(self._first_statements, create_user(self.user, self.password))

    def _write(self, path: Path, text: str) -> None:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, "utf-8")
        if self._account is not None:
            os.chown(path, *self._account.ids)

    @property
    def _configuration(self) -> Path:
        return self.folder / "mariadb.cnf"

    @property
    def _first_statements(self) -> Path:
        return self.folder / "first.sql"

    def _child_of(self, program: Path, *options: str) -> Child:
        first = f"--init-file={self._first_statements}"
        return Child(
            [
                program,
                f"--defaults-file={self._configuration}",
                *(options or (first,)),
            ],
            log=self.log,
            account=self._account,
            environment=_environment(),
        )

    def _ready(self) -> bool:
        return greets(self._port)


def find_binaries() -> Binaries:
    """Find the server and what makes its data folder: on the PATH, else Debian's."""
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}"
    server = shutil.which("mariadbd", path=path)
    installer = shutil.which("mariadb-install-db", path=path)
    if server is None or installer is None:
        raise ConfigError("MariaDB is not installed: apt-get install mariadb-server")
    return Binaries(Path(server), Path(installer))


def render(settings: Mapping[str, str]) -> str:
    """As an option file, for the server and for what makes its data folder."""
    lines = "".join(f'{name}="{_escaped(value)}"\n' for name, value in settings.items())
    return f"[mariadbd]\n{lines}"


def create_user(user: str, password: str) -> str:
    """Write what each start runs first, a line a statement: one user, on loopback."""
    name = f"'{user}'@'{HOST}'"
    return (
        f"CREATE OR REPLACE USER {name} IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON *.* TO {name} WITH GRANT OPTION;\n"
    )


def greets(port: int, timeout_s: float = 5.0) -> bool:
    """Whether it offers a log-in, as it does once it serves: it listens before."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
            head = connection.recv(5, socket.MSG_WAITALL)
    except OSError:
        return False
    return head[4:] == bytes((_GREETING,))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _environment() -> dict[str, str]:
    # a MYSQL_HOME or TZ of the caller's would reach into the server
    kept = {"PATH", "TMPDIR", "LD_LIBRARY_PATH"}
    return {name: value for name, value in os.environ.items() if name in kept}
