"""Sources and sinks taken together."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from walstream.config import PostgresSource, Sink, Source
from walstream.config.sink import RoutedSink
from walstream.config.topology import (
    check_formats,
    check_parking,
    check_publications,
    check_row_names,
    check_row_sink,
    check_slots,
    check_topics,
    may_share_database,
)

SOURCES: TypeAdapter[dict[str, Source]] = TypeAdapter(dict[str, Source])
SINKS: TypeAdapter[dict[str, Sink]] = TypeAdapter(dict[str, Sink])


def postgres(*tables: str, **keys: Any) -> dict[str, Any]:
    written = {"kind": "postgres", "dsn": "host=/run", "sinks": ["k"], **keys}
    return {**written, "tables": list(tables)}


def chained(*topics: str, servers: str = "other:1", **keys: Any) -> dict[str, Any]:
    consumer = {"bootstrap.servers": servers}
    written = {"kind": "kafka", "consumer": consumer, "sinks": ["k"], **keys}
    return {**written, "topics": list(topics)}


def kafka(servers: str = "a:1", **keys: Any) -> dict[str, Any]:
    return {"kind": "kafka", "producer": {"bootstrap.servers": servers}, **keys}


def topics(sources: dict[str, Any], **sinks: dict[str, Any]) -> list[str]:
    """Return the complaints about who reaches which topic."""
    given = SOURCES.validate_python(sources), SINKS.validate_python(sinks)
    return [str(problem) for problem in check_topics(*given)]


def pair(first: dict[str, Any], second: dict[str, Any], **sink: Any) -> bool:
    """Tell whether two sources may share a sink."""
    return not topics({"one": first, "two": second}, k=kafka(**sink))


def test_sources_of_other_schemas_may_share_a_sink() -> None:
    assert pair(postgres("sales.*"), postgres("hr.*"))
    assert pair(postgres("sales.*"), postgres("hr.*"), topic="{schema}_{table}")
    assert pair(postgres("sales.a", "sales.b"), postgres("sales.c"))


def test_sources_that_meet_in_a_topic_are_refused() -> None:
    assert not pair(postgres("sales.*"), postgres("sales.orders"))
    assert not pair(postgres("sales.*"), postgres("hr.*"), topic="{table}")
    assert not pair(postgres("sales.a"), postgres("hr.b"), topic="all")
    assert not pair(postgres("s*.a"), postgres("*s.a"))
    assert not pair(postgres(), postgres("hr.a"))
    assert not pair(postgres("a.x"), chained("t"))


def test_the_complaint_names_both_and_the_topic() -> None:
    sources = {"one": postgres("a.x"), "two": postgres("*.x")}
    (complaint,) = topics(sources, k=kafka())
    assert complaint.startswith("sources.two.sinks: ")
    for part in ("sinks.k", '"a.x"', "sources.one", "{source}"):
        assert part in complaint


def test_a_source_in_the_template_keeps_them_apart() -> None:
    assert pair(postgres("a.*"), postgres("a.*"), topic="{source}.{schema}.{table}")
    assert pair(postgres("a.*"), chained("t"), topic="{source}.{schema}.{table}")
    prefixed = {"a": postgres("x.*"), "ab": postgres("x.*")}
    assert topics(prefixed, k=kafka(topic="{source}{table}"))


def test_a_mapping_and_a_fallback_are_topics_too() -> None:
    mapped = {"orders": {"name": "all"}, "hr.people": {"name": "all"}}
    assert not pair(postgres("a.orders"), postgres("hr.*"), topics=mapped)
    assert pair(postgres("a.other"), postgres("hr.*"), topics=mapped)
    assert not pair(postgres("a.x"), postgres("b.x"), topic="", fallback_topic="f")


def test_names_with_dots_are_thought_of() -> None:
    # "a.b"."c" and "a"."b.c" are the same text to a pattern
    assert not pair(postgres("a.b.c"), postgres("x.b.c"), topic="{table}")
    assert not pair(postgres("a.*"), postgres("b.*"), topic="{table}")


def test_sinks_of_one_cluster_share_its_topics() -> None:
    sources = {"one": postgres("a.x"), "two": postgres("a.x", sinks=["l"])}
    assert topics(sources, k=kafka("h:1,i:1"), l=kafka("I:1"))
    assert not topics(sources, k=kafka("h:1"), l=kafka("i:1"))


def test_formats_without_positions_may_meet() -> None:
    assert pair(postgres("a.x"), postgres("a.x"), format="event")
    mixed = {"one": postgres("a.x"), "two": postgres("a.x", sinks=["l"])}
    assert topics(mixed, k=kafka(), l=kafka(format="event"))


def test_other_sinks_have_no_topics() -> None:
    sources = {"one": postgres("a.x"), "two": postgres("a.x")}
    assert not topics(sources, k={"kind": "log"})


def test_polled_tables_are_named_after_their_source() -> None:
    polled = {
        "kind": "sql",
        "url": "sqlite:///x",
        "sinks": ["rows"],
        "tables": {"orders": {"primary_key": "id"}},
    }
    sinks = {"k": kafka(), "rows": kafka(format="row")}
    assert not topics({"public": postgres("a.orders"), "old": polled}, **sinks)
    assert topics({"one": postgres("old.orders"), "old": polled}, **sinks)


def two_sinks(first: dict[str, Any], second: dict[str, Any], *tables: str) -> list[str]:
    return topics({"app": postgres(*tables, sinks=["k", "l"])}, k=first, l=second)


def test_two_sinks_of_one_source_have_topics_of_their_own() -> None:
    def only(table: str, topic: str, *servers: str, **keys: Any) -> dict[str, Any]:
        mapped = {f"public.{table}": {"name": topic}}
        return kafka(*servers, topic="", topics=mapped, **keys)

    tables = "public.orders", "public.customers"
    (shown,) = two_sinks(only("orders", "shop"), only("customers", "shop"), *tables)
    assert shown.startswith("sources.app.sinks: sinks.k and sinks.l ")
    assert '"shop"' in shown
    apart = only("orders", "shop"), only("customers", "people")
    assert not two_sinks(*apart, *tables)
    far = only("orders", "shop"), only("customers", "shop", "b:1")
    assert not two_sinks(*far, *tables)
    # the same table twice is out of order, too
    assert two_sinks(kafka(), only("orders", "public.orders"), "public.*")
    assert two_sinks(kafka(), kafka(), "public.*")
    for template in ("b.{schema}.{table}", "{schema}.{table}.b"):
        for pattern in ("public.*", "*.*"):
            assert not two_sinks(kafka(), kafka(topic=template), pattern)


def test_sinks_without_positions_may_meet() -> None:
    bare = {"position_header": False}
    named, unnamed = kafka(format="debezium"), kafka(format="debezium", debezium=bare)
    assert two_sinks(named, unnamed, "public.*")
    assert not two_sinks(unnamed, unnamed, "public.*")
    block = {**bare, "transaction_block": True}
    assert two_sinks(kafka(format="debezium", debezium=block), unnamed, "public.*")
    assert not two_sinks(kafka(format="event"), kafka(format="event"), "public.*")
    # one topic of transactions, of messages: what it has are no ops
    told = {"txinfo": "told", "format": "debezium"}
    first, second = kafka(topic="a.{table}", **told), kafka(topic="b.{table}", **told)
    assert not two_sinks(first, second, "public.*")


def test_a_chain_that_bites_its_tail_is_refused() -> None:
    (complaint,) = topics({"up": chained("a.x", servers="A:1")}, k=kafka())
    assert complaint.startswith("sources.up.topics: ")
    assert not topics({"up": chained("a.x")}, k=kafka())
    assert not topics({"up": chained("a", servers="a:1")}, k=kafka(topic="b.{table}"))


def test_many_mapped_tables_are_checked_at_once() -> None:
    mapped = {f"s.t{i}": {"name": f"n{i}"} for i in range(300)}
    names = [f"s.t{i}" for i in range(300)]
    assert pair(postgres(*names), postgres("x.*"), topics=mapped)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("host=/run", "host=localhost", True),
        ("host=db port=5433", "host=DB port=5433 dbname=x", True),
        ("host=a,b", "host=b", True),
        ("host=db", "host=db port=5433", False),
        ("host=a", "host=b", False),
        ("service=x", "service=x", True),
    ],
)
def test_a_slot_is_read_by_one_source(one: str, other: str, shared: bool) -> None:
    sources = {"one": postgres(dsn=one), "two": postgres(dsn=other)}
    problems = list(check_slots(SOURCES.validate_python(sources), {}))
    assert [problem.path for problem in problems] == [
        ("sources", "two", "slot")
    ] * shared


def test_slots_of_other_names_share_a_server() -> None:
    sources = {"one": postgres(), "two": postgres(slot="other")}
    assert not list(check_slots(SOURCES.validate_python(sources), {}))


@pytest.mark.parametrize(
    ("tables", "other", "refused"),
    [
        (["billing.*"], {}, True),
        (["public.*"], {"exclude": ["public.t"]}, True),
        (["public.*"], {"columns": {"public.t": ["id"]}}, True),
        (["public.*"], {}, False),  # both publish the same
        ([], {}, False),  # it takes the publication as it is
        (["billing.*"], {"publication": "mine"}, False),
        (["billing.*"], {"dsn": "postgresql://here/another"}, False),
        (["billing.*"], {"dsn": "postgresql://there/shop"}, False),
    ],
)
def test_a_publication_has_the_tables_of_one_source(
    tables: list[str], other: dict[str, Any], refused: bool
) -> None:
    here = {"dsn": "postgresql://here/shop"}
    second = {**here, "slot": "other", **other}
    sources = {"one": postgres("public.*", **here), "two": postgres(*tables, **second)}
    found = list(check_publications(SOURCES.validate_python(sources), {}))
    assert [problem.path for problem in found] == [
        ("sources", "two", "publication")
    ] * refused


def test_polled_rows_and_the_row_format_go_together() -> None:
    polled = {
        "kind": "sql",
        "url": "sqlite:///x",
        "tables": {"t": {"primary_key": "i"}},
    }
    sources = {
        "pg": postgres(sinks=["ops", "rows", "missing"]),
        "old": {**polled, "sinks": ["ops", "rows"]},
    }
    sinks = {"ops": kafka(), "rows": {"kind": "log", "format": "row"}}
    found = check_formats(
        SOURCES.validate_python(sources), SINKS.validate_python(sinks)
    )
    shown = [str(problem) for problem in found]
    assert [line.split(" ")[0] for line in shown] == [
        "sources.pg.sinks:",
        "sources.old.sinks:",
    ]
    assert "sinks.rows" in shown[0]
    assert "sinks.ops" in shown[1]


def test_rows_of_several_sources_may_share_a_topic() -> None:
    polled = {
        "kind": "sql",
        "url": "sqlite:///x",
        "sinks": ["k"],
        "tables": {"orders": {"primary_key": "id"}},
    }
    assert pair(polled, polled, topic="all", format="row")


def names_clash(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    polled = {"kind": "sql", "url": "sqlite:///x", "sinks": ["k"]}
    table = {"primary_key": "id"}
    sources = {
        name: {**polled, **keys, "tables": {keys.get("tables", "t"): table}}
        for name, keys in (("one", one), ("two", other), ("three", {"name": "3"}))
    }
    return list(map(str, check_row_names(SOURCES.validate_python(sources))))


def test_rows_of_two_sources_can_be_told_apart() -> None:
    assert not names_clash({}, {})
    assert not names_clash({"name": "x"}, {"name": "x", "tables": "u"})
    (shown,) = names_clash({"name": "x"}, {"name": "x"})
    assert shown.startswith('sources.two.name: "x" is the name')
    assert names_clash({}, {"name": "one"})
    assert names_clash({"name": "two"}, {})


def test_keys_that_say_nothing_of_rows_are_refused_in_their_sinks() -> None:
    keys: dict[str, Any] = {
        "key": "concat",
        "on_truncate": "skip",
        "split_key_updates": False,
        "tombstones": True,
        "strict": True,
        "topics": {"a": {"name": "t", "partition_key": ["x"]}, "b": {"name": "u"}},
    }
    rows, ops = (
        list(check_row_sink("k", routed(sink)))
        for sink in (kafka(format="row", **keys), kafka(**keys))
    )
    assert {problem.path[2] for problem in rows} == keys.keys()
    assert len(rows) == len(keys)
    assert not ops
    written = kafka(format="row", key="json", tombstones=False)
    assert not list(check_row_sink("k", routed(written)))


def routed(written: dict[str, Any]) -> RoutedSink:
    sink = SINKS.validate_python({"k": written})["k"]
    assert isinstance(sink, RoutedSink)
    return sink


def test_what_is_parked_has_a_topic_of_its_own() -> None:
    def parked(where: str, **sink: Any) -> bool:
        given = {"k": kafka(on_too_large=where, **sink)}
        sinks = SINKS.validate_python(given)
        sources = SOURCES.validate_python({"a": postgres("public.*")})
        return not list(check_parking(sources, sinks))

    assert parked("large")
    assert parked("stop", topic="stop")
    assert not parked("public.large")
    assert not parked("f", fallback_topic="f")
    assert not parked("m", topics={"orders": {"name": "m"}})


def test_messages_have_topics_of_their_own_where_these_are_named() -> None:
    def apart(*prefixes: str, **messages: Any) -> bool:
        told = {"prefixes": list(prefixes), **messages}
        sinks = SINKS.validate_python({"k": kafka(messages=told)})
        sources = SOURCES.validate_python({"a": postgres("public.*")})
        return not list(check_parking(sources, sinks))

    assert apart("outbox", "*")  # by pattern: each is looked at when it comes
    assert apart("a", topic="messages")
    assert not apart("public.a")
    assert not apart("a", topic="public.{prefix}")


def test_handlers_take_ops_alone() -> None:
    handlers = [{"kind": "passthrough"}]
    source = SOURCES.validate_python({"up": chained("t"), "a": postgres("a.*")})
    sinks = SINKS.validate_python({"k": kafka(handlers=handlers)})
    (problem,) = check_formats(source, sinks)
    assert problem.path == ("sources", "up", "sinks")
    assert "byte for byte" in problem.complaint
    row = routed(kafka(format="row", handlers=handlers, verbose=True))
    paths = [problem.path[2] for problem in check_row_sink("k", row)]
    assert paths == ["verbose", "handlers"]


@pytest.mark.parametrize(
    ("one", "other", "shares"),
    [
        ("host=a dbname=x", "host=A dbname=x user=u", True),
        ("host=a dbname=x", "postgresql://u@a/x", True),
        ("host=a,b dbname=x", "host=b dbname=x", True),
        ("host=a dbname=x", "host=a dbname=y", False),
        ("host=a dbname=x", "host=b dbname=x", False),
        ("host=a dbname=x", "host=a port=1 dbname=x", False),
        ("host=a user=x", "host=a dbname=x", True),  # as libpq has it
        ("host=a dbname=x", "host=a", True),  # who knows?
        ("host=a dbname=x", "service=s", True),
    ],
)
def test_two_sources_share_a_database_unless_that_is_ruled_out(
    one: str, other: str, *, shares: bool
) -> None:
    first, second = (
        PostgresSource(kind="postgres", dsn=text, sinks=["x"]) for text in (one, other)
    )
    assert may_share_database(first, second, {}) is shares
    assert may_share_database(second, first, {}) is shares
