"""Another count of partitions moves keys; another identity is another topic."""

from dataclasses import replace

from walstream.errors import TopicLost
from walstream.kafka import topic_record
from walstream.kafka.topic_record import TOPICS, StoredTopic
from walstream.testing import MemoryPositions

BEFORE = StoredTopic(2, "id")


def test_the_same_topic_is_no_difference() -> None:
    assert not topic_record.moved(BEFORE, BEFORE)
    assert not topic_record.created_again(BEFORE, BEFORE)


def test_other_partitions_move_keys_whatever_the_identity() -> None:
    found = StoredTopic(3, "other")
    assert topic_record.moved(found, BEFORE) == (
        "has 3 partitions, it had 2: keys would move to others"
    )
    assert topic_record.created_again(found, BEFORE)


def keys(**columns: list[str]) -> str:
    return topic_record.keys_text("murmur2", "json", columns)


def layout(partitions: int, keys: str, *before: StoredTopic) -> int:
    found = StoredTopic(partitions, "id")
    return topic_record.laid_out(found, keys, *before or [None]).layout


def test_each_change_of_where_keys_go_is_another_layout() -> None:
    first = topic_record.laid_out(BEFORE, keys(), None)
    assert first.layout == 1
    assert layout(2, keys(), first) == 1
    assert layout(3, keys(), first) == 2
    assert layout(2, keys(t=["org"]), first) == 2
    second = topic_record.laid_out(StoredTopic(3, "id"), keys(), first)
    assert layout(3, keys(), second) == 2
    assert layout(2, keys(), second) == 3


def test_what_an_earlier_version_kept_is_the_first_layout() -> None:
    first = MemoryPositions({"topics/k/t": {"partitions": 2, "identity": "id"}})
    assert TOPICS.read_all(first) == {"k/t": BEFORE}
    assert layout(2, keys(t=["org"]), BEFORE) == 1
    assert layout(3, keys(), BEFORE) == 2


def test_a_topic_of_one_partition_or_another_one_has_nothing_elsewhere() -> None:
    one = topic_record.laid_out(StoredTopic(1, "id"), keys(), None)
    assert layout(1, keys(t=["org"]), one) == 1
    before = replace(one, partitions=2, identity="other", layout=7)
    assert layout(3, keys(), before) == 1


def test_the_error_names_the_topic_and_the_command() -> None:
    error = topic_record.partitions_changed(
        "t", topic_record.moved(StoredTopic(3, "id"), BEFORE)
    )
    assert isinstance(error, TopicLost)
    assert str(error).startswith("topic 't' has 3 partitions")
    assert error.repair.command == "walstream run --accept-partitions"


def test_documents_are_named_by_sink_and_topic() -> None:
    assert topic_record.document_of("kafka", "public.t").name == "topics/kafka/public.t"
