"""Columns that decide a table's keys, and the LSN from which each set holds: pure.

The row key is what the Relation message marks (the replica identity), or under REPLICA
IDENTITY FULL, where it marks every column, the primary key from the catalog. An update
that changes the row key or a sink's partition key is split in two and takes two
numbers, so these columns must be the same in every replay: they are kept with the
position, and a change counts only from an LSN that no op has passed.

The catalog has the current primary key, a Relation message the columns at that time: so
a set also keeps the columns that the table had, and the table's oid.

Under DEFAULT a Relation message also has the primary key at that time: such a set holds
from its place on, even within a transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.lsn import Lsn
from walstream.pipeline.root_key import Place, RootKeys
from walstream.pipeline.state_document import StateDocuments
from walstream.telemetry.json_codec import absent_as

_FORMER: Final = 4  # tables that had a name before, of which the keys are kept


@dataclass(frozen=True, slots=True)
class KeySet:
    """Columns by name. `primary_key` matters only under REPLICA IDENTITY FULL."""

    from_lsn: Lsn  # transactions with a commit LSN from here on
    primary_key: tuple[str, ...] = ()
    partition_key: tuple[str, ...] = ()  # of all sinks together, sorted
    columns: tuple[str, ...] = ()  # all that the table had, in order; (): not known
    oid: int = 0  # of the table; 0: not known
    told: bool = False  # by a Relation message: nothing before it goes by this set
    # may rows lack a key's columns: generated, not in a list?
    partial: bool = field(default=False, metadata=absent_as(value=True))
    # may DEFAULT mark none, though there is a primary key?
    vague: bool = field(default=False, metadata=absent_as(value=True))
    numbers: tuple[int, ...] = ()  # of its columns; 0: generated, and maybe not sent
    # of a description that told nothing: its columns, and what it marked
    vain: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    from_seq: int = 0  # and within the first of them: from this number on

    @property
    def since(self) -> Place:
        return self.from_lsn, self.from_seq

    def counting(self, place: Place) -> "KeySet":
        """Return the same set, from another place on."""
        return replace(self, from_lsn=place[0], from_seq=place[1])

    def says_as(self, other: "KeySet") -> bool:
        return self.counting((0, 0)) == other.counting((0, 0))

    def had(self, columns: Sequence[str]) -> bool:
        """Return whether the table had these columns, in this order, and maybe others.

        Generated ones are not sent, nor those outside of a publication's list.
        """
        rest = iter(self.columns)
        return all(name in rest for name in columns)

    def keyed(self, columns: Sequence[str]) -> bool:
        """Return whether all of its primary key is among these columns."""
        return set(self.primary_key) <= set(columns)

    def lost_its_key(self, later: "KeySet", columns: Sequence[str]) -> bool:
        """Return whether a row of so many columns came when the key had been dropped.

        A column keeps its number, whatever its name is. The row had all that are still
        there in a later set: if those are as many, the key's was none of them.
        """
        if len(self.numbers) != len(self.columns):
            return False
        of = dict(zip(self.columns, self.numbers, strict=True))
        alive = {number for number in self.numbers if number} & set(later.numbers)
        lost = alive.isdisjoint(of[name] for name in self.primary_key)
        return lost and len(alive) == len(columns)

    def keeps(self, columns: Sequence[str]) -> bool:
        """Return whether the primary key's columns stand where they stood."""
        return self.keyed(columns) and all(
            columns.index(name) == self.columns.index(name) for name in self.primary_key
        )


KEYS: Final = StateDocuments("keys/", tuple[KeySet, ...])
"""By the name of a table, `schema.table`."""


