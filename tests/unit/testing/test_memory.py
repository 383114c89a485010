"""A slot, positions and a companion in memory keep the promises of the real ones."""

import select

import pytest

from walstream.errors import Transient, WalstreamError
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.pgoutput import Relation
from walstream.pipeline.ports import Companion, Position, Source, StateStore
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.row import UNCHANGED
from walstream.testing import MemoryCompanion, MemorySource, MemoryStore

RELATION = Relation(1, "public", "t", "f", [])


def test_they_are_what_the_pipeline_asks_for() -> None:
    with MemorySource() as source:
        parts: tuple[Source, StateStore, Companion]
        parts = (source, MemoryStore(), MemoryCompanion())
    assert parts


def test_source_gives_frames_by_the_batch() -> None:
    with MemorySource([b"1", b"2", b"3", b"4"], batches=[1, 0]) as source:
        assert [source.read(2) for _ in range(4)] == [[b"1"], [], [b"2", b"3"], [b"4"]]
        assert source.unread == 0


def test_source_is_always_worth_a_read() -> None:
    with MemorySource() as source:
        assert select.select([source], [], [], 0)[0] == [source]


def test_exhausted_source_says_so_and_may_end() -> None:
    said: list[str] = []
    ended = Transient("ended")
    with MemorySource(
        [b"1"], on_exhausted=lambda: said.append("empty"), ending=ended
    ) as source:
        source.read(5)
        assert said == []
        with pytest.raises(Transient):
            source.read(5)
    assert said == ["empty"]


def test_positions_keep_documents_apart_from_their_writer() -> None:
    positions = MemoryStore()
    document = {"a": [1]}
    positions.write({"keys/x": document, "y": 1})
    document["a"].append(2)
    assert positions.read("keys/x") == {"a": [1]}
    assert positions.names("keys/") == ["keys/x"]
    positions.write({"y": None})
    assert positions.read("y") is None


def test_positions_never_go_back() -> None:
    positions = MemoryStore()
    positions.store(Position(5, 1, 1, "d", "s"))
    with pytest.raises(WalstreamError):
        positions.store(Position(4, 1, 1, "d", "s"))
    assert positions.position() == Position(5, 1, 1, "d", "s")


def test_companion_answers_after_its_patience() -> None:
    history = KeyHistory([KeySet(0, ("id",))])
    woken: list[int] = []
    companion = MemoryCompanion(
        {"public.t": history},
        patience=2,
        wake=lambda: woken.append(1),
    )
    assert companion.keys(RELATION, 1) is None
    assert companion.keys(RELATION, 1) is None
    assert companion.keys(RELATION, 1) is history
    assert len(woken) == 2


def test_companion_fills_what_was_not_sent() -> None:
    table = Table("public", "t", ("id", "v"))
    op = ReplicationOp(Kind.UPDATE, table, 1, 0, new=["1", UNCHANGED])
    assert MemoryCompanion(toasted="found").complete(op)
    assert op.new == ["1", "found"]
