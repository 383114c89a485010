"""Another count of partitions moves keys; another identity is another topic."""

from walstream.errors import TopicLost
from walstream.kafka import kept

BEFORE = kept.document(2, "id")


def test_the_same_topic_is_no_difference() -> None:
    assert not kept.moved(BEFORE, BEFORE)
    assert not kept.created_again(BEFORE, BEFORE)
    assert BEFORE == {"partitions": 2, "identity": "id"}


def test_other_partitions_move_keys_whatever_the_identity() -> None:
    found = kept.document(3, "other")
    assert kept.moved(found, BEFORE) == (
        "has 3 partitions, it had 2: keys would move to others"
    )
    assert kept.created_again(found, BEFORE)


def test_the_error_names_the_topic_and_the_command() -> None:
    error = kept.partitions_changed("t", kept.moved(kept.document(3, "id"), BEFORE))
    assert isinstance(error, TopicLost)
    assert str(error).startswith("topic 't' has 3 partitions")
    assert error.repair.command == "walstream run --accept-partitions"


def test_documents_are_named_by_sink_and_topic() -> None:
    assert kept.document_name("kafka", "public.t") == "topics/kafka/public.t"
