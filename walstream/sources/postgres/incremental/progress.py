"""Progress of tables that are read beside the stream, stored with the position.

Asked for by an operator, or by a publication that grew; every method but `report` is
durable when it returns. A repeated request has another serial: work for the former one
no longer counts.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Protocol

from walstream.config.condition import either
from walstream.errors import Repair, Transient, WalstreamError
from walstream.pipeline.ports import StateStore
from walstream.pipeline.state_document import (
    StateDocument,
    StateDocuments,
    StoredDocuments,
)
from walstream.sources.postgres.incremental.chunk import Key
from walstream.sources.report import IncrementalReport
from walstream.spark.outcome import ChunkFailed

# above those of a backfill from the slot's snapshot, which count from 1
FIRST_CHUNK: Final = 1 << 24
_BLOCK: Final = 1024  # numbers taken with one fsync
_DONE: Final = 100  # tables that are still told of
_NAMED: Final = 5  # by an error
_READ_ALL_THE_SAME: Final = "the tables are read all the same: walstream status"
_SHOWN: Final = 100  # characters of a condition
_TOLD: Final = 100  # of those that are wished: a report has to fit into a pipe


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A table that is to be read, and how far that is."""

    replace: bool = False  # a Truncate comes first
    truncated: bool = False  # it is delivered
    floor: int = 0  # the place of the Truncate: what is below was for rows before it
    after: Key | None = None  # rows up to this key are delivered
    key: tuple[str, ...] = ()  # columns of `after`, and what orders them
    rows: int = 0  # delivered
    error: str = ""  # why it does not go on
    unfit: bool = False  # because rows cannot be read by `where`
    serial: int = 0
    place: int = field(default=0, compare=False)  # in the order asked
    where: str = field(default="", repr=False)  # SQL of the rows to read; "": all
    # of those that were asked for meanwhile, and come once more; None: of none
    again: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TableRequests:
    """Stored progress of all tables."""

    tables: Mapping[str, TableRequest]  # in the order asked
    next_chunk: int = FIRST_CHUNK
    next_serial: int = 1


@dataclass(frozen=True, slots=True)
class IncrementalHead:
    """Stored facts for all tables."""

    next_chunk: int = FIRST_CHUNK
    next_serial: int = 1


HEAD: Final = StateDocument("beside", IncrementalHead)
REQUESTS: Final = StateDocuments("beside/", TableRequest)
"""By `schema.table`."""


def read(stored: StoredDocuments) -> TableRequests | None:
    """Return what is stored; None: nothing was ever asked for."""
    documents = stored.tree(HEAD.name)
    head = HEAD.decode(stored, documents.get(HEAD.name))
    if head is None:
        return None
    wishes = REQUESTS.decode_all(stored, documents)
    tables = dict(sorted(wishes.items(), key=lambda item: item[1].place))
    return TableRequests(tables, head.next_chunk, head.next_serial)


class Told(Protocol):
    """Reporter of the table that is being read."""

    @property
    def name(self) -> str: ...

    @property
    def remark(self) -> str: ...


