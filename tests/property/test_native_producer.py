"""Both producers write the same records: the binding's, and the one without it."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.deadline import wait_until
from tests.support.programs.compiled_form import needs_a_compiler
from tests.support.programs.native_module import compile_native, load_native
from tests.support.servers.mock_kafka import PARTITIONS, Mocked
from walstream.kafka import native_producer
from walstream.kafka.native_producer import BINDING
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.pipeline.ledger import Counted

# the binding ends a text at its first zero, and takes no surrogates either
WORDS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20
)
HEADERS = st.lists(
    st.tuples(WORDS, st.none() | st.binary(max_size=20) | WORDS),
    min_size=1,
    max_size=3,
)
RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=20),
        st.integers(0, PARTITIONS - 1),
        st.integers(1, 1 << 42),
        st.none() | HEADERS,
        st.booleans(),  # is it the last of its transaction?
    ),
    min_size=1,
    max_size=40,
)


class Form:
    """An ordered producer, and a reader of its topic."""

    def __init__(self, kafka: Mocked, topic: str) -> None:
        given = {"bootstrap.servers": kafka.bootstrap}
        limit = 1 << 20
        self.producer = OrderedProducer("k", producer_properties(given, limit, limit))
        self._topic = Topic(topic, "id", PARTITIONS, limit)
        self._reader = Consumer({**given, "group.id": "g"})
        self._reader.assign(
            [TopicPartition(topic, one, 1) for one in range(PARTITIONS)]
        )

    def records(self, given: list[tuple[Any, ...]]) -> list[Any]:
        """Write them; return what is read, in each partition in order."""
        counted = Counted()
        every = [counted]
        for value, key, partition, stamp, headers, is_last in given:
            self.producer.put(
                self._topic, value, key, partition, stamp, counted, headers
            )
            if is_last:
                counted = Counted()
                every.append(counted)
        wait_until(self._is_served, 30, "all is served")
        assert [one.undelivered for one in every] == [0] * len(every)
        found: list[Any] = []

        def are_read() -> bool:
            for one in self._reader.consume(len(given) - len(found), 0.2):
                assert one.error() is None
                found.append(one)
            return len(found) == len(given)

        wait_until(are_read, 30, "all is read")
        found.sort(key=lambda one: (one.partition(), one.offset()))
        return [
            (
                *(one.partition(), one.offset(), one.value(), one.key()),
                *(one.timestamp(), one.headers()),
            )
            for one in found
        ]

    def _is_served(self) -> bool:
        room = self.producer.serve()
        return room and not self.producer.in_flight

    def close(self) -> None:
        self.producer.close(0)
        self._reader.close()


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Form, Form]]:
    needs_a_compiler()
    module = load_native(compile_native(tmp_path_factory.mktemp("native")))
    kafka = Mocked()
    for topic in ("one", "other"):
        kafka.write(topic, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_producer, "_module", lambda: module)
        one = Form(kafka, "one")
        patch.undo()
        patch.setenv(BINDING, "1")
        other = Form(kafka, "other")
    yield one, other
    one.close()
    other.close()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(given=RECORDS)
def test_the_same_records_are_written(
    forms: tuple[Form, Form], given: list[tuple[Any, ...]]
) -> None:
    one, other = forms
    assert type(one.producer._producer) is not type(other.producer._producer)  # noqa: SLF001 - which form
    assert one.records(given) == other.records(given)
