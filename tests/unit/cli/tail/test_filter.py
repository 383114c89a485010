"""Which changes and topics are meant, and what is said when none is."""

import pytest

from walstream.cli.tail.content import Content, Format
from walstream.cli.tail.filter import TailFilter, matching, nothing_named, require
from walstream.errors import ConfigError
from walstream.kafka.topic_reader import TopicRecord

TOPICS = ["shop.orders", "shop.items", "public.t", "__consumer_offsets"]


def keyed(key: bytes | None) -> TopicRecord:
    return TopicRecord("t", 0, 0, key, None, [], None)


@pytest.mark.parametrize(
    ("wanted", "key", "taken"),
    [
        (None, b"1", True),
        (None, None, True),
        ('["1"]', b'["1"]', True),
        ("1", b'["1"]', True),
        ("1", b"[1]", True),
        ("1", b"1", True),
        ("a\nb", b'["a\\nb"]', True),
        ("1", b'["1","2"]', False),
        ('["1","2"]', b'["1","2"]', True),
        ("1", b'["11"]', False),
        ("1", None, False),
        ("null", b"[null]", True),
        ("\\xff", b"\xff", True),
        ("x", b"[]", False),
    ],
)
def test_key_is_as_written_or_its_one_element(
    wanted: str | None, key: bytes | None, taken: bool
) -> None:
    assert TailFilter(key=wanted).takes_record(keyed(key)) is taken


@pytest.mark.parametrize(
    ("patterns", "taken"),
    [
        ([], True),
        (["shop.orders"], True),
        (["orders"], True),
        (["shop.*"], True),
        (["ord?rs"], True),
        (["other", "orders"], True),
        (["order"], False),
        (["public.orders"], False),
        (["ORDERS"], False),
    ],
)
def test_table_is_named_with_or_without_its_schema(
    patterns: list[str], taken: bool
) -> None:
    content = Content(Format.OP, schema="shop", table="orders")
    assert TailFilter(tables=patterns).takes_content(content) is taken


def test_what_is_of_no_table_is_taken_only_without_one() -> None:
    assert TailFilter().takes_content(Content(Format.TEXT))
    assert not TailFilter(tables=["*"]).takes_content(Content(Format.TEXT))


def test_patterns_mean_no_topic_of_kafka_itself() -> None:
    assert matching(["*"], TOPICS) == set(TOPICS[:3])
    assert matching(["shop.*", "public.?"], TOPICS) == set(TOPICS[:3])
    assert matching(["__consumer_offsets"], TOPICS) == {"__consumer_offsets"}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("shop.order", "did you mean shop.orders"),
        ("items", "did you mean shop.items?"),
        ("zzz", "there are: public.t, shop.items, shop.orders"),
        ("zzz*", "no topic matches 'zzz*'"),
    ],
)
def test_missing_topic_is_named_with_what_is_near(wanted: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        require(["public.t", wanted], TOPICS)
    assert said in str(raised.value)
    assert wanted in str(raised.value)


def test_topics_that_are_there_are_enough() -> None:
    require(["shop.*", "public.t"], TOPICS)


def test_long_lists_are_cut_and_empty_ones_explained() -> None:
    many = [f"t{number:03}" for number in range(25)]
    assert str(nothing_named(many)).endswith("t018, t019 and 5 more")
    assert "walstream run creates" in str(nothing_named(["__consumer_offsets"]))
