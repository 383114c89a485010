"""Table to topic and key columns."""

import pytest

from walstream.config.sink import RoutedSink
from walstream.errors import ConfigError, HistoryError
from walstream.formats.context import SourceOrigin
from walstream.formats.debezium import names
from walstream.op import Table
from walstream.records.router import (
    Router,
    RoutingRules,
    TopicMapping,
    Unmapped,
    is_pattern,
    matches,
    topic_part,
    underscored,
)

TEMPLATE = "{schema}.{table}"
ORIGIN = SourceOrigin()


def router(
    mappings: dict[str, TopicMapping] | None = None,
    template: str = TEMPLATE,
    fallback: str = "",
) -> Router:
    return Router("app", RoutingRules(mappings or {}, template, fallback))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("public.*", "public.t", True),
        ("public.*", "public.", True),
        ("public.*", "Public.t", False),
        ("public.*", "publicxt", False),
        ("*", "any.thing\nat all", True),
        ("p?.t", "p1.t", True),
        ("p?.t", "p.t", False),
        ("a.[b]", "a.[b]", True),
        ("a.[b]", "a.b", False),
        ("a.b", "a.bc", False),
        ("*.orders", "public.orders", True),
        ("", "", True),
    ],
)
def test_patterns_know_star_and_question_mark_alone(
    pattern: str, text: str, expected: bool
) -> None:
    assert matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("plain_Name-1.x", "plain_Name-1.x"),
        ("a b", "a_x20_b"),
        ("é", "_xC3__xA9_"),
        ('"\n', "_x22__x0A_"),
    ],
)
def test_byte_that_a_topic_cannot_hold_is_spelt_in_hexadecimal(
    name: str, topic: str
) -> None:
    assert topic_part(name) == topic


def test_table_goes_where_the_template_says() -> None:
    assert router().topic("public", "a b") == "public.a_x20_b"
    assert router(template="{source}-{table}").topic("s", "t") == "app-t"


def test_mapping_by_full_name_beats_the_bare_name_and_the_template() -> None:
    mapped = router({"s.t": TopicMapping("full"), "t": TopicMapping("bare")})
    assert mapped.topic("s", "t") == "full"
    assert mapped.topic("other", "t") == "bare"
    assert mapped.topic("s", "u") == "s.u"


def test_mappings_may_be_patterns() -> None:
    mapped = router(
        {
            "audit_*": TopicMapping("bare"),
            "s.?": TopicMapping("letter"),
            "s.*": TopicMapping("schema"),
            "Mixed": TopicMapping("mixed"),
            "s.exact": TopicMapping("exact"),
        }
    )
    found = {
        name: mapped.topic("s", name)
        for name in ("audit_log", "x", "xy", "Mixed", "exact", "a.b")
    }
    assert found == {
        "audit_log": "bare",
        "x": "letter",
        "xy": "schema",
        "Mixed": "mixed",
        "exact": "exact",
        "a.b": "schema",
    }
    assert mapped.topic("other", "audit_x") == "bare"
    assert mapped.topic("audit_s", "t") == "audit_s.t"
    assert mapped.topic("S", "x") == "S.x"
    assert mapped.topic("other", "mixed") == "other.mixed"


def test_a_table_with_a_star_in_its_name_has_a_mapping_of_its_own() -> None:
    mapped = router({"s.*": TopicMapping("all"), "s.a*": TopicMapping("starred")})
    assert mapped.topic("s", "a*") == "starred"
    assert mapped.topic("s", "ab") == "all"


def test_partition_keys_of_a_pattern_count_for_each_of_its_tables() -> None:
    mapped = router({"s.*": TopicMapping("x", ("b",))})
    route = mapped.route(Table("s", "t", ("a", "b"), key=(0,)), ORIGIN)
    assert route is not None
    assert route.key.columns == (1,)
    with pytest.raises(HistoryError, match="no column"):
        mapped.route(Table("s", "u", ("a",)), ORIGIN)


def test_under_strict_every_table_has_to_be_mapped() -> None:
    rules = RoutingRules({"s.*": TopicMapping("x")}, TEMPLATE, "rest", strict=True)
    strict = Router("app", rules)
    assert strict.topic("s", "t") == "x"
    with pytest.raises(Unmapped, match=r"'other\.t' is published and has no mapping"):
        strict.topic("other", "t")
    with pytest.raises(Unmapped):
        strict.route(Table("other", "t", ("a",)), ORIGIN)


def test_without_template_only_mapped_tables_and_the_fallback_count() -> None:
    assert router(template="", fallback="rest").topic("s", "t") == "rest"
    assert router(template="").topic("s", "t") is None
    assert router(template="").route(Table("s", "t", ("a",)), ORIGIN) is None
    mapped = router({"t": TopicMapping("x")}, template="", fallback="rest")
    assert mapped.topic("s", "t") == "x"


def test_two_tables_that_would_meet_by_their_spelling_are_refused() -> None:
    one = router()
    assert one.topic("public", "a b") == "public.a_x20_b"
    with pytest.raises(ConfigError, match="would share the topic") as refused:
        one.topic("public", "a_x20_b")
    assert "[sinks.NAME.topics.'public.a_x20_b']" in refused.value.hint
    assert one.topic("public", "a b") == "public.a_x20_b"


