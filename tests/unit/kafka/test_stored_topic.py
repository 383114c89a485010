"""Another count of partitions moves keys; another identity is another topic."""

from dataclasses import replace

from walstream.errors import TopicLost
from walstream.kafka import stored_topic
from walstream.kafka.stored_topic import TOPICS, StoredTopic
from walstream.testing import MemoryStore

BEFORE = StoredTopic(2, "id")


def test_the_same_topic_is_no_difference() -> None:
    assert not stored_topic.moved(BEFORE, BEFORE)
    assert not stored_topic.created_again(BEFORE, BEFORE)


def test_other_partitions_move_keys_whatever_the_identity() -> None:
    found = StoredTopic(3, "other")
    assert stored_topic.moved(found, BEFORE) == (
        "has 3 partitions, it had 2: keys would move to others"
    )
    assert stored_topic.created_again(found, BEFORE)


def keys(**columns: list[str]) -> str:
    return stored_topic.keys_text("murmur2", "json", columns)


def layout(partitions: int, keys: str, *before: StoredTopic) -> int:
    found = StoredTopic(partitions, "id")
    return stored_topic.laid_out(found, keys, *before or [None]).layout


def test_each_change_of_where_keys_go_is_another_layout() -> None:
    first = stored_topic.laid_out(BEFORE, keys(), None)
    assert first.layout == 1
    assert layout(2, keys(), first) == 1
    assert layout(3, keys(), first) == 2
    assert layout(2, keys(t=["org"]), first) == 2
    second = stored_topic.laid_out(StoredTopic(3, "id"), keys(), first)
    assert layout(3, keys(), second) == 2
    assert layout(2, keys(), second) == 3


def test_what_an_earlier_version_kept_is_the_first_layout() -> None:
    first = MemoryStore({"topics/k/t": {"partitions": 2, "identity": "id"}})
    assert TOPICS.read_all(first) == {"k/t": BEFORE}
    assert layout(2, keys(t=["org"]), BEFORE) == 1
    assert layout(3, keys(), BEFORE) == 2


def test_a_topic_of_one_partition_or_another_one_has_nothing_elsewhere() -> None:
    one = stored_topic.laid_out(StoredTopic(1, "id"), keys(), None)
    assert layout(1, keys(t=["org"]), one) == 1
    before = replace(one, partitions=2, identity="other", layout=7)
    assert layout(3, keys(), before) == 1


def test_the_error_names_the_topic_and_the_command() -> None:
    error = stored_topic.partitions_changed(
        "t", stored_topic.moved(StoredTopic(3, "id"), BEFORE)
    )
    assert isinstance(error, TopicLost)
    assert str(error).startswith("topic 't' has 3 partitions")
    assert error.repair.command == "walstream run --accept-partitions"


def test_documents_are_named_by_sink_and_topic() -> None:
    assert stored_topic.document_of("kafka", "public.t").name == "topics/kafka/public.t"
