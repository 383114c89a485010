"""A partition that is not led is there; one that is not there is lost."""

from collections.abc import Iterator

import pytest

from walstream.errors import TopicLost, Transient
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_reader import TopicReader


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicReader]:
    """Read where librdkafka says of each partition that it does not know it."""
    unknown = TopicLost("asking for offsets of 't': Local: Unknown partition")
    monkeypatch.setattr(TopicReader, "_ask_offsets", lambda *_: ({}, unknown))
    monkeypatch.setattr(TopicReader, "topics", lambda _: {"t": 2})
    with TopicReader({"bootstrap.servers": "localhost:1"}, 0.01) as made:
        yield made


def test_one_without_a_leader_is_waited_for(reader: TopicReader) -> None:
    with pytest.raises(Transient, match="no leader") as raised:
        reader.ends([Partition("t", 1)])
    assert raised.value.retryable


@pytest.mark.parametrize("place", [Partition("t", 2), Partition("other", 0)])
def test_one_that_is_not_there_is_lost(reader: TopicReader, place: Partition) -> None:
    with pytest.raises(TopicLost):
        reader.ends([Partition("t", 0), place])
