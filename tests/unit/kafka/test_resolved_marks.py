"""A mark says no more than what was delivered before brokers were asked."""

import json
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from walstream.errors import Transient
from walstream.kafka.resolved_marks import ResolvedMarks


class Rig:
    """Marks each second, and brokers that answer when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[dict[str, int]] = []
        self.answer: Future[dict[str, list[int]]] = Future()
        known = {
            name: SimpleNamespace(partitions=count)
            for name, count in (("t", 2), ("info", 1), ("large", 1))
        }
        topics: Any = SimpleNamespace(known=known, ends=self.ends)
        self.marks = ResolvedMarks(
            "k",
            "info",
            1.0,
            topics,
            aside={"info", "large"},
            clock=lambda: self.now,
        )

    def ends(self, partitions: dict[str, int]) -> "Future[dict[str, list[int]]]":
        self.asked.append(partitions)
        self.answer = Future()
        return self.answer

    def due(self) -> dict[str, Any] | None:
        mark = self.marks.due()
        if mark is None:
            return None
        record, _ = mark
        assert (record.topic, record.key) == ("info", b"resolved")
        said: dict[str, Any] = json.loads(record.value or b"")
        return said


def test_nothing_is_asked_before_a_position_is_known() -> None:
    rig = Rig()
    assert rig.due() is None
    assert rig.asked == []


def test_a_mark_has_the_position_of_before_the_question() -> None:
    rig = Rig()
    rig.marks.resolve(100)
    assert rig.due() is None
    rig.marks.resolve(200)  # its records may be above what is answered now
    assert rig.due() is None
    rig.answer.set_result({"t": [7, 9]})
    said = rig.due()
    assert said is not None
    assert (said["resolved"], said["next"]) == (100, {"t": [7, 9]})
    assert rig.asked == [{"t": 2}]


def test_it_comes_once_an_interval_and_not_while_the_position_rests() -> None:
    rig = Rig()
    told = []
    rig.marks.resolve(100)
    for now in range(40):
        rig.now = now / 10
        if now == 15:
            rig.marks.resolve(200)
        said = rig.due()
        if said is not None:
            told.append((rig.now, said["resolved"]))
        elif not rig.answer.done():
            rig.answer.set_result({})
    assert told == [(0.1, 100), (1.6, 200)]


def test_without_an_answer_it_is_asked_again_and_said_once() -> None:
    rig = Rig()
    rig.marks.resolve(100)
    with capture_logs() as logs:
        for turn in range(3):
            rig.now = float(turn)
            assert rig.due() is None
            rig.answer.set_exception(Transient("Kafka does not answer"))
            assert rig.due() is None
    assert len(rig.asked) == 3
    assert [one["error"] for one in logs] == ["Kafka does not answer"]
