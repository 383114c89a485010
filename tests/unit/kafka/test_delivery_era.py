"""An era ends with whatever changes where a topic's records go, and with a rewind."""

from dataclasses import replace

import pytest

from walstream.errors import StateDamaged
from walstream.kafka import delivery_era
from walstream.kafka.delivery_era import ERAS, OVER, DeliveryEra, rules_of
from walstream.kafka.offsets import OffsetBounds
from walstream.kafka.topic import Topic
from walstream.testing.memory import MemoryStore

ERA = DeliveryEra("rules", 8, [3, 4])


def topic(identity: str = "id", partitions: int = 2, limit: int = 1000) -> Topic:
    return Topic("t", identity, partitions, limit)


def laid_out() -> Topic:
    made = topic()
    made.lay_out(2)
    return made


@pytest.mark.parametrize(
    "other",
    [topic(identity="id2"), topic(partitions=3), topic(limit=1001), laid_out()],
)
def test_another_topic_has_other_rules(other: Topic) -> None:
    told = {"a": 1, "b": ["x"]}
    rules = rules_of(topic(), told)
    assert rules_of(other, told) != rules
    assert rules_of(topic(), {"a": 1, "b": ["y"]}) != rules
    assert rules_of(topic(), {"b": ["x"], "a": 1}) == rules


def test_what_changes_no_records_place_changes_no_rules() -> None:
    other = Topic("t", "id", 2, 1000, 5, "advice")
    assert rules_of(other, [1]) == rules_of(topic(), [1])


def test_rules_are_short_as_many_records_tell_them() -> None:
    rules = rules_of(topic(), ["x" * 1000])
    assert len(rules) == 16
    assert rules.isascii()


def test_a_fresh_one_begins_at_the_ends() -> None:
    bounds = [OffsetBounds(1, 3), OffsetBounds(0, 4)]
    assert delivery_era.fresh("rules", 8, bounds) == ERA


def test_it_is_read_as_it_was_stored() -> None:
    store = MemoryStore(ERAS.of("k/t").entry(ERA))
    assert ERAS.of("k/t").read(store) == ERA
    assert ERAS.of("k/other").read(store) is None
    store.write({"eras/k/t": {"rules": 7}})
    with pytest.raises(StateDamaged, match="eras/k/t"):
        ERAS.of("k/t").read(store)


@pytest.mark.parametrize(
    ("sink", "over"),
    [
        ("", {"k/t", "k/u.v", "k2/t", "k/2/t"}),
        ("k", {"k/t", "k/u.v", "k/2/t"}),
        ("z", set()),
    ],
)
def test_all_of_a_sink_or_of_all_are_ended(sink: str, over: set[str]) -> None:
    names = ["k/t", "k/u.v", "k2/t", "k/2/t"]
    store = MemoryStore({"other": 1})
    for number, name in enumerate(names):
        store.write(ERAS.of(name).entry(replace(ERA, since=number)))
    store.write(delivery_era.ended(store, sink))
    found = ERAS.read_all(store)
    assert {name for name in names if found[name] == OVER} == over
    assert store.read("other") == 1


def test_one_that_is_over_is_no_topics() -> None:
    assert rules_of(topic(), None) != OVER.rules


def test_a_sink_takes_its_own_along() -> None:
    store = MemoryStore({"other": 1, "eras/k2/t": 2})
    store.write(ERAS.of("k/t").entry(ERA))
    taken = MemoryStore(delivery_era.of_sink(store, "k"))
    assert taken.names("") == ["eras/k/t"]
    assert ERAS.of("k/t").read(taken) == ERA