class KeyHistory:
    """The key sets of one table, oldest first; never empty."""

    def __init__(self, sets: Sequence[KeySet]) -> None:
        self._sets = list(sets) or [KeySet(0)]
        self._let_go: set[tuple[int, tuple[str, ...]]] = set()
        self.roots: Mapping[int, RootKeys] = {}  # by oid; of partition roots alone

    def at(self, lsn: Lsn) -> KeySet:
        """Return the set under which a transaction of commit LSN `lsn` is read.

        Its partition key counts; for the primary key see `primary_key`.
        """
        return _at(self._sets, (lsn, 0))

    def primary_key(
        self, lsn: Lsn, oid: int, columns: tuple[str, ...], seq_id: int = 0
    ) -> tuple[str, ...] | None:
        """Return the primary key of a table that had these columns; None if unknown.

        The LSN decides while its set's columns are there. Only sets that are later can
        be added, so nothing that was once found is found otherwise in a replay: see
        docs/decisions/0059.
        """
        found = self._find((lsn, seq_id), oid, columns)
        return () if found is None and (oid, columns) in self._let_go else found

    def _find(
        self, place: Place, oid: int, columns: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        sets = self._counting(place, oid)
        if not sets:
            return None
        at = _index(sets, place)
        now, later = sets[at], sets[at + 1 :]
        for one in (now, *later[:1]):
            guess = one is now and not now.columns  # kept by an earlier version
            if one.keyed(columns) and (guess or one.had(columns)):
                return one.primary_key
        if now.columns and now.had(columns) and now.primary_key:
            return () if _keyless(now, later[:1], columns) else None
        if now.primary_key and now.keeps(columns):
            return now.primary_key
        if not now.primary_key:
            return _new_key(now, later[:1], columns) or ()
        return _new_key(now, later, columns)

    def _of(self, oid: int) -> list[KeySet]:
        return [one for one in self._sets if one.oid in {0, oid}]

    def change(self, now: KeySet) -> bool:
        """Put `now` in force from its LSN on; return whether that is a change."""
        last = next((one for one in reversed(self._sets) if one.oid == now.oid), None)
        if (
            last is not None
            and last.says_as(now)
            and self._sets[-1].partition_key == now.partition_key
        ):
            return False
        self._append(now, now.from_lsn)
        return True

    def _append(self, one: KeySet, lsn: Lsn) -> None:
        self._sets.append(one.counting(max((lsn, 0), self._sets[-1].since)))

    def tells(
        self, place: Place, oid: int, columns: tuple[str, ...], marked: tuple[str, ...]
    ) -> bool:
        """Return whether a description under DEFAULT agrees with the kept key.

        Not whether it follows: from what is found later, something else may.
        """
        sets = self._counting(place, oid)
        if not sets:
            return False
        now = _at(sets, place)
        if now.vain is not None:
            return now.vain == (columns, marked)
        key = set(now.primary_key)
        return key == set(marked) and now.keyed(columns) and now.had(columns)

    def tell(
        self,
        place: Place,
        oid: int,
        columns: tuple[str, ...],
        marked: tuple[str, ...],
        found: KeySet | None,
    ) -> bool:
        """Store the key that a description under DEFAULT marks, from its place on.

        It is the primary key, unless one may be there that is deferrable, or not sent
        whole: then it is only kept that nothing was told, since the catalog may say
        otherwise in a replay. `found` is what the catalog says; None: the table is
        gone. Nothing behind this place was sent under another key: a place that was
        passed told it then. Return whether anything changed.
        """
        if self.tells(place, oid, columns, marked):
            return False
        sets = self._counting(place, oid) or [KeySet(0, vague=True)]
        before = _at(sets, place)
        about = [before] if found is None else [before, found]
        if marked:
            sure = not any(one.partial for one in about)
        else:
            sure = found is not None and not any(one.vague for one in about)
        if sure:
            self._insert(place, KeySet(0, marked, columns=columns, oid=oid))
        else:
            self._insert(place, replace(before, vain=(columns, marked)))
        return True

    def let_go_of(self, oid: int, columns: tuple[str, ...]) -> None:
        """Treat rows of a dropped table as keyless if their key is unknown.

        Its columns cannot get those names again. It is not kept: where their key was
        not known before, they stopped the source, and a replay finds the table gone,
        too.
        """
        self._let_go.add((oid, columns))

    def _insert(self, place: Place, told: KeySet) -> None:
        """Put it in force from there on; the partition key stays."""
        at = _index(self._sets, place)
        last = self._sets[at]
        told = replace(told, partition_key=last.partition_key, told=True)
        self._sets.insert(at + 1, told.counting(max(place, last.since)))

    def _counting(self, place: Place, oid: int) -> list[KeySet]:
        """List the sets of a table, but what was told behind there: that is later's."""
        return [one for one in self._of(oid) if one.since <= place or not one.told]

    def settle(self, place: Place, seen: KeySet) -> bool:
        """Keep that `seen.columns` came there, and `seen.from_lsn` found the rest.

        Columns that came and went while nobody looked, or a key that is not all among
        them: the set that counts there gets a next one now, so that none that is found
        later is taken for it in a replay. Return whether anything changed.
        """
        sets = self._of(seen.oid)
        if not sets or not sets[-1].columns or _at(sets, place) is not sets[-1]:
            return False
        if sets[-1].had(seen.columns) and sets[-1].keyed(seen.columns):
            return False
        self._append(sets[-1], seen.from_lsn)
        return True

    def meet_gone(self, gone: KeySet) -> bool:
        """Keep the guessed key of a table that the catalog no longer has.

        If nothing is known of it, its key is that of one of the same name and columns.
        Return whether anything changed.
        """
        if self._of(gone.oid):
            return False
        same = [one for one in self._sets if one.columns == gone.columns]
        key = same[-1].primary_key if same else ()
        self._append(replace(gone, primary_key=key), gone.from_lsn)
        return True

    @property
    def known_from(self) -> Lsn:
        """From which LSN on `at` is right: what counted below may be forgotten."""
        return self._sets[0].from_lsn + bool(self._sets[0].from_seq)

    def forget_below(self, oldest: Lsn) -> None:
        """Drop sets that no replay can need: none begins below `oldest`.

        What counts there of other tables that had the name is kept: one may have it
        again in a row that comes.
        """
        at = _index(self._sets, (oldest, 0))
        current = self._sets[at]
        others = {one.oid: one for one in self._sets[:at] if one.oid != current.oid}
        kept = [one.counting(current.since) for one in others.values()]
        self._sets = [*kept[-_FORMER:], *self._sets[at:]]

    def boundaries(self) -> Iterable[Lsn]:
        """Return the LSNs at which the set changes."""
        return (one.from_lsn + bool(one.from_seq) for one in self._sets[1:])

    @property
    def stored(self) -> tuple[KeySet, ...]:
        """Stored form, for the constructor."""
        return tuple(self._sets)


def _at(sets: Sequence[KeySet], place: Place) -> KeySet:
    return sets[_index(sets, place)]


def _index(sets: Sequence[KeySet], place: Place) -> int:
    """Find where the set stands that counts there: an equal one may stand before it."""
    for at in reversed(range(len(sets))):
        if sets[at].since <= place:
            return at
    return 0


def _keyless(now: KeySet, later: Iterable[KeySet], columns: Sequence[str]) -> bool:
    """Return whether a row that lacks the key's columns had no key, or it is not sent.

    Or it had one: under a name that another column had before, for a while.
    """
    if not all(one.had(columns) for one in later):
        return False
    return now.partial or any(
        one.partial or now.lost_its_key(one, columns) for one in later
    )


def _new_key(
    now: KeySet, later: Iterable[KeySet], columns: Sequence[str]
) -> tuple[str, ...] | None:
    """Find the first later key of columns that were not there before.

    One of an existing column may be younger than the row: two may swap names.
    """
    for one in later:
        key = one.primary_key
        if key and one.keeps(columns) and set(key).isdisjoint(now.columns):
            return key
    return None
