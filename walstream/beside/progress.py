"""Which tables are read beside the stream, and how far: kept with the position.

Asked for by an operator, or by a publication that grew; every method but `report` is
durable when it returns. A wish that was asked anew has another serial: what was done
for the former one counts no more.
"""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Final, Protocol

from walstream.beside.chunk import Key
from walstream.ports import Positions

DOCUMENT: Final = "beside"
# above those of a backfill from the slot's snapshot, which count from 1
FIRST_CHUNK: Final = 1 << 24
_BLOCK: Final = 1024  # numbers taken with one fsync
_DONE: Final = 100  # tables that are still told of
_TOLD: Final = 100  # of those that are wished: a report has to fit into a pipe


@dataclass(frozen=True, slots=True)
class Wish:
    """A table that is to be read, and how far that is."""

    replace: bool = False  # a Truncate comes first
    truncated: bool = False  # it is delivered
    floor: int = 0  # the place of the Truncate: what is below was for rows before it
    after: Key | None = None  # rows up to this key are delivered
    key: tuple[str, ...] = ()  # columns of `after`
    rows: int = 0  # delivered
    error: str = ""  # why it does not go on
    serial: int = 0

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Wish":
        after = fields["after"]
        return cls(
            **{
                **fields,
                "after": None if after is None else tuple(after),
                "key": tuple(fields["key"]),
                "floor": fields.get("floor", 0),
            }
        )


class Told(Protocol):
    """Who tells how the table is that is being read."""

    @property
    def name(self) -> str: ...

    @property
    def remark(self) -> str: ...


class Progress:
    """The document of one source; from any thread."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._guard = threading.Lock()
        stored = positions.read(DOCUMENT) or {}
        self._next_chunk: int = stored.get("next_chunk", FIRST_CHUNK)
        self._serial: int = stored.get("next_serial", 1)
        self._wishes = {
            name: Wish.of(fields) for name, fields in stored.get("tables", {}).items()
        }
        self.reading = ""  # the table that is being read
        self.run: Told | None = None
        self.rows = 0  # delivered since this process began
        self._done: deque[tuple[str, int]] = deque(maxlen=_DONE)

    def ask(
        self, tables: Iterable[str], *, replace: bool = False, anew: bool = False
    ) -> None:
        """Want these tables read, behind those that are; again, where one failed.

        A table that is being read goes on, but for one that is now to be replaced; with
        `anew` it begins once more: what was read of it may be of no use.
        """
        with self._guard:
            for name in tables:
                known = self._wishes.get(name)
                more = replace and known is not None and not known.replace
                if known is None or more or known.error or anew:
                    replaces = replace or (known is not None and known.replace)
                    self._wishes[name] = Wish(replaces, serial=self._serial)
                    self._serial += 1
            self._write()

    def wishes(self) -> dict[str, Wish]:
        """Give all, in the order asked."""
        with self._guard:
            return dict(self._wishes)

    def holds(self, name: str, wish: Wish) -> bool:
        """Tell whether it is still wished as it was."""
        known = self._wishes.get(name)
        return known is not None and known.serial == wish.serial

    def numbers(self) -> range:
        """Take some chunks' numbers, which are never given again."""
        with self._guard:
            first = self._next_chunk
            self._next_chunk += _BLOCK
            self._write()
        return range(first, first + _BLOCK)

    def advance(self, name: str, wish: Wish) -> None:
        """Keep how far a table is; nothing of a former wish.

        Why one did not go on is forgotten when it is being read again.
        """
        with self._guard:
            if self.holds(name, wish):
                error = "" if name == self.reading else self._wishes[name].error
                self.rows += max(0, wish.rows - self._wishes[name].rows)
                self._wishes[name] = replace(wish, error=error)
                self._write()

    def fail(self, name: str, wish: Wish, error: str) -> None:
        """Keep why a table does not go on, beside how far it is."""
        with self._guard:
            if self.holds(name, wish) and self._wishes[name].error != error:
                self._wishes[name] = replace(self._wishes[name], error=error)
                self._write()

    def finish(self, name: str, wish: Wish) -> None:
        """Forget a table: all its rows are delivered."""
        with self._guard:
            if self.holds(name, wish):
                self.rows += max(0, wish.rows - self._wishes[name].rows)
                del self._wishes[name]
                self._done.append((name, wish.rows))
                self._write()

    def _write(self) -> None:
        self._positions.write({DOCUMENT: self._document()})

    def _document(self) -> dict[str, Any]:
        return {
            "next_chunk": self._next_chunk,
            "next_serial": self._serial,
            "tables": {name: asdict(wish) for name, wish in self._wishes.items()},
        }

    def report(self) -> dict[str, dict[str, Any]]:
        """Tell how each table is."""
        with self._guard:
            done = {
                name: {"rows": rows, "state": "done", "error": ""}
                for name, rows in self._done
            }
            some = dict(islice(self._wishes.items(), _TOLD))
            told = done | shown(some, self.reading)
        run = self.run
        if run is not None and run.name in told:
            told[run.name]["remark"] = run.remark
        return told


def shown(wishes: dict[str, Wish], reading: str = "") -> dict[str, dict[str, Any]]:
    """Tell how tables are that are wished."""
    return {
        name: {
            "rows": wish.rows,
            "state": "error"
            if wish.error
            else "reading"
            if name == reading
            else "waiting",
            "error": wish.error,
        }
        for name, wish in wishes.items()
    }


def stored(document: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Tell how tables are by the document alone, when nothing runs."""
    tables = (document or {}).get("tables", {})
    return shown({name: Wish.of(fields) for name, fields in tables.items()})
