"""Topics that are read: what they were, and what the group had of them."""

from collections.abc import Iterable

import pytest

from tests.support.deadline import wait_until
from walstream.config.source import KafkaSource
from walstream.errors import HistoryError, Restart, Transient, WalstreamError
from walstream.kafka.advertised_listeners import BrokersElsewhere
from walstream.kafka.topic_metadata import Described
from walstream.sources.kafka import source_topics
from walstream.sources.kafka.offset_metadata import read
from walstream.sources.kafka.source_topics import BEGUN, ReadTopics
from walstream.testing import MemoryStore

UP = "up"


class Brokers:
    """What is there, and may be changed."""

    def __init__(self) -> None:
        self.topics = {UP: Described(4, "id")}
        self.failure: WalstreamError | None = None
        self.asked = 0

    def look(
        self, names: Iterable[str], timeout_s: float | None = None
    ) -> dict[str, Described]:
        assert timeout_s is None or timeout_s > 0
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return {name: self.topics[name] for name in names if name in self.topics}


def topics(
    folder: MemoryStore, brokers: Brokers | None = None, group: str = "g"
) -> ReadTopics:
    source = KafkaSource.model_validate(
        {
            "kind": "kafka",
            "topics": [UP, "absent"],
            "group": group,
            "sinks": ["far"],
            "consumer": {"bootstrap.servers": "near:9092"},
        }
    )
    made = ReadTopics(source, folder, brokers or Brokers())
    made.look()
    return made


def test_topics_that_are_there_are_known() -> None:
    brokers = Brokers()
    made = topics(MemoryStore(), brokers)
    assert list(made.found) == [UP]
    with pytest.raises(Transient, match="absent"):
        made.look_again(["absent"])
    brokers.topics["absent"] = Described(1, "later")
    made.look_again(["absent"])
    assert made.found["absent"].identity == "later"


def test_a_group_that_stored_offsets_and_has_none_does_not_begin() -> None:
    folder, brokers = MemoryStore(), Brokers()
    made = topics(folder, brokers)
    assert read(made.begins(UP)).topic == "id"
    made.note_begun({UP, "unknown"})
    with pytest.raises(HistoryError, match="which are gone: Kafka del") as caught:
        topics(folder, brokers).begins(UP)
    command = caught.value.repair.command
    assert f"--topic {UP} --reset-offsets --to-earliest" in command
    assert topics(folder, brokers, "another").begins(UP)
    brokers.topics[UP] = Described(4, "new")
    with pytest.raises(HistoryError, match="created again"):
        topics(folder, brokers).begins(UP)


def test_what_is_kept_is_written_when_it_changes() -> None:
    folder = MemoryStore()
    made = topics(folder)
    made.note_begun([])
    assert not folder.names("")
    made.note_begun([UP])
    assert folder.names("") == [BEGUN.name]
    folder.write(BEGUN.entry(None))
    made.note_begun([UP])
    assert not folder.names("")


@pytest.mark.parametrize("now", [Described(4, "new"), Described(5, "id")])
def test_another_topic_of_the_name_ends_the_membership(now: Described) -> None:
    brokers = Brokers()
    made = topics(MemoryStore(), brokers)
    brokers.topics[UP] = now
    with pytest.raises(Restart):
        made.look_again([UP])


def test_another_topic_is_seen_beside_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_topics, "_WATCH_EVERY_S", 0.0)
    brokers = Brokers()
    made = topics(MemoryStore(), brokers)
    made.watch()
    brokers.topics[UP] = Described(4, "new")

    def ended() -> bool:
        try:
            made.watch()
        except Restart:
            return True
        return False

    wait_until(ended, 10, "it is seen")
    made.close()


def test_brokers_that_come_elsewhere_stop_it_and_others_failures_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_topics, "_WATCH_EVERY_S", 0.0)
    brokers = Brokers()
    made = topics(MemoryStore(), brokers)
    brokers.failure = Transient("away")
    before = brokers.asked

    def asked_again() -> bool:
        made.watch()
        return brokers.asked > before + 2

    wait_until(asked_again, 10, "it goes on asking")
    brokers.failure = BrokersElsewhere("b.example")

    def stopped() -> bool:
        try:
            made.watch()
        except BrokersElsewhere:
            return True
        return False

    wait_until(stopped, 10, "it is seen")
    made.close()
