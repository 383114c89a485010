"""What the target answers to the consumer library's own statements."""

from typing import Any, Final

from consumer.state import partition_state as statements
from consumer.state import truncate_barrier as barriers
from consumer.state.connection import COMMITTED
from consumer.state.schema import Tables, _filled
from tests.simulation.target import Tx
from tests.simulation.target_session import Rows, Statement, done

TABLES: Final = Tables("public", "public", "public")
_RAN: Final = -1


def _lock(tx: Tx, values: Any) -> Rows:
    return Rows([(tx.xid if tx.try_advise(values[0]) else None,)])


def _read(tx: Tx, key: Any) -> Rows:
    if tx.get("state", tuple(key)) is None:
        return Rows()
    found = tx.lock("state", tuple(key))
    return Rows([found] if found else [])


def _insert(tx: Tx, values: Any) -> Rows:
    drawn, *key = values[:4]
    first = 0 if _is_begun(tx, values[4:]) else None
    if tx.lock("state", tuple(key)) is not None:
        return done(0)
    tx.put("state", tuple(key), (drawn, "0", "0", first, None, None))
    return done(1)


def _begin(tx: Tx, values: Any) -> Rows:
    group, topic, topic_id, *rows, own, _, _, _, ends = values
    new: list[tuple[int, int]] = []
    begun = _is_begun(tx, (group, topic))
    for drawn, part, first in zip(*rows, strict=True):
        if begun and part != own:
            continue
        key = group, topic, part
        row = tx.lock("state", key) or (drawn, "0", "0", None, None, None)
        if row[3] is None:
            tx.put("state", key, (*row[:3], first, row[4] or topic_id, row[5]))
            if row[1] == "0":
                new.append((part, first))
    if any(first > 0 for _, first in new):
        end_of = dict(zip(rows[1], ends, strict=True))
        for part, first in new:
            late = "late" if first > 0 else ""
            _arrive(tx, (group, topic, "0", str(end_of[part]), late, part))
    return done(1)


def _is_begun(tx: Tx, topic: Any) -> bool:
    return any(
        key[:2] == tuple(topic) and row[3] is not None
        for key, row in tx.rows("state").items()
    )


def _move(tx: Tx, values: Any) -> Rows:
    after, key, before, xid = values[:5], values[5:8], values[8:12], values[12]

    def is_same(found: Any) -> bool:
        return found is not None and found[:4] == tuple(before) and tx.xid == xid

    if not is_same(tx.get("state", key)) or not is_same(tx.lock("state", key)):
        return done(0)
    tx.put("state", key, (before[0], *after))
    return done(1)


def _chunks(tx: Tx, key: Any) -> dict[Any, int]:
    return {
        one: index
        for one, index in tx.rows("snapshot").items()
        if one[:3] == tuple(key)
    }


def _reach(tx: Tx, key: Any) -> Rows:
    return Rows([(max([int(one[3]) for one in _chunks(tx, key)], default=None),)])


def _read_chunk(tx: Tx, key: Any) -> Rows:
    index = tx.get("snapshot", tuple(key))
    return Rows([] if index is None else [(index,)])


def _insert_chunk(tx: Tx, values: Any) -> Rows:
    *key, index = values
    if tx.lock("snapshot", tuple(key)) is not None:
        return done(0)
    tx.put("snapshot", tuple(key), index)
    return done(1)


def _move_chunk(tx: Tx, values: Any) -> Rows:
    index, *key, before = values
    name = tuple(key)
    if tx.get("snapshot", name) != before or tx.lock("snapshot", name) != before:
        return done(0)
    tx.put("snapshot", name, index)
    return done(1)


def _clean(tx: Tx, values: Any) -> Rows:
    *key, below, most = values
    gone = [one for one in _chunks(tx, key) if int(one[3]) < below][:most]
    return _delete(tx, "snapshot", gone)


def _forget_chunks(tx: Tx, key: Any) -> Rows:
    return _delete(tx, "snapshot", [*_chunks(tx, key)])


def _delete(tx: Tx, name: str, keys: Any) -> Rows:
    for key in keys:
        tx.put(name, key, None)
    return done(len(keys))


def _holders(tx: Tx, values: Any) -> Rows:
    return Rows(tx.target.holders(values[1], values[0]))


def _terminate(tx: Tx, values: Any) -> Rows:
    tx.target.terminate(values[0])
    return Rows([(True,)])


def _met(tx: Tx, values: Any) -> Rows:
    *name, told, partition = values
    met = {one[-1] for one in tx.rows("barrier") if _is_same(one, tuple(name), told)}
    return Rows([(one,) for one in sorted(met & {_RAN, partition})])


def _arrive(tx: Tx, values: Any) -> Rows:
    if tx.lock("barrier", tuple(values)) is not None:
        return done(0)
    tx.put("barrier", tuple(values), ())
    return done(1)


