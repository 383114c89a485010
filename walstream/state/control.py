"""The socket by which other commands reach a running instance: `state/control.sock`.

One request and one answer a connection; `control_message` has them. A source is lent
for as long as the connection lasts, so that a command that dies gives it back.
"""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeVar

from walstream.config import Config
from walstream.errors import (
    ConfigError,
    HistoryError,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.state.control_message import (
    BorrowRequest,
    ErrorAnswer,
    Request,
    StatusRequest,
    answer_of,
    request_line,
)
from walstream.state.lock import FolderLock, holder
from walstream.telemetry import runtime
from walstream.telemetry.json_codec import Document, loads

SOCKET: Final = "control.sock"
LONGEST: Final = 4096  # bytes of a request
_KINDS: Final[Mapping[int, type[WalstreamError]]] = {
    kind.exit_code: kind
    for kind in (ConfigError, HistoryError, PermissionLacking, Transient)
}
_ANSWER_S: Final = 3.0
_RETRY_S: Final = 0.05
_KILLED_S: Final = 15.0

A = TypeVar("A")


@contextmanager
def socket_address(folder: Path, name: str = SOCKET) -> Iterator[str]:
    """Name a socket there in less than the 108 bytes that an address may have."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def ask_status(folder: Path) -> Document | None:
    """Return how a running instance is; None: none runs, or none answers.

    `status.running` reads what it says.
    """
    if holder(folder) is None:
        return None
    try:
        with _connected(folder, _ANSWER_S) as connection:
            return _call(connection, StatusRequest())
    except (OSError, Transient):
        return None


@contextmanager
def borrowed(folder: Path, source: str, wait_s: float) -> Iterator[bool]:
    """Borrow a source from the running instance, or take it where none runs.

    Yields whether an instance runs. It drains the source's worker within `wait_s`, and
    starts it again afterwards, also one that had stopped for good. Raises ConfigError
    where neither the folder's lock nor the instance can be had.
    """
    lock = FolderLock(folder)
    deadline = runtime.monotonic() + _ANSWER_S
    while True:
        try:
            lock.acquire(wait_s=0.0)
        except ConfigError:
            try:
                connection = _connect(folder, _ANSWER_S)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if runtime.monotonic() > deadline:  # it is neither starting nor ending
                    raise
                runtime.sleep(_RETRY_S)
        else:
            try:
                yield False
            finally:
                lock.release()
            return
    with contextlib.closing(connection):
        connection.settimeout(wait_s)
        answer = _ask(connection, BorrowRequest(source))
        if isinstance(answer, ErrorAnswer):
            raise ConfigError(
                f"source {source!r} is not available from the running walstream: "
                f"{answer.error}"
            )
        yield True


def ask(folder: Path, request: Request[A], wait_s: float) -> A | None:
    """Return a running instance's answer; None: none runs.

    Raises with what it says against the request.
    """
    if holder(folder) is None:
        return None
    try:
        connection = _connect(folder, wait_s)
    except OSError:  # it is starting, or ending, or has no socket
        raise _mute() from None
    with contextlib.closing(connection):
        answer = _ask(connection, request)
    if isinstance(answer, ErrorAnswer):
        kind = _KINDS.get(answer.exit_code, ConfigError)
        raise kind(f"the running walstream refuses{_for(request)}: {answer.error}")
    return answer


def ask_running(config: Config, request: Request[A], wait_s: float) -> A:
    """Return its answer, as `ask` does; raise ConfigError where none runs."""
    answer = ask(Path(config.state), request, wait_s)
    if answer is None:
        raise ConfigError(
            f"no walstream runs with the state in {config.state}",
            hint=f"{config.command('walstream run')} starts one",
        )
    return answer


def _for(request: object) -> str:
    source = getattr(request, "source", None)
    return f" for source {source!r}" if source is not None else ""


def lent(config: Config, source: str) -> AbstractContextManager[bool]:
    """Borrow a source as `borrowed` does, for a caller that may wait."""
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


def _ask(connection: socket.socket, request: Request[A]) -> A | ErrorAnswer:
    found = _call(connection, request)
    try:
        return answer_of(found, request.answer)
    except ValueError:  # of another version
        raise _mute() from None


def _call(
    connection: socket.socket, request: StatusRequest | Request[object]
) -> Document:
    try:
        connection.sendall(request_line(request))
        with connection.makefile("rb") as lines:
            line = lines.readline()
    except OSError:  # it ended, or takes too long
        line = b""
    if not line.endswith(b"\n"):
        raise _mute()
    return loads(line)


def _mute() -> Transient:
    return Transient(
        "the running walstream does not answer",
        hint="look at its log; or stop it first",
    )