class IncrementalProgress:
    """The wishes of one source; from any thread."""

    def __init__(self, positions: StateStore) -> None:
        self._positions = positions
        self._guard = threading.Lock()
        found = read(positions) or TableRequests({})
        self._next_chunk = found.next_chunk
        self._serial = found.next_serial
        self._wishes = dict(found.tables)
        places = [wish.place for wish in self._wishes.values()]
        self._place = max(places, default=-1) + 1
        self.asked = 0  # times
        self.reading = ""  # the table that is being read
        self.run: Told | None = None
        self.rows = 0  # delivered since this process began
        self._done: deque[tuple[str, int]] = deque(maxlen=_DONE)
        self._is_doubtful = False  # a write failed, and what is on disk was not read

    def ask(
        self,
        tables: Iterable[str],
        *,
        replace: bool = False,
        anew: bool = False,
        where: str = "",
    ) -> None:
        """Queue these tables after the present ones; again if one failed.

        A table that is being read is read to its end, and then once more: what was
        read before does not have what was done since. It begins at once where it is now
        to be replaced, where other rows are wanted, and with `anew`: what was read of
        it may be of no use. `where` is the condition of the rows; "": all of them. It
        is joined to a former one, but for one that rows cannot be read by.
        """
        with self._sure():
            asked: dict[str, TableRequest | None] = {}
            self.asked += 1
            for name in tables:
                known = asked.get(name) or self._wishes.get(name)
                more = replace and known is not None and not known.replace
                pending = known.where if known and not known.unfit else None
                rows = either(pending, where)
                other = known is not None and known.where != rows
                if known is None or more or other or known.error or anew:
                    replaces = replace or (known is not None and known.replace)
                    place = known.place if known is not None else self._place
                    asked[name] = TableRequest(
                        replaces, serial=self._serial, place=place, where=rows
                    )
                    self._serial += 1
                    self._place = max(self._place, place + 1)
                elif known.after is not None or name == self.reading:
                    asked[name] = _once_more(known, where)
            try:
                self._write(asked)
            except Transient as error:
                if any(self._wishes.get(name) == wish for name, wish in asked.items()):
                    raise Transient(
                        str(error.args[0]), hint=f"{_READ_ALL_THE_SAME}; {error.hint}"
                    ) from error
                raise

    def wishes(self) -> dict[str, TableRequest]:
        """Return all, in the order asked."""
        with self._sure():
            return dict(self._wishes)

    def first(
        self, wanted: Callable[[str, TableRequest], bool]
    ) -> tuple[str, TableRequest] | None:
        """Return the first in that order of which this is true."""
        with self._sure():
            return next((one for one in self._wishes.items() if wanted(*one)), None)

    def some(self, wanted: Callable[[str, TableRequest], bool], most: int) -> list[str]:
        """Name the first so many in that order of which this is true."""
        with self._sure():
            found = (name for name, wish in self._wishes.items() if wanted(name, wish))
            return list(islice(found, most))

    def holds(self, name: str, wish: TableRequest) -> bool:
        """Return whether it is still wished as it was."""
        known = self._wishes.get(name)
        return known is not None and known.serial == wish.serial

    def numbers(self) -> range:
        """Take some chunks' numbers, which are never given again."""
        with self._guard:
            first = self._next_chunk
            self._next_chunk += _BLOCK
            self._write({})
        return range(first, first + _BLOCK)

    def advance(self, name: str, wish: TableRequest) -> None:
        """Keep how far a table is; nothing of a former wish.

        Why one did not go on is forgotten when it is being read again.
        """
        with self._sure():
            if self.holds(name, wish):
                error = "" if name == self.reading else self._wishes[name].error
                known = self._wishes[name]
                more = max(0, wish.rows - known.rows)
                unfit = bool(error) and known.unfit
                kept = replace(wish, error=error, unfit=unfit, again=known.again)
                self._write({name: kept})
                self.rows += more

    def fail(
        self, name: str, wish: TableRequest, error: str, *, unfit: bool = False
    ) -> None:
        """Keep why a table does not go on, beside how far it is; `unfit`: its part."""
        with self._sure():
            if self.holds(name, wish) and self._wishes[name].error != error:
                failed = replace(self._wishes[name], error=error, unfit=unfit)
                self._write({name: failed})

    def finish(self, name: str, wish: TableRequest) -> None:
        """Forget a table: all its rows are delivered; or queue it once more."""
        with self._sure():
            if self.holds(name, wish):
                known = self._wishes[name]
                more = max(0, wish.rows - known.rows)
                if known.again is None:
                    self._write({name: None})
                    self._done.append((name, wish.rows))
                else:
                    self._begin_again(name, known.again)
                self.rows += more

    def _begin_again(self, name: str, where: str) -> None:
        """Queue a table behind all others: it had its turn."""
        once_more = TableRequest(serial=self._serial, place=self._place, where=where)
        self._serial += 1
        self._place += 1
        self._write({name: once_more})
        self._wishes[name] = self._wishes.pop(name)

    def check_complete(self) -> None:
        """Raise ChunkFailed when rows of a table are left, for what reason ever."""
        left = self.wishes()
        if left:
            named = ", ".join(islice(left, _NAMED))
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            why = next((one.error for one in left.values() if one.error), "")
            raise ChunkFailed(
                f"existing rows of tables were not sent: {named}{more}"
                f"{f' ({why})' if why else ''}",
                hint="fix that; the next run continues with them",
                repair=Repair(command="walstream status"),
            )

    def _write(self, changed: Mapping[str, TableRequest | None]) -> None:
        """Write what concerns all, and these tables; believe it when it is on disk."""
        documents = HEAD.entry(IncrementalHead(self._next_chunk, self._serial))
        for name, wish in changed.items():
            documents |= REQUESTS.of(name).entry(wish)
        try:
            self._positions.write(documents)
        except WalstreamError:
            # it may be there all the same: a Truncate sent by what was believed before
            # would take rows that the next start takes for delivered
            self._is_doubtful = True
            with suppress(WalstreamError):
                self._believe_disk()
            raise
        for name, wish in changed.items():
            if wish is None:
                del self._wishes[name]
            else:
                self._wishes[name] = wish

    @contextmanager
    def _sure(self) -> Iterator[None]:
        """Hold the guard, and what is on disk."""
        with self._guard:
            self._believe_disk()
            yield

    def _believe_disk(self) -> None:
        """Go by what is on disk, where a write failed; raise what reading does."""
        if self._is_doubtful:
            self._wishes = dict((read(self._positions) or TableRequests({})).tables)
            self._is_doubtful = False

    def report(self) -> dict[str, IncrementalReport]:
        """Return how each table is."""
        with self._guard:
            done = {
                name: IncrementalReport(rows, "done", "") for name, rows in self._done
            }
            some = dict(islice(self._wishes.items(), _TOLD))
            told = done | shown(some, self.reading)
        run = self.run
        if run is not None and run.name in told:
            told[run.name] = replace(told[run.name], remark=run.remark)
        return told


def _once_more(known: TableRequest, where: str) -> TableRequest:
    return replace(known, again=either(known.again, where))


def shown(
    wishes: Mapping[str, TableRequest], reading: str = ""
) -> dict[str, IncrementalReport]:
    """Return how tables are that are wished."""
    return {
        name: IncrementalReport(
            wish.rows,
            _state(wish, name == reading),
            wish.error,
            where=wish.where[:_SHOWN],
        )
        for name, wish in wishes.items()
    }


def _state(wish: TableRequest, is_read: bool) -> str:  # noqa: FBT001
    if wish.error:
        return "error"
    return "reading" if is_read else "waiting"


def stored(wishes: TableRequests | None) -> dict[str, IncrementalReport]:
    """Return how tables are by what is kept alone, when nothing runs."""
    return shown(wishes.tables if wishes else {})
