"""The socket by which other commands reach a running instance: `state/control.sock`.

One line of JSON each way. `{"do": "status"}` is answered at once. `{"do": "borrow",
"source": NAME}` is answered when that source's worker has ended; the source is lent for
as long as the connection lasts, so that a command that dies gives it back. `{"do":
"backfill", "source": NAME, "tables": [...], "replace": BOOL}` is answered when the
source's worker has it on disk, `{"do": "poll", "source": NAME}` when each of its tables
was polled once more.
"""

import contextlib
import json
import os
import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypedDict

import structlog

from walstream.config import Config
from walstream.errors import (
    ConfigError,
    HistoryError,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.lock import FolderLock, holder

_NAME: Final = "control.sock"
_KINDS: Final[Mapping[int, type[WalstreamError]]] = {
    kind.exit_code: kind
    for kind in (ConfigError, HistoryError, PermissionLacking, Transient)
}
_PASSED_ON: Final = frozenset({"backfill", "poll"})
LONGEST: Final = 4096  # bytes of a request
_MOST: Final = 32  # connections at a time
_ANSWER_S: Final = 3.0
_SEND_S: Final = 0.5
_RETRY_S: Final = 0.05
_KILLED_S: Final = 15.0
_log = structlog.get_logger()


class Answer(TypedDict):
    """What a worker says to a request."""

    problem: str  # "" is done
    exit_code: int  # that a problem stands for


class Lender(Protocol):
    """The supervisor, as its control socket sees it."""

    def status(self) -> dict[str, Any]:
        """Tell how every source is."""

    def pass_on(self, source: str, word: str, request: dict[str, Any]) -> str:
        """Pass a request on to a source's worker; say why not, or ""."""

    def answer(self, source: str, number: int) -> "Answer | None":
        """Give what a worker says to a request; None: nothing yet."""

    def lend(self, source: str) -> str:
        """Begin to end a source's worker; say why not, or ""."""

    def is_lent(self, source: str) -> bool:
        """Tell whether the worker that was asked to end has."""

    def take_back(self, source: str) -> None:
        """Start the worker again."""


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """Name the socket in less than the 108 bytes that an address may have."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{_NAME}"
    finally:
        os.close(descriptor)


class _Caller:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.request = b""
        self.borrows = ""  # a source, from the request on
        self.answered = False
        self.asked: tuple[str, int] | None = None  # a source, and the request's number


class ControlServer:
    """Serves the socket from the supervisor's own loop; nothing in it blocks."""

    def __init__(
        self, folder: Path, selector: selectors.BaseSelector, lender: Lender
    ) -> None:
        self._folder = folder
        self._selector = selector
        self._lender = lender
        self._listener: socket.socket | None = None
        self._callers: list[_Caller] = []
        self._requests = 0

    def open(self) -> None:
        """Listen. Where no socket can be made the instance runs without."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # of a predecessor that was killed: the folder's lock is ours now
            (self._folder / _NAME).unlink(missing_ok=True)
            with _address(self._folder) as address:
                listener.bind(address)
            (self._folder / _NAME).chmod(0o600)
            listener.listen()
        except OSError as error:
            listener.close()
            _log.warning(
                "no control socket: other commands do not reach this instance",
                error=str(error),
            )
            return
        listener.settimeout(0.0)
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        for caller in list(self._callers):
            self._end(caller)
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
            with contextlib.suppress(OSError):
                (self._folder / _NAME).unlink(missing_ok=True)

    def _accept(self) -> None:
        if self._listener is None:
            return
        with contextlib.suppress(OSError):  # who called is gone, or there is no room
            connection, _ = self._listener.accept()
            connection.settimeout(0.0)
            if len(self._callers) >= _MOST:
                connection.close()
                return
            caller = _Caller(connection)
            self._callers.append(caller)
            self._selector.register(
                connection, selectors.EVENT_READ, lambda: self._hear(caller)
            )

    def _hear(self, caller: _Caller) -> None:
        try:
            data = caller.connection.recv(LONGEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        caller.request += data
        if not data or len(caller.request) > LONGEST:
            self._end(caller)
        elif caller.request.endswith(b"\n") and not caller.borrows and not caller.asked:
            self._do(caller)

    def _do(self, caller: _Caller) -> None:
        try:
            request = json.loads(caller.request)
            what, source = request["do"], str(request.get("source", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            request, what, source = {}, "", ""
        if what == "status":
            self._answer(caller, self._lender.status())
            self._end(caller)
        elif what == "borrow":
            self._lend(caller, source)
        elif what in _PASSED_ON:
            self._pass_on(caller, source, request)
        else:
            expected = "status, borrow, backfill or poll was expected"
            self._answer(caller, {"error": expected})
            self._end(caller)

    def _lend(self, caller: _Caller, source: str) -> None:
        taken = any(other.borrows == source for other in self._callers)
        problem = "another command holds it" if taken else self._lender.lend(source)
        if problem:
            self._answer(caller, {"error": problem})
            self._end(caller)
        else:
            caller.borrows = source

    def _pass_on(
        self, caller: _Caller, source: str, request: Mapping[str, Any]
    ) -> None:
        self._requests += 1
        passed: dict[str, Any] = {"number": self._requests}
        if request["do"] == "backfill":
            passed |= {
                "tables": list(map(str, request.get("tables", []))),
                "replace": bool(request.get("replace", False)),
            }
        if problem := self._lender.pass_on(source, request["do"], passed):
            self._answer(caller, {"error": problem})
            self._end(caller)
        else:
            caller.asked = source, self._requests

    def tick(self) -> None:
        """Tell those who wait for a source, or its worker's answer, what they have."""
        for caller in list(self._callers):
            if caller.asked:
                answer = self._lender.answer(*caller.asked)
                if answer is not None:
                    problem = {"error": answer["problem"], **answer}
                    done = {"asked": caller.asked}
                    self._answer(caller, problem if answer["problem"] else done)
                    self._end(caller)
            elif (
                caller.borrows
                and not caller.answered
                and self._lender.is_lent(caller.borrows)
            ):
                caller.answered = True
                self._answer(caller, {"lent": caller.borrows})

    def _answer(self, caller: _Caller, answer: dict[str, Any]) -> None:
        # who does not read what the socket's buffer cannot hold gets a part of it
        with contextlib.suppress(OSError):
            caller.connection.settimeout(_SEND_S)
            caller.connection.sendall(json.dumps(answer).encode() + b"\n")
            caller.connection.settimeout(0.0)

    def _end(self, caller: _Caller) -> None:
        self._callers.remove(caller)
        self._selector.unregister(caller.connection)
        caller.connection.close()
        if caller.borrows:
            self._lender.take_back(caller.borrows)


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
        raise kind(
            f"the running walstream refuses for source {request['source']!r}:"
            f" {answer['error']}"
        )
    return answer


def lent(config: Config, source: str) -> AbstractContextManager[bool]:
    """Have a source to oneself, as `borrowed` gives it: for one who may wait."""
    # a worker that drains for longer is killed by then
    wait_s = config.shutdown_timeout + _KILLED_S
    return borrowed(Path(config.state), source, wait_s)


def _connect(folder: Path, timeout_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        with _address(folder) as address:
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
