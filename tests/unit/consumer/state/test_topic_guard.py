"""What Kafka is asked about topics, for many lanes at once."""

import time
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from consumer.errors import TopicReplaced
from consumer.group.assigned_partition import Place
from consumer.state import topic_guard
from consumer.state.topic_guard import TopicGuard
from tests.support.runtime import altered
from walstream.errors import Transient

_PLACES = [Place("t", number) for number in range(3)]


class Asked(TopicGuard):
    """Brokers that say what they are told to, and note what they are asked."""

    def __init__(self) -> None:
        super().__init__({}, "g")
        self.topic_id: str | None = "first"
        self.low, self.high = 2, 10
        self.away = False
        self.questions: list[object] = []

    def _id(self, topic: str) -> str | None:
        self.questions.append(topic)
        if self.away:
            raise Transient("Kafka does not answer")
        return self.topic_id

    def _bounds_of(self, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
        self.questions.append(sorted(places))
        return dict.fromkeys(places, (self.low, self.high))


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
            guard.check_id(place, 5, None, since)
    assert guard.questions == ["t"]
    guard.away = False
    monkeypatch.setattr("consumer.state.topic_guard._TROUBLE_S", 0)
    assert guard.check(_PLACES[0], 5, None, since) == "first"


@pytest.mark.parametrize("offset", [2, 10])
def test_the_first_offset_and_the_next_one_can_be_read(
    guard: Asked, offset: int
) -> None:
    guard.check(_PLACES[0], offset, None, 0)
    assert guard.questions == ["t", _PLACES]


def test_a_lane_that_knows_no_offset_asks_for_the_topic_alone(guard: Asked) -> None:
    assert guard.check(_PLACES[0], None, None, 0) == "first"
    with pytest.raises(TopicReplaced, match="created again") as stopped:
        guard.check(_PLACES[0], None, "another", 0)
    assert (stopped.value.topic, stopped.value.partition) == ("t", 0)
    assert stopped.value.offset == -1


def test_an_offset_that_kafka_has_by_now_stops_nobody(guard: Asked) -> None:
    """An answer of before may be older than the row, in either direction."""
    guard.check(_PLACES[0], 5, None, 0)
    guard.low = 1
    guard.check(_PLACES[0], 1, None, 0)
    assert guard.questions[2:] == [[_PLACES[0]]]


def test_a_partition_that_nobody_told_of_is_asked_for(guard: Asked) -> None:
    guard.check(_PLACES[0], 5, None, 0)
    guard.low = 0
    late = Place("t", 9)
    guard.check(late, 1, None, 0)
    assert guard.questions[2:] == [[late]]


def test_brokers_that_know_no_ids_stop_nobody(guard: Asked) -> None:
    guard.topic_id = None
    assert guard.check(_PLACES[0], 5, "first", 0) == "first"
    assert guard.check(_PLACES[0], 5, None, 0) is None


def test_an_id_that_cannot_be_had_again_stops_nobody(guard: Asked) -> None:
    guard.check(_PLACES[0], 5, "first", 0)
    guard.topic_id = None
    assert guard.check(_PLACES[0], 5, "second", 0) == "second"


def test_the_error_tells_how_to_forget_the_topic(guard: Asked) -> None:
    with pytest.raises(TopicReplaced, match="group g would continue at 11") as stopped:
        guard.check(_PLACES[2], 11, None, 0)
    error = stopped.value
    assert (error.topic, error.partition, error.offset) == ("t", 2, 11)
    assert "group_id = 'g' AND topic = 't';" in error.repair.sql
    assert error.hint.startswith("backfill the tables again")
    assert error.hint.endswith(error.repair.sql)


class Slow(Asked):
    """Brokers that take their time."""

    now = 1000.0

    def _id(self, topic: str) -> str | None:
        self.now += 10
        return super()._id(topic)


def test_a_failure_counts_for_a_moment() -> None:
    """From its end: it may have taken long."""
    guard = Slow()
    guard.away = True
    with altered(monotonic=lambda: guard.now):
        for seconds in (0.0, 0.25, 0.25):
            guard.now += seconds
            with pytest.raises(Transient, match="Kafka does not answer"):
                guard.check(_PLACES[0], 5, None, 0)
    assert guard.questions == ["t", "t"]


class Promised:
    """An answer of the brokers that comes after some seconds, or never."""

    def __init__(self, admin: "Admin", result: Any, seconds: float = 0.0) -> None:
        self._admin, self._result = admin, result
        self._at = admin.now + seconds

    def result(self, timeout: float) -> Any:
        waited = self._admin.waited
        waited[self] = waited.get(self, 0.0) + timeout
        left = max(0.0, self._at - self._admin.now)
        self._admin.now += min(timeout, left)
        if left > timeout:
            raise TimeoutError
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


class Admin:
    """Kafka's admin client."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waited: dict[Promised, float] = {}  # for each answer, in all
        self.made = 0
        self.listings = 0
        self.seconds = 0.0
        self.id: Any = SimpleNamespace(topic_id="id")
        self.offsets: dict[int, Any] = {0: (3, 9), 1: (0, 0), 2: (4, 4)}
        self.listed: Any = 3
        self.stored: Any = SimpleNamespace(topic_partitions=None)
        self.seconds_of_group = 0.0

    def __call__(self, *_: object, **__: object) -> "Admin":
        self.made += 1
        return self

    def describe_topics(self, *_: object, **__: object) -> dict[str, Promised]:
        return {"t": Promised(self, self.id, self.seconds)}

    def list_offsets(
        self, asked: Iterable[TopicPartition], **_: object
    ) -> dict[TopicPartition, Promised]:
        latest = self._asks_for_the_end
        self._asks_for_the_end = not latest
        return {one: self._promised(one.partition, latest) for one in asked}

    _asks_for_the_end = False

    def _promised(self, number: int, latest: bool) -> Promised:
        found = self.offsets[number]
        if not isinstance(found, Exception):
            found = SimpleNamespace(offset=found[latest])
        return Promised(self, found, 60.0 if self.seconds else 0.0)

    def list_consumer_group_offsets(
        self, *_: object, **__: object
    ) -> dict[str, Promised]:
        return {"g": Promised(self, self.stored, self.seconds_of_group)}

    def list_topics(self, topic: str = "", **_: object) -> Any:
        self.listings += 1
        if isinstance(self.listed, Exception):
            raise self.listed
        found = SimpleNamespace(partitions=dict.fromkeys(range(self.listed)))
        return SimpleNamespace(topics={topic: found})


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Admin]:
    admin = Admin()
    monkeypatch.setattr(topic_guard, "AdminClient", admin)
    with altered(monotonic=lambda: admin.now):
        yield admin


@pytest.fixture
def asking(admin: Admin) -> TopicGuard:
    assert not admin.made
    guard = TopicGuard({}, "g")
    for place in _PLACES:
        guard.expect(place)
    return guard


def refused(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def test_the_brokers_are_asked_by_one_client(asking: TopicGuard, admin: Admin) -> None:
    assert asking.check(_PLACES[0], 9, None, 0) == "id"
    assert asking.check(_PLACES[1], 0, None, 0) == "id"
    with pytest.raises(TopicReplaced, match="ends at 4"):
        asking.check(_PLACES[2], 5, None, 0)
    with pytest.raises(TopicReplaced, match="begins at 3"):
        asking.check(_PLACES[0], 2, None, 0)
    assert asking.bounds(_PLACES[0]) == (3, 9)
    assert asking.partitions("t") == 3
    assert admin.made == 1


def test_an_offset_that_no_broker_gave_replaces_no_topic(
    asking: TopicGuard, admin: Admin
) -> None:
    """So librdkafka has it where a broker stands still, without an error."""
    admin.offsets = dict.fromkeys(admin.offsets, (OFFSET_INVALID, OFFSET_INVALID))
    with pytest.raises(Transient, match="no broker answers"):
        asking.check(_PLACES[0], 9, None, 0)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - a local code of librdkafka
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
def test_an_old_broker_and_one_that_may_not_be_asked_stop_nobody(
    asking: TopicGuard, admin: Admin, code: int
) -> None:
    admin.id = refused(code)
    assert asking.check(_PLACES[0], 5, "known", 0) == "known"


def test_other_refusals_pass(asking: TopicGuard, admin: Admin) -> None:
    """Of a topic that was deleted, too: it may come again, as another one."""
    unknown = refused(KafkaError.UNKNOWN_TOPIC_OR_PART)
    admin.id = unknown
    with pytest.raises(Transient, match="asking for topic 't'"):
        asking.check(_PLACES[0], 5, None, 0)
    admin.listed = unknown
    with pytest.raises(Transient, match="asking for topic 't'"):
        asking.partitions("t")
    admin.listed = 0
    with pytest.raises(Transient, match="no partitions"):
        asking.partitions("t")


def test_one_partition_that_is_refused_stops_no_other(
    asking: TopicGuard, admin: Admin
) -> None:
    """It has no leader, for one."""
    admin.offsets[1] = refused(KafkaError.LEADER_NOT_AVAILABLE)
    assert asking.check(_PLACES[0], 5, None, 0) == "id"
    assert asking.check(_PLACES[2], 4, None, 0) == "id"
    with pytest.raises(Transient, match=r"asking for t\[1\]"):
        asking.check(_PLACES[1], 0, None, 0)
    admin.offsets = dict.fromkeys(range(3), admin.offsets[1])
    with pytest.raises(Transient, match="LEADER_NOT_AVAILABLE"):
        asking.check(_PLACES[0], 5, None, admin.now + 1)


def test_a_partition_without_an_answer_passes(
    asking: TopicGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_bounds_of", lambda _: {})
    with pytest.raises(Transient, match="reports no offsets"):
        asking.bounds(_PLACES[0])


def test_a_topic_of_which_no_partition_is_ours_is_asked_for_its_id(
    admin: Admin,
) -> None:
    guard = TopicGuard({}, "g")
    assert guard.check(_PLACES[0], None, None, 0) == "id"
    assert len(admin.waited) == 1
    with pytest.raises(TopicReplaced, match="ends at 9"):
        guard.check(_PLACES[0], 10, None, 0)


def test_an_answer_of_this_very_moment_will_do(
    asking: TopicGuard, admin: Admin
) -> None:
    for place in _PLACES:
        asking.check(place, None, None, admin.now)
    assert len(admin.waited) == 1 + 2 * len(_PLACES)


@pytest.mark.parametrize(("seconds", "questions"), [(60.0, 1), (8.0, 2)])
def test_brokers_that_do_not_answer_are_not_waited_for_by_the_partition(
    asking: TopicGuard, admin: Admin, seconds: float, questions: int
) -> None:
    """All of them answer within the time of one."""
    admin.seconds = seconds
    began = admin.now
    with pytest.raises(Transient, match="does not answer"):
        asking.check(_PLACES[0], 5, None, 0)
    assert len(admin.waited) == questions
    # the brokers' own answer, that it took too long, comes before
    assert admin.listings >= 7  # who the controller is is asked meanwhile
    *answered, last = admin.waited.values()
    assert last > 10
    assert all(seconds >= waited for waited in answered)
    assert admin.now - began < 25


def stored(topic: str, number: int, offset: int, error: object = None) -> Any:
    return SimpleNamespace(topic=topic, partition=number, offset=offset, error=error)


def test_a_group_begins_with_the_oldest_records(asking: TopicGuard) -> None:
    assert asking.begins("t", latest=False) == ({0: (3, 9), 1: (0, 0), 2: (4, 4)}, "id")


def test_a_group_that_begins_with_the_latest_goes_on_where_it_is_in_kafka(
    asking: TopicGuard, admin: Admin
) -> None:
    """As far as Kafka has that yet, or still."""
    assert asking.begins("t", latest=True)[0] == {0: (9, 9), 1: (0, 0), 2: (4, 4)}
    for offset, begin in ((5, 5), (3, 3), (2, 3), (0, 3), (12, 9), (OFFSET_INVALID, 9)):
        admin.stored = SimpleNamespace(
            topic_partitions=[
                stored("other", 0, 4),
                stored("t", 0, offset),
                stored("t", 0, 6, error="refused"),
            ]
        )
        assert asking.begins("t", latest=True)[0][0] == (begin, 9), offset


def test_a_group_does_not_begin_while_kafka_tells_not_where(
    asking: TopicGuard, admin: Admin
) -> None:
    admin.stored = refused(KafkaError.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(Transient, match="asking for group g"):
        asking.begins("t", latest=True)
    admin.stored, admin.seconds_of_group = SimpleNamespace(topic_partitions=[]), 60.0
    with pytest.raises(Transient, match="does not answer"):
        asking.begins("t", latest=True)
    # longer than the brokers' own answer takes, that it took too long
    assert 10 < max(admin.waited.values()) < 12
    asking.begins("t", latest=False)
    admin.offsets[0] = (OFFSET_INVALID, OFFSET_INVALID)
    listings = admin.listings
    with pytest.raises(Transient, match=r"asking for t\[0\]: Kafka reports no offsets"):
        asking.begins("t", latest=False)
    # of the others they were had; who leads is asked again
    assert admin.listings == listings + 2
