"""What a walsender told, in words that two servers can share.

Addresses become ordinals: of tables their names, of transactions their place in the
order of commits. Two servers that did the same tell the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from tests.simulation.real.statements import bare
from walstream.lsn import Lsn
from walstream.pipeline.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Relation,
    Truncate,
    Update,
    decode,
)
from walstream.row import NotSent, Value

HEADER_SIZE: Final = 25
_U64: Final = Struct("!Q").unpack_from
_WAL_DATA: Final = b"w"


@dataclass(frozen=True)
class Places:
    """The transactions of a server that were told, in the order of commits."""

    commits: dict[Lsn, int] = field(default_factory=dict)  # by commit record
    ends: list[Lsn] = field(default_factory=list)

    def of(self, lsn: Lsn) -> str:
        """Say how many transactions end there or before."""
        return str(sum(end <= lsn for end in self.ends))


@dataclass
class Teller:
    """One connection's frames in words: it knows what was described on it.

    Who reads while a table is altered is told of it once or twice: a walsender hears of
    it from the WAL, and from the session that did it, at a moment of its own. A `live`
    one leaves out what was told before.
    """

    places: Places
    live: bool = False  # and is the first to see each transaction
    _tables: dict[int, str] = field(default_factory=dict)
    _described: dict[int, str] = field(default_factory=dict)
    _open: list[str] | None = None  # of a transaction
    _final: Lsn = 0

    def tell(self, frames: Iterable[bytes]) -> list[str]:
        """Say what frames tell; of a transaction without changes nothing."""
        told: list[str] = []
        for frame in frames:
            if frame[:1] != _WAL_DATA:
                continue
            told += self._message(decode(frame[HEADER_SIZE:]), _U64(frame, 1)[0])
        return told

    def _message(self, message: Message, lsn: Lsn) -> list[str]:
        if isinstance(message, Begin):
            self._open, self._final = [], message.final_lsn
            return []
        if isinstance(message, Commit):
            return self._commit(message, lsn)
        if isinstance(message, LogicalMessage) and not message.transactional:
            at = "its own" if lsn == message.lsn else "another"
            return [f"message {message.prefix} {message.content!r} at {at}"]
        line = f"{self._where(lsn)}{self._change(message)}"
        if isinstance(message, Relation):
            known = self._described.get(message.oid)
            self._described[message.oid] = line
            if self.live and known == line:
                return []
        if self._open is None:
            return [f"{line}, outside of a transaction"]
        self._open.append(line)
        return []

    def _where(self, lsn: Lsn) -> str:
        """Say what a frame's header shows beside what is due."""
        return "  " if not lsn or lsn <= self._final else "  (beyond its commit) "

    def _commit(self, message: Commit, lsn: Lsn) -> list[str]:
        changes, self._open = self._open, None
        if not changes:  # an empty one may be told or not
            return []
        if self.live:
            self.places.commits.setdefault(message.commit_lsn, len(self.places.commits))
            if message.end_lsn not in self.places.ends:
                self.places.ends.append(message.end_lsn)
        ordinal = self.places.commits.get(message.commit_lsn, "of nobody")
        odd = [
            what
            for what, so in (
                ("begun for another commit", message.commit_lsn != self._final),
                ("its header is not its end", lsn != message.end_lsn),
                ("flags", message.flags != 0),
                ("it ends before it is", message.end_lsn <= message.commit_lsn),
            )
            if so
        ]
        return [f"transaction {ordinal}{', '.join(odd)}", *changes]

    def _change(self, message: Message) -> str:
        if isinstance(message, Relation):
            return self._relation(message)
        if isinstance(message, Truncate):
            names = " ".join(map(self._name, message.relation_oids))
            return f"truncate {message.options} {names}"
        if isinstance(message, Insert | Update | Delete):
            return self._row(message)
        if isinstance(message, LogicalMessage):
            return f"message {message.prefix} {message.content!r}"
        return f"a message of kind {type(message).__name__}"

    def _relation(self, message: Relation) -> str:
        self._tables[message.oid] = message.name
        columns = " ".join(
            f"{one.name}{'*' if one.is_key else ''}:{one.type_oid}:{one.type_modifier}"
            for one in message.columns
        )
        of = f"{message.namespace}.{message.name}"
        return f"relation {of} {message.replica_identity} {columns}"

    def _row(self, message: Insert | Update | Delete) -> str:
        kind = type(message).__name__.lower()
        words = [kind, self._name(message.relation_oid)]
        if not isinstance(message, Insert) and message.old is not None:
            words.append(f"{'O' if message.old_whole else 'K'}{_row(message.old)}")
        if not isinstance(message, Delete):
            words.append(_row(message.new))
        return " ".join(words)

    def _name(self, oid: int) -> str:
        return self._tables.get(oid, "a table that was not described")


def _row(values: Sequence[Value]) -> str:
    return f"({' '.join(map(_value, values))})"


def _value(value: Value) -> str:
    if value is None:
        return "-"
    return "unchanged" if isinstance(value, NotSent) else bare(value)
