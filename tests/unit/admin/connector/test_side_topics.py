"""Topics beside those of tables keep their names and their records."""

import tomllib

from tests.support.connector import draft, fates, translated, undecided
from walstream.admin.connector.document import write
from walstream.admin.connector.draft import Fate

REGEX = "org.apache.kafka.connect.transforms.RegexRouter"
RENAMED = {
    "transforms": "r",
    "transforms.r.type": REGEX,
    "transforms.r.regex": "(.*)",
    "transforms.r.replacement": "x.$1",
}


def test_transactions_have_their_topic() -> None:
    made = draft(provide_transaction_metadata="true")
    assert made.tables["debezium"]["transaction_block"] is True
    assert made.tables["sink"]["txinfo"] == "app.transaction"
    made = draft(provide_transaction_metadata="true", topic_transaction="tx")
    assert made.tables["sink"]["txinfo"] == "app.tx"
    assert not undecided(made)
    made = draft(provide_transaction_metadata="false")
    assert "txinfo" not in made.tables["sink"]
    made, _ = translated({"provide.transaction.metadata": "true", **RENAMED})
    assert made.tables["sink"]["txinfo"] == "x.app.transaction"


def test_heartbeats_have_their_interval() -> None:
    made = draft(heartbeat_interval_ms="1000")
    assert made.tables["debezium"]["heartbeat"] == "1000ms"
    assert not undecided(made)
    assert "heartbeat" not in draft(heartbeat_interval_ms="0").tables["debezium"]
    made = draft(heartbeat_interval_ms="9", topic_heartbeat_prefix="hb")
    told = fates(made, "heartbeat.interval.ms")[Fate.TO_DECIDE]
    assert told == "they go to __debezium-heartbeat.app, not to hb.app"
    assert undecided(draft(heartbeat_interval_ms="x")) == ["heartbeat.interval.ms"]


def test_messages_are_sent_as_by_default() -> None:
    made = draft()
    assert made.tables["messages"] == {"prefixes": ["*"]}
    text = write(made, state="s", insecure=(False, False))
    sink = tomllib.loads(text)["sinks"]["kafka"]
    assert sink["messages"] == {"prefixes": ["*"]}
    made, _ = translated({"message.prefix.include.list": r"a\.b,c.*", **RENAMED})
    assert made.tables["messages"] == {
        "prefixes": ["a.b", "c*"],
        "topic": "x.app.message",
    }
    assert not undecided(made)


def test_messages_that_are_left_out_are_not_sent() -> None:
    for name in ("message_prefix_exclude_list", "message_prefix_include_list"):
        made = draft(**{name: r"a\w"})
        assert undecided(made) == [name.replace("_", ".")]
        assert not made.tables["messages"]


def test_transactions_are_not_sent_among_rows() -> None:
    made, _ = translated(
        {
            "provide.transaction.metadata": "true",
            **RENAMED,
            "transforms.r.replacement": "all",
        }
    )
    assert "txinfo" not in made.tables["sink"]
    assert made.tables["debezium"]["transaction_block"] is True
    assert undecided(made) == ["provide.transaction.metadata"]
    made, _ = translated(
        {
            "provide.transaction.metadata": "true",
            **RENAMED,
            "transforms.r.regex": r"app\.(.*)",
            "transforms.r.replacement": "",
        }
    )
    assert "txinfo" not in made.tables["sink"]


def test_transactions_are_not_counted_beside_handlers() -> None:
    made = draft(provide_transaction_metadata="true", table_exclude_list="public.a")
    assert "txinfo" not in made.tables["sink"]
    assert undecided(made) == ["provide.transaction.metadata"]


def test_topics_that_a_table_may_have_are_to_decide() -> None:
    """Of the most usual renaming, which leaves nothing but the table's name."""
    made, _ = translated(
        {
            **RENAMED,
            "transforms.r.regex": r"([^.]+)\.([^.]+)\.([^.]+)",
            "transforms.r.replacement": "$3",
            "heartbeat.interval.ms": "1000",
        }
    )
    assert made.tables["sink"]["topic"] == "{table}"
    assert not made.tables["messages"]
    assert "heartbeat" not in made.tables["debezium"]
    assert undecided(made) == ["transforms", "heartbeat.interval.ms"]
    tomllib.loads(write(made, state="/s", insecure=(False, False)))
