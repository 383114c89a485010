"""Topic names hold legal characters only, and tell distinct tables apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import names
from walstream.errors import ConfigError
from walstream.records.router import (
    Router,
    RoutingRules,
    distinct_part,
    matches,
    topic_part,
)

SHORT = st.text("aé_xC39.A ", min_size=1, max_size=8)
# of what a spelled byte is made of, so that one is often met
PIECES = ["_", "x", "_x20", "_x20_", "_x5F_", "x5F", " ", "é", "_xC3", "a"]
SPELLED = st.lists(st.sampled_from(PIECES)).map("".join) | st.text(max_size=9)
PLAIN = names.filter(lambda name: "_x" not in name)


@given(names)
def test_topic_part_holds_only_what_kafka_allows(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9._-]+", topic_part(name))


@given(names)
def test_legal_names_stay_as_they_are(name: str) -> None:
    legal = re.sub(r"[^a-zA-Z0-9._-]", "", name)
    assert topic_part(legal) == legal


@given(PLAIN)
def test_topic_part_can_be_read_back(name: str) -> None:
    spelt = topic_part(name).encode()
    back = re.sub(
        rb"_x([0-9A-F]{2})_", lambda found: bytes.fromhex(found[1].decode()), spelt
    )
    assert back.decode() == name


@given(PLAIN, PLAIN)
def test_distinct_names_have_distinct_topics(one: str, other: str) -> None:
    assert (topic_part(one) == topic_part(other)) == (one == other)


@given(SPELLED)
def test_any_value_is_a_legal_part_and_can_be_read_back(value: str) -> None:
    spelt = distinct_part(value)
    assert re.fullmatch(r"[a-zA-Z0-9._-]*", spelt)
    back = re.sub(
        rb"_x([0-9A-F]{2})_",
        lambda found: bytes.fromhex(found[1].decode()),
        spelt.encode(),
    )
    assert back.decode() == value


@given(st.lists(st.tuples(SHORT, SHORT), max_size=6, unique=True))
def test_no_two_tables_share_a_topic_unnoticed(tables: list[tuple[str, str]]) -> None:
    router = Router("app", RoutingRules({}, "{schema}-{table}", ""))
    by_topic: dict[str, str] = {}
    for schema, name in tables:
        plain = f"{schema}-{name}"
        topic = f"{topic_part(schema)}-{topic_part(name)}"
        if by_topic.setdefault(topic, plain) == plain:
            assert router.topic(schema, name) == topic
        else:
            with pytest.raises(ConfigError, match="would share"):
                router.topic(schema, name)


@given(names)
def test_name_without_wildcards_matches_itself_alone(name: str) -> None:
    plain = name.replace("*", "").replace("?", "")
    assert matches(plain, plain)
    assert not matches(plain, plain + "x")


@given(names, names)
def test_star_matches_any_rest(head: str, rest: str) -> None:
    plain = head.replace("*", "").replace("?", "")
    assert matches(plain + "*", plain + rest)
