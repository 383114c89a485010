"""Requests and answers of the control socket: a line of JSON each.

A request has its word in `do` and its fields beside it. The answer is that of its kind,
or an error's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol, TypeVar

from walstream.errors import ConfigError
from walstream.telemetry.json_codec import Document, dumps, loads, read, shallow

A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Refusal of a request, and its reason."""

    error: str
    exit_code: int = ConfigError.exit_code


@dataclass(frozen=True, slots=True)
class ReloadAnswer:
    """Changes that another configuration made."""

    changes: tuple[str, ...] = ()  # keys and files, never a value
    lines: tuple[str, ...] = ()  # what was done, for people


@dataclass(frozen=True, slots=True)
class DebugAnswer:
    """Level from which on all processes log."""

    level: str


@dataclass(frozen=True, slots=True)
class BorrowAnswer:
    """Loan of a source, whose worker has ended, while the caller is connected."""

    lent: str


@dataclass(frozen=True, slots=True)
class DoneAnswer:
    """Word of a source's worker that a request is done."""

    asked: tuple[object, ...]  # the source, and the number of the request


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """Word of a source's worker which tables it will read: it has that on disk."""

    tables: tuple[str, ...]  # `schema.table`, the first of them
    count: int
    left_out: Mapping[str, str] = field(default_factory=dict)  # why, likewise


class Request(Protocol[A_co]):
    """A request, and the kind of its answer."""

    @property
    def do(self) -> str: ...

    @property
    def answer(self) -> type[A_co]: ...


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Request that is answered at once: `status.running` reads the answer."""

    do: ClassVar[str] = "status"


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """Request that is answered when the workers know another configuration."""

    do: ClassVar[str] = "reload"
    answer: ClassVar[type[ReloadAnswer]] = ReloadAnswer


@dataclass(frozen=True, slots=True)
class DebugRequest:
    """Request that is answered when all processes log from another level on."""

    do: ClassVar[str] = "debug"
    answer: ClassVar[type[DebugAnswer]] = DebugAnswer
    on: bool


@dataclass(frozen=True, slots=True)
class BorrowRequest:
    """Request that is answered when the source's worker has ended."""

    do: ClassVar[str] = "borrow"
    answer: ClassVar[type[BorrowAnswer]] = BorrowAnswer
    source: str


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """Request that is answered when the source's worker has it on disk."""

    do: ClassVar[str] = "backfill"
    answer: ClassVar[type[DoneAnswer]] = DoneAnswer
    source: str
    tables: tuple[str, ...] = ()
    replace: bool = False  # their readers hear a Truncate first


@dataclass(frozen=True, slots=True)
class PartRequest:
    """Request likewise, for the rows for which a condition is true.

    It has a word of its own: an instance that knows no parts would read all rows.
    """

    do: ClassVar[str] = "backfill-part"
    answer: ClassVar[type[DoneAnswer]] = DoneAnswer
    source: str
    tables: tuple[str, ...]
    where: str  # SQL


@dataclass(frozen=True, slots=True)
class FindRequest:
    """Request of a client that knows no tables: the source's worker looks for them."""

    do: ClassVar[str] = "backfill-find"
    answer: ClassVar[type[FoundAnswer]] = FoundAnswer
    source: str
    tables: tuple[str, ...]  # names, or patterns of captured tables
    replace: bool = False
    where: str = ""  # SQL; "": all rows


@dataclass(frozen=True, slots=True)
class PollRequest:
    """Request that is answered when each table was polled once more."""

    do: ClassVar[str] = "poll"
    answer: ClassVar[type[DoneAnswer]] = DoneAnswer
    source: str


AnyRequest = (
    StatusRequest
    | ReloadRequest
    | DebugRequest
    | BorrowRequest
    | BackfillRequest
    | PartRequest
    | FindRequest
    | PollRequest
)
_REQUESTS: Final[dict[str, type[AnyRequest]]] = {
    kind.do: kind
    for kind in (
        *(StatusRequest, ReloadRequest, DebugRequest),
        *(BorrowRequest, BackfillRequest, PartRequest, FindRequest, PollRequest),
    )
}


def request_line(request: StatusRequest | Request[object]) -> bytes:
    """Return a request's line."""
    return dumps({"do": request.do, **shallow(request)}).encode() + b"\n"


def request_of(line: bytes) -> AnyRequest:
    """Return what is asked; raise ValueError for anything else."""
    found = loads(line)
    kind = _REQUESTS.get(str(found.get("do")))
    if kind is None:
        raise ValueError(f"{', '.join(_REQUESTS)} was expected")
    return read(kind, found)


def answer_line(answer: object) -> bytes:
    """Return an answer's line."""
    return dumps(answer).encode() + b"\n"


def answer_of(found: Document, kind: type[A_co]) -> A_co | ErrorAnswer:
    """Return an answer of a kind, or an error; raise ValueError for anything else."""
    return read(ErrorAnswer, found) if "error" in found else read(kind, found)
