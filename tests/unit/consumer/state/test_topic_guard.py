"""What Kafka is asked about topics, for many lanes at once."""

import time
from collections.abc import Sequence

import pytest

from consumer.errors import TopicReplaced
from consumer.group.assigned_partition import Place
from consumer.state.topic_guard import TopicGuard
from walstream.errors import Transient

_PLACES = [Place("t", number) for number in range(3)]


class Asked(TopicGuard):
    """Brokers that say what they are told to, and note what they are asked."""

    def __init__(self) -> None:
        super().__init__({}, "g")
        self.topic_id = "first"
        self.high = 10
        self.away = False
        self.questions: list[object] = []

    def _id(self, topic: str) -> str | None:
        self.questions.append(topic)
        if self.away:
            raise Transient("Kafka does not answer")
        return self.topic_id

    def _bounds_of(self, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
        self.questions.append(sorted(places))
        return dict.fromkeys(places, (2, self.high))


@pytest.fixture
def guard() -> Asked:
    guard = Asked()
    for place in _PLACES:
        guard.expect(place)
    return guard


def test_one_question_is_for_all_lanes_of_a_topic(guard: Asked) -> None:
    since = time.monotonic()
    for place in _PLACES:
        assert guard.check(place, 5, None, since) == "first"
    assert guard.questions == ["t", _PLACES]
    guard.check(_PLACES[0], 5, None, time.monotonic())
    assert len(guard.questions) == 4


def test_an_answer_that_is_older_than_the_row_stops_nobody(guard: Asked) -> None:
    since = time.monotonic()
    guard.check(_PLACES[0], 5, None, since)
    guard.high, guard.topic_id = 12, "second"
    assert guard.check(_PLACES[1], 12, "second", since) == "second"
    with pytest.raises(TopicReplaced, match="ends at 12"):
        guard.check(_PLACES[1], 13, "second", since)
    with pytest.raises(TopicReplaced, match="begins at 2"):
        guard.check(_PLACES[1], 1, "second", since)
    with pytest.raises(TopicReplaced, match="created again"):
        guard.check(_PLACES[1], 5, "third", since)


def test_a_failure_is_that_of_all_who_asked_at_the_time(
    guard: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard.away = True
    since = time.monotonic()
    for place in _PLACES:
        with pytest.raises(Transient):
            guard.check(place, 5, None, since)
    assert guard.questions == ["t"]
    guard.away = False
    monkeypatch.setattr("consumer.state.topic_guard._TROUBLE_S", 0)
    assert guard.check(_PLACES[0], 5, None, since) == "first"
