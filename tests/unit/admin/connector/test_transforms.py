"""Each transform becomes what does the same, or is told with its options."""

from tests.support.connector import draft, fates, translated, undecided
from walstream.admin.connector.draft import Draft, Fate

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
REGEX = "org.apache.kafka.connect.transforms.RegexRouter"
LOGICAL = "io.debezium.transforms.ByLogicalTableRouter"
REPLACE = "org.apache.kafka.connect.transforms.ReplaceField$Value"


def transformed(kind: str, options: dict[str, str], **more: str) -> Draft:
    named = {f"transforms.x.{key}": value for key, value in options.items()}
    given = {"transforms": "x", "transforms.x.type": kind, **named}
    return translated({**given, **more})[0]


def test_rows_are_unwrapped() -> None:
    made = transformed(
        UNWRAP,
        {
            "delete.tombstone.handling.mode": "rewrite",
            "add.fields": "op, source.ts_ms:at, op",
            "add.fields.prefix": "x_",
        },
    )
    assert made.tables["sink"]["format"] == "debezium_row"
    options = made.tables["debezium"]
    assert options["deletes"] == "rewrite"
    assert options["add_fields"] == ["op", "source.ts_ms:at"]
    assert options["add_prefix"] == "x_"
    assert not undecided(made)


def test_deletes_by_the_options_of_before() -> None:
    old = {"delete.handling.mode": "rewrite", "drop.tombstones": "false"}
    made = transformed(UNWRAP, old)
    assert made.tables["debezium"]["deletes"] == "rewrite-with-tombstone"
    assert not undecided(made)
    made = transformed(UNWRAP, {"delete.handling.mode": "none"})
    assert undecided(made) == ["transforms.x.delete.handling.mode"]
    made = transformed(UNWRAP, {**old, "delete.tombstone.handling.mode": "drop"})
    assert made.tables["debezium"]["deletes"] == "drop"


def test_what_unwrapping_cannot_do_is_told() -> None:
    made = transformed(UNWRAP, {"add.headers": "op", "route.by.field": "id"})
    assert undecided(made) == [
        "transforms.x.add.headers",
        "transforms.x.route.by.field",
    ]


def test_columns_of_unwrapped_rows_are_left_out() -> None:
    given = {
        "transforms": "u,x",
        "transforms.u.type": UNWRAP,
        "transforms.x.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.x.exclude": "a,b",
        "transforms.x.renames": "c:d",
    }
    made, _ = translated(given)
    assert made.handlers == [{"kind": "drop_columns", "columns": ["a", "b"]}]
    assert undecided(made) == ["transforms.x.renames"]


def test_tables_of_one_topic_keep_their_keys_or_are_refused() -> None:
    options = {"topic.regex": r"app\.(.*)\.(.*)_\d", "topic.replacement": "$1.$2"}
    made = transformed(LOGICAL, options)
    assert "transforms.x.type" in undecided(made)
    assert made.tables["sink"]["topic"] == "app.{schema}.{table}"
    made = transformed(
        LOGICAL,
        {**options, "key.enforce.uniqueness": "false"},
        **{"table.include.list": "s.t_1,s.t_2"},
    )
    assert {one["name"] for one in made.topics.values()} == {"s.t"}
    assert undecided(made) == ["transforms.x.type"]


def test_another_transform_is_told_with_its_options() -> None:
    made = transformed("org.acme.Own", {"secret": "s3cret"})
    assert undecided(made) == ["transforms.x.type", "transforms.x.secret"]
    assert "Own" in fates(made, "transforms.x.type")[Fate.TO_DECIDE]
    made = transformed("io.debezium.transforms.Filter", {"condition": "x"})
    assert "handler filter" in fates(made, "transforms.x.type")[Fate.TO_DECIDE]


def test_predicates_and_lone_options_are_told() -> None:
    made = transformed(UNWRAP, {"predicate": "p", "negate": "true"})
    assert undecided(made) == ["transforms.x.predicate", "transforms.x.negate"]
    made = draft(predicates="p", transforms_y_type=UNWRAP)
    assert undecided(made) == ["predicates"]
    assert Fate.NO_EFFECT in fates(made, "transforms.y.type")


def test_a_field_of_the_envelope_is_no_column() -> None:
    made, _ = translated(
        {
            "transforms": "r,u",
            "transforms.r.type": REPLACE,
            "transforms.r.exclude": "source",
            "transforms.u.type": UNWRAP,
        }
    )
    assert not made.handlers
    assert "transforms.r.type" in undecided(made)


def test_topics_of_events_that_are_renamed_are_to_decide() -> None:
    chain = {
        "transforms.o.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.r.type": REGEX,
        "transforms.r.regex": "(.*)",
        "transforms.r.replacement": "x.$1",
    }
    made, _ = translated({"transforms": "o,r", **chain})
    assert undecided(made) == ["transforms.r.regex"]
    made, _ = translated({"transforms": "r,o", **chain})
    assert not undecided(made)
