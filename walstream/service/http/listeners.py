"""The addresses of [http]: taken, served, told, and followed through a reload."""

import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import structlog

from walstream.config import Config
from walstream.errors import ConfigError
from walstream.service.http.board import Board
from walstream.service.http.socket import listen
from walstream.status.snapshot import InstanceSnapshot
from walstream.telemetry.fields import ERROR, HINT

if TYPE_CHECKING:
    from walstream.service.http.server import Face

_MAIN: Final = "listen"
_PROBES: Final = "probes"
_log = structlog.get_logger()

Taken = dict[str, tuple[str, list[socket.socket]]]
"""What was written, and what listens there, by the key of [http]."""


class Listeners:
    """Owned by the supervisor's loop; all of them show one board."""

    def __init__(self, config: Config, set_debug: Callable[[bool], str]) -> None:
        self._http = config.http
        self._set_debug = set_debug
        self._board = Board(config)
        self._taken: Taken = {}  # and not served yet
        self._faces: list[Face] = []

    @property
    def any(self) -> bool:
        return bool(self._faces)

    def listening(self) -> list[str]:
        """Name the addresses that are served, as they are written."""
        return [face.where for face in self._faces]

    def listen(self) -> None:
        """Take the addresses: before anything is loaded to serve them."""
        self._taken = self._take(self._board.config)

    def open(self) -> None:
        """Serve what was taken."""
        if not self._taken:
            return
        from walstream.service.http import app  # noqa: PLC0415 - loads starlette
        from walstream.service.http.server import Face  # noqa: PLC0415 - loads uvicorn

        for key, (where, sockets) in self._taken.items():
            answers = (
                app.make_probes(self._board)
                if key == _PROBES
                else app.make(self._board, self._set_debug)
            )
            self._faces.append(Face(key, where, sockets, answers))
        self._taken = {}

    def publish(self, snapshot: InstanceSnapshot) -> None:
        """Put up what is known now, and see that it is served."""
        self._board.publish(snapshot)
        self._board.wrong.tell()
        for face in self._faces:
            face.watch()

    def follow(self, config: Config) -> None:
        """Answer by it; raise ConfigError where an address is in use."""
        if config.http != self._http:
            self._move(config)
        self._http = config.http
        self._board.config = config
        self.open()

    def _move(self, config: Config) -> None:
        if not self._overlaps(config):
            taken = self._take(config)
            self._end()
            self._taken = taken
            return
        # an address that overlaps ours is free only when ours is closed
        before = self._board.config
        self._end()
        try:
            self._taken = self._take(config)
        except ConfigError:
            self._taken = self._take(before)
            self.open()
            raise

    def _overlaps(self, config: Config) -> bool:
        """Return whether another address is wanted at a port of ours."""
        ours = {face.where for face in self._faces}
        ports = {_port(where) for where in ours}
        wanted = {where for _, where in _addresses(config)} - ours
        return any(_port(where) in ports for where in wanted)

    def close(self) -> None:
        for _, sockets in self._taken.values():
            for one in sockets:
                one.close()
        self._taken = {}
        self._end()

    def _end(self) -> None:
        for face in self._faces:
            face.close()
        self._faces = []

    def _take(self, config: Config) -> Taken:
        """Take all addresses, or none; those that are ours are copied."""
        taken: Taken = {}
        try:
            for key, where in _addresses(config):
                if sockets := self._sockets(config, key, where):
                    taken[key] = where, sockets
        except ConfigError:
            for _, sockets in taken.values():
                for one in sockets:
                    one.close()
            raise
        return taken

    def _sockets(self, config: Config, key: str, where: str) -> list[socket.socket]:
        for face in self._faces:
            if face.where == where:
                return face.sockets()
        try:
            return listen(where, key)
        except ConfigError as error:
            if key in config.http.model_fields_set:
                raise
            # the default address does not stop a start when it is in use
            _log.warning("HTTP is off", **{ERROR: str(error.args[0]), HINT: error.hint})
            return []


def _addresses(config: Config) -> Iterator[tuple[str, str]]:
    for key, where in ((_MAIN, config.http.listen), (_PROBES, config.http.probes)):
        if where:
            yield key, where


def _port(where: str) -> str:
    return where.rpartition(":")[2]