def _arrived(tx: Tx, asked: Any) -> Rows:
    place = int(asked["lsn"]), int(asked["seq_id"])
    where, source = (asked["group"], asked["topic"]), asked["source"]
    there = {
        (one[-1], (int(one[2]), int(one[3])) == place)
        for one in tx.rows("barrier")
        if one[:2] == where
        and one[-1] >= 0
        and (int(one[2]), int(one[3])) >= place
        and _is_of(one, source)
    }
    there |= {
        (key[2], False)
        for key, row in tx.rows("state").items()
        if key[:2] == where
        and (int(row[1]), int(row[2])) >= place
        and (row[5] in {source, None} or not source)
    }
    return Rows(sorted(there))


def _before(tx: Tx, asked: Any) -> Rows:
    places = {(asked["group"], asked["topic"], part) for part in asked["at_it"]}
    first = {
        (*one[:2], barriers._FIRST - one[-1], *one[2:4]) for one in tx.rows("barrier")
    }
    moved = (
        row[1] != "0" and (*key, *row[1:3]) not in first
        for key, row in tx.rows("state").items()
        if key in places
    )
    chunks = (key[:3] in places for key in tx.rows("snapshot"))
    return Rows([(any(moved) or any(chunks),)])


def _forget_first(tx: Tx, asked: Any) -> Rows:
    where = asked["group"], asked["topic"]
    marks = [one for one in tx.rows("barrier") if one[:2] == where]
    return _delete(tx, "barrier", [one for one in marks if one[-1] in asked["first"]])


def _begun_late(tx: Tx, asked: Any) -> Rows:
    where = asked["group"], asked["topic"], "0"
    marks = [one for one in tx.rows("barrier") if one[:3] == where]
    had_it = any(
        one[-1] == asked["partition"] and int(one[3]) > asked["offset"] for one in marks
    )
    late = {one[-1] for one in marks if one[4] == "late" and had_it}
    state = tx.rows("state").items()
    return Rows(
        [
            (key[2], row[3])
            for key, row in state
            if key[:2] == where[:2] and key[2] in late
        ]
    )


def _is_of(one: Any, source: str) -> bool:
    return one[4] in {source, ""} or not source


def _earlier(tx: Tx, asked: Any) -> Rows:
    place, source = (int(asked["lsn"]), int(asked["seq_id"])), asked["source"]
    found = {
        one[2:4]
        for one in tx.rows("barrier")
        if one[:2] == (asked["group"], asked["topic"])
        and one[-1] in asked["missing"]
        and one[2] != "0"
        and (int(one[2]), int(one[3])) < place
        and _is_of(one, source)
    }
    return Rows(sorted(found))


def _chunks_of(tx: Tx, asked: Any) -> Rows:
    where = asked["group"], asked["topic"]
    found = {one[2] for one in tx.rows("snapshot") if one[:2] == where}
    return Rows([(part,) for part in sorted(found & {*asked["lacking"]})])


def _leave(tx: Tx, values: Any) -> Rows:
    *name, told = values
    gone = [
        one
        for one in tx.rows("barrier")
        if _is_same(one, tuple(name), told) and one[-1] != _RAN
    ]
    return _delete(tx, "barrier", gone)


def _is_same(one: tuple[Any, ...], name: tuple[Any, ...], told: str) -> bool:
    """Return whether it is that barrier; a source may not have been told yet."""
    return one[:4] == name[:4] and (one[4] in {name[4], ""} or not told)


def _advise(tx: Tx, values: Any) -> Rows:
    return Rows([(tx.try_advise(values[0]),)])


def _same_transaction(tx: Tx, values: Any) -> Rows:
    return Rows([(tx.xid == values[0],)])


def _committed(tx: Tx, values: Any) -> Rows:
    return Rows([(values[0] in tx.target.committed,)])


OF: Final[dict[str, Statement]] = {
    statements._LOCK: _lock,
    statements._READ: _read,
    statements._INSERT: _insert,
    statements._BEGIN: _begin,
    statements._MOVE: _move,
    statements._REACH: _reach,
    statements._READ_CHUNK: _read_chunk,
    statements._INSERT_CHUNK: _insert_chunk,
    statements._MOVE_CHUNK: _move_chunk,
    statements._CLEAN: _clean,
    statements._FORGET_CHUNKS: _forget_chunks,
    statements._HOLDERS: _holders,
    "SELECT pg_catalog.pg_terminate_backend(%s)": _terminate,
    statements._SAME_TRANSACTION: _same_transaction,
    COMMITTED: _committed,
    barriers._LOCK: _advise,
    barriers._MET: _met,
    barriers._ARRIVE: _arrive,
    barriers._ARRIVED: _arrived,
    barriers._BEGUN_LATE: _begun_late,
    barriers._EARLIER: _earlier,
    barriers._BEFORE: _before,
    barriers._FORGET_FIRST: _forget_first,
    barriers._CHUNKS: _chunks_of,
    barriers._LEAVE: _leave,
    barriers._FORGET: lambda _tx, _asked: done(0),  # as if others were not past it
}
STATEMENTS: Final[dict[str, Statement]] = {
    _filled(TABLES, text).decode(): run for text, run in OF.items()
}
