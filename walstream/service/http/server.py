"""The listener: uvicorn in a thread of the supervisor, which outlives its defects."""

import contextlib
import logging
import os
import socket
import threading
from typing import Final

import structlog
import uvicorn
from starlette.types import ASGIApp

from walstream.errors import ConfigError
from walstream.service.http.guard import LARGEST_HEAD
from walstream.service.http.protocol import PatientProtocol
from walstream.service.http.socket import BACKLOG, listen, said
from walstream.telemetry import runtime

_IDLE_S: Final = 15
_AGAIN_S: Final = 5.0
_END_S: Final = 2.0
_LESS_URGENT: Final = 5  # nice: the streams come first
_log = structlog.get_logger()


class Face:
    """One address; owned by the supervisor's loop. What it serves is the board's."""

    def __init__(
        self, key: str, where: str, sockets: list[socket.socket], answers: ASGIApp
    ) -> None:
        """Serve on these, which `listen` gave for what this key of [http] has."""
        self.where = where
        self._key = key
        self._app = answers
        self._server: uvicorn.Server | None = None
        self._thread: runtime.StartedThread | None = None
        self._again_at = 0.0
        self._sockets = sockets
        self.address = said(self._sockets[0])

    def watch(self) -> None:
        """See that it is served."""
        if self._thread is None or not self._thread.is_alive():
            self._serve()

    def _serve(self) -> None:
        """Start the thread, or start it again after a while."""
        if self._thread is not None:
            now = runtime.monotonic()
            if self._again_at == 0.0:
                self._again_at = now + _AGAIN_S
                _log.error("HTTP ended, starting it again", wait_s=_AGAIN_S)
            if now < self._again_at:
                return
            self._again_at = 0.0
            for one in self._sockets:
                one.close()
            try:
                self._sockets = listen(self.where, self._key)
            except ConfigError as error:
                _log.error("HTTP cannot listen", error=str(error.args[0]))
                self._again_at = now + _AGAIN_S
                return
            self.address = said(self._sockets[0])
        self._server = server = uvicorn.Server(_settings(self._app))
        self._thread = runtime.start_thread(_run, "http", server, self._sockets)
        _log.info("HTTP listens", address=self.address, key=f"http.{self._key}")

    def sockets(self) -> list[socket.socket]:
        """Copy what it listens on, for a successor: nobody else gets the address."""
        return [one.dup() for one in self._sockets]

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_END_S)
        for one in self._sockets:
            one.close()


def _settings(application: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=PatientProtocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.CRITICAL,  # clients cannot fill the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )


def _run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    """Serve until it has to end; log a failure, which ends nothing else."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LESS_URGENT)
    try:
        server.run(sockets=sockets)
    except (Exception, SystemExit):  # noqa: BLE001 - the streams go on
        _log.exception("HTTP failed: a defect")
