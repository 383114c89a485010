"""The socket by which other commands reach a running instance: `state/control.sock`.

One line of JSON each way. `{"do": "status"}` is answered at once, `{"do": "reload"}`
when the configuration was read and the workers were told, `{"do": "debug", "on": BOOL}`
when all log from another level on. `{"do": "borrow",
"source": NAME}` is answered when that source's worker has ended; the source is lent for
as long as the connection lasts, so that a command that dies gives it back. `{"do":
"backfill", "source": NAME, "tables": [...], "replace": BOOL}` is answered when the
source's worker has it on disk, `{"do": "poll", "source": NAME}` when each of its tables
was polled once more.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from walstream.config import Config
from walstream.errors import (
    ConfigError,
    HistoryError,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.state.lock import FolderLock, holder

SOCKET: Final = "control.sock"
LONGEST: Final = 4096  # bytes of a request
_KINDS: Final[Mapping[int, type[WalstreamError]]] = {
    kind.exit_code: kind
    for kind in (ConfigError, HistoryError, PermissionLacking, Transient)
}
_ANSWER_S: Final = 3.0
_RETRY_S: Final = 0.05
_KILLED_S: Final = 15.0


@contextmanager
def socket_address(folder: Path, name: str = SOCKET) -> Iterator[str]:
    """Name a socket there in less than the 108 bytes that an address may have."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def ask_status(folder: Path) -> dict[str, Any] | None:
    """Ask a running instance how it is; None: none runs, or none answers."""
    if holder(folder) is None:
        return None
    try:
        with _connected(folder, _ANSWER_S) as connection:
            answer = _call(connection, {"do": "status"})
    except (OSError, Transient):
        return None
    return answer


@contextmanager
def borrowed(folder: Path, source: str, wait_s: float) -> Iterator[bool]:
    """Have a source to oneself: from the running instance, or from nobody.

    Yields whether an instance runs. It drains the source's worker within `wait_s`, and
    starts it again afterwards, also one that had stopped for good. Raises ConfigError
    where neither the folder's lock nor the instance can be had.
    """
    lock = FolderLock(folder)
    deadline = time.monotonic() + _ANSWER_S
    while True:
        try:
            lock.acquire(wait_s=0.0)
        except ConfigError:
            try:
                connection = _connect(folder, _ANSWER_S)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:  # it is neither starting nor ending
                    raise
                time.sleep(_RETRY_S)
        else:
            try:
                yield False
            finally:
                lock.release()
            return
    with contextlib.closing(connection):
        connection.settimeout(wait_s)
        answer = _call(connection, {"do": "borrow", "source": source})
        if "error" in answer:
            raise ConfigError(
                f"source {source!r} cannot be had from the running walstream:"
                f" {answer['error']}"
            )
        yield True


def ask(folder: Path, request: dict[str, Any], wait_s: float) -> dict[str, Any] | None:
    """Ask a running instance for something; None: none runs.

    Raises with what it says against that.
    """
    if holder(folder) is None:
        return None
    try:
        connection = _connect(folder, wait_s)
    except OSError:  # it is starting, or ending, or has no socket
        raise _mute() from None
    with contextlib.closing(connection):
        answer = _call(connection, request)
    if "error" in answer:
        kind = _KINDS.get(answer.get("exit_code", ConfigError.exit_code), ConfigError)
        raise kind(f"the running walstream refuses{_for(request)}: {answer['error']}")
    return answer


def ask_running(
    config: Config, request: dict[str, Any], wait_s: float
) -> dict[str, Any]:
    """Ask it, as `ask` does; raise ConfigError where none runs."""
    answer = ask(Path(config.state), request, wait_s)
    if answer is None:
        raise ConfigError(
            f"no walstream runs with the state in {config.state}",
            hint=f"{config.command('walstream run')} starts one",
        )
    return answer


def _for(request: Mapping[str, Any]) -> str:
    return f" for source {request['source']!r}" if "source" in request else ""


def lent(config: Config, source: str) -> AbstractContextManager[bool]:
    """Have a source to oneself, as `borrowed` gives it: for one who may wait."""
    # a worker that drains for longer is killed by then
    wait_s = config.shutdown_timeout + _KILLED_S
    return borrowed(Path(config.state), source, wait_s)


def _connect(folder: Path, timeout_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        with socket_address(folder) as address:
            connection.connect(address)
    except PermissionError as error:
        connection.close()
        raise PermissionLacking(
            "the running walstream belongs to another user",
            hint="run this as that user",
        ) from error
    except OSError:
        connection.close()
        raise
    return connection


def _connected(folder: Path, timeout_s: float) -> "contextlib.closing[socket.socket]":
    return contextlib.closing(_connect(folder, timeout_s))


def _call(connection: socket.socket, request: dict[str, Any]) -> dict[str, Any]:
    try:
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as lines:
            line = lines.readline()
    except OSError:  # it ended, or takes too long
        line = b""
    if not line.endswith(b"\n"):
        raise _mute()
    answer: dict[str, Any] = json.loads(line)
    return answer


def _mute() -> Transient:
    return Transient(
        "the running walstream does not answer",
        hint="look at its log; or stop it first",
    )
