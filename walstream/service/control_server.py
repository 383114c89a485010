"""The supervisor's end of the control socket: `control` says what is asked there."""

import contextlib
import selectors
import socket
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from walstream.service.worker_order import WorkerRequest
from walstream.sources.report import WorkerAnswer
from walstream.state.control import LONGEST, SOCKET, socket_address
from walstream.state.control_message import (
    BackfillRequest,
    BorrowAnswer,
    BorrowRequest,
    DebugAnswer,
    DebugRequest,
    DoneAnswer,
    ErrorAnswer,
    FindRequest,
    FoundAnswer,
    PartRequest,
    PollRequest,
    ReloadAnswer,
    ReloadRequest,
    StatusRequest,
    answer_line,
    request_of,
)
from walstream.status.instance import Instance, instance_document

_EXPECTED: Final = "status, reload, debug, borrow, backfill or poll was expected"
_BACKFILL: Final = BackfillRequest.do
_MOST: Final = 32  # connections at a time
_SEND_S: Final = 0.5
_log = structlog.get_logger()


class Lender(Protocol):
    """The supervisor, as its control socket sees it."""

    def status(self) -> Instance:
        """Return how every source is."""

    def reload(self) -> ReloadAnswer | ErrorAnswer:
        """Go by the configuration as it is now; tell what that changed."""

    def set_debug(self, on: bool) -> str:  # noqa: FBT001
        """Make every process log more, or as configured; name that level."""

    def pass_on(self, source: str, word: str, request: WorkerRequest) -> str:
        """Pass a request on to a source's worker; say why not, or ""."""

    def answer(self, source: str, number: int) -> WorkerAnswer | None:
        """Return what a worker says to a request; None: nothing yet."""

    def lend(self, source: str) -> str:
        """Begin to end a source's worker; say why not, or ""."""

    def is_lent(self, source: str) -> bool:
        """Return whether the worker that was asked to end has."""

    def take_back(self, source: str) -> None:
        """Start the worker again."""


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
            (self._folder / SOCKET).unlink(missing_ok=True)
            with socket_address(self._folder) as address:
                listener.bind(address)
            (self._folder / SOCKET).chmod(0o600)
            listener.listen()
        except OSError as error:
            listener.close()
            _log.warning(
                "no control socket: other commands cannot reach this instance",
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
                (self._folder / SOCKET).unlink(missing_ok=True)

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
            request = request_of(caller.request)
        except ValueError:
            self._end_with(caller, ErrorAnswer(_EXPECTED))
            return
        match request:
            case StatusRequest():
                self._end_with(caller, instance_document(self._lender.status()))
            case ReloadRequest():
                self._end_with(caller, self._lender.reload())
            case DebugRequest(on):
                self._end_with(caller, DebugAnswer(self._lender.set_debug(on)))
            case BorrowRequest(source):
                self._lend(caller, source)
            case BackfillRequest(source, tables, replace):
                self._pass_on(caller, source, _BACKFILL, (tables, replace))
            case PartRequest(source, tables, where):
                self._pass_on(caller, source, _BACKFILL, (tables, False, where))
            case FindRequest(source, tables, replace, where):
                asked = tables, replace, where, True
                self._pass_on(caller, source, _BACKFILL, asked)
            case PollRequest(source):
                self._pass_on(caller, source, request.do, ())

    def _lend(self, caller: _Caller, source: str) -> None:
        taken = any(other.borrows == source for other in self._callers)
        problem = "another command is using it" if taken else self._lender.lend(source)
        if problem:
            self._end_with(caller, ErrorAnswer(problem))
        else:
            caller.borrows = source

    def _pass_on(
        self, caller: _Caller, source: str, word: str, arguments: tuple[Any, ...]
    ) -> None:
        """Pass a request on to a source's worker, which answers by its number."""
        self._requests += 1
        passed = WorkerRequest(self._requests, *arguments)
        if problem := self._lender.pass_on(source, word, passed):
            self._end_with(caller, ErrorAnswer(problem))
        else:
            caller.asked = source, self._requests

    def tick(self) -> None:
        """Answer those who wait for a source, or for its worker's answer."""
        for caller in list(self._callers):
            if caller.asked:
                answer = self._lender.answer(*caller.asked)
                if answer is not None:
                    self._end_with(caller, _answered(answer, caller.asked))
            elif (
                caller.borrows
                and not caller.answered
                and self._lender.is_lent(caller.borrows)
            ):
                caller.answered = True
                self._answer(caller, BorrowAnswer(caller.borrows))

    def _answer(self, caller: _Caller, answer: object) -> None:
        # who does not read what the socket's buffer cannot hold gets a part of it
        with contextlib.suppress(OSError):
            caller.connection.settimeout(_SEND_S)
            caller.connection.sendall(answer_line(answer))
            caller.connection.settimeout(0.0)

    def _end_with(self, caller: _Caller, answer: object) -> None:
        self._answer(caller, answer)
        self._end(caller)

    def _end(self, caller: _Caller) -> None:
        self._callers.remove(caller)
        self._selector.unregister(caller.connection)
        caller.connection.close()
        if caller.borrows:
            self._lender.take_back(caller.borrows)


def _answered(answer: WorkerAnswer, asked: tuple[str, int]) -> object:
    """Return what a worker says, as the caller hears it."""
    if answer.problem:
        return ErrorAnswer(answer.problem, answer.exit_code)
    if answer.count is None:
        return DoneAnswer(asked)
    return FoundAnswer(answer.tables, answer.count, answer.left_out)