def test_hint_of_a_meeting_names_the_table_not_the_topic() -> None:
    one = router(template="cdc.{schema}.{table}")
    one.topic("public", "a b")
    with pytest.raises(ConfigError) as refused:
        one.topic("public", "a_x20_b")
    assert "[sinks.NAME.topics.'public.a_x20_b']" in refused.value.hint


def test_mapping_cures_the_meeting() -> None:
    one = router({"public.a_x20_b": TopicMapping("other")})
    one.topic("public", "a b")
    assert one.topic("public", "a_x20_b") == "other"


def test_tables_of_two_schemas_may_share_a_topic_if_the_template_says_so() -> None:
    one = router(template="{table}")
    assert one.topic("a", "t") == one.topic("b", "t") == "t"


@pytest.mark.parametrize("name", ["x" * 250, "é" * 60])
def test_name_longer_than_kafka_allows_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="Kafka does not allow"):
        router(template="{table}").topic("s", name)


@pytest.mark.parametrize("name", [".", ".."])
def test_dots_alone_are_no_topic(name: str) -> None:
    with pytest.raises(ConfigError, match="Kafka does not allow"):
        router(template="{table}").topic("s", name)


def test_partition_key_beats_the_row_key_in_table_order() -> None:
    mapped = router({"s.t": TopicMapping("x", ("c", "a"))})
    route = mapped.route(Table("s", "t", ("a", "b", "c"), key=(1,)), ORIGIN)
    assert route is not None
    assert route.key.columns == (0, 2)


def test_partition_key_names_columns_as_the_database_does() -> None:
    renamed = Table("public", "t", ("a", "b", "c"), (0,), (), ("a", "c", "b"))
    mappings = {"t": TopicMapping("t", ("b",))}
    route = router(mappings).route(renamed, ORIGIN)
    assert route is not None
    assert route.key.columns == (2,)


def test_partition_key_that_the_table_lacks_stops() -> None:
    mapped = router({"s.t": TopicMapping("x", ("gone",))})
    with pytest.raises(HistoryError, match="no column"):
        mapped.route(Table("s", "t", ("a",)), ORIGIN)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("t", "t"),
        ("a b$", "a_b_"),
        ("é", "_"),
        ("\U0001f600x", "__x"),
        ("_-.", "_-."),
        ("\uffff", "_"),
        ("\U00010000", "__"),
    ],
)
def test_a_name_is_spelled_as_debezium_does(name: str, spelled: str) -> None:
    assert underscored(name) == spelled == names.topic("", "", name)


def test_topics_of_tables_are_known_once_they_were_asked_for() -> None:
    made = router({"public.m": TopicMapping("mapped")}, fallback="rest")
    topic = made.topic("public", "t") or ""
    assert all(map(made.serves, ("mapped", "rest", topic)))
    assert not made.serves("other")


def configured(**options: object) -> RoutingRules:
    return RoutingRules.of(RoutedSink.model_validate(options))


def test_the_rules_are_those_of_the_configured_sink() -> None:
    rules = configured(
        topic="{table}",
        fallback_topic="rest",
        key="pkey",
        strict=True,
        topics={
            "s.t": {"name": "x", "partition_key": ["b", "a"]},
            "s.u": {"name": "y"},
        },
    )
    assert (rules.template, rules.fallback) == ("{table}", "rest")
    assert (rules.key, rules.strict) == ("pkey", True)
    assert rules.mappings == {
        "s.t": TopicMapping("x", ("b", "a")),
        "s.u": TopicMapping("y"),
    }


@pytest.mark.parametrize(
    ("sink_format", "topic"), [("op", "s.a_x20_b"), ("debezium", "s.a_b")]
)
def test_a_name_is_spelled_as_the_format_has_it(sink_format: str, topic: str) -> None:
    made = Router("app", configured(format=sink_format))
    assert made.topic("s", "a b") == topic


def test_a_table_may_be_one_that_no_configuration_names() -> None:
    assert not configured().strict
    assert not RoutingRules({}, TEMPLATE, "").strict


@pytest.mark.parametrize(
    ("name", "pattern"), [("s.t", False), ("s.*", True), ("t?", True), ("", False)]
)
def test_what_has_a_wildcard_is_a_pattern(name: str, pattern: bool) -> None:
    assert is_pattern(name) is pattern


def test_the_partition_keys_of_a_topic_are_those_of_its_tables_alone() -> None:
    made = router(
        {
            "s.t": TopicMapping("x", ("a",)),
            "s.*": TopicMapping("x", ("b", "c")),
            "s.u": TopicMapping("x"),
            "s.v": TopicMapping("y", ("d",)),
        }
    )
    assert made.partition_keys("x") == {"s.t": ("a",), "s.*": ("b", "c")}


def test_a_name_as_long_as_kafka_allows_is_a_topic() -> None:
    assert router(template="{table}").topic("s", "x" * 249) == "x" * 249


def test_a_table_without_a_partition_key_has_the_key_of_its_row() -> None:
    table = Table("s", "t", ("a", "b"), key=(1,))
    for one in (router({"s.t": TopicMapping("x")}), router()):
        route = one.route(table, ORIGIN)
        assert route is not None
        assert route.key.columns == (1,)


def test_a_topic_of_tables_and_nothing_else_is_served() -> None:
    made = router({"public.m": TopicMapping("mapped")})
    assert not made.serves("public.t")
    made.topic("public", "t")
    assert made.serves("public.t")
    assert made.serves("mapped")
