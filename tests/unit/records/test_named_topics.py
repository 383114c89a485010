"""A topic that a record names is legal, one of few, and no table's."""

import pytest

from walstream.errors import HistoryError
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.named_topics import NamedTopics
from walstream.records.router import Router, RoutingRules, TopicMapping

OUTBOX = ReplicationOp(Kind.INSERT, Table("public", "outbox", ("id",), (0,)), 8, 3)
ORDERS = ReplicationOp(Kind.INSERT, Table("public", "orders", ("id",), (0,)), 8, 4)
RULES = RoutingRules({"public.mapped": TopicMapping("mapped")}, "app.{table}", "rest")


def named(most: int = 2) -> NamedTopics:
    router = Router("app", RULES)
    router.topic("public", "orders")
    return NamedTopics(router, most)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "x" * 250, "a\n"])
def test_a_name_that_kafka_refuses_stops(name: str) -> None:
    with pytest.raises(HistoryError, match="does not allow"):
        named().admit(name, OUTBOX)


def test_the_longest_name_is_legal() -> None:
    topics = named()
    topics.admit("x" * 249, OUTBOX)
    assert "x" * 249 in topics


@pytest.mark.parametrize("name", ["app.orders", "mapped", "rest", "parked"])
def test_a_topic_that_has_other_records_stops(name: str) -> None:
    topics = named()
    topics.reserve("parked")
    with pytest.raises(HistoryError, match="has other records"):
        topics.admit(name, OUTBOX)
    assert name not in topics


def test_its_tables_own_topic_is_no_other_and_does_not_count() -> None:
    topics = named(most=1)
    for _ in range(2):
        topics.admit("app.outbox", OUTBOX)
        topics.admit("event.a", OUTBOX)
    with pytest.raises(HistoryError, match="has other records"):
        topics.admit("app.outbox", ORDERS)


def test_one_more_than_allowed_stops() -> None:
    topics = named()
    for name in ("a", "b", "a"):
        topics.admit(name, OUTBOX)
    with pytest.raises(HistoryError, match=r"'public\.outbox' at \(0/8, 3\)") as caught:
        topics.admit("secret", OUTBOX)
    assert "max_topics" in caught.value.hint
    assert "secret" not in str(caught.value)
    topics.admit("b", OUTBOX)


def test_a_table_that_comes_later_does_not_meet_them() -> None:
    topics = named()
    topics.admit("app.late", OUTBOX)
    late = Table("public", "late", ("id",))
    with pytest.raises(HistoryError, match=r"public\.late.*'app\.late'"):
        topics.keep_out("app.late", late)
    topics.keep_out("app.orders", ORDERS.table)
