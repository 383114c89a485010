"""Topics are those of Debezium, renamed as its transforms rename them."""

from tests.support.connector import draft, fates, translated, undecided
from walstream.admin.connector.draft import Draft, Fate

REGEX = "org.apache.kafka.connect.transforms.RegexRouter"


def routed(regex: str, replacement: str, **more: str) -> Draft:
    return translated(
        {
            "transforms": "r",
            "transforms.r.type": REGEX,
            "transforms.r.regex": regex,
            "transforms.r.replacement": replacement,
            **more,
        }
    )[0]


def test_a_template_names_the_topics_of_all_tables() -> None:
    made = routed(r"([^.]+)\.([^.]+)\.([^.]+)", "cdc.$3")
    assert made.tables["sink"]["topic"] == "cdc.{table}"
    assert not undecided(made)
    made = routed(".*", "all")
    assert made.tables["sink"]["topic"] == ""
    assert made.topics == {"*.*": {"name": "all"}}


def test_tables_that_are_named_have_computed_topics() -> None:
    tables = {"table.include.list": "public.a,public.b-c"}
    made = routed(r"app\.public\.(.*)", "p-$1", **tables)
    assert made.topics == {
        "public.a": {"name": "p-a"},
        "public.b-c": {"name": "p-b-c"},
    }


def test_what_no_template_says_leaves_topics_as_they_are() -> None:
    for regex, replacement in (
        (r"app\.public\.(.*)", "$1"),
        (r"(.*)\.(.*)\.(.*)", "$2"),
        (r"(.*)\.(.*)\.(.*)", "${none}"),
    ):
        made = routed(regex, replacement)
        assert made.tables["sink"]["topic"] == "app.{schema}.{table}"
        assert "transforms.r.regex" in undecided(made)


def test_a_prefix_is_spelled_as_debezium_spells_it() -> None:
    made = draft(topic_prefix="my app")
    assert made.tables["sink"]["topic"] == "my_app.{schema}.{table}"
    assert made.tables["debezium"]["name"] == "my app"


def test_other_names_of_topics() -> None:
    made = draft(topic_delimiter="_")
    assert made.tables["sink"]["topic"] == "app_{schema}_{table}"
    assert undecided(made) == ["topic.delimiter"]
    made = draft(topic_naming_strategy="io.debezium.schema.DefaultTopicNamingStrategy")
    assert undecided(made) == ["topic.naming.strategy"]


def test_topics_are_created_as_connect_creates_them() -> None:
    made = draft(
        topic_creation_enable="true",
        topic_creation_default_partitions="6",
        topic_creation_default_replication_factor="-1",
        topic_creation_default_cleanup_policy="compact",
        topic_creation_default_include=".*",
    )
    sink = made.tables["sink"]
    assert (sink["topic_partitions"], sink["topic_replication"]) == (6, 0)
    assert sink["create_topics"] is True
    assert made.tables["topic_config"] == {"cleanup.policy": "compact"}
    assert not undecided(made)
    made = draft(topic_creation_groups="big", topic_creation_big_partitions="99")
    assert undecided(made) == ["topic.creation.groups", "topic.creation.big.partitions"]
    assert "do not exist" in fates(made, "topic.creation.groups")[Fate.TO_DECIDE]


def test_a_transform_that_is_not_known_lets_no_other_table_through() -> None:
    made = routed(
        r"app\.\p{Lower}+\.(.*)",
        "x.$1",
        **{"table.include.list": "public.a", "message.key.columns": "public.a:id"},
    )
    assert made.tables["sink"]["topic"] == ""
    assert made.topics == {
        "public.a": {"name": "app.public.a", "partition_key": ["id"]}
    }
    assert "transforms.r.regex" in undecided(made)


def test_keys_stay_where_topics_are_left_as_they_are() -> None:
    keys = {"message.key.columns": "public.a:id"}
    made = routed(r"app\.public\.(.*)", "$1", **keys)
    assert made.tables["sink"]["topic"] == "app.{schema}.{table}"
    assert made.topics == {
        "public.a": {"name": "app.public.a", "partition_key": ["id"]}
    }
