"""Continuity of a table's publication: the state then against now. Pure.

A publication that was changed and changed back looks as before. So it is not only its
contents that are compared, but the catalog rows that they are made of: a row that was
deleted and inserted again has another oid, one that was updated another xmin. Both are
compared for equality alone; no VACUUM, FULL or FREEZE, changes them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.postgres.publication_facts import (
    IN_SCHEMA,
    NAMED,
    OPERATIONS,
    PART,
    Sighting,
    Sightings,
)

_STORED: Final = "s"  # generated columns are published


@dataclass(slots=True)
class Difference:
    """Changes of tables, by oid, between two looks."""

    lost: str = ""  # why nothing can be gone on with
    missed: dict[int, str] = field(default_factory=dict)  # and why rows may be missing
    gone: set[int] = field(default_factory=set)  # not published any more
    came: set[int] = field(default_factory=set)  # published, with rows from before
    widened: set[int] = field(default_factory=set)  # updates and deletes only from now
    left: frozenset[str] = frozenset()  # what was published once, and is not now
    doubtful: set[int] = field(default_factory=set)  # UNLOGGED and back, or rewritten

    @property
    def harmless(self) -> bool:
        """Return whether no row that was published then can be missing."""
        return not (self.lost or self.missed or self.gone)


def compare(then: Sightings, now: Sightings, left: Collection[str]) -> Difference:
    """Find what changed; `left` are the tables that were published before `then`."""
    found = Difference(left=frozenset(left))
    found.lost = next(_lost(then, now), "")
    if found.lost or then == now:
        return found
    if any(one.xmin is None for one in then.values()):
        # all that can be told
        named_then, named_now = _named(then), _named(now)
        found.came = named_now - named_then
        found.gone = named_then - _published(now) - _partitions(now)
        found.left |= _keys(found.gone)
        return found
    _Comparison(then, now, found).tables()
    _leaves(then, now, found)
    _rewritten(then, now, found)
    return found


def _lost(then: Sightings, now: Sightings) -> Iterator[str]:
    for name, was in then.items():
        made = now.get(name)
        if made is None:
            yield f"publication {name!r} was dropped"
        elif made.oid != was.oid:
            yield f"publication {name!r} was dropped and created again"
        elif made.via_root != was.via_root:
            yield f"publication {name!r} has another publish_via_partition_root"
        elif missing := was.operations - made.operations:
            what = ", ".join(sorted(missing))
            yield f"publication {name!r} no longer publishes {what}"


def _named(sightings: Sightings) -> set[int]:
    return {oid for one in sightings.values() for oid in one.tables}


def _published(sightings: Sightings) -> set[int]:
    return {oid for one in sightings.values() for oid in one.ways}


def _partitions(sightings: Sightings) -> set[int]:
    """Name those whose rows are published for their root's sake."""
    every = (marks for one in sightings.values() for marks in one.leaves.values())
    return {leaf for marks in every for leaf in marks}


def _keys(oids: Collection[int]) -> frozenset[str]:
    return frozenset(map(str, oids))


def with_own(
    then: Sightings, now: Sightings, changed: Mapping[str, Collection[int]]
) -> dict[str, Sighting]:
    """Return what was seen, with changes of our own: tables added or taken out by name.

    All else is as it was then: any other difference was made by another client.
    """
    return {
        name: replace(was, ways=_with_ways(was, now[name], changed.get(name, ())))
        for name, was in then.items()
    }


def _with_ways(
    was: Sighting, now: Sighting, changed: Collection[int]
) -> Mapping[int, frozenset[str]]:
    ways = dict(was.ways)
    for oid in changed:
        other = {way for way in ways.pop(oid, ()) if not way.startswith(NAMED)}
        named = {way for way in now.ways.get(oid, ()) if way.startswith(NAMED)}
        if other or named:
            ways[oid] = frozenset(other | named)
    return ways


def explained(was: Sighting, now: Sighting) -> bool:
    """Return whether what differs is a reason for another xmin, and keeps no row out.

    Where nothing differs, the row was updated there and back, for all that is known.
    """
    if now.generated != was.generated and was.generated == _STORED:
        return False  # columns are left out now
    return (
        now.operations > was.operations
        or (was.owner is not None and now.owner != was.owner)
        or (was.generated is not None and now.generated != was.generated)
    )


def changed_once(was: Sighting, now: Sighting) -> bool:
    """Return whether a publication's row was updated once since, not there and back.

    A new version of a row takes the next free line of its page. When those that came
    since follow the last one without a hole, none was left behind on the way: unless
    VACUUM gave a line back meanwhile. So it is asked only of what is `explained`.
    """
    page, line = was.last
    since = sorted(place for place in now.places if place > was.last)
    expected = [(page, line + step) for step in range(1, len(since) + 1)]
    return since == expected and now.place in since


