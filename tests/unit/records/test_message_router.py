"""Which messages become records, of which topic, under which key."""

from typing import Any

import pytest

from walstream.op import MessageOp
from walstream.records.message_router import (
    MessageRouter,
    MessageRules,
    RefusedMessage,
    is_own,
)
from walstream.records.router import topic_part


def router(*prefixes: str, topic: str = "{prefix}", **rules: Any) -> MessageRouter:
    return MessageRouter(MessageRules(prefixes, topic, **rules), topic_part)


def message(content: bytes) -> MessageOp:
    return MessageOp("p", content, 1, 1, None, 0)


def test_prefixes_are_names_and_patterns() -> None:
    made = router("outbox.*", "audit")
    assert made.topic("outbox.order") == "outbox.order"
    assert made.topic("audit") == "audit"
    assert made.topic("audit2") is None
    assert made.topic("") is None


def test_a_template_has_the_prefix_as_a_topic_may_have_it() -> None:
    assert router("*", topic="m.{prefix}").topic("a b/ü") == "m.a_x20_b_x2F__xC3__xBC_"
    assert router("*", topic="m").topic("any") == "m"


@pytest.mark.parametrize("prefix", ["walstream", "walstream.backfill"])
def test_walstreams_own_are_none(prefix: str) -> None:
    assert is_own(prefix)
    assert router("*").topic(prefix) is None
    assert router("*").topic("walstreams") == "walstreams"


@pytest.mark.parametrize("prefix", ["", ".", "..", "x" * 250])
def test_one_that_can_have_no_topic_is_refused(prefix: str) -> None:
    with pytest.raises(RefusedMessage, match="which Kafka does not allow"):
        router("*").topic(prefix)


def test_long_prefixes_are_not_remembered() -> None:
    """Any role may write one, and each may have megabytes."""
    made = router("*", topic="t")
    for prefix in ("x" * 249, "x" * 250):
        assert made.topic(prefix) == "t"
    assert [*made._topics] == ["x" * 249]  # noqa: SLF001 - its memory


def test_topics_are_bounded_and_those_that_are_there_stay() -> None:
    made = router("*", max_topics=2)
    assert [made.topic("a"), made.topic("b")] == ["a", "b"]
    for _ in range(2):
        with pytest.raises(RefusedMessage, match="more than 2 topics"):
            made.topic("c")
    assert made.topic("a") == "a"


@pytest.mark.parametrize(
    ("content", "pointer", "key"),
    [
        (b'{"id":"x"}', "/id", b"x"),
        (b'{"id":17}', "/id", b"17"),
        (b'{"a":{"b/c":[1,{"~":true}]}}', "/a/b~1c/1/~0", b"true"),
        (b'{"id":{"x":1}}', "/id", b'{"x":1}'),
        (b'{"id":null}', "/id", None),
        (b'{"id":"x"}', "/none", None),
        (b"[1,2]", "/01", None),
        (b"[1,2]", "/2", None),
        (b"[1,2]", "/²", None),
        (b'"text"', "/id", None),
        (b"no json", "/id", None),
        (b"\xff\x00", "/id", None),
        (b'{"id":"x"}', "", None),
        (b'{"":"x"}', "/", b"x"),
    ],
)
def test_a_key_is_where_the_pointer_leads(
    content: bytes, pointer: str, key: bytes | None
) -> None:
    assert router("*", key=pointer).key(message(content)) == key
