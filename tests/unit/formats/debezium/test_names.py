"""Names as Debezium spells them; those with dashes and blanks are of golden records."""

import pytest

from walstream.formats.debezium import names


@pytest.mark.parametrize(
    ("schema", "table", "topic"),
    [
        ("public", "t", "app.public.t"),
        ("we ird", "Ta-ble $x", "app.we_ird.Ta-ble__x"),
        ("s", "é", "app.s._"),
        ("s", "\U0001f600", "app.s.__"),  # two units of UTF-16
        ("s", "a.b", "app.s.a.b"),
    ],
)
def test_a_topic_is_the_name_the_schema_and_the_table(
    schema: str, table: str, topic: str
) -> None:
    assert names.topic("app", schema, table) == topic


def test_a_topic_has_no_more_characters_than_kafka_allows() -> None:
    assert len(names.topic("app", "s", "x" * 300)) == 249
    assert [names.sanitized(one) for one in (".", "..", "...")] == ["_", "__", "..."]


def test_other_topics_have_fixed_names() -> None:
    assert names.message_topic("app") == "app.message"
    assert names.transaction_topic("app") == "app.transaction"
    assert names.heartbeat_topic("app") == "__debezium-heartbeat.app"


@pytest.mark.parametrize(
    ("proposed", "avro", "code"),
    [
        (
            "app.we_ird.Ta-ble__x.Key",
            "app.we_ird.Ta_ble__x.Key",
            "app.we_u005fird.Ta_u002dble_u005f_u005fx.Key",
        ),
        ("1a", "_1a", "_u0031a"),
        ("_x", "_x", "_u005fx"),
        ("-x", "_x", "_u002dx"),
        ("é", "_", "_u00e9"),
        ("ł", "_", "_u142"),
        ("", "", ""),
    ],
)
def test_the_name_of_a_schema_is_adjusted(proposed: str, avro: str, code: str) -> None:
    found = [
        names.schema_name(proposed, one) for one in ("none", "avro", "avro_unicode")
    ]
    assert found == [proposed, avro, code]


@pytest.mark.parametrize(
    ("proposed", "avro", "code"),
    [
        ("B c", "B_c", "B_u0020c"),
        ("a.b", "a_b", "a_u002eb"),
        ("9", "_9", "_u0039"),
        ("ok1", "ok1", "ok1"),
        ("a_b", "a_b", "a_u005fb"),
    ],
)
def test_the_name_of_a_field_has_no_dots(proposed: str, avro: str, code: str) -> None:
    assert names.field_name(proposed, "none") == proposed
    assert names.field_name(proposed, "avro") == avro
    assert names.field_name(proposed, "avro_unicode") == code