class _Comparison:
    """Follows each table's ways."""

    def __init__(self, then: Sightings, now: Sightings, found: Difference) -> None:
        self._then = then
        self._now = now
        self._found = found
        self._shaken = {
            name
            for name, was in then.items()
            if was.xmin != now[name].xmin
            and not (explained(was, now[name]) and changed_once(was, now[name]))
        }
        self._as_before = not self._shaken and all(
            was.operations == now[name].operations for name, was in then.items()
        )

    def tables(self) -> None:
        found = self._found
        before, after = _published(self._then), _published(self._now)
        unlogged = {oid for one in self._now.values() for oid in one.unlogged}
        away = before - after
        for oid in away & unlogged:
            found.missed[oid] = "is unlogged: PostgreSQL writes no WAL for it"
        found.gone = away - unlogged - _partitions(self._now)
        for oid in before & after:
            if not (self._as_before and self._ways_as_before(oid)):
                self._table(oid)
        for oid in after - before:
            if str(oid) in found.left:
                found.missed[oid] = "came back into the publication"
            elif self._has_rows(oid):
                found.came.add(oid)
        found.left = (found.left | _keys(away)) - _keys(after)

    def _ways_as_before(self, oid: int) -> bool:
        return all(
            was.ways.get(oid) == self._now[name].ways.get(oid)
            for name, was in self._then.items()
        )

    def _table(self, oid: int) -> None:
        """Follow each operation: other publications may publish others."""
        for operation in OPERATIONS:
            before = _covers(self._then, oid, operation)
            after = _covers(self._now, oid, operation)
            if not before:
                if after:
                    self._found.widened.add(oid)
                continue
            kept = {cover for cover in after if cover[0] not in self._shaken}
            if not _goes_on(before, kept):
                self._found.missed[oid] = self._why(operation, after)
                self._found.widened.discard(oid)
                return

    def _why(self, operation: str, after: set[tuple[str, str]]) -> str:
        if not after:
            return f"is no longer published for {operation}"
        if names := {name for name, _ in after} & self._shaken:
            return f"was published by {min(names)!r}, which was altered meanwhile"
        if all(way.endswith(PART) for _, way in after):
            return "has another row filter or column list in the publication"
        if all(way.startswith(IN_SCHEMA) for _, way in after):
            return "was out of the published schema for a while"
        return "was out of the publication for a while"

    def _has_rows(self, oid: int) -> bool:
        """Return whether it may have rows from before it was published."""
        for name, made in self._now.items():
            was = self._then[name]
            if oid not in made.ways:
                continue
            if oid in was.unlogged or oid in made.brought:
                return True
            if made.via_root and any(oid in marks for marks in was.leaves.values()):
                return True  # it went out as its root's
            for way in made.ways[oid]:
                schema = " ".join(way.split()[:3])
                if way.startswith(NAMED) or (
                    way.startswith(IN_SCHEMA) and schema not in was.schemas
                ):
                    return True
        return False


def _covers(sightings: Sightings, oid: int, operation: str) -> set[tuple[str, str]]:
    return {
        (name, way)
        for name, one in sightings.items()
        if operation in one.operations
        for way in one.ways.get(oid, ())
    }


def _goes_on(before: set[tuple[str, str]], after: set[tuple[str, str]]) -> bool:
    """Return whether one way was there all the while; of filtered ones, all."""
    whole = {cover for cover in before if not cover[1].endswith(PART)}
    return bool(whole & after) if whole else before == after


def _leaves(then: Sightings, now: Sightings, found: Difference) -> None:
    """Compare what ties partitions to their roots: below one, rows go out as its."""
    for name, was in then.items():
        made = now[name]
        for root, marks in made.leaves.items():
            before = was.leaves.get(root, {})
            for leaf, mark in marks.items():
                key = f"{root}/{leaf}"
                if before.get(leaf, mark) != mark or key in found.left:
                    found.missed.setdefault(
                        root, "had a partition that was detached for a while"
                    )
                found.left -= {key}
        for root, marks in was.leaves.items():
            gone = marks.keys() - made.leaves.get(root, {}).keys()
            found.left |= {f"{root}/{leaf}" for leaf in gone}


def _rewritten(then: Sightings, now: Sightings, found: Difference) -> None:
    """Find what was UNLOGGED and LOGGED again: no row of the catalog tells that.

    It gives a table a new file and another TOAST table, and its sequences new files.
    VACUUM FULL, CLUSTER and TRUNCATE keep the TOAST table, pg_repack and an ALTER that
    rewrites the sequences' files, unless it alters them, too. A table that has only one
    of the two, or none, is doubtful.
    """
    for name, was in then.items():
        made = now[name]
        roots = {leaf: root for root, marks in made.leaves.items() for leaf in marks}
        for oid, files in made.files.items():
            before = was.files.get(oid, files)
            whose = roots.get(oid, oid)
            if before == files or whose in found.missed or _by_name(then, now, oid):
                continue
            kept = files[0] == before[0] or 0 < files[1] == before[1]
            if kept or set(files[2]) & set(before[2]):
                continue
            altered = [(oid, xmin) for oid, _, xmin in files[2]] != [
                (oid, xmin) for oid, _, xmin in before[2]
            ]
            if files[1] and before[1] and files[2] and not altered:
                found.missed[whose] = "was UNLOGGED for a while"
            else:
                found.doubtful.add(whose)
    found.doubtful -= found.missed.keys()


def _by_name(then: Sightings, now: Sightings, oid: int) -> bool:
    """Return whether a table was published by name all the while: then it has WAL."""
    return any(
        way.startswith(NAMED)
        for name, was in then.items()
        for way in was.ways.get(oid, frozenset()) & now[name].ways.get(oid, frozenset())
    )
