"""Old rows let in beside the stream: whatever happens when, readers have the table."""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.oracles.incremental_model import (
    KEYS,
    NAME,
    Folded,
    Server,
    Stream,
    by_position,
    in_order,
    once,
)
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row
from walstream.sources.postgres.incremental.chunk import (
    KeyChunk,
    Visibility,
)
from walstream.sources.postgres.incremental.earlier_transactions import Past
from walstream.sources.postgres.incremental.table_run import ChunkLimits, Run
from walstream.sources.postgres.incremental.window import Window
from walstream.testing import MemoryStore

READERS: Final = (in_order, once, by_position)
seeds: Final = st.integers(0, 2**32)


class Fate:
    """What happens next, drawn from a seed: some things often, others never."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to repeat it
        self._kinds: Final = (
            self._begin,
            self._write,
            self._write,
            self._log,
            self._show,
            self._abort,
            self._read,
            self._run_task,
            self._deliver,
            self._crash,
        )
        self._weights = [self._random.choice((1.0, 2, 4, 8)) for _ in self._kinds]
        self._writes = [self._random.choice((0, 1, 4)) for _ in range(6)]
        self._writes[0] += 1
        self._writes[5] = min(self._writes[5], self._random.choice((0, 0, 1)))
        self._weights[5] = self._random.choice((0, 1))
        self._weights[9] = self._random.choice((0, 0, 0.3))

        # what may be held: all of it, as a rule; or so little that it is too much
        other = random.Random(~seed)  # noqa: S311 - likewise
        self.limits = ChunkLimits(
            entries=other.choice((1, 2, 100)),
            passed=other.choice((0, 2, 100)),
            most_passed=other.choice((2, 4, 100)),
        )

    def act(self, server: Server, stream: Stream, most: int) -> None:
        for _ in range(self._random.randint(0, most)):
            (what,) = self._random.choices(self._kinds, self._weights)
            what(server, stream)

    def _number(self) -> int:
        return self._random.randrange(6)

    def _begin(self, server: Server, _: Stream) -> None:
        if len(server.running) < 5:
            server.begin()

    def _write(self, server: Server, _: Stream) -> None:
        key, other = self._random.sample(KEYS, 2)
        (kind,) = self._random.choices(range(6), self._writes)
        server.write(self._number(), kind, key, other)

    def _log(self, server: Server, _: Stream) -> None:
        server.log(self._number())

    def _show(self, server: Server, _: Stream) -> None:
        server.show_logged(self._number())

    def _abort(self, server: Server, _: Stream) -> None:
        server.roll_back(self._number())

    def _read(self, _: Server, stream: Stream) -> None:
        stream.read()

    def _run_task(self, _: Server, stream: Stream) -> None:
        stream.run_task()

    def _deliver(self, _: Server, stream: Stream) -> None:
        stream.deliver()

    def _crash(self, _: Server, stream: Stream) -> None:
        stream.crash(self._random.choice((0, 0, 1, 3)), self._number())


def table(server: Server) -> Folded:
    return {key: [key, *row] for key, row in server.rows.items()}


def added(seed: int) -> tuple[Server, Stream]:
    """Publish a table at some moment, and ask for it."""
    fate = Fate(seed)
    server = Server(published=False)
    stream = Stream(server, MemoryStore(), fate.limits)
    server.fill(KEYS[:3])
    fate.act(server, stream, 30)
    server.published = True
    stream.progress.ask([NAME])
    fate.act(server, stream, 200)
    stream.finish()
    return server, stream


def replaced(seed: int) -> tuple[Server, Stream]:
    """Miss what was streamed for a while; replace the table behind that."""
    fate = Fate(seed)
    server = Server(published=True)
    stream = Stream(server, MemoryStore())
    fate.act(server, stream, 60)
    fate.act(server, Stream(server, MemoryStore()), 30)
    follower = Stream(server, MemoryStore(), fate.limits)
    follower.go_on_behind(stream.topic)
    fate.act(server, follower, 20)
    follower.progress.ask([NAME], replace=True)
    fate.act(server, follower, 200)
    follower.finish()
    return server, follower


MANY: Final = settings(
    max_examples=500, suppress_health_check=[HealthCheck.too_slow], deadline=None
)


@MANY
@given(seeds)
def test_readers_of_an_added_table_end_at_its_state(seed: int) -> None:
    server, stream = added(seed)
    for reader in READERS:
        assert reader(stream.topic) == table(server), reader.__name__


@MANY
@given(seeds)
@example(437863712)  # a replay brings ops from before the Truncate once more
def test_readers_of_a_replaced_table_end_at_its_state(seed: int) -> None:
    server, stream = replaced(seed)
    for reader in READERS:
        assert reader(stream.topic) == table(server), reader.__name__


@MANY
@given(seeds)
def test_a_snapshot_row_stands_where_its_name_says(seed: int) -> None:
    _, stream = added(seed)
    for partition in stream.topic:
        highest = 0
        for message in partition:
            if message.op.snapshot:
                assert highest <= message.op.lsn
            highest = max(highest, message.op.lsn)
    named: dict[tuple[int, int], ReplicationOp] = {}
    for partition in stream.topic:
        for message in partition:
            if message.op.kind is not Kind.TRUNCATE:
                known = named.setdefault(message.place, message.op)
                assert known == message.op


def _noted_but_truncates(run: Run, op: ReplicationOp) -> None:
    if op.kind is not Kind.TRUNCATE:
        NOTE(run, op)


def _noted_when_it_is_there(run: Run, op: ReplicationOp) -> None:
    asked, run._asked = run._asked, None  # noqa: SLF001 - as if nothing were asked for
    NOTE(run, op)
    run._asked = asked  # noqa: SLF001 - likewise


def _focused_on_all(window: Window, chunk: KeyChunk) -> None:
    FOCUS(window, chunk)
    window._entries.clear()  # noqa: SLF001 - what was said until it was there


def _unfilled(
    window: Window, chunk: KeyChunk, first: int, most: int
) -> Iterator[tuple[int, Table, Row]]:
    known = {index: row for index, _, row in ROWS(window, chunk, first, most)}
    return ((index, chunk.table, chunk.rows[index]) for index in known)


NOTE: Final = Run.note
FOCUS: Final = Window.focus
ROWS: Final = Window.rows
BROKEN: Final[dict[str, tuple[type, str, Callable[..., Any]]]] = {
    "nobody waits": (Past, "ready", lambda _: True),
    "who passed need not be seen": (Past, "is_seen", lambda *_: True),
    "who passed is known only since the table was waited for": (
        Past,
        "note",
        lambda past, xid: (
            past._passed.add(xid) if past._base is not None else None  # noqa: SLF001
        ),
    ),
    "what is said while a chunk is read is not noted": (
        Run,
        "note",
        _noted_when_it_is_there,
    ),
    "who waits trusts a snapshot's list": (
        Server,
        "pass_by",
        lambda server: server._completed,  # noqa: SLF001 - as if no number were taken
    ),
    "nothing is noted": (Window, "note", lambda _, __: None),
    "a Truncate is not noted": (Run, "note", _noted_but_truncates),
    "a part of a row is not noted": (Window, "_partial", lambda *_: None),
    "a part of a row passes for the whole": (
        Window,
        "_partial",
        lambda window, key, op: window._whole(key, op.xid),  # noqa: SLF001
    ),
    "a row is not filled": (Window, "rows", _unfilled),
    "what a chunk did not see is forgotten": (Window, "focus", _focused_on_all),
    "what fits no more is forgotten": (
        Window,
        "_give_up",
        lambda window: window._entries.clear(),  # noqa: SLF001
    ),
    "who fits no more is forgotten": (
        Past,
        "begin",
        lambda past: past._passed.clear(),  # noqa: SLF001
    ),
    "a transaction's 32 bits pass for its number": (
        Visibility,
        "sees",
        lambda seen, xid: xid < seen._xmax and xid not in seen._running,  # noqa: SLF001
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_no_rule_may_be_left_out(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[rule])

    def wrong(seed: int) -> bool:
        for server, stream in (added(seed), replaced(seed)):
            for reader in READERS:
                if reader(stream.topic) != table(server):
                    return True
        return False

    assert any(wrong(seed) for seed in range(5000))
