"""Topics that a sink can reach, and patterns that overlap."""

import re
from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from walstream.config import Sink, Source
from walstream.config.reachable_topics import feeds, overlap, topics_of

SOURCES: TypeAdapter[dict[str, Source]] = TypeAdapter(dict[str, Source])
SINKS: TypeAdapter[dict[str, Sink]] = TypeAdapter(dict[str, Sink])
GLOBS = st.text(st.sampled_from("ab*?"), max_size=7)
TEXTS = st.text(st.sampled_from("ab"), max_size=7)


@given(GLOBS, TEXTS)
def test_a_pattern_overlaps_the_texts_that_it_matches(glob: str, text: str) -> None:
    assert overlap(glob, text) == overlap(text, glob) == fnmatchcase(text, glob)


@given(GLOBS, GLOBS)
def test_patterns_overlap_where_a_text_matches_both(one: str, other: str) -> None:
    if not overlap(one, other):
        both = re.compile(f"(?={_regex(one)})(?={_regex(other)})")
        assert not any(both.match(text) for text in _short_texts())
    assert overlap(one, other) == overlap(other, one)


def _regex(glob: str) -> str:
    return glob.replace("?", ".").replace("*", ".*") + "$"


def _short_texts() -> list[str]:
    texts = [""]
    for text in texts:
        if len(text) < 6:
            texts += [text + "a", text + "b"]
    return texts


def test_topics_of_a_sink_are_those_of_all_its_sources() -> None:
    server = {"kind": "postgres", "dsn": "host=/run"}
    sources = {
        "one": {**server, "sinks": ["k"], "tables": ["sales.*"]},
        "two": {**server, "sinks": ["k", "other"], "tables": ["hr.a"]},
    }
    broker = {"kind": "kafka", "producer": {"bootstrap.servers": "a:1"}}
    mapped = {"fallback_topic": "rest", "topics": {"a": {"name": "mapped"}}}
    sinks = {
        "k": {**broker, **mapped},
        "other": {**broker, "topic": "{source}.{table}"},
    }
    given = SOURCES.validate_python(sources), SINKS.validate_python(sinks)
    assert topics_of("k", *given) == ["hr.a", "mapped", "rest", "sales.*"]
    assert topics_of("other", *given) == ["two.a"]


def test_a_publication_as_it_is_holds_tables_of_schemas() -> None:
    source = {"kind": "postgres", "dsn": "host=/run", "sinks": ["k"], "tables": []}
    sink = {
        "kind": "kafka",
        "topic": "app.{schema}.{table}",
        "producer": {"bootstrap.servers": "a:1"},
    }
    given = SOURCES.validate_python({"s": source}), SINKS.validate_python({"k": sink})
    topics = topics_of("k", *given)
    assert any(overlap(topic, "app.public.orders") for topic in topics)
    assert not any(overlap(topic, "app.message") for topic in topics)


def test_events_of_an_outbox_go_beside_the_tables() -> None:
    sources = SOURCES.validate_python(
        {"one": {"kind": "postgres", "dsn": "host=/run", "sinks": ["k"]}}
    )
    outbox = {"kind": "outbox", "tables": ["public.o"], "topic": "event.{value}"}
    sinks = SINKS.validate_python(
        {
            "k": {
                "kind": "kafka",
                "topic": "tables",
                "producer": {"bootstrap.servers": "a:1"},
                "handlers": [outbox],
            }
        }
    )
    assert topics_of("k", sources, sinks) == ["event.*", "tables"]
    (feed,) = feeds(sources, sinks)
    assert "event.*" in feed.asides
