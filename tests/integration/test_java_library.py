"""What walstream reads of a connector's file is what Java reads."""

import re
from pathlib import Path
from random import Random

from tests.support.oracles import java_library
from walstream.admin.connector import java_properties
from walstream.admin.connector.name_pattern import Inexact, patterns
from walstream.admin.connector.topic_route import (
    TopicRoute,
    Untranslatable,
    route,
    template,
)
from walstream.records.router import matches

TEXTS = 3000
SIGNS = "ab=: \t\f#!\\\\\\\n\n\r\r\nu0041xé"
PIECES = ["a", "b", r"\.", r"\.", ".", ".*", ".+", "[^.]+", "[^.]*", "(a|b)", "b?"]
MORE = ["(?:ab)", "[ab]", "a{2}", ".?", r"\$", "_", "^", "$", "(", ")", "*", r"\w"]
SCHEMAS = ["a", "b", "ab", "aa"]
TABLES = ["a", "b", "ab", "ba", "aab", "a_b", "a$", "xyz"]
PARTS = [r"\.", r"\.", r"\.", "(.*)", "([^.]+)", "app", "(?<n>.+)", "(?:.*)", "x|y"]
REPLACEMENTS = [
    "$1",
    "x.$2",
    "${n}",
    "all",
    "$1-$3",
    r"\$",
    "$10",
    "$",
    "$3_$2",
    "${m}",
]


def test_properties_are_those_of_java(tmp_path: Path) -> None:
    draw = Random(1)  # noqa: S311 - cases, not secrets
    texts = [
        "".join(draw.choice(SIGNS) for _ in range(draw.randrange(30)))
        for _ in range(TEXTS)
    ]
    texts += ["k = v\\", "\\", "\\\n\\", "a\\\n#b=c", "#a\\\nb=c", "\\ud83d\\ude00=1"]
    refused = 0
    for text, java in zip(texts, java_library.properties(tmp_path, texts), strict=True):
        try:
            found = dict(java_properties.read(text))
        except ValueError:
            assert java is None, text
            refused += 1
            continue
        assert java is not None, text
        # a lone backslash at the end is an entry of nothing to Java
        assert _named(found) == _named(java), text
    assert 0 < refused < TEXTS / 2


def _named(entries: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in entries.items() if key}


def test_patterns_match_what_debeziums_expressions_match(tmp_path: Path) -> None:
    draw = Random(2)  # noqa: S311 - cases, not secrets
    names = [f"{schema}.{table}" for schema in SCHEMAS for table in TABLES]
    asked: list[tuple[str, str]] = []
    told: list[bool] = []
    for _ in range(4000):
        pieces = PIECES if draw.random() < 0.8 else PIECES + MORE
        expression = "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 6)))
        try:
            found = patterns(expression, dots=1)
        except Inexact:
            continue
        for name in names:
            asked.append((expression, name))
            told.append(any(matches(pattern, name) for pattern in found))
    assert len(asked) > 20000
    assert sum(told) > 1000
    for question, ours, java in zip(
        asked, told, java_library.matched(tmp_path, asked), strict=True
    ):
        assert ours == java, question


def test_topics_are_those_of_a_router(tmp_path: Path) -> None:
    draw = Random(3)  # noqa: S311 - cases, not secrets
    asked: list[tuple[str, str, str]] = []
    told: list[str | None] = []
    templates = 0
    for _ in range(4000):
        expression = "".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 7)))
        one = TopicRoute(expression, draw.choice(REPLACEMENTS))
        for schema, table in (("public", "orders"), ("a", "app"), ("app", "b-c_d")):
            topic = f"app.{schema}.{table}"
            try:
                made = template([one], "app")
                if made is not None:
                    templates += 1
                    told.append(made.format(schema=schema, table=table))
                else:
                    told.append(route([one], topic))
            except Untranslatable:
                continue
            asked.append((expression, one.replacement, topic))
    assert templates > 300
    for question, ours, java in zip(
        asked, told, java_library.replaced(tmp_path, asked), strict=True
    ):
        if java is not None or re.search(r"\$\{m|\$$", question[1]) is None:
            assert ours == java, question
